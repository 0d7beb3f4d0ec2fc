"""Cumulative seconds against calls, for a terminal: both axes logarithmic, a letter for each scope."""

import math
from collections.abc import Sequence

from jaxwatch._advise.curves import Curve, at
from jaxwatch.renderers.cells import clean, cut
from jaxwatch.renderers.phrases import duration

_ROWS, _COLUMNS = 12, 62
_MARGIN = 10
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SEVERAL = "*"


def drawn(curves: Sequence[tuple[str, Curve]]) -> list[str]:
    """Return the lines of a plot; none where there is nothing to see: less than two curves, or a single call.

    Args:
        curves: Name and ``(calls, seconds)`` of each scope.
    """
    last = max((curve[-1][0] for _, curve in curves), default=0)
    if len(curves) < 2 or last < 2:  # noqa: PLR2004 -- as the docstring says
        return []
    seconds = [value for _, curve in curves for _, value in curve if value > 0]
    low, high = math.log(min(seconds)), math.log(max(seconds) * 1.0001)
    grid = [[" "] * _COLUMNS for _ in range(_ROWS)]
    for letter, (_, curve) in zip(_LETTERS, curves, strict=False):
        for column in range(_COLUMNS):
            calls = round(last ** (column / (_COLUMNS - 1)))
            value = at(curve, calls, None)
            if value is None or value <= 0:
                continue
            row = _ROWS - 1 - int((math.log(value) - low) / (high - low or 1.0) * (_ROWS - 1) + 0.5)
            grid[row][column] = letter if grid[row][column] in (" ", letter) else _SEVERAL
    labels = {0: duration(math.exp(high)), _ROWS - 1: duration(math.exp(low))}
    plot = [f"{labels.get(row, ''):>{_MARGIN}} ┤{''.join(cells)}".rstrip() for row, cells in enumerate(grid)]
    axis = f"{'':>{_MARGIN}} └{'─' * _COLUMNS}"
    below = f"{'':>{_MARGIN}}  1 call{f'{last:,} calls':>{_COLUMNS - 6}}"
    names = "  ".join(f"{letter} {cut(clean(name), 20)}" for letter, (name, _) in zip(_LETTERS, curves, strict=False))
    return [
        "seconds since the first call, both axes logarithmic (* several)",
        *plot,
        axis,
        below,
        f"{'':>{_MARGIN}}  {names}",
    ]
