"""Python's own control flow by a static mode, of which each call has another one; the shared body is the inner one."""

from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def smooth(x):
    for _ in range(2):
        x = 0.5 * x + 0.25 * (jnp.roll(x, 1) + jnp.roll(x, -1))
    return x


@partial(jax.jit, static_argnames=("mode", "rounds"))
def process(x, mode, rounds):
    for number in range(rounds):
        x = smooth(x) if (mode + number) % 2 else smooth(x * 1.01)
    return x if mode % 3 else -x


x = jnp.linspace(0.0, 1.0, 5_000)
for mode in range(4):
    for rounds in (1, 2):
        x = process(x, mode, rounds)
x.block_until_ready()
