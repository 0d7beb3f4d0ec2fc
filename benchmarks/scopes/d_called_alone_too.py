"""The inner function is called within the outer one, and as often alone: both jits are needed."""

import jax
import jax.numpy as jnp


@jax.jit
def features(x):
    for _ in range(6):
        x = jnp.tanh(x * 1.01) + jnp.sin(x) * 0.1
    return x


@jax.jit
def loss(x):
    y = features(x)
    for _ in range(6):
        y = jnp.cos(y) * y + 0.01
    return features(y).mean()


x = jnp.linspace(0.0, 1.0, 2_000)
for _ in range(1_500):
    value = loss(x)
    x = features(x)
x.block_until_ready()
