"""OpenTelemetry spans: ``jaxwatch.exporters.otel.instrument()`` makes one of each miss, with its phases below it."""

import itertools
from collections.abc import Callable
from typing import Any

from jaxwatch._hub import HUB
from jaxwatch.events import CacheMiss, Event, Origin, TraceError
from jaxwatch.exporters.otel_metrics import NAME, observe, opentelemetry

_LISTED = 20  # changes told in an attribute


class Instrumented:
    """Spans, and metrics where they were asked for; ``close()`` ends both."""

    def __init__(self, name: str, stop: Callable[[], None]) -> None:
        self._name, self._stop = name, stop

    def close(self) -> None:
        """Make no further span, and give no further figure; once more does nothing."""
        HUB.remove(self._name)
        self._stop()


def instrument(*, tracer_provider: Any = None, meter_provider: Any = None, metrics: bool = True) -> Instrumented:
    """Make a span of each cache miss, and give jaxwatch's metrics, by OpenTelemetry's API.

    Nothing is sent by jaxwatch: that is the matter of the program's own SDK, and without one nothing happens.

    A span ``jaxwatch.miss`` lasts as long as tracing, lowering and compiling; its children ``trace``, ``lower`` and
    ``backend_compile`` are laid end to end, since JAX tells how long each took, and not when it began. Its parent is
    the span that is current where the call was made. A call that raised while it was traced is a span with an error.

    Args:
        tracer_provider: By default the global one.
        meter_provider: By default the global one.
        metrics: Whether metrics are given too.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.
    """
    api = opentelemetry()
    tracer = api.trace.get_tracer(NAME, tracer_provider=tracer_provider)
    stop: Callable[[], None] = lambda: None  # noqa: E731 -- where there are no metrics
    if metrics:
        stop = observe(meter_provider)
    name = f"otel {next(_numbers)}"
    HUB.add(name, _Spans(api, tracer))
    return Instrumented(name, stop)


class _Spans:
    """Makes spans; on the thread of the event, where the current span is the program's."""

    def __init__(self, api: Any, tracer: Any) -> None:
        self._api, self._tracer = api, tracer

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, TraceError):
            self._error(event)
        elif isinstance(event, CacheMiss) and event.layer != "dispatch":
            self._miss(event)

    def _miss(self, miss: CacheMiss) -> None:
        took = miss.seconds
        phases = (("trace", took.trace), ("lower", took.lower), ("backend_compile", took.backend_compile))
        end = _nanoseconds(miss.origin)
        begun = end - sum(int(1e9 * seconds) for _, seconds in phases)
        span = self._tracer.start_span(f"{NAME}.miss", attributes=miss_attributes(miss), start_time=begun)
        within = self._api.trace.set_span_in_context(span)
        for name, seconds in phases:
            if seconds:
                child = self._tracer.start_span(name, context=within, start_time=begun)
                begun += int(1e9 * seconds)
                child.end(end_time=begun)
        span.end(end_time=end)

    def _error(self, event: TraceError) -> None:
        end = _nanoseconds(event.origin)
        attributes = {**_where(event.function, event.definition, event.site), "error.type": event.error}
        begun = end - int(1e9 * event.seconds)
        span = self._tracer.start_span(f"{NAME}.miss", attributes=attributes, start_time=begun)
        span.set_status(self._api.trace.Status(self._api.trace.StatusCode.ERROR, event.error))
        span.end(end_time=end)


def miss_attributes(miss: CacheMiss) -> dict[str, Any]:
    """Return what a span tells of a miss, by the names of OpenTelemetry's conventions where it has some."""
    changes = [f"{one.path or one.reason}: {one.before or '(none)'} → {one.after or '(none)'}" for one in miss.changes]
    found = {
        **_where(miss.function, miss.definition, miss.site),
        "jaxwatch.miss": miss.id,
        "jaxwatch.call": miss.call,
        "jaxwatch.layer": miss.layer,
        "jaxwatch.reason": miss.reasons[0],
        "jaxwatch.changes": changes[:_LISTED],
        "jaxwatch.signature": miss.signature,
        "jaxwatch.fingerprint": miss.fingerprint,
        "jaxwatch.persistent_cache": miss.persistent_cache,
        "jaxwatch.advice": [advice.text for advice in miss.advice],
        "jaxwatch.process_index": miss.origin.process_index,
    }
    return {name: value for name, value in found.items() if value is not None}


def _where(function: str, definition: str, site: str) -> dict[str, Any]:
    file, _, line = site.rpartition(":")
    place = {"code.file.path": file, "code.line.number": int(line)} if line.isdigit() else {}
    return {"code.function.name": function, "jaxwatch.definition": definition, **place}


def _nanoseconds(origin: Origin) -> int:
    return int(1e9 * origin.unix_seconds)


_numbers = itertools.count(1)
