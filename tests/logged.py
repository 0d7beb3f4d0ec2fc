"""A program that compiles for several reasons, for tests of what reads its log."""

import sys

import jax.numpy as jnp
import numpy as np

import jaxwatch


@jaxwatch.jit(static_argnames="power")
def step(x: object, lr: object, power: int = 2) -> object:
    return jnp.sum(x) ** power * lr  # type: ignore[arg-type]


for rows in range(1, int(sys.argv[1])):
    step(np.ones(rows, np.float32), 0.1)
    step(np.ones(rows, np.float32), jnp.float32(0.1), power=rows)
    jnp.cumsum(jnp.ones(rows))
