"""A program that compiles for several reasons, for tests of what reads its log."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import jaxwatch


def power_of(x: jax.Array, lr: float, power: int = 2) -> jax.Array:
    return jnp.sum(x) ** power * lr


step = jaxwatch.jit(power_of, static_argnames="power")


for rows in range(1, int(sys.argv[1])):
    step(np.ones(rows, np.float32), 0.1)
    step(np.ones(rows, np.float32), jnp.float32(0.1), power=rows)
    jnp.cumsum(jnp.ones(rows))
