"""A training step with a jitted loss in a jitted update, many small calls: one dispatch for all of it."""

import jax
import jax.numpy as jnp


@jax.jit
def loss(params, x, y):
    hidden = jnp.tanh(x @ params["a"])
    return ((hidden @ params["b"] - y) ** 2).mean()


@jax.jit
def update(params, x, y):
    gradient = jax.grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, gradient)


key = jax.random.key(0)
params = {"a": jax.random.normal(key, (16, 64)) * 0.1, "b": jax.random.normal(key, (64, 1)) * 0.1}
x, y = jax.random.normal(key, (32, 16)), jnp.ones((32, 1))
for _ in range(2_000):
    params = update(params, x, y)
jax.block_until_ready(params)
