"""Bytes that jaxwatch keeps: per function, per signature, and over a million keys of one function."""

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np

import jaxwatch
from benchmarks import variants
from jaxwatch import _frames, _limits, _misses
from jaxwatch._history import HISTORY, Remembered
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._signature import key_of

_PAGE = 4096


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes, as tracemalloc counts them."""

    plain_function: float  # what jax.jit itself keeps of one that was never called
    function: float  # what jaxwatch adds
    twin_function: float
    scalar_signature: float
    hundred_leaves_signature: float

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Flat:
    """Distinct keys on one function, one after the other."""

    keys: int
    kept: int
    dropped: int  # as counted in the figures
    whole_path: int  # how many of the keys went through all of the slow path, events included
    kib: tuple[int, ...]  # resident memory, at the start of the second half and ten times from there to the end
    seconds: float

    @property
    def growth(self) -> float:
        """Kibibytes by which the second half grew."""
        return self.kib[-1] - self.kib[0]

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self) | {"growth_kib": self.growth}


def sizes(*, quick: bool) -> Sizes:
    """Return what a function and a signature take."""
    functions, signatures = (200, 60) if quick else (1000, 200)
    plain, ours, twin = (_per_function(jit, functions) for jit in (jax.jit, jaxwatch.jit, variants.twin))
    return Sizes(
        plain_function=plain,
        function=ours - plain,
        twin_function=twin - plain,
        scalar_signature=_per_signature(lambda n: (np.empty((0, n), np.float32),), signatures),
        hundred_leaves_signature=_per_signature(_hundred_leaves, signatures),
    )


def _hundred_leaves(size: int) -> tuple[Any, ...]:
    return ({f"k{i}": np.empty((0, size), np.float32) for i in range(100)},)


def _traced(do: Callable[[], Any]) -> float:
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = do()
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return after - before


def _functions(number: int) -> list[Callable[[Any], Any]]:
    return [lambda x: x for _ in range(number)]


def _per_function(jit: variants.Jit, number: int) -> float:
    functions = _functions(number)
    jit(functions[0])  # what is set up once
    return _traced(lambda: [jit(fun) for fun in functions]) / number


def _per_signature(arguments: Callable[[int], tuple[Any, ...]], number: int) -> float:
    subject = _subject()
    _miss(subject, 1, arguments(1))

    def drive() -> None:
        for call in range(2, 2 + number):
            _miss(subject, call, arguments(call))

    return _traced(drive) / number


# ------------------------------------------------------------------ the slow path, without compiling

_alive: list[Any] = []


def _subject() -> Subject:
    fun = jaxwatch.jit(lambda x: x)
    _alive.append(fun)
    subject = REGISTRY.find(fun)
    assert subject is not None, "it was watched just now"  # noqa: S101 -- for the type checker
    return subject


def _miss(subject: Subject, call: int, args: tuple[Any, ...]) -> None:
    """Go through the slow path as if JAX had traced, lowered and compiled the function for these arguments."""
    frame = _frames.Frame(subject, call, args, {})
    _misses.begin(frame, "trace")
    frame.traces = frame.lowerings = frame.compiles = 1
    frame.seconds = [0.001, 0.001, 0.01]
    _misses.finish(frame)


def _shapes(number: int) -> Iterator[tuple[int, int, int]]:
    """Return so many distinct shapes that need no memory."""
    for n in range(number):
        yield 0, n // 1000 + 1, n % 1000 + 1


def flat(*, quick: bool) -> Flat:
    """Drive distinct keys through one function's bounded store: the first through all of the slow path."""
    keys = 20_000 if quick else 1_000_000
    whole_path = 500 if quick else 5_000
    subject, started = _subject(), time.perf_counter()
    plan = subject.plan
    dropped = REGISTRY.snapshot().dropped.get("key", 0)
    marks, resident = {keys // 2 + keys * part // 20 for part in range(10)}, []
    for number, shape in enumerate(_shapes(keys)):
        args = (np.empty(shape, np.float32),)
        if number < whole_path:
            _miss(subject, number, args)
        else:
            key = key_of(plan, args, {}, like=HISTORY.first(plan.code, plan.identity))
            HISTORY.keep(plan.code, plan.identity, Remembered(key, number, number))
        if number in marks:
            resident.append(_resident_kib())
    resident.append(_resident_kib())
    return Flat(
        keys=keys,
        kept=len(HISTORY.keys(plan.code, plan.identity)),
        dropped=REGISTRY.snapshot().dropped.get("key", 0) - dropped,
        whole_path=whole_path,
        kib=tuple(resident),
        seconds=time.perf_counter() - started,
    )


def _resident_kib() -> int:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * _PAGE // 1024


def bound() -> int:
    """Return how many keys of one function are kept."""
    return _limits.KEYS_PER_FUNCTION
