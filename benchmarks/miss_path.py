"""A call that compiles: what jaxwatch takes of it, in its listeners before and in its slow path after the call.

Each is timed from outside, by clocks around the only entries that JAX and the native core have: the three listeners,
and what the core calls at the end. What is left out is the making of the frame object, about a microsecond.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxwatch
from benchmarks import unrolled
from jaxwatch import _compat, _core, _departures, _frames, _hook, _limits, _listeners, _misses
from jaxwatch._content import content_of
from jaxwatch._history import HISTORY, Remembered
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch._signature import key_of
from jaxwatch.events import CacheMiss, Event

_LISTENERS = ("_on_event", "_on_duration", "_on_scalar")


@dataclass(frozen=True, slots=True)
class Share:
    """What jaxwatch took of the misses of one program."""

    microseconds: float  # median of a miss
    compile_seconds: float  # median of what the event reports
    share: float  # median of the ratio
    worst: float  # of the ratio
    misses: int

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


class _Stopwatch:
    """Adds up the time in the functions that it is put around."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = time.perf_counter()
            try:
                return fun(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


@contextmanager
def _timed(native: Any) -> Iterator[_Stopwatch]:
    """Have all that jaxwatch does in a miss timed."""
    watch, module = _Stopwatch(), vars(_listeners)
    before = {name: module[name] for name in _LISTENERS}
    _listeners.remove()
    module.update({name: watch.around(fun) for name, fun in before.items()})
    _listeners.ensure()
    finish, left = watch.around(_misses.finish), watch.around(_departures.left)
    native.setup(_compat.PJIT_TYPE, _frames.Frame, finish, _hook._refused, left)  # noqa: SLF001 -- as the core has it
    try:
        yield watch
    finally:
        _listeners.remove()
        module.update(before)
        _listeners.ensure()
        native.setup(_compat.PJIT_TYPE, _frames.Frame, _misses.finish, _hook._refused, _departures.left)  # noqa: SLF001


# ------------------------------------------------------------------ programs


def _training_step() -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    """Return a training step of 100 leaves of parameters, and arguments by batch size."""
    params = {f"layer{i:02}": {"w": jnp.full((16, 16), 0.01), "b": jnp.zeros(16)} for i in range(50)}

    def loss(params: Any, x: Any) -> Any:
        for layer in params.values():
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return jnp.mean(x**2)

    def step(params: Any, x: Any) -> Any:
        gradients = jax.grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return step, lambda n: (params, np.ones((n, 16), np.float32))


def _scalar_step() -> tuple[Callable[..., Any], Callable[[int], tuple[Any, ...]]]:
    return (lambda x: x + 1), lambda n: (np.ones(n, np.float32),)


def _reading(*, repeats: int) -> Share:
    """Return what it takes to read an unrolled loop of 20,000 equations, against tracing and lowering it alone.

    XLA takes minutes for such a program, so this is an upper bound of the share.
    """
    function, arguments = unrolled.PAIRS["RNN"].loop(1_053)
    found = []
    for _ in range(repeats):
        jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's own
        started = time.perf_counter()
        traced = jax.jit(function).trace(*arguments)
        traced.lower()
        lowered = time.perf_counter()
        content_of(traced.jaxpr)
        found.append((time.perf_counter() - lowered, lowered - started))
    shares = [ours / theirs for ours, theirs in found]
    ours, theirs = (statistics.median(values) for values in zip(*found, strict=True))
    return Share(ours * 1e6, theirs, statistics.median(shares), max(shares), repeats)


# ------------------------------------------------------------------ measurements


def measure(*, quick: bool) -> dict[str, Share]:
    """Return program → what a miss of it costs, with few earlier keys and with as many as are kept."""
    full = _limits.KEYS_PER_FUNCTION
    return {
        "scalar": _shares(_scalar_step, misses=10 if quick else 40),
        f"scalar, {full} earlier keys": _shares(_scalar_step, misses=5 if quick else 20, earlier=full),
        "training step, 100 leaves": _shares(_training_step, misses=2 if quick else 6),
        "reading 20,000 equations, against trace and lowering": _reading(repeats=1 if quick else 3),
        f"training step, 100 leaves, {full} earlier keys": _shares(
            _training_step, misses=2 if quick else 4, earlier=full
        ),
    }


def _shares(make: Callable[[], Any], *, misses: int, earlier: int = 0) -> Share:
    hooks = _core.CORE.hooks
    assert hooks is not None, "columns() has looked"  # noqa: S101 -- for the type checker
    step, arguments = make()
    fun = jaxwatch.jit(step)
    fun(*arguments(1))  # what it has to import and look up for the first time
    _remember(fun, arguments, earlier)
    found: list[tuple[float, float]] = []
    events: list[Event] = []
    HUB.add("benchmark", events.append)
    with _timed(hooks.native) as watch:
        for size in range(2, 2 + misses):
            given = arguments(size)
            watch.seconds = 0.0
            events.clear()
            fun(*given)
            (miss,) = (event for event in events if isinstance(event, CacheMiss))
            found.append((watch.seconds, miss.seconds.total))
    HUB.remove("benchmark")
    shares = [ours / compiling for ours, compiling in found]
    ours, compiling = (statistics.median(values) for values in zip(*found, strict=True))
    return Share(ours * 1e6, compiling, statistics.median(shares), max(shares), misses)


def _remember(fun: Any, arguments: Callable[[int], tuple[Any, ...]], keys: int) -> None:
    """Have so many keys of the function kept, as if it had missed with each."""
    subject = REGISTRY.find(fun)
    assert subject is not None, "it was watched just now"  # noqa: S101 -- as above
    plan = subject.plan
    for number in range(keys):
        key = key_of(plan, arguments(10_000 + number), {}, like=HISTORY.first(plan.code, plan.identity))
        HISTORY.keep(plan.code, plan.identity, Remembered(key, number, number))
