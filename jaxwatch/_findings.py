"""Findings: misses of one function for one cause, told once with how often. Pure; bounded by causes, not by events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from jaxwatch._padding import over_all
from jaxwatch._records import SeenChange, SeenMiss

Kind = Literal["recompile", "dispatch", "eager", "eager_own", "eager_rest"]
Place = tuple[str, int]  # file:line, how often

# Causes told apart. Beyond, all count for one finding without a cause, named "other".
FINDINGS = 2_000
# Distinct calls, sites and compared calls kept for one finding; beyond, they are only counted.
CALLS_KEPT = 32
SITES_KEPT = 32
# Processes told apart for one finding; beyond, they count as these.
PROCESSES_KEPT = 1_000
# Distinct before → after of one path kept for one finding, and of all findings together; beyond, they are only counted.
PAIRS_KEPT = 64
PAIRS_KEPT_IN_ALL = 50_000

OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What one path of a key was, and what it became.

    Attributes:
        path: As ``batch['x']``; None where the cause lies beside the arguments.
        reasons: Why, from the closed list; an array may differ in shape and dtype at once.
        pairs: Distinct ``(before, after)``, first seen first.
        left_out: Further misses whose pairs were not kept.
        note: What the event says beside.
    """

    path: str | None
    reasons: tuple[str, ...]
    pairs: tuple[tuple[str | None, str | None], ...]
    left_out: int
    note: str | None


class Cause(NamedTuple):
    """What makes two misses one finding."""

    kind: Kind
    function: str
    definition: str
    reason: str
    # sorted (reason, path, or note where there is no path); of statics, the advice's code too
    differences: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that cost time, and how often.

    Attributes:
        cause: What its misses have in common.
        values: What differed, by path, in the order in which the events name them.
        count: Misses, or eager compiles.
        seconds: What they cost, all phases.
        before_xla: The part of ``seconds`` that went into tracing and into lowering.
        from_disk: How many of them JAX's persistent cache served.
        calls: Distinct numbers of the calls, sorted.
        calls_left_out: Further misses, whose numbers were not kept.
        compared_with: Distinct numbers of the calls that they were compared with, sorted.
        sites: ``(file:line, how often)``, most first.
        sites_left_out: Further misses, whose sites were not kept.
        processes: In how many processes it was seen.
        advice: ``(code, text)`` of the last event; None where there is none.
        via: ``file:line`` of a library's frame that made a call for the user; None where the calls are the user's own.
    """

    cause: Cause
    values: tuple[Values, ...]
    count: int
    seconds: float
    from_disk: int
    calls: tuple[int, ...]
    calls_left_out: int
    compared_with: tuple[int, ...]
    sites: tuple[Place, ...]
    sites_left_out: int
    processes: int
    advice: tuple[str, str] | None
    before_xla: tuple[float, float] = (0.0, 0.0)
    via: str | None = None


class Findings:
    """Gathers the misses of many processes into findings."""

    def __init__(self) -> None:
        self._groups: dict[Cause, _Group] = {}
        self._gathered: list[Finding] = []
        self._pairs_left = PAIRS_KEPT_IN_ALL
        self.folded = 0  # misses that share the finding "other"

    def add(self, miss: SeenMiss, process: int, compared_call: int | None) -> None:
        """Add a miss.

        Args:
            miss: A recompile, or a call off the fast path; no first call.
            process: A number of its process.
            compared_call: The number of the call that it was compared with, where it is known.
        """
        cause = cause_of(miss)
        if cause not in self._groups and len(self._groups) >= FINDINGS:
            cause = Cause(cause.kind, OTHER, "", OTHER, ())
            self.folded += 1
        group = self._groups.get(cause)
        if group is None:
            group = self._groups[cause] = _Group(cause)
        self._pairs_left -= group.add(miss, process, compared_call, self._pairs_left)

    def add_gathered(self, finding: Finding) -> None:
        """Add the finding of misses that were gathered elsewhere; none of its cause is added otherwise."""
        self._gathered.append(finding)

    def build(self) -> tuple[Finding, ...]:
        """Return the findings, dearest first."""
        return in_order([*(group.build() for group in self._groups.values()), *self._gathered])


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that cost time, dearest first, then those off the fast path; advised over all processes."""
    return tuple(
        sorted(
            map(_advised, findings), key=lambda one: (one.cause.kind == "dispatch", -one.seconds, -one.count, one.cause)
        )
    )


def _advised(finding: Finding) -> Finding:
    if finding.processes < 2 or finding.cause.reason != "shape" or finding.advice is None:  # noqa: PLR2004
        return finding
    shapes = [values for values in finding.values if "shape" in values.reasons]
    if any(values.left_out for values in shapes):
        return finding
    pairs = {values.path: values.pairs for values in shapes if values.path is not None}
    return replace(finding, advice=over_all(finding.cause.function, finding.advice, pairs))


def cause_of(miss: SeenMiss) -> Cause:
    """Return what makes the miss one of a finding."""
    kind: Kind = "dispatch" if miss.layer == "dispatch" else "recompile"
    differences = {(change.reason, change.path or change.note or "") for change in miss.changes}
    if miss.reasons[0] == "static" and miss.advice:  # another value, or one that is made anew: not to be mended alike
        differences.add(("advice", miss.advice[0][0]))
    return Cause(kind, miss.function, miss.definition, miss.reasons[0], tuple(sorted(differences)))


