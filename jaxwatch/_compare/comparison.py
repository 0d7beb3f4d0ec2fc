"""What differs between two sides: misses, phases, programs, versions. Pure; knows no order of events."""

import math
from collections.abc import Collection, Iterator, Mapping

from jaxwatch._compare.data import (
    Comparison,
    FunctionChange,
    MissChange,
    NoteChange,
    Pair,
    PhaseChange,
    ProgramChange,
    Totals,
    VersionChange,
)
from jaxwatch._compare.pairing import paired
from jaxwatch._compare.side import PHASES, CauseKey, Side, SideCause, SideEager, SideFunction
from jaxwatch._findings import Cause, Finding, most_first

# A phase is told as slower or faster from both on, where all other functions did not become so too: a busy machine
# makes equal runs differ by as much. docs/compare.md has figures.
_ROUNDING = 1e-9  # what a product of two floats may lack of a whole number
NOISE_RATIO = 2.0
NOISE_SECONDS = 0.5

_EAGER_NAMED = 3
_NOTHING = SideFunction(function="", file="", calls=0, calls_exact=True, misses=0, seconds=0.0, causes=(), programs={})
_NO_EAGER = SideEager(file="", count=0, seconds=0.0, again=0, functions={}, sites={})
Both = tuple[SideFunction, SideFunction]


def compare(before: Side, after: Side) -> Comparison:
    """Return what differs between two sides."""
    both = list(_functions(before, after))
    totals = _totals(before), _totals(after)
    times = _times_as_many(Pair(before=totals[0].calls, after=totals[1].calls), totals)
    misses = [change for pair in both for change in _miss_changes(pair, totals)]
    misses += _eager_changes(before, after, times)
    phases = _phase_changes(both)
    programs = [change for pair in both if (change := _program_change(*pair)) is not None]
    return Comparison(
        before=totals[0],
        after=totals[1],
        versions=tuple(
            VersionChange(what=what, before=old, after=new)
            for what, old in before.versions.items()
            if old != (new := after.versions[what]) and old and new
        ),
        misses=tuple(sorted(misses, key=_dearest)),
        phases=tuple(sorted(phases, key=lambda one: (-abs(one.seconds.gained), one.function, one.phase))),
        programs=tuple(sorted(programs, key=lambda one: (one.function, one.definition))),
        functions=tuple(sorted(map(_function_change, both), key=lambda one: (-abs(one.seconds.gained), one.function))),
        notes=tuple(_note_changes(before, after)),
    )


def _dearest(change: MissChange) -> tuple[float, float, str, str]:
    return -abs(change.seconds.gained), -abs(change.misses.gained), change.function, change.reason


def _functions(before: Side, after: Side) -> Iterator[Both]:
    old, new = ({(one.function, one.file): one for one in side.functions} for side in (before, after))
    for first, second in paired(old, new, (before.report.programs, after.report.programs)):
        yield old[first] if first else _NOTHING, new[second] if second else _NOTHING


def _totals(side: Side) -> Totals:
    report = side.report
    return Totals(
        programs=report.programs,
        processes=report.processes,
        unfinished=report.unfinished,
        exit_codes=report.exit_codes,
        wall_seconds=report.wall_seconds,
        calls=sum(one.calls for one in side.functions),
        calls_exact=all(one.calls_exact for one in side.functions),
        misses=sum(one.misses for one in side.functions),
        compile_seconds=report.compile_seconds,
        eager_count=report.eager_count,
        eager_seconds=report.eager_seconds,
        unlogged=report.unlogged,
        faults=report.faults,
        folded=side.folded,
    )


def _function_change(both: Both) -> FunctionChange:
    old, new = both
    named = new if new.function else old
    return FunctionChange(
        function=named.function,
        definition=named.file,
        calls=Pair(before=old.calls, after=new.calls),
        misses=Pair(before=old.misses, after=new.misses),
        seconds=Pair(before=old.seconds, after=new.seconds),
    )


# ------------------------------------------------------------------ misses


