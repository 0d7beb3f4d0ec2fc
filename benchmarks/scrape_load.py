"""Scrapes while 8 threads call watched functions: what one takes, and what it does to the latency of the calls.

Compared with a scrape of prometheus_client's own objects with the same series.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import generate_latest

import jaxwatch
from benchmarks._paired import Figure, against, interleaved
from benchmarks.scrape import busy
from jaxwatch._histogram import quantile
from jaxwatch._metrics import FAMILIES
from jaxwatch.metrics import Collector

THREADS = 8
Window = tuple[float, dict[float, int]]  # nanoseconds a call over all threads, and latencies by bucket
_OURS, _THEIRS = "jaxwatch", "prometheus_client's own objects"
_QUIET, _AGAIN, _SCRAPED = "no scrape", "no scrape again (noise)", "a scrape each second"


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """What scrapes take and do while calls are made."""

    scrape_milliseconds: float
    against_own: Figure  # jaxwatch's scrape against that of prometheus_client's objects
    series: int
    own_series: int
    calls_per_second: float
    latency: dict[str, tuple[float, float]]  # p50 and p99 in seconds, as jaxwatch's own histograms have them
    throughput: dict[str, Figure]  # nanoseconds a call over all threads, against no scrape

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> UnderLoad:
    """Return the figures, with 1,000 functions registered besides those that are called."""
    registry, alive = busy()
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    ours.register(Collector(registry.snapshot))
    disable_created_metrics()  # type: ignore[no-untyped-call]  # of the whole process: else theirs would have a third more series
    like(ours, theirs)
    rounds = 5 if quick else 20
    with calling() as calls:
        scrapes = interleaved({_OURS: _timed(ours), _THEIRS: _timed(theirs)}, calls=1, rounds=3 * rounds)
        windows = _windows(calls, ours, rounds, 0.2 if quick else 1.0)
    del alive
    figures = against(_THEIRS, scrapes)
    throughput = against(_QUIET, {name: [took for took, _ in found] for name, found in windows.items()})
    return UnderLoad(
        figures[_OURS].nanoseconds / 1e6,
        figures[_OURS],
        _series(ours),
        _series(theirs),
        1e9 / throughput[_QUIET].nanoseconds,
        {name: _latency(found) for name, found in windows.items()},
        throughput,
    )


@contextmanager
def calling() -> Iterator[list[Any]]:
    """Have threads call a watched function each; yield the functions."""
    functions = [jaxwatch.jit(lambda x, number=number: x + number) for number in range(THREADS)]
    x, stop = jnp.float32(1), threading.Event()
    for function in functions:
        function(x).block_until_ready()

    def work(function: Callable[..., Any]) -> None:
        while not stop.is_set():
            for _ in itertools.repeat(None, 100):
                function(x)

    threads = [threading.Thread(target=work, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    try:
        yield functions
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _windows(functions: list[Any], registry: CollectorRegistry, rounds: int, seconds: float) -> dict[str, list[Window]]:
    """Return the windows, by what went on in them."""

    def window(scrapes: bool) -> Window:  # noqa: FBT001 -- of the table below
        before, begun = [jaxwatch.stats(function) for function in functions], time.perf_counter()
        if scrapes:
            generate_latest(registry)
        time.sleep(max(0.0, seconds - (time.perf_counter() - begun)))
        after, passed = [jaxwatch.stats(function) for function in functions], time.perf_counter() - begun
        made = sum(late.calls - early.calls for late, early in zip(after, before, strict=True))
        counts: dict[float, int] = {}
        for late, early in zip(after, before, strict=True):
            for bound, count in late.dispatch.items():
                counts[bound] = counts.get(bound, 0) + count - early.dispatch.get(bound, 0)
        return 1e9 * passed / max(made, 1), counts

    kinds = {_QUIET: False, _SCRAPED: True, _AGAIN: False}
    found: dict[str, list[Window]] = {name: [] for name in kinds}
    for number in range(rounds):
        names = list(kinds)[number % 3 :] + list(kinds)[: number % 3]
        for name in names:
            found[name].append(window(kinds[name]))
    return found


def _latency(windows: list[Window]) -> tuple[float, float]:
    counts: dict[float, int] = {}
    for _, found in windows:
        for bound, count in found.items():
            counts[bound] = counts.get(bound, 0) + count
    return quantile(counts, 0.5) or 0.0, quantile(counts, 0.99) or 0.0


# ------------------------------------------------------------------ prometheus_client's own


def like(source: CollectorRegistry, target: CollectorRegistry) -> None:
    """Fill a registry with prometheus_client's own objects, with the families, labels and values of another one."""
    families = {family.name.removesuffix("_total"): family for family in FAMILIES}
    for metric in source.collect():
        family = families[metric.name]
        labels = dict.fromkeys(tuple(sample.labels.get(name) for name in family.labels) for sample in metric.samples)
        if family.kind == "histogram":
            histogram = Histogram(family.name, family.help, family.labels, buckets=family.buckets, registry=target)
            for values in labels:
                for number in range(40):
                    histogram.labels(*values).observe(1e-5 * 1.5**number)
            continue
        kind = Gauge if family.kind == "gauge" else Counter
        made = kind(family.name, family.help, family.labels, registry=target)
        for sample in metric.samples:
            made.labels(*(sample.labels[name] for name in family.labels)).inc(sample.value)


def _series(registry: CollectorRegistry) -> int:
    lines = generate_latest(registry).decode().splitlines()
    return sum(not line.startswith("#") and "_created" not in line for line in lines)


def _timed(registry: CollectorRegistry) -> Callable[[int], float]:
    def run(calls: int) -> float:
        started = time.perf_counter_ns()
        for _ in range(calls):
            generate_latest(registry)
        return (time.perf_counter_ns() - started) / calls

    return run
