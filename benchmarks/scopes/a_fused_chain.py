"""A chain of operations on a large array, many calls: the outer jit fuses all of it."""

import jax
import jax.numpy as jnp


@jax.jit
def half(x):
    return jnp.sin(x) * 0.5 + jnp.cos(x) * 0.25 + x * x * 1e-3


@jax.jit
def whole(x):
    for _ in range(4):
        x = half(x) + 0.1
    return x


x = jnp.linspace(0.0, 1.0, 200_000)
for _ in range(400):
    x = whole(x)
x.block_until_ready()
