"""Ranks of one job that did not compile the same: on a pod they wait for each other, for ever. Pure; bounded.

Each rank's misses of a function are numbered; at each number all ranks should have compiled the same program of the
same key. What is kept is who compiled what, as sets of ranks, so that a thousand hosts weigh little more than two.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from jaxwatch._records import SeenMiss
from jaxwatch._words import changes_text

# Functions of one run of a job that are looked at, and misses of each; beyond, they are not.
FUNCTIONS = 2_000
PLACES = 1_000
# Different programs at one place that are told apart.
PROGRAMS = 16
# Seconds by which a rank may be late before its not having compiled counts.
LATE_SECONDS = 10.0
RANKS = 1 << 16  # a rank above is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What some ranks did where they differ from others.

    Attributes:
        ranks: Which, ascending.
        call: At which call of the lowest of them; None of those that compiled nothing.
        signature: Of the key that missed; None as above.
        fingerprint: Of the program; None as above, or where it is not known.
        what: What differed from an earlier key of the lowest of them, or the key itself; empty as above.
        site: ``file:line`` of the call; empty as above.
        unix_seconds: When, of the first of them; of those that compiled nothing, the last sign of the last one.
    """

    ranks: tuple[int, ...]
    call: int | None
    signature: str | None
    fingerprint: str | None
    what: str
    site: str
    unix_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first miss of a function at which ranks of one job differ.

    Attributes:
        function: Its name.
        definition: ``file:line``.
        kind: ``key`` where other keys missed, ``program`` where the same key was lowered to another program,
            ``behind`` where some ranks compiled nothing more.
        number: The how-manieth miss of the function in each rank, from 1.
        sides: The largest first; at least two.
    """

    function: str
    definition: str
    kind: str
    number: int
    sides: tuple[Side, ...]

    @property
    def first_rank(self) -> int:
        """The lowest rank that did not do as most did."""
        return min(rank for side in self.sides[1:] for rank in side.ranks)


@dataclass(slots=True)
class _Program:
    miss: SeenMiss
    unix_seconds: float
    rank: int
    ranks: int = 0  # a bit for each


@dataclass(slots=True)
class _Function:
    done: dict[int, int] = field(default_factory=dict)  # rank → misses
    places: list[dict[tuple[str, str | None], _Program]] = field(default_factory=list)

    def add(self, place: int, miss: SeenMiss, ranks: Collection[int], unix_seconds: float) -> None:
        if place > PLACES:
            return
        if place > len(self.places):
            self.places.append({})
        programs, what = self.places[place - 1], (miss.signature, miss.fingerprint)
        if what not in programs and len(programs) >= PROGRAMS:
            return
        lowest = min(ranks)
        program = programs.setdefault(what, _Program(miss, unix_seconds, lowest))
        for rank in ranks:
            program.ranks |= 1 << rank
        if lowest < program.rank:
            program.rank, program.miss = lowest, miss
        program.unix_seconds = min(program.unix_seconds, unix_seconds)


@dataclass(slots=True)
class _Job:
    last: dict[int, float] = field(default_factory=dict)  # rank → when it wrote last
    ended: set[int] = field(default_factory=set)
    functions: dict[tuple[str, str], _Function] = field(default_factory=dict)


class Divergences:
    """Takes the misses of ranks, each rank's in order; jobs are told apart by a number."""

    def __init__(self) -> None:
        self._jobs: dict[int, _Job] = {}

    def saw(self, job: int, rank: int, unix_seconds: float, *, ended: bool = False) -> None:
        """Note that a rank was alive, or has ended."""
        if 0 <= rank < RANKS:
            found = self._jobs.setdefault(job, _Job())
            found.last[rank] = max(unix_seconds, found.last.get(rank, 0.0))
            if ended:
                found.ended.add(rank)

    def add(self, miss: SeenMiss, job: int, rank: int, unix_seconds: float) -> None:
        """Take a miss of a rank."""
        if miss.layer == "dispatch" or not 0 <= rank < RANKS:
            return
        if (function := self._function(miss, job)) is not None:
            place = function.done[rank] = function.done.get(rank, 0) + 1
            function.add(place, miss, [rank], unix_seconds)

    def add_all(self, place: int, miss: SeenMiss, job: int, ranks: Collection[int], unix_seconds: float) -> None:
        """Take the misses of ranks that compiled one program as their ``place``-th of a function.

        Args:
            place: From 1; a function's places come in order.
            miss: That of the lowest rank.
            job: Which.
            ranks: At least one, each from 0 and below 65,536.
            unix_seconds: When, of the first of them.
        """
        if (function := self._function(miss, job)) is not None:
            for rank in ranks:
                function.done[rank] = max(place, function.done.get(rank, 0))
            function.add(place, miss, ranks, unix_seconds)

    def _function(self, miss: SeenMiss, job: int) -> _Function | None:
        functions = self._jobs.setdefault(job, _Job()).functions
        key = miss.function, miss.definition
        if key not in functions and len(functions) >= FUNCTIONS:
            return None
        return functions.setdefault(key, _Function())

    def found(self) -> tuple[Divergence, ...]:
        """Return the divergences, those that came first in time first; of each function of a job, the first alone.

        A function that some ranks never compiled is none: rank 0 alone writes checkpoints, say.
        """
        every = (found for job in self._jobs.values() for found in _of_job(job))
        return tuple(sorted(every, key=lambda one: (min(side.unix_seconds for side in one.sides), one.function)))


def _of_job(job: _Job) -> Iterator[Divergence]:
    for (function, definition), seen in job.functions.items():
        for number, programs in enumerate(seen.places, start=1):
            sides = [_side(program) for program in programs.values()]
            behind = _behind(job, seen, number, sides) if number > 1 else None
            kind = "behind" if len(sides) == 1 else _kind(sides)
            if behind is not None:
                sides.append(behind)
            if len(sides) > 1:
                sides.sort(key=lambda side: (-len(side.ranks), side.ranks))
                yield Divergence(function=function, definition=definition, kind=kind, number=number, sides=tuple(sides))
                break


def _kind(sides: Iterable[Side]) -> str:
    return "program" if len({side.signature for side in sides}) == 1 else "key"


def _side(program: _Program) -> Side:
    miss = program.miss
    return Side(
        ranks=_ranks(program.ranks),
        call=miss.call,
        signature=miss.signature,
        fingerprint=miss.fingerprint,
        what=changes_text(miss.changes) or miss.abstract,
        site=miss.site,
        unix_seconds=program.unix_seconds,
    )


def _behind(job: _Job, seen: _Function, number: int, sides: Iterable[Side]) -> Side | None:
    """Return the ranks that compiled the function, but not so often: late beyond doubt, or ended."""
    begun = min(side.unix_seconds for side in sides)
    now = max(job.last.values(), default=0.0)
    late = sorted(
        rank for rank, done in seen.done.items() if done < number and (rank in job.ended or now - begun >= LATE_SECONDS)
    )
    if not late:
        return None
    last = max(job.last.get(rank, 0.0) for rank in late)
    return Side(ranks=tuple(late), call=None, signature=None, fingerprint=None, what="", site="", unix_seconds=last)


def _ranks(bits: int) -> tuple[int, ...]:
    return tuple(rank for rank in range(bits.bit_length()) if bits >> rank & 1)
