"""Inner and outer jit around one library call that does all the work: no difference."""

import jax
import jax.numpy as jnp


@jax.jit
def solve(a, b):
    return jnp.linalg.solve(a, b)


@jax.jit
def step(a, b):
    return solve(a, b)


a = jnp.eye(500) * 2 + 0.01
b = jnp.ones((500, 100))
for _ in range(60):
    b = step(a, b)
b.block_until_ready()
