"""How seconds grow with equations: the fit, and what leaving out equations saves. Pure.

Each compile has a part that does not grow: the fit takes it out as far as the sizes show it.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from jaxwatch.errors import TooFewSizesError

LEAST_SIZES = 3
_FLOORS = 60  # that are tried, evenly from none to all of the smallest size's seconds
_CERTAIN = 2.0  # standard errors either way
_NOISE = 0.05  # of a median of a few compiles, relative: no fit is more certain than its seconds
_PARAMETERS = 3  # of the model


class Growth(NamedTuple):
    """``seconds = floor + factor * equations ** exponent``.

    Attributes:
        exponent: Above 1, seconds outgrow the program.
        low: The exponent may be as small as this: two standard errors below, the floor as uncertain as it is.
        high: Or as large as this.
        floor_seconds: What a program takes that does not grow; at most what the smallest size took.
    """

    exponent: float
    low: float
    high: float
    floor_seconds: float


def growth_exponent(equations: Sequence[int], seconds: Sequence[float]) -> Growth:
    """Return how seconds grow with equations.

    Args:
        equations: ``[n]``, of the program at each size, ≥ 1; at least 3 distinct ones.
        seconds: ``[n]``, of one phase at that size, > 0.

    Returns:
        The least-squares line through the logarithms, with the floor under which it fits best. Every floor that fits
        nearly as well counts as uncertainty: sizes over a small range cannot tell floor and exponent apart.

    Raises:
        TooFewSizesError: Fewer than 3 distinct sizes; a line through 2 points always fits.

    Source:
        XLA's growth is measured by ``benchmarks/compile_growth.py``; DESIGN.md, "Unrolled loops".
    """
    if len(set(equations)) < LEAST_SIZES:
        problem = f"{len(set(equations))} distinct numbers of equations are too few to fit a growth."
        raise TooFewSizesError(problem, f"Give at least {LEAST_SIZES} sizes that make programs of different size.")
    logs, smallest = [math.log(count) for count in equations], min(seconds)
    fits = []
    for step in range(_FLOORS):
        floor = smallest * step / _FLOORS
        # of the seconds, not of what is left of them above the floor: there a small deviation would weigh too much
        weights = [(1 - floor / each) ** 2 for each in seconds]
        fits.append((floor, _line(logs, [math.log(each - floor) for each in seconds], weights)))
    free = len(logs) - _PARAMETERS
    # with no size to spare, every floor fits: then the plain line is told, and how far another floor would lead from it
    floor, (slope, _, least) = min(fits, key=lambda fit: fit[1][2]) if free > 0 else fits[0]
    spread = max(least / max(free, 1), _NOISE**2)
    near = [line for _, line in fits if free <= 0 or line[2] <= least + _CERTAIN**2 * spread]
    return Growth(
        slope,
        min(line[0] - _CERTAIN * math.sqrt(spread) * line[1] for line in near),
        max(line[0] + _CERTAIN * math.sqrt(spread) * line[1] for line in near),
        floor,
    )


def _line(x: Sequence[float], y: Sequence[float], weights: Sequence[float]) -> tuple[float, float, float]:
    """Return the slope of the weighted line, its error for a spread of 1, and the weighted sum of squares it leaves."""
    total = sum(weights)
    middle = sum(w * each for w, each in zip(weights, x, strict=True)) / total
    level = sum(w * each for w, each in zip(weights, y, strict=True)) / total
    width = sum(w * (each - middle) ** 2 for w, each in zip(weights, x, strict=True))
    slope = sum(w * (a - middle) * (b - level) for w, a, b in zip(weights, x, y, strict=True)) / width
    left = sum(w * (b - level - slope * (a - middle)) ** 2 for w, a, b in zip(weights, x, y, strict=True))
    return slope, 1 / math.sqrt(width), left
