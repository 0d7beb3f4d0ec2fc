"""A log-linear histogram of durations in nanoseconds: 16 buckets an octave, each within 6 % of what fell into it."""

from collections.abc import Mapping

SUB_BITS = 4
LOWEST_OCTAVE = 8  # below 256 ns all is one octave's dust
OCTAVES = 34  # up to 2 ** 42 ns, 73 minutes; beyond, the last bucket
SIZE = (OCTAVES << SUB_BITS) + 1


def bucket(nanoseconds: int) -> int:
    """Return the index of the bucket for a duration; 0 holds all below 256 ns."""
    octave = nanoseconds.bit_length() - 1
    if octave < LOWEST_OCTAVE:
        return 0
    index = ((octave - LOWEST_OCTAVE) << SUB_BITS) + ((nanoseconds >> (octave - SUB_BITS)) & 15) + 1
    return min(index, SIZE - 1)


class Cell:
    """The counters of one watched function that its calls write, without a lock.

    Each is read and written within one statement that calls nothing in between: the interpreter hands over to another
    thread at calls and jumps only. The native core's cell has the same attributes and methods.
    """

    __slots__ = ("calls", "dispatch")

    def __init__(self) -> None:
        self.calls = 0
        self.dispatch = [0] * SIZE

    def counts(self) -> dict[int, int]:
        """Return bucket → count, of the buckets that hold anything."""
        return {index: count for index, count in enumerate(self.dispatch) if count}

    def add(self, nanoseconds: int, /) -> None:
        """Count a call from the cache that took so long."""
        index = bucket(nanoseconds)
        self.dispatch[index] += 1

    def reset(self) -> None:
        """Start at 0 again."""
        self.calls = 0
        self.dispatch = [0] * SIZE


def upper_seconds(index: int) -> float:
    """Return the upper bound of a bucket, in seconds."""
    if index == 0:
        return float(2**LOWEST_OCTAVE) * 1e-9
    octave, step = divmod(index - 1, 1 << SUB_BITS)
    return float(2 ** (octave + LOWEST_OCTAVE)) * (1 + (step + 1) / (1 << SUB_BITS)) * 1e-9


def as_seconds(counts: Mapping[int, int]) -> dict[float, int]:
    """Return upper bound in seconds → count, of bucket → count."""
    return {_BOUNDS[index]: count for index, count in sorted(counts.items())}


_BOUNDS = [upper_seconds(index) for index in range(SIZE)]


def quantile(counts: Mapping[float, int], q: float) -> float | None:
    """Return the upper bound of the bucket that holds the ``q``-quantile (0 < q <= 1); None of nothing."""
    total = sum(counts.values())
    seen = 0
    for bound in sorted(counts):
        seen += counts[bound]
        if seen >= q * total:
            return bound
    return None
