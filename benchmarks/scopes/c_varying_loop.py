"""The number of iterations, which is static, is another one at each call: the outer jit never stops compiling."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def f(x):
    return 2 * x + jnp.sin(x)


@partial(jax.jit, static_argnums=1)
def g(x, iterations):
    for _ in range(iterations):
        x = f(x)
    return x / 2.0**iterations


x = jnp.ones(1000)
for call in range(24):
    x = g(x, 2 + (5 * call) % 24)
x.block_until_ready()
