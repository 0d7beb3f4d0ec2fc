"""Spans of what really happened, read back from the SDK and from the bytes that OTLP sends."""

import gzip
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest

import jaxwatch
from jaxwatch._hub import HUB
from jaxwatch.errors import MissingExtraError
from jaxwatch.exporters.otel import instrument

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """Yield where the spans of the test go, and end the instrumentation."""
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    made = instrument(tracer_provider=provider, metrics=False)
    kept.provider = provider  # type: ignore[attr-defined]  # for the tests that make spans of their own
    yield kept
    made.close()


def called(*rows: int) -> None:
    step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
    for number in rows:
        step(np.ones(number, np.float32))


def by_name(kept: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in kept.get_finished_spans() if span.name == name]


def seconds(span: ReadableSpan) -> float:
    return ((span.end_time or 0) - (span.start_time or 0)) / 1e9


def test_a_miss_is_a_span_with_its_phases_below_it(spans: InMemorySpanExporter) -> None:
    called(3, 4, 4)
    first, second = by_name(spans, "jaxwatch.miss")
    attributes = dict(second.attributes or {})

    assert (attributes["code.function.name"], attributes["jaxwatch.call"]) == ("step", 2)
    assert attributes["jaxwatch.reason"] == "shape"
    assert attributes["jaxwatch.changes"] == ("x: float32[3] → float32[4]",)
    assert attributes["code.file.path"] == __file__
    assert dict(first.attributes or {})["jaxwatch.reason"] == "first_call"
    below = [
        span for span in spans.get_finished_spans() if span.parent and span.parent.span_id == second.context.span_id
    ]
    assert [span.name for span in below] == ["trace", "lower", "backend_compile"]
    assert sum(map(seconds, below)) == pytest.approx(seconds(second), rel=1e-6)
    assert [a.end_time for a in below[:-1]] == [b.start_time for b in below[1:]], "laid end to end"
    stats = {span.name: seconds(span) for span in below}
    assert all(value > 0 for value in stats.values())


def test_the_programs_own_span_is_the_parent(spans: InMemorySpanExporter) -> None:
    tracer = spans.provider.get_tracer("mine")  # type: ignore[attr-defined]
    with tracer.start_as_current_span("training step") as mine:
        called(5)
    (miss,) = by_name(spans, "jaxwatch.miss")

    assert miss.parent is not None
    assert miss.parent.span_id == mine.get_span_context().span_id


def test_a_call_that_raised_is_a_span_with_an_error(spans: InMemorySpanExporter) -> None:
    failing = jaxwatch.jit(lambda x: x @ x)
    with pytest.raises(TypeError):
        failing(np.ones((2, 3), np.float32))
    (span,) = by_name(spans, "jaxwatch.miss")

    assert not span.status.is_ok
    assert dict(span.attributes or {})["error.type"] == "TypeError"


def test_once_closed_no_span_is_made(spans: InMemorySpanExporter) -> None:
    made = instrument(tracer_provider=spans.provider, metrics=False)  # type: ignore[attr-defined]
    called(3)
    twice = len(by_name(spans, "jaxwatch.miss"))
    made.close()
    made.close()
    called(4)

    assert (twice, len(by_name(spans, "jaxwatch.miss"))) == (2, 3)
    assert len([name for name in HUB.names if name.startswith("otel")]) == 1


def test_without_an_sdk_nothing_happens() -> None:
    made = instrument()
    called(3)
    made.close()


def test_what_otlp_sends_holds_the_spans() -> None:
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    messages = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    heard: list[Any] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            heard.append(messages.ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        provider = TracerProvider()
        where = f"http://127.0.0.1:{server.server_port}/v1/traces"
        provider.add_span_processor(SimpleSpanProcessor(exporters.OTLPSpanExporter(endpoint=where)))
        made = instrument(tracer_provider=provider, metrics=False)
        called(3)
        made.close()
        provider.shutdown()
        server.shutdown()
        thread.join()
    names = [span.name for one in heard for r in one.resource_spans for s in r.scope_spans for span in s.spans]

    assert sorted(names) == ["backend_compile", "jaxwatch.miss", "lower", "trace"]


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.context", None)
    with pytest.raises(MissingExtraError, match=r"jaxwatch\[otel\]"):
        instrument()
