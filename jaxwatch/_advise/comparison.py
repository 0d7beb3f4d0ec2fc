"""What `jaxwatch advise` found, as plain data: ``Comparison``, frozen, with its JSON."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxwatch._advise.outcome import Steady
from jaxwatch._advise.samples import Difference

MORE_CALLS = (10, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeFigures:
    """One scope, measured.

    Attributes:
        jit: The functions that were jitted.
        bypassed: Those that ran as they are written.
        as_written: Whether it is the program as it is.
        runs: How often it ran to its end without being waited for: what ``totals`` are of.
        totals: Seconds from the first call of a watched function to the program's end, of each of these runs.
        total_seconds: Their mean, of four or more that of the quicker half; of a scope that was stopped, what it took
            till then.
        first_call_seconds: The first call, until its result was ready.
        compile_seconds: Tracing, lowering and compiling in all, operations outside of jit included; median of the runs.
        misses: Calls that did not run from the cache.
        eager_compiles: Compiles outside of watched functions.
        steady: Calls that compiled nothing; None where there was none.
        later_seconds: From one call to the next, in the second half of the run; None of one call.
        peak_bytes: The most memory; see ``Outcome``.
        on_device: Whether that is the devices'.
        calls: Outermost calls that it made.
        stopped: It took several times as long as the best, and was ended; its figures are of what it had done by then.
        error: What it raised; empty where it came to its end.
        difference: Where its results are others than those of the program as it is written; None where nothing is.
        checked: Whether its results were held against those; not so where the budget was spent before.
        curve: ``(calls, seconds)``.
    """

    jit: tuple[str, ...]
    bypassed: tuple[str, ...]
    as_written: bool
    runs: int
    totals: tuple[float, ...]
    total_seconds: float
    first_call_seconds: float
    compile_seconds: float
    misses: int
    eager_compiles: int
    steady: Steady | None
    later_seconds: float | None
    peak_bytes: int
    on_device: bool
    calls: int
    stopped: bool = False
    error: str = ""
    difference: Difference | None = None
    checked: bool = True
    curve: tuple[tuple[int, float], ...] = ()

    @property
    def name(self) -> str:
        """The functions that it jits, or ``none``."""
        return ", ".join(self.jit) or "none"

    @property
    def complete(self) -> bool:
        """Whether it came to its end, so that its total may be compared."""
        return not self.stopped and not self.error

    @property
    def eligible(self) -> bool:
        """Whether it may be recommended: it came to its end, with the results that the program has."""
        return self.complete and self.checked and (self.difference is None or not self.difference.early)

    def total_for(self, calls: int) -> float | None:
        """Return the seconds that so many calls would take, if they go on as in the second half; None if unknown."""
        if calls <= self.calls:
            return self.total_seconds if calls == self.calls else None
        later = self.later_seconds
        return None if later is None or self.error else self.total_seconds + (calls - self.calls) * later


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What ``advise`` found.

    Attributes:
        workload: What was run.
        calls: Outermost calls of watched functions that the program makes.
        functions: Those that were jitted or bypassed.
        kept: Those that were jitted in all scopes.
        scopes: First the program as it is written.
        recommended: Index of the scope to take; None where no difference can be measured, or nothing can be said.
        reason: Why, in a sentence or two.
        ratios: For each scope ``(ratio, low, high)`` of its total against that of the best one, with a 95 % interval;
            None where it was not compared.
        runs: How many runs there were in all.
        seconds: How long all of it took.
        notes: What else is to be known: runs that were left out, results that vary, a budget that ran out.
        interrupted: Whether it was ended before it was done.
        text: What the command prints, in 80 columns.
    """

    schema: ClassVar[str] = "jaxwatch.advise/1"
    workload: str
    calls: int
    functions: tuple[str, ...]
    kept: tuple[str, ...]
    scopes: tuple[ScopeFigures, ...]
    recommended: int | None
    reason: str
    ratios: tuple[tuple[float, float, float] | None, ...]
    runs: int
    seconds: float
    notes: tuple[str, ...] = ()
    interrupted: bool = False
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain data, as ``--json`` writes it."""
        return {
            "schema": self.schema,
            "workload": self.workload,
            "calls": self.calls,
            "functions": list(self.functions),
            "kept": list(self.kept),
            "scopes": [
                _scope(figures, ratio, self.calls) for figures, ratio in zip(self.scopes, self.ratios, strict=True)
            ],
            "recommended": self.recommended,
            "reason": self.reason,
            "runs": self.runs,
            "seconds": self.seconds,
            "notes": list(self.notes),
            "interrupted": self.interrupted,
        }

    def __str__(self) -> str:
        """Return ``text``."""
        return self.text


def _scope(figures: ScopeFigures, ratio: tuple[float, float, float] | None, calls: int) -> Mapping[str, Any]:
    steady, different = figures.steady, figures.difference
    return {
        "jit": list(figures.jit),
        "bypassed": list(figures.bypassed),
        "as_written": figures.as_written,
        "runs": figures.runs,
        "calls": figures.calls,
        "first_call_seconds": figures.first_call_seconds,
        "compile_seconds": figures.compile_seconds,
        "steady_seconds_per_call": None if steady is None else steady.median,
        "steady_seconds_quartiles": None if steady is None else [steady.low, steady.high],
        "dispatch_share": None if steady is None else steady.dispatch_share,
        "total_seconds": figures.total_seconds,
        "total_seconds_of_each_run": list(figures.totals),
        **{f"total_seconds_for_{times}_times": figures.total_for(times * calls) for times in MORE_CALLS},
        "misses": figures.misses,
        "eager_compiles": figures.eager_compiles,
        "peak_bytes": figures.peak_bytes,
        "peak_of": "devices" if figures.on_device else "process",
        "ratio_to_best": None if ratio is None else [each if math.isfinite(each) else None for each in ratio],
        "stopped": figures.stopped,
        "error": figures.error or None,
        "results_compared": figures.checked,
        "results_differ": None if different is None else different._asdict(),
    }
