"""A jit within a jit: what it saves or costs when the outer function is traced, lowered and compiled, and when it runs.

The same program with and without the inner jit, each made anew in every round, so that nothing is cached.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Function = Callable[[Any], Any]
PHASES = ("trace", "lower", "compile", "run")
CALLS = (1, 4, 24)
"""Calls of one inner function within the outer one."""

_DEPTH = 10  # of the inner function: 30 equations
_X = np.ones((32, 32), np.float32)


@dataclass(frozen=True, slots=True)
class Saved:
    """A program with inner jits against the same without."""

    plain_seconds: dict[str, float]  # medians by phase, without; a run's are of one call
    ratios: dict[str, float]  # with to without, medians of the paired ratios
    added_microseconds: dict[str, float]  # by an inner jit, for each call of it, medians of the paired differences

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> dict[str, Saved]:
    """Return the figures of each program."""
    rounds = 5 if quick else 25
    found = {f"one function, {calls} x": _compared(_same(calls), calls, rounds) for calls in CALLS}
    return {**found, "24 functions, once each": _compared(_each_its_own(24), 24, rounds)}


def _body() -> Function:
    """Return a function that JAX has never seen."""

    def block(x: Any) -> Any:
        for _ in range(_DEPTH):
            x = jnp.sin(x) @ x + 1.0
        return x

    return block


def _same(calls: int) -> Callable[[Callable[[Function], Function]], Function]:
    def make(jit: Callable[[Function], Function]) -> Function:
        inner = jit(_body())

        def outer(x: Any) -> Any:
            for _ in range(calls):
                x = inner(x)
            return x

        return outer

    return make


def _each_its_own(functions: int) -> Callable[[Callable[[Function], Function]], Function]:
    def make(jit: Callable[[Function], Function]) -> Function:
        inners = [jit(_body()) for _ in range(functions)]

        def outer(x: Any) -> Any:
            for inner in inners:
                x = inner(x)
            return x

        return outer

    return make


def _compared(make: Callable[[Callable[[Function], Function]], Function], calls: int, rounds: int) -> Saved:
    times: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for number in range(rounds + 1):  # the first one warms up
        for inner in (number % 2 == 0, number % 2 == 1):
            seconds = _phases(make(jax.jit if inner else lambda function: function))
            if number:
                times[inner].append(seconds)
    pairs = list(zip(times[True], times[False], strict=True))
    return Saved(
        {phase: statistics.median(one[phase] for one in times[False]) for phase in PHASES},
        {phase: statistics.median(a[phase] / b[phase] for a, b in pairs) for phase in PHASES},
        {phase: statistics.median(1e6 * (a[phase] - b[phase]) / calls for a, b in pairs) for phase in PHASES},
    )


def _phases(outer: Function) -> dict[str, float]:
    clock, jitted = time.perf_counter, jax.jit(outer)
    begun = clock()
    traced = jitted.trace(_X)
    at_trace = clock()
    lowered = traced.lower()
    at_lower = clock()
    compiled = lowered.compile()
    at_compile = clock()
    runs = []
    for _ in range(20):
        started = clock()
        compiled(_X).block_until_ready()
        runs.append(clock() - started)
    ends = begun, at_trace, at_lower, at_compile
    spans = [after - before for before, after in itertools.pairwise(ends)]
    return dict(zip(PHASES, [*spans, min(runs)], strict=True))
