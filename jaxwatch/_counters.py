"""The figures of one watched object, and their sums."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from jaxwatch import _limits
from jaxwatch._histogram import Cell, bucket, upper_seconds
from jaxwatch.events import CacheMiss, Layer, PhaseSeconds, Reason

OTHER = "other"


@dataclass(slots=True)
class Inlined:
    """Calls of one watched object while another one was traced."""

    calls: Counter[str] = field(default_factory=Counter)  # by the outer function's name
    keys: set[str] = field(default_factory=set)
    read: int = 0  # calls whose keys are among these

    def add(self, outer: str, key: str | None) -> None:
        """Count a call; ``key`` is None where it was not looked at."""
        self._count(outer, 1)
        if key is not None and (key in self.keys or len(self.keys) < _limits.INLINED_KEYS):
            self.keys.add(key)
            self.read += 1

    def fold(self, other: "Inlined") -> None:
        """Add the calls of ``other``; as not looked at where there are too many keys."""
        for outer, count in other.calls.items():
            self._count(outer, count)
        if len(both := self.keys | other.keys) <= _limits.INLINED_KEYS:
            self.keys = both
            self.read += other.read

    def _count(self, outer: str, number: int) -> None:
        known = outer in self.calls or len(self.calls) < _limits.INLINED_OUTERS
        self.calls[outer if known else OTHER] += number


class Counters:
    """The figures of one watched object; the hot path writes its ``cell`` alone, the slow path the rest."""

    __slots__ = (
        "_read",
        "abstracts",
        "by_cause",
        "by_signature",
        "cell",
        "compiles",
        "errors",
        "fingerprints",
        "inlined",
        "last_miss",
        "lowerings",
        "miss_seconds",
        "phases",
        "touched",
        "traces",
        "unseen",
        "violations",
    )

    def __init__(self, cell: Any = None) -> None:
        self.cell: Any = Cell() if cell is None else cell  # or the native core's
        self.traces = self.lowerings = self.compiles = self.errors = 0
        self.phases = [0.0, 0.0, 0.0]
        self.by_cause: Counter[tuple[Layer, Reason]] = Counter()
        self.by_signature: Counter[str] = Counter()
        self.abstracts: dict[str, str] = {}
        self.fingerprints: dict[str, str] = {}  # of the last program of a signature
        self.miss_seconds: Counter[float] = Counter()
        self.violations: Counter[str] = Counter()
        self.inlined = Inlined()
        self.touched: int | None = None  # the most of its programs'
        self.unseen = False  # there is a program of which that is not known
        self.last_miss = (0.0, 0, 0.0)  # when, its id, its seconds
        self._read: dict[str, Any] | None = None  # see `of_misses`

    def add_miss(self, miss: CacheMiss, unix_seconds: float) -> bool:
        """Count a miss; return False where its signature had to be folded into "other"."""
        self._read = None
        self.last_miss = max(self.last_miss, (unix_seconds, miss.id, miss.seconds.total))
        self.by_cause[miss.layer, miss.reasons[0]] += 1
        if miss.layer == "dispatch":
            return True
        self.traces += miss.traces
        self.lowerings += miss.lowerings
        self.compiles += miss.compiles
        self._touch(None if miss.program is None else miss.program.touched)
        self.phases[0] += miss.seconds.trace
        self.phases[1] += miss.seconds.lower
        self.phases[2] += miss.seconds.backend_compile
        self.miss_seconds[upper_seconds(bucket(int(miss.seconds.total * 1e9)))] += 1
        known = miss.signature in self.by_signature or len(self.by_signature) < _limits.SIGNATURES_PER_FUNCTION
        self.by_signature[miss.signature if known else OTHER] += 1
        if known:
            self.abstracts.setdefault(miss.signature, miss.abstract)
            if miss.fingerprint is not None:
                self.fingerprints[miss.signature] = miss.fingerprint
        return known

    def of_misses(self) -> dict[str, Any]:
        """Return those fields of ``FunctionStats`` that only a miss changes: copied once a miss, not at each scrape."""
        if self._read is None:
            last_miss, miss_id, miss_seconds = self.last_miss
            trace, lower, compiled = self.phases
            self._read = {
                "misses": sum(self.by_cause.values()),
                "traces": self.traces,
                "lowerings": self.lowerings,
                "compiles": self.compiles,
                "signatures": len(self.by_signature),
                "seconds": PhaseSeconds(trace=trace, lower=lower, backend_compile=compiled),
                "misses_by_cause": dict(self.by_cause),
                "misses_by_signature": dict(self.by_signature),
                "abstracts": dict(self.abstracts),
                "miss_seconds": dict(self.miss_seconds),
                "last_miss_unix_seconds": last_miss,
                "fingerprints": {signature: (one,) for signature, one in self.fingerprints.items()},
                "last_miss_id": miss_id,
                "last_miss_seconds": miss_seconds,
            }
        return self._read

    def _touch(self, numbers: int | None) -> None:
        if numbers is None:
            self.unseen = True
        else:
            self.touched = numbers if self.touched is None else max(self.touched, numbers)

    def fold(self, other: "Counters") -> None:
        """Add the figures of ``other`` to these."""
        self._read = None
        self.cell.calls += other.cell.calls
        for index, count in other.cell.counts().items():
            self.cell.dispatch[index] += count
        self.traces += other.traces
        self.lowerings += other.lowerings
        self.compiles += other.compiles
        self.errors += other.errors
        self.phases = [a + b for a, b in zip(self.phases, other.phases, strict=True)]
        self.by_cause.update(other.by_cause)
        self.miss_seconds.update(other.miss_seconds)
        self.violations.update(other.violations)
        self.inlined.fold(other.inlined)
        self.unseen |= other.unseen
        if other.touched is not None:
            self._touch(other.touched)
        self.last_miss = max(self.last_miss, other.last_miss)
        for signature, count in other.by_signature.items():
            known = signature in self.by_signature or len(self.by_signature) < _limits.SIGNATURES_PER_FUNCTION
            self.by_signature[signature if known else OTHER] += count
            if known and signature in other.abstracts:
                self.abstracts.setdefault(signature, other.abstracts[signature])
            if known and signature in other.fingerprints:
                self.fingerprints[signature] = other.fingerprints[signature]
