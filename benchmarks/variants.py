"""The columns: who watches the call."""

import importlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

import jaxwatch
from jaxwatch import _core, _wrap
from jaxwatch._hub import HUB
from jaxwatch._options import Watch

Jit = Callable[..., Any]
"""As ``jax.jit``: a function and options."""

PLAIN, AGAIN, NATIVE, TWIN = "jax.jit", "jax.jit again (noise)", "jaxwatch", "jaxwatch, Python twin"


def twin(fun: Callable[..., Any], **options: Any) -> Any:
    """Return a function watched by the Python twin, whatever core is in use."""
    return _wrap.watch(jax.jit(fun, **options), fun, Watch(), options)


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


def _chex() -> Jit | None:
    try:
        chex = importlib.import_module("chex")
    except ImportError:
        return None

    def jit(fun: Callable[..., Any], **options: Any) -> Any:
        return jax.jit(chex.assert_max_traces(fun, n=4), **options)

    return jit


FLAGS = ("jax_log_compiles", "jax_explain_cache_misses")
"""Of JAX's configuration: columns of plain jax.jit with one of them switched on."""


def columns() -> dict[str, Jit]:
    """Return all variants by name; chex's where it is installed.

    Raises:
        SystemExit: The native core is not in use.
    """
    if _core.CORE.hooks is None:
        raise SystemExit(f"The native core is what is measured, and it is not in use: {_core.CORE.reason}")
    HUB.remove("console")  # its lines would stand between the table's
    found: dict[str, Jit] = {
        PLAIN: jax.jit,
        AGAIN: jax.jit,
        NATIVE: jaxwatch.jit,
        TWIN: twin,
        "Python closure": closure,
        "Python timing closure": timing_closure,
    }
    if (chex := _chex()) is not None:
        found["chex.assert_max_traces"] = chex
    return found | dict.fromkeys(FLAGS, jax.jit)


@contextmanager
def switched_on(flag: str) -> Iterator[None]:
    """Have a flag of JAX's configuration on."""
    config: Any = jax.config
    before = getattr(config, flag)
    config.update(flag, True)  # noqa: FBT003 -- JAX's own
    try:
        yield
    finally:
        config.update(flag, before)
