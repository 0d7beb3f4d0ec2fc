"""OpenTelemetry metrics: the families of ``grafana/METRICS.md``, read when the program's SDK collects them."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jaxwatch import metrics
from jaxwatch._metrics import FAMILIES, Family
from jaxwatch._samples import Histogram, Sample
from jaxwatch.errors import MissingExtraError

NAME = "jaxwatch"
"""Of the tracer and the meter."""

_KEPT_SECONDS = 1.0  # one reading serves all instruments of a collection
_UNITS = {"seconds": "s", "": "1"}


def opentelemetry() -> Any:
    """Return the package ``opentelemetry``, with what is needed of its API loaded.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import opentelemetry.context  # noqa: PLC0415 -- an extra
        import opentelemetry.metrics  # noqa: PLC0415
        import opentelemetry.trace  # noqa: PLC0415
    except ImportError as error:
        problem = "OpenTelemetry needs the package opentelemetry-api, which is not installed."
        raise MissingExtraError(problem, "Run pip install 'jaxwatch[otel]'.") from error
    return opentelemetry


def observe(meter_provider: Any = None) -> Callable[[], None]:
    """Register an observable instrument for each family; return what silences them: an instrument cannot be removed.

    Histograms are given as two counters, ``…_count`` and ``…_sum``: OpenTelemetry's API has no observable histogram.

    Args:
        meter_provider: By default the global one.
    """
    api = opentelemetry()
    meter = api.metrics.get_meter(NAME, meter_provider=meter_provider)
    reading = _Reading()
    for family in FAMILIES:
        unit = _UNITS[family.unit]
        if family.kind == "histogram":
            _counter(api, meter, reading, family, suffix="_count", unit="1")
            _counter(api, meter, reading, family, suffix="_sum", unit=unit)
        elif family.kind == "counter":
            _counter(api, meter, reading, family, unit=unit)
        else:
            callback = _callback(api, reading, family, "")
            meter.create_observable_gauge(_name(family), callbacks=[callback], unit=unit, description=family.help)
    return reading.stop


def _counter(  # noqa: PLR0913 -- private, and each is needed
    api: Any, meter: Any, reading: "_Reading", family: Family, *, unit: str, suffix: str = ""
) -> None:
    callback = _callback(api, reading, family, suffix)
    name = _name(family) + suffix.replace("_", ".")
    meter.create_observable_counter(name, callbacks=[callback], unit=unit, description=family.help)


def _name(family: Family) -> str:
    """Return the name as OpenTelemetry has them: without unit and ``_total``, which an exporter to Prometheus adds."""
    bare = family.name.removesuffix("_total").removesuffix("_seconds")
    return bare.replace("jaxwatch_", "jaxwatch.", 1)


class _Reading:
    """What the collector found last; with bounded labels, and never raising, as for Prometheus."""

    def __init__(self) -> None:
        self._collector = metrics.Collector()
        self._at = -_KEPT_SECONDS
        self._found: dict[str, list[Sample | Histogram]] = {}
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    def of(self, family: Family) -> Iterable[Sample | Histogram]:
        if self._stopped:
            return ()
        if time.monotonic() - self._at >= _KEPT_SECONDS:
            self._found = self._collector.samples()
            self._at = time.monotonic()
        return self._found.get(family.name, ())


def _callback(api: Any, reading: _Reading, family: Family, suffix: str) -> Callable[[Any], Iterator[Any]]:
    def observations(_: Any) -> Iterator[Any]:
        for sample in reading.of(family):
            value = sample.value if isinstance(sample, Sample) else sample.seconds
            if isinstance(sample, Histogram) and suffix == "_count":
                value = sample.counts[-1]
            yield api.metrics.Observation(value, dict(zip(family.labels, sample.labels, strict=True)))

    return observations
