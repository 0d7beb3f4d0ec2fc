"""The columns: who watches the call."""

import time
from collections.abc import Callable
from typing import Any

import jax

import jaxwatch
from jaxwatch._hub import HUB

Jit = Callable[..., Any]
"""As ``jax.jit``: a function and options."""

PLAIN, AGAIN, OURS = "jax.jit", "jax.jit again (noise)", "jaxwatch"


def closure(fun: Callable[..., Any], **options: Any) -> Any:
    """Return a jitted function behind the least that Python can put in front of it."""
    jitted = jax.jit(fun, **options)

    def call(*args: Any, **kwargs: Any) -> Any:
        return jitted(*args, **kwargs)

    return call


def timing_closure(fun: Callable[..., Any], **options: Any) -> Any:
    """Return a jitted function behind what people write by hand: count, time, sum up."""
    jitted = jax.jit(fun, **options)
    clock = time.perf_counter_ns
    calls = nanoseconds = 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls, nanoseconds
        started = clock()
        result = jitted(*args, **kwargs)
        nanoseconds += clock() - started
        calls += 1
        return result

    return call


def columns() -> dict[str, Jit]:
    """Return all variants by name."""
    HUB.remove("console")  # its lines would stand between the table's
    return {
        PLAIN: jax.jit,
        AGAIN: jax.jit,
        OURS: jaxwatch.jit,
        "Python closure": closure,
        "Python timing closure": timing_closure,
    }
