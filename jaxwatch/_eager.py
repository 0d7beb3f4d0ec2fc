"""Compiles outside watched functions: which are a finding, and what all of them cost. Pure."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from jaxwatch._findings import OTHER, PROCESSES_KEPT, SITES_KEPT, Cause, Finding, most_first

# Compiles of one function at one place, in one process, that make it a finding: twice may be a first and a last batch.
AGAIN_AND_AGAIN = 3
# The same in an installed package, which compiles an op for each shape when it sets up its state, once.
AGAIN_IN_A_LIBRARY = 8
# Those that are no finding each are one together from this share of the run on, and from so many seconds on.
REST_SHARE = 0.1
REST_SECONDS = 1.0
# Functions and places told apart. Beyond, all count as "other".
EAGER_PLACES = 2_000

_NAMED = 3
LIBRARIES = ("site-packages", "dist-packages")
_ADVICE = ("jit_the_block", "Keep the array at a fixed size, or use numpy here, or jit the block.")
_OWN_ADVICE = (
    "jit_outer",
    "If it is the backward pass: jit the transformed function, as jax.jit(jax.grad(f)), and call that.",
)
_REST_ADVICE = ("jit_the_block", "Jit the block: it is then compiled as one program.")


@dataclass(frozen=True, slots=True)
class Compiles:
    """Compiles of one function at one place in one process: one, or all that there were."""

    count: int
    seconds: float
    first_seconds: float  # of the first of them
    from_disk: int  # how many


class _Place:
    """One function at one place."""

    def __init__(self, site: str, via: str | None) -> None:
        self.via = via
        self.in_library = any(folder in (via or site) for folder in LIBRARIES)
        self.count = self.from_disk = 0
        self.seconds = self.first_seconds = 0.0
        self.by_process: dict[int, int] = {}

    @property
    def is_finding(self) -> bool:
        return max(self.by_process.values()) >= (AGAIN_IN_A_LIBRARY if self.in_library else AGAIN_AND_AGAIN)


class EagerCompiles:
    """Gathers the eager compiles of many processes."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str], _Place] = {}
        self.count = self.from_disk = self.folded = 0
        self.seconds = 0.0

    def add(  # noqa: PLR0913 -- what the event holds
        self, function: str, site: str, seconds: float, process: int, *, from_disk: bool, via: str | None = None
    ) -> None:
        """Add a compile of ``function`` at ``site``, where the library's line ``via`` made it."""
        self.add_all(function, site, process, via, Compiles(1, seconds, seconds, int(from_disk)))

    def add_all(self, function: str, site: str, process: int, via: str | None, compiles: Compiles) -> None:
        """Add compiles of ``function`` at ``site`` in one process."""
        self.count += compiles.count
        self.seconds += compiles.seconds
        self.from_disk += compiles.from_disk
        key = function, site
        if key not in self._places and len(self._places) >= EAGER_PLACES:
            key = OTHER, OTHER
            self.folded += compiles.count
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place(site, via)
        place.count += compiles.count
        place.seconds += compiles.seconds
        place.from_disk += compiles.from_disk
        if process not in place.by_process:
            place.first_seconds += compiles.first_seconds
        if process in place.by_process or len(place.by_process) < PROCESSES_KEPT:
            place.by_process[process] = place.by_process.get(process, 0) + compiles.count
        else:  # each counts as the first of its process
            place.first_seconds += compiles.seconds - compiles.first_seconds

    def lines(self) -> list[tuple[str, list[str], int, float]]:
        """Return each line of code with its functions, its compiles and what they cost in seconds; dearest first."""
        found: dict[str, tuple[list[str], int, float]] = {}
        for (function, site), place in self._places.items():
            names, count, seconds = found.get(site, ([], 0, 0.0))
            found[site] = [*names, function], count + place.count, seconds + place.seconds
        return sorted(((site, *sums) for site, sums in found.items()), key=lambda line: (-line[3], line[0]))

    def places(self) -> Iterator[tuple[str, str, int, float, int]]:
        """Yield function, site, compiles, their seconds, and those of them that a finding tells of as done again."""
        for (function, site), place in self._places.items():
            again = place.count - len(place.by_process) if place.is_finding else 0
            yield function, site, place.count, place.seconds, again

    def again_seconds(self) -> float:
        """Return what the findings cost beyond the first compile of each."""
        return sum(place.seconds - place.first_seconds for place in self._again().values())

    def findings(self, wall_seconds: float, watched: Collection[str] = ()) -> tuple[Finding, ...]:
        """Return what is worth a word in a run of so many seconds: what came again and again, and a dear rest.

        Args:
            wall_seconds: How long the run took.
            watched: Names of the watched functions: a program of such a name was compiled outside the function's own
                call, as the backward pass is under ``grad``.
        """
        again = self._again()
        by_site: dict[tuple[str, bool], dict[str, _Place]] = {}
        for (function, site), place in again.items():
            by_site.setdefault((site, function in watched), {})[function] = place
        found = [_finding(site, places, own=own) for (site, own), places in by_site.items()]
        rest = {key: place for key, place in self._places.items() if key not in again and key[0] not in watched}
        if sum(place.seconds for place in rest.values()) >= max(REST_SECONDS, REST_SHARE * wall_seconds):
            found.append(_rest(rest))
        return tuple(found)

    def _again(self) -> dict[tuple[str, str], _Place]:
        return {key: place for key, place in self._places.items() if place.is_finding and key != (OTHER, OTHER)}


def _finding(site: str, places: dict[str, _Place], *, own: bool) -> Finding:
    """Return the finding of one line of code, whatever ops it compiles again and again."""
    names = sorted(places, key=lambda name: -places[name].seconds)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    count = sum(place.count for place in places.values())
    return Finding(
        cause=Cause("eager_own" if own else "eager", ", ".join(names[:_NAMED]) + more, site, "", ()),
        values=(),
        count=count,
        seconds=sum(place.seconds for place in places.values()),
        from_disk=sum(place.from_disk for place in places.values()),
        calls=(),
        calls_left_out=0,
        compared_with=(),
        sites=((site, count),),
        sites_left_out=0,
        processes=len({process for place in places.values() for process in place.by_process}),
        advice=_OWN_ADVICE if own else _ADVICE,
        via=next((place.via for place in places.values() if place.via), None),
    )


def _rest(places: dict[tuple[str, str], _Place]) -> Finding:
    sites: dict[str, int] = {}
    for (_, site), place in places.items():
        sites[site] = sites.get(site, 0) + place.count
    ordered = most_first(sites.items())
    return Finding(
        cause=Cause("eager_rest", "", "", "", ()),
        values=(),
        count=sum(place.count for place in places.values()),
        seconds=sum(place.seconds for place in places.values()),
        from_disk=sum(place.from_disk for place in places.values()),
        calls=(),
        calls_left_out=0,
        compared_with=(),
        sites=ordered[:SITES_KEPT],
        sites_left_out=sum(count for _, count in ordered[SITES_KEPT:]),
        processes=len({process for place in places.values() for process in place.by_process}),
        advice=_REST_ADVICE,
    )
