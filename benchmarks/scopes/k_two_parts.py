"""Two parts that have nothing to do with each other: one is to be jitted, one is not."""

import jax
import jax.numpy as jnp


@jax.jit
def simulate(x):
    for _ in range(10):
        x = jnp.sin(x) * 1.01 + jnp.cos(x) * 0.1
    return x


@jax.jit
def summary(x, name):
    parts = [x.sum() * k for k in range(1, 60)]
    return sum(parts) + len(name)


x = jnp.linspace(0, 1, 10_000)
for _ in range(800):
    x = simulate(x)
print(summary(x, jnp.zeros(3)))
