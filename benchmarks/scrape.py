"""A scrape of 1,000 watched functions, against prometheus_client's own work on the same samples made beforehand."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from benchmarks._paired import Figure, Run, against, interleaved
from jaxwatch import _core, _limits
from jaxwatch._options import Watch
from jaxwatch._origin import origin
from jaxwatch._registry import Registry, Subject
from jaxwatch.events import CacheMiss, PhaseSeconds
from jaxwatch.metrics import Collector

FUNCTIONS = 1000
_SIGNATURES = 5  # of each function
_BOUNDS = (
    "LABEL_FUNCTIONS",
    "LABEL_FUNCTIONS_OF_USER",
    "LABEL_SIGNATURES_PER_FUNCTION",
    "LABEL_SIGNATURES",
    "LABEL_SITES",
)


@dataclass(frozen=True, slots=True)
class Scrape:
    """What a scrape takes."""

    milliseconds: float
    formatting: Figure  # the whole scrape against the formatting of the same samples
    series: int
    kilobytes: float

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> dict[str, Scrape]:
    """Return the figures at the default bounds of labels, and with none."""
    registry, alive = busy()
    rounds = 5 if quick else 20
    found = {"default bounds": _scrapes(registry, rounds)}
    with _unbounded():
        found["unbounded"] = _scrapes(registry, max(3, rounds // 4))
    del alive
    return found


@contextmanager
def _unbounded() -> Iterator[None]:
    limits = vars(_limits)
    before = {name: limits[name] for name in _BOUNDS}
    limits.update(dict.fromkeys(_BOUNDS, 10**9))
    try:
        yield
    finally:
        limits.update(before)


def _scrapes(registry: Registry, rounds: int) -> Scrape:
    collector = Collector(registry.snapshot)
    whole, ready = CollectorRegistry(), CollectorRegistry()
    whole.register(collector)
    text = generate_latest(whole)
    ready.register(_Ready(collector.collect()))
    runs = {"formatting": _timed(ready), "scrape": _timed(whole)}
    figures = against("formatting", interleaved(runs, calls=1, rounds=rounds))
    figure = figures["scrape"]
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    return Scrape(figure.nanoseconds / 1e6, figure, series, len(text) / 1e3)


class _Ready:
    """A collector whose families are made already."""

    def __init__(self, families: list[Any]) -> None:
        self._families = families

    def collect(self) -> list[Any]:
        """Return them."""
        return self._families


def _timed(registry: CollectorRegistry) -> Run:
    def run(calls: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(calls):
            generate_latest(registry)
        return (time.perf_counter_ns() - started) / calls

    return run


# ------------------------------------------------------------------ figures to scrape


class _Function:
    """Stands for a jitted function: it can be referenced weakly, and that is all that the registry asks."""


def busy(functions: int = FUNCTIONS) -> tuple[Registry, list[Any]]:
    """Return a registry of watched functions with calls and misses, and what keeps them alive."""
    registry, alive = Registry(), []
    for number in range(functions):
        function, subject = _Function(), _subject(number)
        registry.add(function, subject)
        alive.append(function)
        for call in range(40):
            subject.counters.cell.add(4_000 + 37 * call * (number % 7))
        subject.counters.errors = 1
        for signature in range(_SIGNATURES):
            registry.count_miss(subject, _miss(subject, signature), 1.7e9 + number)
    return registry, alive


def _subject(number: int) -> Subject:
    hooks = _core.CORE.hooks
    return Subject(
        name=f"step_{number}",
        definition=f"train.py:{number}",
        event_name="step",
        in_library=False,
        watch=Watch(),
        plan=None,
        cell=None if hooks is None else hooks.native.Cell(),
    )


def _miss(subject: Subject, number: int) -> CacheMiss:
    return CacheMiss(
        id=1,
        origin=origin(),
        function=subject.name,
        definition=subject.definition,
        site="train.py:1",
        call=number + 1,
        layer="compile",
        traces=1,
        lowerings=1,
        compiles=1,
        persistent_cache=None,
        seconds=PhaseSeconds(trace=0.01, lower=0.01, backend_compile=0.1 * (number + 1)),
        reasons=("shape",) if number else ("first_call",),
        changes=(),
        compared_with=None,
        fingerprint=None,
        signature=f"s{hash((subject.name, number)) & 0xFFFFFFFFFFFF:012x}",
        abstract=f"(x: float32[{number}])",
        advice=(),
    )