def grown(before: Collection[SideCause], after: Collection[SideCause]) -> dict[CauseKey, int]:
    """Return the causes of which one function has more misses, and how many.

    Which of two keys a thread compiles first decides what differs from what: what is only told for another cause, while
    the same keys were compiled as often, is none.
    """
    old = {cause.key: cause.finding.count for cause in before}
    more = {cause.key: max(0, cause.finding.count - old.get(cause.key, 0)) for cause in after}
    surplus = _surplus(_by_signature(before), _by_signature(after))
    unsigned = max(0, sum(one.unsigned for one in after) - sum(one.unsigned for one in before))
    found = {}
    for cause in after:
        room = sum(min(count, surplus.get(signature, 0)) for signature, count in cause.signatures.items())
        found[cause.key] = min(more[cause.key], room + min(cause.unsigned, unsigned))
    lacking = sum(cause.finding.count for cause in after) - sum(old.values()) - sum(found.values())
    for key, most in more.items():
        added = max(0, min(lacking, most - found[key]))
        found[key] += added
        lacking -= added
    return {key: count for key, count in found.items() if count}


def _by_signature(causes: Collection[SideCause]) -> dict[str, int]:
    found: dict[str, int] = {}
    for cause in causes:
        for signature, count in cause.signatures.items():
            found[signature] = found.get(signature, 0) + count
    return found


