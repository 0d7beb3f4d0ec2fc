"""A long loop over two small operations, called once, which the program has used outside of it: nothing pays."""

import jax
import jax.numpy as jnp


@jax.jit
def eased(x):
    return x * 0.5 + 1.0


@jax.jit
def settled(x):
    for _ in range(150):
        x = eased(x)
    return x


x = jnp.linspace(0.0, 1.0, 10)
print(x * 0.5 + 1.0)
print(settled(x))
