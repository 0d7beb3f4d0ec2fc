"""Rounds of interleaved runs, and the ratios within each."""

import gc
import random
import statistics
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Run = Callable[[int], float]
"""Makes so many calls and returns the nanoseconds that one took."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A variant against the reference, over all rounds."""

    nanoseconds: float  # median of the variant itself
    ratio: float  # median of the paired ratios
    quartiles: tuple[float, float]  # of the paired ratios
    added: float  # median of the paired differences, in nanoseconds
    rounds: int

    def cell(self) -> str:
        """Return the figure as a table has it."""
        low, high = self.quartiles
        return f"{self.ratio:.3f} [{low:.3f}, {high:.3f}] {self.added:+.0f} ns"

    def record(self) -> dict[str, Any]:
        """Return the figure as JSON has it."""
        return asdict(self)


def figure(values: list[float], reference: list[float]) -> Figure:
    """Return the paired figures of one variant; the lists are of the same rounds."""
    ratios = [value / other for value, other in zip(values, reference, strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    added = statistics.median(value - other for value, other in zip(values, reference, strict=True))
    return Figure(statistics.median(values), middle, (low, high), added, len(values))


def interleaved(runs: Mapping[str, Run], *, calls: int, rounds: int, seed: int = 0) -> dict[str, list[float]]:
    """Run each variant once a round, in an order drawn anew for each; return their nanoseconds a call by round."""
    order, names = random.Random(seed), list(runs)  # noqa: S311 -- an order, no secret
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()  # a collection would fall on one variant of a round
    try:
        for _ in range(rounds):
            order.shuffle(names)
            for name in names:
                times[name].append(runs[name](calls))
    finally:
        gc.enable()
    return times


def calls_in(run: Run, nanoseconds: float) -> int:
    """Return how many calls take about so long: short enough that most batches are not interrupted."""
    run(20)
    return max(1, int(nanoseconds / min(run(20) for _ in range(5))))


def against(reference: str, times: Mapping[str, list[float]]) -> dict[str, Figure]:
    """Return the figures of all variants against one of them."""
    return {name: figure(values, times[reference]) for name, values in times.items()}