class _Differences:
    """What one path was and became, as it is gathered."""

    def __init__(self, change: SeenChange) -> None:
        self.path = change.path
        self.note = change.note
        self.reasons: dict[str, None] = {}
        self.pairs: dict[tuple[str | None, str | None], None] = {}
        self.left_out = 0

    def add(self, change: SeenChange, room: int) -> int:
        """Add a change; return how many new pairs are kept now."""
        self.reasons[change.reason] = None
        pair = change.before, change.after
        if pair == (None, None) or pair in self.pairs:
            return 0
        if room <= 0 or len(self.pairs) >= PAIRS_KEPT:
            self.left_out += 1
            return 0
        self.pairs[pair] = None
        return 1

    def build(self) -> Values:
        return Values(
            path=self.path,
            reasons=tuple(self.reasons),
            pairs=tuple(self.pairs),
            left_out=self.left_out,
            note=self.note,
        )


class _Group:
    """The misses of one cause."""

    def __init__(self, cause: Cause) -> None:
        self.cause = cause
        self.count = self.from_disk = self.calls_left_out = self.sites_left_out = 0
        self.seconds = 0.0
        self.before_xla = (0.0, 0.0)
        self.values: dict[str | None, _Differences] = {}
        self.calls: set[int] = set()
        self.compared: set[int] = set()
        self.sites: dict[str, int] = {}
        self.processes: set[int] = set()
        self.advice: tuple[str, str] | None = None
        self.via: str | None = None

    def add(self, miss: SeenMiss, process: int, compared_call: int | None, room: int) -> int:
        """Add a miss; return how many new pairs of values are kept now."""
        self.count += 1
        self.seconds += miss.seconds
        self.before_xla = _added(self.before_xla, miss.before_xla)
        self.from_disk += miss.from_disk
        if len(self.processes) < PROCESSES_KEPT:
            self.processes.add(process)
        self.via = self.via or miss.via or None
        self.advice = miss.advice[0] if miss.advice else self.advice
        if miss.call in self.calls or len(self.calls) < CALLS_KEPT:
            self.calls.add(miss.call)
        else:
            self.calls_left_out += 1
        if miss.site in self.sites or len(self.sites) < SITES_KEPT:
            self.sites[miss.site] = self.sites.get(miss.site, 0) + 1
        else:
            self.sites_left_out += 1
        if compared_call is not None and len(self.compared) < CALLS_KEPT:
            self.compared.add(compared_call)
        if self.cause.function == OTHER and not self.cause.definition:
            return 0
        kept = 0
        for change in miss.changes:
            values = self.values.get(change.path)
            if values is None:
                values = self.values[change.path] = _Differences(change)
            kept += values.add(change, room - kept)
        return kept

    def build(self) -> Finding:
        return Finding(
            cause=self.cause,
            values=tuple(differences.build() for differences in self.values.values()),
            count=self.count,
            seconds=self.seconds,
            from_disk=self.from_disk,
            calls=tuple(sorted(self.calls)),
            calls_left_out=self.calls_left_out,
            compared_with=tuple(sorted(self.compared)),
            sites=most_first(self.sites.items()),
            sites_left_out=self.sites_left_out,
            processes=len(self.processes),
            advice=self.advice,
            before_xla=self.before_xla,
            via=self.via,
        )


def _added(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    return first[0] + second[0], first[1] + second[1]


def most_first(places: Iterable[Place]) -> tuple[Place, ...]:
    """Return the places by how often, then by name."""
    return tuple(sorted(places, key=lambda place: (-place[1], place[0])))


def merged(first: Finding, second: Finding) -> Finding:
    """Return the two findings of one cause, from different processes, as one; the second's advice counts."""
    calls = sorted({*first.calls, *second.calls})
    sites = dict(first.sites)
    for site, count in second.sites:
        sites[site] = sites.get(site, 0) + count
    places = most_first(sites.items())
    return Finding(
        cause=first.cause,
        values=_merged_values(first.values, second.values),
        count=first.count + second.count,
        seconds=first.seconds + second.seconds,
        from_disk=first.from_disk + second.from_disk,
        calls=tuple(calls[:CALLS_KEPT]),
        calls_left_out=first.calls_left_out + second.calls_left_out + len(calls[CALLS_KEPT:]),
        compared_with=tuple(sorted({*first.compared_with, *second.compared_with})[:CALLS_KEPT]),
        sites=places[:SITES_KEPT],
        sites_left_out=first.sites_left_out + second.sites_left_out + sum(count for _, count in places[SITES_KEPT:]),
        processes=first.processes + second.processes,
        advice=second.advice or first.advice,
        before_xla=_added(first.before_xla, second.before_xla),
        via=first.via or second.via,
    )


def _merged_values(first: Sequence[Values], second: Sequence[Values]) -> tuple[Values, ...]:
    by_path = {values.path: values for values in first}
    for values in second:
        earlier = by_path.get(values.path)
        if earlier is None:
            by_path[values.path] = values
            continue
        pairs = tuple(dict.fromkeys([*earlier.pairs, *values.pairs]))
        by_path[values.path] = replace(
            earlier,
            reasons=tuple(dict.fromkeys([*earlier.reasons, *values.reasons])),
            pairs=pairs[:PAIRS_KEPT],
            left_out=earlier.left_out + values.left_out + len(pairs[PAIRS_KEPT:]),
            note=earlier.note or values.note,
        )
    return tuple(by_path.values())
