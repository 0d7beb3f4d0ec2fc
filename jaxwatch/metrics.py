"""Metrics for Prometheus: ``jaxwatch.metrics.register()`` puts them into a registry of prometheus_client.

``grafana/METRICS.md`` lists them. Nothing is pushed and no call pays for them: the figures are read when a scrape asks.
"""

import contextlib
import math
import os
import threading
import time
import weakref
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxwatch._build import Build, build
from jaxwatch._labels import Labels, clean
from jaxwatch._metrics import FAMILIES, Family
from jaxwatch._samples import MAKERS, Histogram, Sample, Samples, Scrape
from jaxwatch._stats import ProcessStats
from jaxwatch.errors import BadOptionError, MissingExtraError, NotRegisteredError

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

__all__ = ["Collector", "register", "unregister"]

EXPORTER = "prometheus"
"""What the collector is called in ``jaxwatch_exporter_errors_total``."""

_EXEMPLAR_DIGITS = 100  # OpenMetrics allows 128 characters of labels
_BUILD_INFO = "jaxwatch_build_info"
_EXPORTER_ERRORS = "jaxwatch_exporter_errors_total"


class Collector:
    """A collector of prometheus_client that gives every family of ``grafana/METRICS.md`` at each scrape.

    Any thread may scrape, several at once too; they wait for each other. A scrape never fails because of jaxwatch: what
    raises is counted, and its family has no samples that time. It imports no jax, and starts no backend. Labels stay
    within their bounds, and a label value once given stays the same as long as the collector lives.

    Args:
        read: Returns the figures; by default those of this process.
        builds: Returns what runs in each process that the figures are of; by default in this one.
        count_error: Called with "prometheus" for each exception caught; by default this process's registry counts it.
        add_overhead: Called with "scrape" and the CPU seconds it took; by default this process's registry adds them.
    """

    def __init__(
        self,
        read: Callable[[], ProcessStats] | None = None,
        *,
        builds: Callable[[], Iterable[Build]] = lambda: (build(),),
        count_error: Callable[[str], None] | None = None,
        add_overhead: Callable[[str, float], None] | None = None,
    ) -> None:
        from jaxwatch._registry import REGISTRY  # noqa: PLC0415 -- the engine's state stands above this module

        self._read = read or REGISTRY.snapshot
        self._builds = builds
        self._count_error = count_error or REGISTRY.count_exporter_error
        self._add_overhead = add_overhead or REGISTRY.add_overhead
        self._labels = Labels()
        self._errors: dict[str, float] = {EXPORTER: 0}
        self._seconds: dict[tuple[str, tuple[str, ...]], float] = {}
        self._lock = threading.RLock()  # a signal handler may scrape in the middle of a scrape
        _alive.add(self)

    def describe(self) -> "list[Metric]":
        """Return the families without samples; a registry asks when the collector is registered."""
        return [_metric(family) for family in FAMILIES]

    def collect(self) -> "list[Metric]":
        """Return all families with their samples as they are now."""
        started = time.thread_time()  # not what it waited for: for the program to let go of the interpreter, say
        with self._lock:
            scrape = self._scrape()
            families = [self._filled(family, scrape) for family in FAMILIES]
        try:
            self._add_overhead("scrape", time.thread_time() - started)
        except Exception:  # noqa: BLE001 -- what a scrape cost is not worth a failed scrape
            self._failed()
        return families

    def samples(self) -> "dict[str, list[Sample | Histogram]]":
        """Return name of the family → its samples now; as ``collect``, for other clients than Prometheus'."""
        with self._lock:
            scrape = self._scrape()
            return {family.name: self._isolated(family, scrape) for family in FAMILIES}

    def _isolated(self, family: Family, scrape: Scrape | None) -> "list[Sample | Histogram]":
        try:
            return [self._steady(family, sample) for sample in self._samples(family, scrape)]
        except Exception:  # noqa: BLE001 -- as in `_filled`
            self._failed()
            return []

    def _scrape(self) -> Scrape | None:
        try:
            return Scrape(self._read(), self._labels)
        except Exception:  # noqa: BLE001 -- an exception would fail the scrape of all that the program exports
            self._failed()
            return None

    def _filled(self, family: Family, scrape: Scrape | None) -> "Metric":
        try:
            return _metric(family, [self._steady(family, sample) for sample in self._samples(family, scrape)])
        except Exception:  # noqa: BLE001 -- as above; the other families are still given
            self._failed()
            return _metric(family)

    def _samples(self, family: Family, scrape: Scrape | None) -> Samples:
        if family.name == _BUILD_INFO:
            return [Sample(tuple(map(clean, build)), 1) for build in self._builds()]
        if family.name == _EXPORTER_ERRORS:
            return self._exporter_errors(MAKERS[family.name](scrape) if scrape else ())
        # With nothing to read, no samples: a 0 would look as if the process had started anew.
        return MAKERS[family.name](scrape) if scrape else ()

    def _exporter_errors(self, read: Samples) -> Samples:
        """Return what was read, or more where this collector failed since: also when there is nothing to read."""
        for sample in read:
            if isinstance(sample, Sample):
                (name,) = sample.labels
                self._errors[name] = max(sample.value, self._errors.get(name, 0))
        return [Sample((name,), count) for name, count in self._errors.items()]

    def _failed(self) -> None:
        self._errors[EXPORTER] += 1
        with contextlib.suppress(Exception):  # it is counted above, and that is all there is to do
            self._count_error(EXPORTER)

    def _steady(self, family: Family, sample: Sample | Histogram) -> Sample | Histogram:
        """Return the sample, but with seconds that went down by rounding alone as they were.

        Sums of floats depend on their order, which changes when a watched function dies. To Prometheus any decrease is
        a restart: ``increase()`` would add the whole sum once more.
        """
        if family.unit != "seconds" or family.kind == "gauge":
            return sample
        key = family.name, sample.labels
        now = sample.seconds if isinstance(sample, Histogram) else sample.value
        last = self._seconds.get(key, now)
        if now < last and math.isclose(now, last, rel_tol=1e-9):
            now = last
        self._seconds[key] = now
        if isinstance(sample, Histogram):
            return replace(sample, seconds=now)
        return Sample(sample.labels, now)


