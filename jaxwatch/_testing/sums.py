"""What all reports of a run say together: of this process, or of all workers. Pure."""

from dataclasses import dataclass, field
from typing import Any

from jaxwatch._testing.baseline import Entry
from jaxwatch._testing.counts import Misses, at_most, from_plain, merged
from jaxwatch._testing.judge import New

REST = Entry("collection", "")
"""Stands for what was compiled between tests."""


@dataclass(slots=True)
class Sum:
    """What one test, fixture or import compiled."""

    misses: int = 0
    seconds: float = 0.0
    eager: int = 0
    eager_seconds: float = 0.0
    setup_seconds: float = 0.0  # of the seconds of a test, those of its own fixtures
    runs: list[Misses] = field(default_factory=list)  # of a test that is run again, each run
    new: dict[str, New] = field(default_factory=dict)
    listed: bool = True
    outcome: str = ""  # of a test: passed, failed, skipped (before it began), or stopped (within it)

    @property
    def all_seconds(self) -> float:
        """Seconds of compiling, eager operations included."""
        return self.seconds + self.eager_seconds

    @property
    def by_cause(self) -> Misses:
        """The misses by function and cause; of several runs, the most."""
        return at_most(self.runs)


class Sums:
    """Sums up reports as they come."""

    def __init__(self) -> None:
        self.entries: dict[Entry, Sum] = {}  # in the order in which they came
        self.wide_before: dict[str, list[Entry]] = {}  # test → fixtures and imports that were first told with it
        self.tests_seconds = 0.0
        self.late = False  # some test ran after one that stands behind it
        self.watched_again: list[str] = []  # tests before which jax.jit had to be replaced again

    def add(self, figures: dict[str, Any], *, when: str, outcome: str, seconds: float) -> None:
        """Add the figures of one phase of a test.

        Args:
            figures: What ``recording`` gave to the report.
            when: setup, call or teardown.
            outcome: The report's: passed, failed, skipped, rerun; or xfailed.
            seconds: How long the phase took in all.
        """
        test = figures["test"]
        self.tests_seconds += seconds
        self.late |= figures["late"]
        self.watched_again += [test] if figures["watched_again"] else []
        mine = self.entries.setdefault(Entry("test", test), Sum())
        if when == "setup":
            mine.runs.append({})
            mine.outcome = "skipped" if outcome in ("skipped", "xfailed") else ""
        if outcome in ("failed", "rerun"):
            mine.outcome = "failed"
        elif when == "call" and not mine.outcome:
            mine.outcome = "stopped" if outcome == "skipped" else "passed"
        for part in figures["parts"]:
            self._add(part, test)

    def _add(self, part: dict[str, Any], test: str) -> None:
        kind = part["kind"]
        entry = REST if kind == "rest" else Entry(kind, part["name"])
        if kind in ("fixture", "collection") and entry not in self.entries:
            self.wide_before.setdefault(test, []).append(entry)
        found = self.entries.setdefault(entry, Sum())
        found.misses += part["misses"]
        found.seconds += part["seconds"]
        found.eager += part["eager"]
        found.eager_seconds += part["eager_seconds"]
        if part.get("phase") == "setup":
            found.setup_seconds += part["seconds"] + part["eager_seconds"]
        found.runs = found.runs or [{}]
        found.runs[-1] = merged([found.runs[-1], from_plain(part["by_cause"])])
        for new in part.get("new", ()):
            found.new[new["function"]] = New(new["function"], new["misses"], tuple(new["causes"]))
        found.listed = part.get("listed", found.listed)
