"""Which misses of a test are new against its baseline, whatever order the tests run in. Pure.

A function that several tests call compiles for a key once in a process: the first test to come pays. So a test by
itself (``-k``), on another worker or in another order may pay what the baseline has with a test before it. The rule:

- In all tests up to and including T, in the *baseline's* order, a function may miss as often in this process as the
  baseline says of these tests together. What T misses beyond its own entry is new as far as that is exceeded.
- A cause that the whole baseline has nowhere for the function is new.

Why the first is no false alarm: let K(S) be the keys that the tests of a set S need. The tests of {1…T} that ran in
this process, in whatever order, missed each key of K({1…T}) once at most; and the baseline's entries 1…T are together
at least as many: when it was written, one of them missed each of these keys. Where all before T ran before T, it is
exact: nothing is left over to be lent. And the second: two keys that differ in an argument are joined by a chain of
comparisons in the baseline, one of which must differ in it too.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.counts import OF_ORDER, Counts, Misses, at_most, kind_of


@dataclass(frozen=True, slots=True)
class New:
    """Misses of one function that are new."""

    function: str
    misses: int
    causes: tuple[str, ...]  # those that there are more of, or that are nowhere else


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is new in an entry, and what its misses up to now are in all."""

    new: tuple[New, ...]
    listed: bool
    misses: Misses


@dataclass(slots=True)
class _Sums:
    """The baseline's misses of one function, summed up from its start."""

    places: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=list)

    def up_to(self, place: int) -> int:
        index = bisect_right(self.places, place)
        return self.sums[index - 1] if index else 0


class Judge:
    """Judges the entries of one process, one after the other."""

    def __init__(self, baseline: Baseline) -> None:
        self._entries = baseline.entries
        self._place = {entry: place for place, entry in enumerate(baseline.entries)}
        self._budget: dict[str, _Sums] = {}
        self._known: dict[str, set[str]] = {}
        self._spent: dict[str, dict[int, int]] = {}
        self._runs: dict[Entry, Misses] = {}
        for place, misses in enumerate(baseline.entries.values()):
            for function, counts in misses.items():
                sums = self._budget.setdefault(function, _Sums())
                sums.places.append(place)
                sums.sums.append((sums.sums[-1] if sums.sums else 0) + counts.misses)
                self._known.setdefault(function, set()).update(map(kind_of, counts.causes))

    def judge(self, entry: Entry, seen: Misses) -> Verdict:
        """Return what is new in ``entry``; run again, it is judged by its fullest run: by then, caches are warm."""
        misses = self._runs[entry] = at_most([self._runs.get(entry, {}), seen])
        place = self._place.get(entry)
        if place is None:
            return Verdict((), listed=False, misses=misses)
        own = self._entries[entry]
        new = [self._new(function, counts, own.get(function, Counts()), place) for function, counts in misses.items()]
        found = tuple(each for each in new if each is not None)
        return Verdict(found, listed=True, misses=misses)

    def _new(self, function: str, counts: Counts, own: Counts, place: int) -> New | None:
        spent = self._spent.setdefault(function, {})
        others = sum(count for at, count in spent.items() if at < place)
        sums = self._budget.get(function)
        budget = sums.up_to(place) if sums is not None else 0
        allowed = max(own.misses, budget - others)
        spent[place] = min(counts.misses, allowed)  # what was found to be new is no debt of later tests
        excess = counts.misses - allowed
        known = self._known.get(function, set())
        unknown = [cause for cause in counts.causes if cause not in OF_ORDER and kind_of(cause) not in known]
        if excess > 0:
            more = [cause for cause, number in counts.causes.items() if number > own.causes[cause]]
            return New(function, excess, tuple(dict.fromkeys([*unknown, *more])))
        if unknown:
            return New(function, max(counts.causes[cause] for cause in unknown), tuple(unknown))
        return None
