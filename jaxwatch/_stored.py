"""What JAX's persistent cache did: programs read, stored, not stored and why, entries whose key moved. Pure."""

from collections.abc import Iterator

from jaxwatch._records import SeenMiss

# Functions and signatures whose keys on disk are compared between processes; beyond, none is added.
ENTRIES = 20_000

Row = tuple[str, int, float]
"""What, how many programs, seconds: saved by reading, else spent on compiling."""


class Stored:
    """Gathers the look-ups of many processes."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, float]] = {}
        self._keys: dict[tuple[str, str, str], dict[int, str]] = {}  # by process, the last one

    def add(self, miss: SeenMiss, process: int) -> None:
        """Add a miss of a process, by its number; one without a look-up is passed over."""
        if miss.disk is None:
            return
        seconds = miss.disk.saved_seconds if miss.from_disk else miss.seconds
        self.count(from_disk=miss.from_disk, not_stored=miss.disk.not_stored, programs=1, seconds=seconds)
        if miss.disk.key is not None:
            self.keep((miss.function, miss.definition, miss.signature), process, miss.disk.key)

    def count(self, *, from_disk: bool, not_stored: str | None, programs: int, seconds: float) -> None:
        """Count programs that were read from disk, which saved so many seconds, or that cost so many to compile."""
        what = "read" if from_disk else "stored" if not_stored is None else f"not stored: {not_stored}"
        count, so_far = self._rows.get(what, (0, 0.0))
        self._rows[what] = count + programs, so_far + seconds

    def keep(self, entry: tuple[str, str, str], process: int, key: str) -> None:
        """Keep the key on disk that a process had for a function, its definition and signature."""
        if entry in self._keys or len(self._keys) < ENTRIES:
            self._keys.setdefault(entry, {})[process] = key

    def rows(self) -> tuple[Row, ...]:
        """Return what was done, most seconds first."""
        return in_order((what, count, seconds) for what, (count, seconds) in self._rows.items())

    def moved(self) -> Iterator[tuple[str, str, int]]:
        """Yield function, definition and number of keys where processes compiled one signature under several keys."""
        found: dict[tuple[str, str], int] = {}
        for (function, definition, _), by_process in self._keys.items():
            if (number := len(set(by_process.values()))) > 1:
                found[function, definition] = max(number, found.get((function, definition), 0))
        yield from ((function, definition, number) for (function, definition), number in found.items())


def in_order(rows: Iterator[Row]) -> tuple[Row, ...]:
    """Return the rows, most seconds first; those of one kind are summed."""
    found: dict[str, tuple[int, float]] = {}
    for what, count, seconds in rows:
        before = found.get(what, (0, 0.0))
        found[what] = before[0] + count, before[1] + seconds
    return tuple(sorted(((what, *sums) for what, sums in found.items()), key=lambda row: (-row[2], row[0])))
