"""The one table of the metric families: the collector, the docs and the dashboards' tests go by it.

A public interface: ``grafana/METRICS.md`` says the same for readers, and a test holds the two against each other. It
imports no client library.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jaxwatch.events import Reason

Kind = Literal["counter", "gauge", "histogram"]

OTHER = "other"
"""The label value that stands for all that a bound folded together."""

PREFIX = "jaxwatch_"


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family.

    Attributes:
        name: As Prometheus stores it: a counter with its ``_total``.
        kind: ``counter``, ``gauge`` or ``histogram``.
        labels: Names of the labels, in the order in which the collector gives their values.
        unit: ``seconds``, or "" for a number of things.
        help: One sentence.
        source: Field of ``FunctionStats`` or ``ProcessStats`` that it is made of; "" where it is made of neither.
        buckets: Upper bounds of a histogram's classic buckets in seconds, ascending, without ``+Inf``.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    help: str
    source: str
    buckets: tuple[float, ...] = ()


# From a compile that is not worth a word to one that an operator has to be told of.
_COMPILE_BUCKETS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600, 1800)
# Dense where calls from the cache are, 5 µs to 1 ms; the rest tells of calls that waited for the device.
_DISPATCH_BUCKETS = (
    *(5e-06, 1e-05, 2e-05, 3e-05, 5e-05, 0.0001, 0.0002, 0.0003, 0.0005),
    *(0.001, 0.002, 0.005, 0.01, 0.03, 0.1, 0.3, 1, 3, 10),
)

FAMILIES: tuple[Family, ...] = (
    Family(
        "jaxwatch_build_info",
        "gauge",
        ("version", "jax_version", "jaxlib_version", "backend", "core", "process_index"),
        "",
        "Always 1; what is running (core: native or python).",
        "",
    ),
    Family("jaxwatch_calls_total", "counter", ("function",), "", "Calls of watched functions.", "FunctionStats.calls"),
    Family(
        "jaxwatch_cache_misses_total",
        "counter",
        ("function", "layer", "reason"),
        "",
        "Calls that did not run straight from the cache, by the deepest layer that had to work and the first reason.",
        "FunctionStats.misses_by_cause",
    ),
    Family(
        "jaxwatch_signature_cache_misses_total",
        "counter",
        ("function", "signature"),
        "",
        'Cache misses by signature (bounded; the rest is signature="other").',
        "FunctionStats.misses_by_signature",
    ),
    Family(
        "jaxwatch_signature_info",
        "gauge",
        ("function", "signature", "abstract"),
        "",
        "Always 1; the readable form of a signature, shortened to 200 characters.",
        "FunctionStats.abstracts",
    ),
    Family(
        "jaxwatch_program_info",
        "gauge",
        ("function", "signature", "fingerprint"),
        "",
        "Always 1; the fingerprint of the lowered program of a signature, equal on all hosts that compile the same "
        "(bounded as signatures).",
        "",
    ),
    Family(
        "jaxwatch_signatures",
        "gauge",
        ("function",),
        "",
        "Distinct signatures seen.",
        "FunctionStats.signatures",
    ),
    Family(
        "jaxwatch_compile_duration_seconds",
        "histogram",
        ("function",),
        "seconds",
        "Whole time of one miss: trace, lowering and backend compile.",
        "FunctionStats.miss_seconds",
        _COMPILE_BUCKETS,
    ),
    Family(
        "jaxwatch_compile_phase_seconds_total",
        "counter",
        ("function", "phase"),
        "seconds",
        "Time spent in each phase.",
        "FunctionStats.seconds",
    ),
    Family(
        "jaxwatch_dispatch_duration_seconds",
        "histogram",
        ("function",),
        "seconds",
        "Time until a call that hit the cache returned to Python (the device may still be working).",
        "FunctionStats.dispatch",
        _DISPATCH_BUCKETS,
    ),
    Family(
        "jaxwatch_eager_compiles_total",
        "counter",
        ("site",),
        "",
        "Compiles outside watched functions, by the user's file and line.",
        "ProcessStats.eager",
    ),
    Family(
        "jaxwatch_eager_compile_seconds_total",
        "counter",
        ("site",),
        "seconds",
        "Time of the compiles outside watched functions.",
        "ProcessStats.eager",
    ),
    Family(
        "jaxwatch_persistent_cache_requests_total",
        "counter",
        ("result",),
        "",
        "Look-ups in JAX's persistent compilation cache.",
        "ProcessStats.disk",
    ),
    Family(
        "jaxwatch_last_cache_miss_timestamp_seconds",
        "gauge",
        ("function",),
        "seconds",
        "Unix time of the last miss; 0 before any.",
        "FunctionStats.last_miss_unix_seconds",
    ),
    Family(
        "jaxwatch_retrace_violations_total",
        "counter",
        ("function", "action"),
        "",
        "Misses that a guard forbade.",
        "FunctionStats.violations",
    ),
    Family(
        "jaxwatch_trace_errors_total",
        "counter",
        ("function",),
        "",
        "Calls that raised while being traced or compiled.",
        "FunctionStats.trace_errors",
    ),
    Family(
        "jaxwatch_dropped_total",
        "counter",
        ("what",),
        "",
        "What a bound or a failing exporter made us drop.",
        "ProcessStats.dropped",
    ),
    Family(
        "jaxwatch_label_overflow_total",
        "counter",
        ("label",),
        "",
        'Values folded into "other".',
        "ProcessStats.label_overflows",
    ),
    Family(
        "jaxwatch_exporter_errors_total",
        "counter",
        ("exporter",),
        "",
        "Exceptions in an exporter, hook or collector; the program was not touched.",
        "ProcessStats.exporter_errors",
    ),
    Family(
        "jaxwatch_overhead_seconds_total",
        "counter",
        ("part",),
        "seconds",
        "Time that jaxwatch itself took: measured for misses, exporters and scrapes; for calls, their number times the "
        "price measured at start.",
        "ProcessStats.overhead_seconds",
    ),
)

VALUES: Mapping[str, tuple[str, ...]] = {
    "layer": ("trace", "compile", "dispatch"),
    "phase": ("trace", "lower", "backend_compile"),
    "result": ("hit", "miss"),
    "action": ("raise", "warn", "record"),
    "what": ("event", "key", "log_line", "hook_call"),
    "label": ("function", "signature", "site"),
    "core": ("native", "python"),
    "part": ("call", "miss", "export", "scrape"),
}
"""Label → its values, of the labels that have a closed list of their own; that of ``reason`` is ``events.REASONS``."""

REASONS_AT_0: tuple[Reason, ...] = ("first_call", "shape", "dtype", "weak_type", "structure", "static")
"""Reasons that each function's misses are counted by from its first call on, so that ``increase()`` sees the first."""
