"""Two calls of a few operations: nothing that is compiled pays."""

import jax
import jax.numpy as jnp


@jax.jit
def scaled(x):
    return x * 2.0


@jax.jit
def report(x):
    for power in range(1, 40):
        x = x + scaled(x) * (0.1 / power)
    return x * 3.0


print(report(jnp.ones(10)), report(jnp.ones(10) * 2))
