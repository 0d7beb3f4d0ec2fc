"""What ``jaxwatch scaling`` shows: a table, a plot of the compile, and how each phase grows."""

import math
from collections.abc import Iterator, Sequence

from jaxwatch._scaling import PHASES, Measured, Scaling, growth_text
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import left, right, width

_BAR = 40
_LEAST_SECONDS = 1e-6


def lines(found: Scaling) -> Iterator[str]:
    """Yield the lines, without line ends."""
    yield f"jaxwatch scaling · {found.target} · each a cold compile in a process of its own"
    yield ""
    rows = [("size", "equations", *PHASES, "processes"), *map(_row, found.measured)]
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  " + "   ".join(right(cell, size) for cell, size in zip(row, widths, strict=True))
    yield ""
    yield from _plot(found.measured)
    yield ""
    yield from (growth_text(phase, growth) for phase, growth in found.growth.items())
    if not found.growth and len(found.measured) > 1 and len({each.equations for each in found.measured}) == 1:
        yield "The program has as many equations at each size: its compile does not grow with it by being unrolled."
    elif not found.growth:
        yield "Too few sizes with different numbers of equations were measured to tell how it grows."
    if found.left_out:
        yield f"Not measured for want of time: {', '.join(map(str, found.left_out))}. Give --budget more seconds."


def _row(each: Measured) -> tuple[str, ...]:
    seconds = (phrases.duration(each.seconds[phase]) for phase in PHASES)
    return (f"{each.size:,}", f"{each.equations:,}", *seconds, f"{each.repeats}")


def _plot(measured: Sequence[Measured]) -> Iterator[str]:
    """Yield a bar for each size: the seconds of all phases, on a logarithmic scale."""
    totals = [max(sum(each.seconds.values()), _LEAST_SECONDS) for each in measured]
    low, high = math.log(min(totals) / 2), math.log(max(totals))
    for each, total in zip(measured, totals, strict=True):
        filled = max(1, round(_BAR * (math.log(total) - low) / (high - low)))
        yield f"  {right(f'{each.size:,}', 8)} {left('█' * filled, _BAR)} {phrases.duration(total)}"
    yield f"  {'':8} all phases, logarithmic: each further bar of equal length multiplies the seconds alike"
