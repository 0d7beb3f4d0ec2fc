"""Metrics that OpenTelemetry's own SDK collects, against those for Prometheus."""

from typing import Any

import numpy as np
import pytest

import jaxwatch
from jaxwatch._metrics import FAMILIES
from jaxwatch._registry import REGISTRY
from jaxwatch.exporters.otel import instrument

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

pytestmark = pytest.mark.usefixtures("fresh")


def collected(reader: InMemoryMetricReader) -> dict[str, Any]:
    """Return name → instrument's data, of one collection."""
    data = reader.get_metrics_data()
    if data is None:
        return {}
    return {one.name: one for r in data.resource_metrics for scope in r.scope_metrics for one in scope.metrics}


def values(metric: Any) -> dict[tuple[Any, ...], float]:
    return {tuple(sorted(dict(point.attributes).items())): point.value for point in metric.data.data_points}


def test_the_sdk_collects_what_happened() -> None:
    reader = InMemoryMetricReader()
    made = instrument(meter_provider=MeterProvider([reader]))
    step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
    for rows in (3, 4, 4):
        step(np.ones(rows, np.float32))
    found = collected(reader)
    made.close()

    assert values(found["jaxwatch.calls"]) == {(("function", "step"),): 3}
    misses = values(found["jaxwatch.cache_misses"])
    assert misses[("function", "step"), ("layer", "compile"), ("reason", "shape")] == 1
    assert values(found["jaxwatch.compile_duration.count"]) == {(("function", "step"),): 2}
    (took,) = values(found["jaxwatch.compile_duration.sum"]).values()
    assert took == pytest.approx(REGISTRY.snapshot().functions[0].seconds.total)
    assert (found["jaxwatch.compile_duration.sum"].unit, found["jaxwatch.calls"].unit) == ("s", "1")
    assert found["jaxwatch.compile_duration.sum"].data.is_monotonic
    assert not hasattr(found["jaxwatch.signatures"].data, "is_monotonic"), "a gauge"


def test_every_family_has_its_instrument() -> None:
    reader = InMemoryMetricReader()
    made = instrument(meter_provider=MeterProvider([reader]))
    step = jaxwatch.jit(lambda x: x * 2)
    step(np.ones(3, np.float32))
    _ = jaxwatch.jit(lambda x: x * 2)(np.ones(17, np.float32))
    found = collected(reader)
    made.close()

    histograms = sum(family.kind == "histogram" for family in FAMILIES)
    without = {"jaxwatch.eager_compiles", "jaxwatch.eager_compile"}  # nothing was compiled outside
    assert len(found.keys() | without) == len(FAMILIES) + histograms


def test_once_closed_nothing_is_given() -> None:
    reader = InMemoryMetricReader()
    made = instrument(meter_provider=MeterProvider([reader]))
    jaxwatch.jit(lambda x: x * 2)(np.ones(3, np.float32))
    made.close()

    assert all(not metric.data.data_points for metric in collected(reader).values())
