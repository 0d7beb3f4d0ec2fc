"""A product of large matrices: jitted or not, the device does the same."""

import jax
import jax.numpy as jnp


@jax.jit
def multiply(a, b):
    return a @ b


a = jnp.ones((1_500, 1_500)) * 0.001
b = a
for _ in range(30):
    b = multiply(a, b)
b.block_until_ready()
