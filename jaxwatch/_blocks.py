"""Equal blocks in a row within a sequence. Pure; linear, by a bound on its steps."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxwatch import _limits


class Run(NamedTuple):
    """``blocks`` equal blocks of ``period`` items each, one after the other."""

    start: int
    period: int
    blocks: int

    @property
    def stop(self) -> int:
        """Where the last block ends."""
        return self.start + self.period * self.blocks


def runs(symbols: Sequence[int], least: int) -> list[Run]:
    """Return rows of equal blocks, in the order in which they were found; some may lie within others.

    Args:
        symbols: What is compared.
        least: How many blocks make a row, ≥ 2.

    Returns:
        Rows that are really there. A row is missed only where each item of its block stands there more than once, or
        where the bound on steps is reached.
    """
    found: list[Run] = []
    last: dict[int, int] = {}
    looked: dict[int, int] = {}  # period → up to where rows of it were looked for
    steps = _limits.LOOP_STEPS * len(symbols)
    for place, symbol in enumerate(symbols):
        before = last.get(symbol)
        last[symbol] = place
        if before is None or steps <= 0:
            continue
        period = place - before
        if looked.get(period, 0) > place:
            continue
        start, stop = _extent(symbols, place, period, looked.get(period, 0))
        looked[period] = stop
        steps -= stop - start
        blocks = (stop - start) // period + 1
        if blocks >= least:
            found.append(Run(start - period, period, blocks))
    return found


def _extent(symbols: Sequence[int], place: int, period: int, least: int) -> tuple[int, int]:
    """Return from where to where each item around ``place`` equals the one a period before."""
    stop = place + 1
    while stop < len(symbols) and symbols[stop] == symbols[stop - period]:
        stop += 1
    start = place
    while start > max(least, period) and symbols[start - 1] == symbols[start - 1 - period]:
        start -= 1
    return start, stop
