"""The two programs of ``scopes.py``, as workloads that can be imported: what is jitted says ``SCOPES_JIT``, of f and g.

Each workload makes its calls and hands the number and result of each to ``after``, for those who take times.
"""

import os
from functools import partial

import jax
import jax.numpy as jnp

QUICK = "SCOPES_QUICK" in os.environ
JITTED = os.environ.get("SCOPES_JIT", "f,g").split(",")
LARGE = 1_000_000  # elements
MANY = 400 if QUICK else 1_200  # calls


def scoped(letter, **options):
    return partial(jax.jit, **options) if letter in JITTED else lambda function: function


@scoped("f")
def f(x):
    return 2 * x + jnp.sin(x)


@scoped("g")
def g(x):
    return f(f(x)) / 2


@scoped("g", static_argnames="iterations")
def g_loop(x, iterations):
    for _ in range(iterations):
        x = f(x)
    return x / 2


@scoped("g", static_argnames="iterations")
def g_slices(x, iterations):
    total = 0.0
    for step in range(iterations):
        total += f(x[: 8 + step]).sum()
    return total / 2


def nothing(number, result):
    pass


def repeated(calls, function, after):
    for number in range(1, calls + 1):
        result = function(number)
        after(number, result)
    return jax.block_until_ready(result)


def a_scalar(after=nothing):
    x = jnp.float32(0.5)
    return repeated(MANY, lambda _: g(x), after)


def a_large(after=nothing):
    x = jnp.linspace(0, 1, LARGE)
    return repeated(MANY // 20, lambda _: g(x), after)


def b_fixed(after=nothing):
    x = jnp.zeros(1_001)  # f(0) is 0: no number of steps overflows
    return repeated(MANY, lambda _: g_loop(x, iterations=10), after)


def b_large(after=nothing):
    x = jnp.zeros(1_002)
    return repeated(MANY // 8, lambda _: g_loop(x, iterations=100), after)


def b_varying(after=nothing):
    x = jnp.zeros(1_003)
    return repeated(24, lambda number: g_loop(x, iterations=2 + (5 * number) % 24), after)


def b_slices(after=nothing):
    x = jnp.zeros(1_004)
    return repeated(MANY // 20, lambda _: g_slices(x, iterations=12), after)