def _surplus(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


def _times_as_many(calls: Pair, totals: tuple[Totals, Totals]) -> float:
    """Return how many times as many misses are to be expected; at least 1: a shorter run may have as many."""
    if all(total.calls_exact for total in totals) and calls.before:
        return max(1.0, calls.after / calls.before)
    return max(1.0, totals[1].processes / max(totals[0].processes, 1))


def _beyond(before: int, more: int, times: float) -> int:
    """Return how many of ``more`` are beyond what as many misses a call as before would come to."""
    # With the first call: of twice the epochs, each with a miss of its own, 1 + 9 become 2 + 18. Rounded down, as
    # one call more is not to make room for one miss more.
    if not before:
        return more
    expected = math.floor((before + 1) * times + _ROUNDING) - 1
    return max(0, more - (expected - before))


def _miss_changes(both: Both, totals: tuple[Totals, Totals]) -> Iterator[MissChange]:
    old, new = both
    causes = {cause.key: cause for cause in old.causes}, {cause.key: cause for cause in new.causes}
    more, fewer = grown(old.causes, new.causes), grown(new.causes, old.causes)
    calls = Pair(before=old.calls, after=new.calls)
    for key in {**more, **fewer}:
        first, second = causes[0].get(key), causes[1].get(key)
        told = second if key in more else first
        if told is None:
            continue
        counts, seconds = _counts(first, second)
        counted = _beyond(int(counts.before), more.get(key, 0), _times_as_many(calls, totals))
        yield MissChange(
            function=told.finding.cause.function,
            reason=key[1],
            misses=counts,
            seconds=seconds,
            calls=calls,
            counted=0 if key[1] == "first_call" else counted,
            finding=told.finding,
        )


def _counts(first: SideCause | None, second: SideCause | None) -> tuple[Pair, Pair]:
    old, new = (None if cause is None else cause.finding for cause in (first, second))
    return (
        Pair(before=0 if old is None else old.count, after=0 if new is None else new.count),
        Pair(before=0.0 if old is None else old.seconds, after=0.0 if new is None else new.seconds),
    )


def _eager_changes(before: Side, after: Side, times: float) -> Iterator[MissChange]:
    old, new = ({("", one.file): one for one in side.eager} for side in (before, after))
    for first, second in paired(old, new, (before.report.programs, after.report.programs)):
        was, is_ = old[first] if first else _NO_EAGER, new[second] if second else _NO_EAGER
        if was.count == is_.count:  # what the operations are called is another one's business: JAX renames them
            continue
        more, less = (is_, was) if is_.count > was.count else (was, is_)
        finding = _eager_finding(more, less)
        yield MissChange(
            function=finding.cause.function,
            reason="eager",
            misses=Pair(before=was.count, after=is_.count),
            seconds=Pair(before=was.seconds, after=is_.seconds),
            calls=Pair(before=0, after=0),
            counted=_beyond(was.again, max(0, is_.again - was.again), times) if more is is_ else 0,
            finding=finding,
        )


def _eager_finding(more: SideEager, less: SideEager) -> Finding:
    gained = _surplus(less.functions, more.functions)
    names = sorted(gained, key=lambda name: (-gained[name], name))
    left_out = f" and {len(names) - _EAGER_NAMED} more" if len(names) > _EAGER_NAMED else ""
    sites = most_first((_surplus(less.sites, more.sites) or more.sites).items())
    function = ", ".join(names[:_EAGER_NAMED]) + left_out
    return Finding(
        cause=Cause("eager", function, more.file, "", ()),
        values=(),
        count=more.count,
        seconds=more.seconds,
        from_disk=0,
        calls=(),
        calls_left_out=0,
        compared_with=(),
        sites=sites,
        sites_left_out=0,
        processes=1,
        advice=None,
    )


# ------------------------------------------------------------------ phases and programs


def _phase_changes(both: Collection[Both]) -> list[PhaseChange]:
    found = [change for old, new in both if old.function and new.function for change in _phases(old, new)]
    before, after = (sum(getattr(one.seconds, side) for one in found) for side in ("before", "after"))
    own: dict[tuple[str, str], Pair] = {}
    for one in found:
        sums = own.get((one.function, one.definition), Pair(before=0.0, after=0.0))
        sums = Pair(before=sums.before + one.seconds.before, after=sums.after + one.seconds.after)
        own[one.function, one.definition] = sums
    changes = []
    for one in found:
        sums = own[one.function, one.definition]
        if beyond_noise(one.seconds, Pair(before=before - sums.before, after=after - sums.after)):
            changes.append(one)
    return changes


def _phases(old: SideFunction, new: SideFunction) -> Iterator[PhaseChange]:
    """Yield all phases of a function that is on both sides, slower or not."""
    for number, phase in enumerate(PHASES):
        took = {one: (_took(old, one, number), _took(new, one, number)) for one in old.programs}
        shared = [(first, second) for first, second in took.values() if first is not None and second is not None]
        before, after = (sum(pair[side] for pair in shared) for side in (0, 1))
        if not shared:
            before, after = _mean(old, number), _mean(new, number)
        seconds = Pair(before=before, after=after)
        yield PhaseChange(
            function=new.function, definition=new.file, phase=phase, seconds=seconds, programs=len(shared)
        )


def beyond_noise(seconds: Pair, others: Pair) -> bool:
    """Whether two durations of the same work differ by more than two runs of it do.

    Args:
        seconds: Of one phase of a function.
        others: Of all phases of all other functions: they tell how much slower the machine was.
    """
    if min(seconds.before, seconds.after) <= 0 or abs(seconds.gained) < NOISE_SECONDS:
        return False
    ratio = seconds.after / seconds.before
    of_machine = others.after / others.before if min(others.before, others.after) >= NOISE_SECONDS else 1.0
    return ratio / max(1.0, of_machine) >= NOISE_RATIO or ratio / min(1.0, of_machine) <= 1 / NOISE_RATIO


def _took(side: SideFunction, signature: str, phase: int) -> float | None:
    """Return the seconds of one program's phase, the mean of its misses; None where it was not compiled."""
    program = side.programs.get(signature)
    if program is None:
        return None
    times = program.compiled if PHASES[phase] == "backend_compile" else program.misses
    return program.seconds[phase] / times if times else None


def _mean(side: SideFunction, phase: int) -> float:
    """Return the seconds of a phase of any of the function's misses, the mean."""
    programs = side.programs.values()
    compiling = PHASES[phase] == "backend_compile"
    times = sum(one.compiled if compiling else one.misses for one in programs)
    return sum(one.seconds[phase] for one in programs) / times if times else 0.0


def _program_change(old: SideFunction, new: SideFunction) -> ProgramChange | None:
    shared = old.programs.keys() & new.programs.keys()
    prints = sum(_other(old.programs[one].fingerprints, new.programs[one].fingerprints) for one in shared)
    keys = sum(_other(old.programs[one].disk_keys, new.programs[one].disk_keys) for one in shared)
    if not prints and not keys:
        return None
    return ProgramChange(
        function=new.function, definition=new.file, programs=len(shared), fingerprints=prints, disk_keys=keys
    )


def _other(before: frozenset[str], after: frozenset[str]) -> bool:
    """Whether none of them is on both sides; where one side tells nothing, nothing is known."""
    return bool(before and after and not before & after)


# ------------------------------------------------------------------ notes


def _note_changes(before: Side, after: Side) -> Iterator[NoteChange]:
    counts: list[dict[tuple[str, str, str], int]] = [{}, {}]
    for side, found in zip((before, after), counts, strict=True):
        for note in side.report.notes:
            if note.kind in {"trace_error", "violation"}:
                key = note.kind, note.function, note.what
                found[key] = found.get(key, 0) + note.count
    for key in sorted({**counts[0], **counts[1]}):
        times = Pair(before=counts[0].get(key, 0), after=counts[1].get(key, 0))
        if times.gained:
            yield NoteChange(kind=key[0], function=key[1], what=key[2], times=times)
