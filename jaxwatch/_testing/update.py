"""A baseline brought up to date by a run, be it of a part of the tests. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.counts import Counts, Misses, at_most
from jaxwatch._testing.judge import New

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run says of one entry."""

    misses: Misses
    new: tuple[New, ...] = ()
    exact: bool = False  # all tests before it ran before it, in one process, and passed: its misses are all its own
    failed: bool = False  # it may have stopped early


@dataclass(frozen=True, slots=True)
class Changes:
    """How two baselines differ, in tests."""

    added: int
    changed: int
    dropped: int


def updated(
    old: Baseline, order: Sequence[Entry], ran: Mapping[Entry, Ran], gone: Collection[Entry], *, whole: bool
) -> Baseline:
    """Return the baseline after a run.

    An entry whose figures are exact takes them. Of the others, which may have paid for tests that did not run, only
    what is new is added; what did not run is kept.

    Args:
        old: The baseline before.
        order: The entries that were collected, in the order of the run.
        ran: What ran of them.
        gone: Entries that are no more: tests that were deleted or renamed.
        whole: Whether all tests were to run. Their order is the file's then; else new ones are put into the file's.
    """
    known = {entry: misses for entry, misses in old.entries.items() if entry not in gone}
    kept = [entry for entry in order if entry in known or entry in ran]
    entries: dict[Entry, Misses] = {}
    for entry in in_order(list(known), kept) if whole else in_order(kept, list(known)):
        misses = _after(known.get(entry), ran.get(entry))
        if entry.kind == "test" or misses:
            entries[entry] = misses
    return Baseline(entries)


def _after(own: Misses | None, run: Ran | None) -> Misses:
    if run is None:
        return own or {}
    if own is None:
        return run.misses
    if run.failed:  # what it compiled is there for others
        return at_most([own, run.misses])
    if run.exact:
        return run.misses
    after = {function: Counts(counts.misses, counts.causes.copy()) for function, counts in own.items()}
    for new in run.new:
        counts = after.setdefault(new.function, Counts())
        counts.misses += new.misses
        for cause in new.causes:
            counts.causes[cause] = max(counts.causes[cause], run.misses[new.function].causes[cause])
    return after


def in_order(old: Sequence[T], new: Sequence[T]) -> list[T]:
    """Return all entries in the order of ``new``; what is in ``old`` alone stays behind what it stood behind."""
    here = set(new)
    behind: dict[T | None, list[T]] = {}
    last: T | None = None
    for entry in old:
        if entry in here:
            last = entry
        else:
            behind.setdefault(last, []).append(entry)
    found = list(behind.get(None, []))
    for entry in new:
        found += [entry, *behind.get(entry, [])]
    return found


def changes(old: Baseline, new: Baseline) -> Changes:
    """Return how many tests were added, changed and dropped."""
    before, after = ({e: m for e, m in each.entries.items() if e.kind == "test"} for each in (old, new))
    return Changes(
        added=len(after.keys() - before.keys()),
        changed=sum(after[entry] != before[entry] for entry in after.keys() & before.keys()),
        dropped=len(before.keys() - after.keys()),
    )
