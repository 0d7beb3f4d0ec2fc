"""The procedure on one page: look → plan → one run of each scope → more of those that are near → verdict."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Protocol

from jaxwatch._advise import judge, reasons
from jaxwatch._advise.comparison import Comparison
from jaxwatch._advise.gathering import Tried, gathered, names
from jaxwatch._advise.outcome import Outcome, Workload
from jaxwatch._advise.plan import Jitted, Plan, plan
from jaxwatch._advise.samples import difference
from jaxwatch.errors import WorkloadError
from jaxwatch.renderers.phrases import counted

ROUNDS = 9  # of runs of each scope, at most
LEAST_ROUNDS = 3
_PATIENCE = 4.0  # times the best total, after which a run is stopped
_PATIENCE_SECONDS = 3.0  # and so long in any case
_LOOK_SECONDS = 10.0  # a closer look at a scope that is out of the race
_STARTUP = 2.0  # times what starting took in the first run, for a busy machine
_STARTUP_SECONDS = 5.0


class Run(Protocol):
    """Runs the workload once; see ``spawn.run``."""

    def __call__(  # noqa: PLR0913 -- as `spawn.run`
        self,
        workload: Workload,
        jitted: Sequence[str] | None,
        *,
        number: int,
        look: bool,
        calls: int | None,
        limit_seconds: float,
    ) -> Outcome:
        """Run it."""


class Search:
    """Compares the scopes of one workload; ``comparison`` may be asked for at any time.

    Args:
        workload: What is run.
        run: What runs it once.
        functions: Names of those that may be bypassed; None: all of the program's own.
        budget_seconds: No run is begun that would end later.
        calls: After how many outermost calls a run is ended; None: it comes to its end.
        tell: Takes a line on what goes on.
        clock: Seconds.
    """

    def __init__(  # noqa: PLR0913 -- by keyword, each told above
        self,
        workload: Workload,
        run: Run,
        *,
        functions: Collection[str] | None = None,
        budget_seconds: float,
        calls: int | None = None,
        tell: Callable[[str], None] = lambda _line: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workload, self._run, self._chosen, self._calls = workload, run, functions, calls
        self._tell, self._clock, self._budget = tell, clock, budget_seconds
        self._begun = clock()
        self._number = 0
        self._startup = 0.0
        self._wall = 0.0  # of the first run, from start to end
        self._varies = False
        self.plan: Plan | None = None
        self._tried: dict[Jitted, Tried] = {}
        self._short: list[str] = []  # what the budget did not allow
        self.interrupted = False

    @property
    def run_seconds(self) -> float:
        """How long a run takes, as far as the first one tells."""
        return self._wall

    # -------------------------------------------------------------- the way through

    def look(self) -> Plan:
        """Run the program once as it is written, and return the plan.

        Raises:
            WorkloadError: It fails by itself, calls nothing that is watched, or does not end within the budget.
            BadOptionError: A function that was chosen is not there.
        """
        begun = self._clock()
        outcome = self._once(None, look=True, limit_seconds=self._budget)
        self._wall = self._clock() - begun
        self._startup = max(0.0, self._wall - outcome.total_seconds)
        _check(self._workload, outcome, self._budget)
        self.plan = found = plan(outcome.functions, self._chosen)
        self._tried = {jitted: Tried() for jitted in found.scopes}
        self._tried[found.scopes[0]].look = outcome
        return found

    def measure(self) -> None:
        """Run the scopes until the comparison is stable, or the budget is spent."""
        every = list(self._tried)
        if len(every) < 2:  # noqa: PLR2004 -- nothing to compare
            return
        self._first_round(every)
        self._look_at_others(every)
        self._further_rounds()
        if (joined := self._joined()) is not None:
            self._tried[joined] = Tried()
            self._first_round([joined])
            self._look_at_others([joined])
            self._further_rounds()

    def _first_round(self, scopes: list[Jitted]) -> None:
        for jitted in scopes:
            if self._affords(self._wall):
                self._time(jitted)
            else:
                self._short.append(self._name(jitted))

    def _look_at_others(self, scopes: list[Jitted]) -> None:
        reference = self._tried[next(iter(self._tried))].look
        for jitted in scopes:
            tried = self._tried[jitted]
            last = tried.last
            if tried.look is not None or last is None or last.ended == "error":
                continue
            seconds = _LOOK_SECONDS if tried.out else self._patience()
            if not self._affords(min(seconds, self._wall)):
                return
            tried.look = self._once(self._variables(jitted), look=True, limit_seconds=self._limit(seconds))
            if reference is not None and difference(reference.samples, tried.look.samples) is not None:
                self._see_whether_it_varies(reference)

    def _see_whether_it_varies(self, reference: Outcome) -> None:
        """Look once more at the program as it is written, the first time that another scope's results are not its."""
        first = next(iter(self._tried))
        if self._varies or len(self._tried[first].runs) == 0 or not self._affords(self._wall):
            return
        if self._again is None:
            self._again = self._once(self._variables(first), look=True, limit_seconds=self._limit(self._patience()))
        self._varies = difference(reference.samples, self._again.samples) is not None

    _again: Outcome | None = None

    def _further_rounds(self) -> None:
        for number in range(1, ROUNDS):
            racing = self._racing()
            if len(racing) < 2:  # noqa: PLR2004 -- nothing to compare
                return
            if number >= LEAST_ROUNDS:
                racing = self._unsettled(racing)
                if not racing:
                    return
            turn = number % len(racing)
            for jitted in [*racing[turn:], *racing[:turn]]:  # none of them always first
                if len(self._tried[jitted].runs) > number:
                    continue
                if not self._affords(self._startup + self._tried[jitted].totals[-1]):
                    self._short.append("further rounds")
                    return
                self._time(jitted)

    def _joined(self) -> Jitted | None:
        """Return the best of each group put together, where that is a scope that has not run."""
        if self.plan is None or len(self.plan.groups) < 2:  # noqa: PLR2004 -- one group: all of it has run
            return None
        totals = {jitted: judge.center(tried.totals) for jitted, tried in self._tried.items() if tried.totals}
        written = self.plan.scopes[0]
        joined: frozenset[tuple[str, str]] = frozenset()
        for group in self.plan.groups:
            alike = [jitted for jitted in totals if jitted - group == written - group]
            best = min(alike, key=lambda jitted: totals[jitted], default=written)
            joined |= best & group
        return None if joined in self._tried else joined

    # -------------------------------------------------------------- runs

    def _time(self, jitted: Jitted) -> None:
        tried = self._tried[jitted]
        tried.runs.append(self._once(self._variables(jitted), look=False, limit_seconds=self._limit(self._patience())))

    def _once(self, jitted: list[str] | None, *, look: bool, limit_seconds: float) -> Outcome:
        self._number += 1
        named = "as it is written" if jitted is None else f"jit {', '.join(jitted) or 'none'}"
        self._tell(f"run {self._number}: {named}{', each call waited for' if look else ''}")
        return self._run(
            self._workload, jitted, number=self._number, look=look, calls=self._calls, limit_seconds=limit_seconds
        )

    def _patience(self) -> float:
        """Return how long a run may take from its first call on."""
        best = min((total for tried in self._tried.values() for total in tried.totals), default=None)
        if best is None:
            return max(1.0, self._budget - self._spent())
        return max(_PATIENCE * best, _PATIENCE_SECONDS)

    def _limit(self, seconds: float) -> float:
        return seconds + _STARTUP * self._startup + _STARTUP_SECONDS

    def _spent(self) -> float:
        return self._clock() - self._begun

    def _affords(self, seconds: float) -> bool:
        return self._spent() + seconds <= self._budget

    def _variables(self, jitted: Jitted) -> list[str]:
        return [] if self.plan is None else self.plan.variables(jitted)

    def _name(self, jitted: Jitted) -> str:
        return "" if self.plan is None else ", ".join(names(self.plan, jitted)) or "none"

    # -------------------------------------------------------------- what came of it

    def _racing(self) -> list[Jitted]:
        """Return the scopes of which more runs may change something, and the best two in any case."""
        totals = {jitted: judge.center(tried.totals) for jitted, tried in self._tried.items() if tried.totals}
        totals = {jitted: total for jitted, total in totals.items() if not self._tried[jitted].out}
        ranked = sorted(totals, key=lambda jitted: totals[jitted])
        return [
            jitted
            for place, jitted in enumerate(ranked)
            if place < 2 or not judge.is_out(totals[jitted], totals[ranked[0]])  # noqa: PLR2004 -- the best two
        ]

    def _unsettled(self, racing: list[Jitted]) -> list[Jitted]:
        """Return those that more runs may tell from the best, and the best; empty where all is settled."""
        every, verdict = list(self._tried), self._verdict(racing)
        if verdict.settled:
            return []
        return [
            jitted
            for jitted in racing
            if (place := every.index(jitted)) == verdict.best or not verdict.against[place].settled
        ]

    def _verdict(self, scopes: Collection[Jitted]) -> judge.Verdict:
        every = list(self._tried)
        numbers = [place for place, jitted in enumerate(every) if jitted in scopes]
        return judge.judge(
            {place: self._tried[every[place]].totals for place in numbers},
            {place: len(every[place]) for place in numbers},
        )

    def comparison(self) -> Comparison:
        """Return what is known by now."""
        if self.plan is None:
            raise RuntimeError("look() comes first")
        found = gathered(self.plan, self._tried, varies=self._varies)
        return Comparison(
            workload=self._workload.name,
            calls=found.scopes[0].calls,
            functions=tuple(names(self.plan, self.plan.functions)),
            kept=tuple(self.plan.labels()[place] for place in self.plan.kept),
            scopes=found.scopes,
            recommended=reasons.recommended(found.scopes, found.verdict),
            reason=reasons.reason(found.scopes, found.verdict, kept=bool(self.plan.kept)),
            ratios=found.ratios,
            runs=self._number,
            seconds=self._spent(),
            notes=tuple(self._notes(found.notes)),
            interrupted=self.interrupted,
        )

    def _notes(self, found: Iterable[str]) -> Iterator[str]:
        if self.interrupted:
            yield "Interrupted: it tells what was known by then."
        if self._short:
            named = ", ".join(dict.fromkeys(self._short))
            yield f"The budget of {self._budget:.0f} s did not allow: {named}. Give more by --budget."
        if self._varies:
            yield "The program's results vary from run to run, so those of the scopes were not compared."
        yield from found


def _check(workload: Workload, outcome: Outcome, budget: float) -> None:
    name = workload.name
    if outcome.ended == "error":
        problem = f"{name} fails by itself: {outcome.error}."
        told = f" It said last:\n{outcome.stderr}\n" if outcome.stderr else ""
        raise WorkloadError(problem + told, "Mend it first; its stdin is empty here.")
    if outcome.ended == "time":
        problem = (
            f"{name} did not end within the budget of {budget:.0f} s; it had made {counted(outcome.calls, 'call')}."
        )
        raise WorkloadError(problem, "Give --calls N to end it after so many, or a larger --budget.")
    if not any(function.calls for function in outcome.functions):
        problem = f"{name} called nothing that is jitted by jax.jit or jaxwatch.jit."
        raise WorkloadError(problem, "Jit the functions that are to be compared; the advice may be to bypass them.")
