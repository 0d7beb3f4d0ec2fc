"""Throughput of several threads that call one function each, against plain jax.jit with as many."""

import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxwatch
from benchmarks import variants
from benchmarks._paired import Figure, Run, against, interleaved

THREADS = (1, 2, 4, 8)
_EXACT_THREADS, _EXACT_CALLS = 16, 100_000


def measure(*, quick: bool) -> dict[int, dict[str, Figure]]:
    """Return number of threads → variant → nanoseconds of wall time a call, against plain jax.jit."""
    rounds, calls = (6, 300) if quick else (40, 1000)
    jits: dict[str, Callable[..., Any]] = {
        variants.PLAIN: jax.jit,
        variants.AGAIN: jax.jit,
        variants.NATIVE: jaxwatch.jit,
        variants.TWIN: variants.twin,
    }
    found = {}
    for number in THREADS:
        runs = {name: _run(jit, number) for name, jit in jits.items()}
        for run in runs.values():
            run(20)
        found[number] = against(variants.PLAIN, interleaved(runs, calls=calls, rounds=rounds))
    return found


def _run(jit: Callable[..., Any], number: int) -> Run:
    fun, x = jit(lambda x: x), jnp.float32(1)

    def run(calls: int) -> float:
        start = threading.Barrier(number + 1)

        def work() -> None:
            start.wait()
            for _ in range(calls):
                fun(x)

        threads = [threading.Thread(target=work) for _ in range(number)]
        for thread in threads:
            thread.start()
        start.wait()
        started = time.perf_counter_ns()
        for thread in threads:
            thread.join()
        return (time.perf_counter_ns() - started) / (number * calls)

    return run


def exact(*, quick: bool) -> dict[str, int]:
    """Call one function from 16 threads; return how many calls were made and how many counted."""
    calls = 5_000 if quick else _EXACT_CALLS
    fun = jaxwatch.jit(lambda x: x)
    x = jnp.float32(1)
    fun(x)
    before = jaxwatch.stats(fun)

    def work() -> None:
        for _ in range(calls):
            fun(x)

    threads = [threading.Thread(target=work) for _ in range(_EXACT_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = jaxwatch.stats(fun)
    return {
        "threads": _EXACT_THREADS,
        "made": _EXACT_THREADS * calls,
        "counted": after.calls - before.calls,
        "timed": sum(after.dispatch.values()) - sum(before.dispatch.values()),
    }
