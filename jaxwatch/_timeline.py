"""Seconds over time, in slots that grow wider as the run grows longer: at most so many at any time. Pure."""

import math
from dataclasses import dataclass

SLOTS = 120  # the most that a timeline has
SERIES = ("once", "again", "eager")
_PLACES = {series: place for place, series in enumerate(SERIES)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Seconds of compiling in each slot of time, oldest first; the whole run, in at most ``SLOTS`` slots.

    Attributes:
        start: Of the first slot, in seconds since 1970.
        width: Of a slot, in seconds.
        once: Compiled for the first time, ahead of time, or in vain.
        again: Compiled again under another key.
        eager: Outside watched functions.
    """

    start: float
    width: float
    once: tuple[float, ...]
    again: tuple[float, ...]
    eager: tuple[float, ...]


class Slots:
    """Adds up what compiling cost, by when it was done."""

    def __init__(self) -> None:
        self._width = 1.0  # seconds
        self._sums: dict[int, list[float]] = {}  # number of the slot since 1970 → seconds of each of ``SERIES``

    def add(self, series: str, end: float, seconds: float) -> None:
        """Add what took ``seconds`` and was done at ``end`` (seconds since 1970), to each slot what fell into it."""
        if seconds <= 0 or end <= 0:
            return
        start, place = max(end - seconds, 0.0), _PLACES[series]
        slot = int(start / self._width)
        if (sums := self._sums.get(slot)) is not None and end <= (slot + 1) * self._width:
            sums[place] += min(seconds, end)
            return  # it fits a slot that is there, as most do
        self._make_room(start, end)
        for slot in range(self._slot(start), self._slot(end) + 1):
            overlap = min(end, (slot + 1) * self._width) - max(start, slot * self._width)
            if overlap > 0:
                self._sums.setdefault(slot, [0.0] * len(SERIES))[place] += overlap

    def _slot(self, time: float) -> int:
        return math.floor(time / self._width)

    def _make_room(self, start: float, end: float) -> None:
        """Take two slots for one until all from the first to the last are few enough."""
        first, last = self._slot(start), self._slot(end)
        if self._sums:
            first, last = min(first, *self._sums), max(last, *self._sums)
        while last - first >= SLOTS:
            self._width *= 2
            first, last = first // 2, last // 2
            halved: dict[int, list[float]] = {}
            for slot, sums in self._sums.items():
                earlier = halved.get(slot // 2, [0.0] * len(SERIES))
                halved[slot // 2] = [a + b for a, b in zip(earlier, sums, strict=True)]
            self._sums = halved

    def timeline(self, now: float) -> Timeline:
        """Return what was added, up to the slot of ``now`` (seconds since 1970); empty slots between are 0."""
        if not self._sums:
            return Timeline(start=now, width=self._width, once=(), again=(), eager=())
        self._make_room(now, now)
        first, last = min(self._sums), max(*self._sums, self._slot(now))
        nothing = [0.0] * len(SERIES)
        rows = [self._sums.get(slot, nothing) for slot in range(first, last + 1)]
        once, again, eager = (tuple(row[place] for row in rows) for place in range(len(SERIES)))
        return Timeline(start=first * self._width, width=self._width, once=once, again=again, eager=eager)
