"""``FunctionStats`` and ``ProcessStats``: frozen figures, as ``jaxwatch.stats`` and the collectors read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxwatch._histogram import quantile
from jaxwatch.events import Layer, PhaseSeconds, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStats:
    """What is known of one watched function at one moment; it does not change afterwards.

    Attributes:
        function: Its name in events and metrics.
        definition: ``file:line`` of the user's function.
        calls: Calls so far, those made while an outer function was traced included.
        misses: Calls that did not run straight from the cache: the sum of ``misses_by_cause``.
        traces: How often the function was traced at top level.
        lowerings: How often it was lowered.
        compiles: Executables built, or loaded from the persistent cache.
        trace_errors: Calls that raised while being traced, lowered or compiled.
        signatures: Distinct signatures that missed.
        seconds: Seconds by phase, over all misses.
        dispatch: Upper bound of a bucket in seconds → calls that hit the cache; within 6 %.
        misses_by_cause: ``(layer, first reason)`` → misses.
        misses_by_signature: Signature → misses; bounded, the rest is ``"other"``.
        abstracts: Signature → its readable form.
        miss_seconds: Upper bound of a bucket in seconds → misses that took so long in all phases.
        last_miss_unix_seconds: When the last miss was, in seconds since 1970; 0 before any.
        violations: Action (``raise``, ``warn``, ``record``) → misses that a guard forbade.
        fingerprints: Signature → fingerprints of its program: one for each process that the figures are of, of the last
            program where it was compiled again there; equal ones once.
        last_miss_id: ``id`` of the last miss; 0 before any.
        last_miss_seconds: What the last miss took, in all phases.
        inlined: Outer function → calls that were made while that one was traced, so that nothing was compiled for them.
        inlined_read: Of these calls, those whose key was looked at.
        inlined_keys: Different keys among those: calls with the key of an earlier one shared its trace.
        touched: Numbers that one run of its largest program reads and writes at most; None where it has none, or one of
            them is large or not known.
        in_library: Whether the function's file belongs to an installed package and not to the user's program.
    """

    function: str
    definition: str
    calls: int
    misses: int
    traces: int
    lowerings: int
    compiles: int
    trace_errors: int
    signatures: int
    seconds: PhaseSeconds
    dispatch: Mapping[float, int]
    misses_by_cause: Mapping[tuple[Layer, Reason], int]
    misses_by_signature: Mapping[str, int]
    abstracts: Mapping[str, str]
    miss_seconds: Mapping[float, int]
    last_miss_unix_seconds: float
    violations: Mapping[str, int]
    in_library: bool
    fingerprints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    last_miss_id: int = 0
    last_miss_seconds: float = 0.0
    inlined: Mapping[str, int] = field(default_factory=dict)
    inlined_read: int = 0
    inlined_keys: int = 0
    touched: int | None = None

    def dispatch_quantile(self, q: float) -> float | None:
        """Return the latency in seconds below which a share ``q`` of the calls from the cache stayed; None of none."""
        return quantile(self.dispatch, q)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteStats:
    """Compiles outside watched functions at one place of the user's code."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStats:
    """Figures of the whole process.

    Attributes:
        functions: One for each name and definition, in the order in which they were watched; of dead ones too.
        eager: ``file:line`` → compiles outside watched functions.
        disk: ``hit`` and ``miss`` → look-ups in JAX's persistent cache by watched calls and eager compiles.
        dropped: ``event``, ``key``, ``log_line``, ``hook_call`` → how many were dropped at a bound.
        label_overflows: ``function``, ``signature``, ``site`` → values folded into "other" by the registry.
        exporter_errors: Exporter's name → exceptions that it raised.
        overhead_seconds: ``call``, ``miss``, ``export``, ``scrape`` → seconds that jaxwatch itself took.
    """

    functions: tuple[FunctionStats, ...]
    eager: Mapping[str, SiteStats]
    disk: Mapping[str, int]
    dropped: Mapping[str, int]
    label_overflows: Mapping[str, int]
    exporter_errors: Mapping[str, int]
    overhead_seconds: Mapping[str, float]