def register(registry: "CollectorRegistry | None" = None) -> Collector:
    """Put jaxwatch's metrics into a registry of prometheus_client; once more does nothing.

    Args:
        registry: By default ``prometheus_client.REGISTRY``. One of prometheus_client's multiprocess mode cannot show
            them: that mode knows no collectors.

    Returns:
        The registry's collector: the same one at each call.

    Raises:
        MissingExtraError: prometheus_client is not installed.
        BadOptionError: It is no registry, or has other metrics of these names.
    """
    registry = _registry(registry)
    with _lock:
        collector = _registered.get(registry)
        known = collector is not None
        collector = collector or Collector()
        try:
            registry.register(collector)
        except ValueError as error:  # by this the registry says that it has some of the names
            if not known:
                problem = "The registry has metrics of these names that jaxwatch.metrics.register did not put there."
                raise BadOptionError(problem, "Take those out, or give another registry.") from error
        _registered[registry] = collector
        return collector


def unregister(registry: "CollectorRegistry | None" = None) -> None:
    """Take jaxwatch's metrics out of a registry of prometheus_client.

    Args:
        registry: By default ``prometheus_client.REGISTRY``.

    Raises:
        MissingExtraError: prometheus_client is not installed.
        BadOptionError: It is no registry.
        NotRegisteredError: ``register`` did not put them there, or they were taken out before.
    """
    registry = _registry(registry)
    with _lock:
        collector = _registered.pop(registry, None)
        try:
            if collector is not None:
                registry.unregister(collector)
                return
        except KeyError:  # taken out by registry.unregister
            pass
    problem = "The registry does not have jaxwatch's metrics."
    raise NotRegisteredError(problem, "Call jaxwatch.metrics.register with it first.")


def _registry(registry: "CollectorRegistry | None") -> "CollectorRegistry":
    try:
        import prometheus_client  # noqa: PLC0415 -- importing jaxwatch must stay light, and work without it
    except ImportError as error:
        problem = "Metrics need the package prometheus-client, which is not installed."
        raise MissingExtraError(problem, "Run pip install prometheus-client.") from error
    if registry is None:
        return prometheus_client.REGISTRY
    if not (hasattr(registry, "register") and hasattr(registry, "unregister")):
        problem = f"registry={registry!r} is no registry of metrics."
        raise BadOptionError(problem, "Give a prometheus_client.CollectorRegistry, or None for the default one.")
    return registry


def _metric(family: Family, samples: Samples = ()) -> "Metric":
    """Return the family for prometheus_client; whatever is no number raises here, and not in the middle of a scrape."""
    from prometheus_client import core  # noqa: PLC0415 -- importing jaxwatch must stay light, and work without it

    if family.kind == "histogram":
        histogram = core.HistogramMetricFamily(family.name, family.help, labels=family.labels, unit=family.unit)
        bounds = [*(str(float(bound)) for bound in family.buckets), "+Inf"]
        for sample in samples:
            if isinstance(sample, Histogram):
                histogram.add_metric(sample.labels, _buckets(bounds, family, sample), _counted(sample.seconds))
        return histogram
    make, number = (core.GaugeMetricFamily, float) if family.kind == "gauge" else (core.CounterMetricFamily, _counted)
    metric = make(family.name, family.help, labels=family.labels, unit=family.unit)
    for sample in samples:
        if isinstance(sample, Sample):
            metric.add_metric(sample.labels, number(sample.value))
    return metric


def _buckets(bounds: list[str], family: Family, histogram: Histogram) -> list[Any]:
    """Return the buckets; that of the exemplar with it, which OpenMetrics shows and the text format leaves out."""
    buckets: list[Any] = list(zip(bounds, map(_counted, histogram.counts), strict=True))
    if (exemplar := histogram.exemplar) is not None:
        from prometheus_client.samples import Exemplar  # noqa: PLC0415 -- as above

        place = bisect_left(family.buckets, exemplar.seconds)
        number = str(exemplar.miss)[:_EXEMPLAR_DIGITS]
        shown = Exemplar({"miss": number}, _counted(exemplar.seconds), _counted(exemplar.unix_seconds))
        buckets[place] = (*buckets[place], shown)
    return buckets


def _counted(value: float) -> float:
    value = float(value)
    if not 0 <= value < math.inf:
        problem = f"{value} was never counted"
        raise ValueError(problem)  # OpenMetrics' readers reject the whole scrape for one such value
    return value


_lock = threading.Lock()
_registered: "weakref.WeakKeyDictionary[CollectorRegistry, Collector]" = weakref.WeakKeyDictionary()
_alive: "weakref.WeakSet[Collector]" = weakref.WeakSet()


def _unlock() -> None:
    """Give a forked child its own locks: those it got may be held by threads that it did not get."""
    global _lock  # noqa: PLW0603 -- one lock per process
    _lock = threading.Lock()
    for collector in list(_alive):
        collector._lock = threading.RLock()  # noqa: SLF001 -- this module's own class


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
