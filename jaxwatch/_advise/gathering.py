"""Runs of scopes → the figures of each, and the verdict on those that can be compared. Pure."""

from collections.abc import Collection, Iterator, Mapping
from statistics import median
from typing import NamedTuple

from jaxwatch._advise import judge
from jaxwatch._advise.comparison import ScopeFigures
from jaxwatch._advise.outcome import Outcome
from jaxwatch._advise.plan import Jitted, Place, Plan
from jaxwatch._advise.samples import Difference, difference


class Tried:
    """A scope's runs so far."""

    def __init__(self) -> None:
        self.look: Outcome | None = None
        self.runs: list[Outcome] = []

    @property
    def last(self) -> Outcome | None:
        """The last run."""
        return self.runs[-1] if self.runs else self.look

    @property
    def ended(self) -> list[Outcome]:
        """The runs that came to their end, and were not waited for in between."""
        return [run for run in self.runs if run.ended in ("end", "calls")]

    @property
    def totals(self) -> list[float]:
        """The seconds of these runs."""
        return [run.total_seconds for run in self.ended]

    @property
    def out(self) -> bool:
        """Whether it failed, or was stopped."""
        return any(run.ended in ("error", "time") for run in self.runs)


class Gathered(NamedTuple):
    """What the runs of all scopes come to."""

    scopes: tuple[ScopeFigures, ...]
    verdict: judge.Verdict | None
    ratios: tuple[tuple[float, float, float] | None, ...]
    notes: tuple[str, ...]


def names(plan: Plan, places: Collection[Place]) -> list[str]:
    """Return what people call functions, in the plan's order."""
    labels = plan.labels()
    return [labels[place] for place in plan.functions if place in places]


def gathered(plan: Plan, tried: Mapping[Jitted, Tried], *, varies: bool) -> Gathered:
    """Return what runs come to.

    Args:
        plan: Of what.
        tried: Scope → its runs; first the program as it is written.
        varies: The program's results differ from run to run, so those of scopes are not held against each other.
    """
    scopes = tuple(_figures(plan, tried, varies=varies))
    totals = {n: list(figures.totals) for n, figures in enumerate(scopes) if figures.totals and figures.eligible}
    verdict = judge.judge(totals, {n: len(scopes[n].jit) for n in totals}) if len(totals) > 1 else None
    against = {} if verdict is None else verdict.against
    ratios = tuple(
        (each.ratio, each.low, each.high) if (each := against.get(n)) is not None else None for n in range(len(scopes))
    )
    return Gathered(scopes, verdict, ratios, tuple(_notes(plan, tried)))


def _figures(plan: Plan, tried: Mapping[Jitted, Tried], *, varies: bool) -> Iterator[ScopeFigures]:
    written, *_ = tried
    reference = None if varies else tried[written].look
    for jitted, each in tried.items():
        if each.last is None:  # the budget was spent
            continue
        last = each.last
        seen = each.look if each.look is not None and each.look.ended != "error" else last
        ran = each.ended or [last]
        later = [run.later_seconds for run in ran if run.later_seconds is not None]
        yield ScopeFigures(
            jit=tuple(names(plan, jitted)),
            bypassed=tuple(names(plan, frozenset(plan.functions) - jitted)),
            as_written=jitted == written,
            runs=len(each.ended),
            totals=tuple(each.totals),
            total_seconds=judge.center(each.totals) if each.totals else last.total_seconds,
            first_call_seconds=seen.first_call_seconds,
            compile_seconds=median(run.compile_seconds for run in ran),
            misses=last.misses,
            eager_compiles=last.eager_compiles,
            steady=None if each.look is None else each.look.steady,
            later_seconds=median(later) if later else None,
            peak_bytes=max(run.peak_bytes for run in ran),
            on_device=last.on_device,
            calls=last.calls,
            stopped=any(run.ended == "time" for run in each.runs),
            error=next((run.error for run in (*each.runs, last) if run.ended == "error"), ""),
            difference=None if jitted == written else _difference(reference, each.look),
            checked=each.look is not None,
            curve=ran[-1].curve,
        )


def _difference(reference: Outcome | None, look: Outcome | None) -> Difference | None:
    return None if reference is None or look is None else difference(reference.samples, look.samples)


def _notes(plan: Plan, tried: Mapping[Jitted, Tried]) -> Iterator[str]:
    runs = [run for each in tried.values() for run in each.runs]
    if plan.left_out:
        yield f"{plan.left_out} more combinations were left out; name what matters by --functions."
    if any(run.disk_hits for run in runs):
        yield "The program uses a compile cache on disk of its own accord: not all runs were cold."
    unseen = [", ".join(names(plan, jitted)) or "none" for jitted, each in tried.items() if each.runs and not each.look]
    if unseen:
        yield f"The budget did not allow to look at the results of: {'; '.join(unseen)}. So they are not recommended."
    calls = {run.calls for run in runs if run.ended == "end"}
    if len(calls) > 1:
        yield f"The number of calls is not the same in all runs: {min(calls):,} to {max(calls):,}."
