"""The hooks of each process that runs tests: who compiles what, and whether that is more than the baseline says."""

import os
import sys
from collections.abc import Generator
from typing import Any

import pytest

from jaxwatch import _install
from jaxwatch._testing import ids
from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.counts import Misses, merged, to_plain
from jaxwatch._testing.judge import Judge, Verdict
from jaxwatch._testing.ledger import Ledger, Owner, Tally
from jaxwatch._testing.options import Asked
from jaxwatch._testing.texts import exceeded, unlisted

ATTRIBUTE = "jaxwatch"  # of a report, by which its figures go from a worker to the process that sums up


class Recorder:
    """Counts what each test and fixture compiles, fails tests by the baseline, and hands the figures to the reports."""

    def __init__(self, config: pytest.Config, asked: Asked, baseline: Baseline | None) -> None:
        self.ledger = Ledger()
        self._asked = asked
        self._root = str(config.rootpath)
        self._file = "" if asked.baseline is None else os.path.relpath(asked.baseline, config.invocation_params.dir)
        self._judge = None if baseline is None else Judge(baseline)
        self._by_entry: dict[Entry, Misses] = {}  # of fixtures and imports, up to now
        self._waiting: list[dict[str, Any]] = []  # figures for the next report
        self._own: list[Tally] = []  # of the test that runs: its setup and its call
        self._sums: dict[str, float] = {}
        self._places: dict[str, int] = {}
        self._last_place = -1
        self._watched_again = False
        self.collected: list[str] = []  # all that exist, deselected ones too
        self.files: list[str] = []  # those that were collected
        self.order: list[str] = []

    # -------------------------------------------------------------- what pytest is at

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Count what the import of a file of tests compiles."""
        if not isinstance(collector, pytest.File):
            return (yield)
        with self.ledger.within(Owner("collection", collector.nodeid)):
            report = yield
        if report.passed:
            self.files.append(collector.nodeid)
        return report

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note what there is, before any of it is deselected."""
        self.collected.append(ids.of(item))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note in which order it runs."""
        self.order = [ids.of(item) for item in session.items]
        self._places = {name: place for place, name in enumerate(self.order)}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """Count what a fixture of wider scope than a test compiles for the fixture itself."""
        if fixturedef.scope == "function":
            return (yield)
        with self.ledger.within(Owner("fixture", ids.of_fixture(fixturedef))):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count what a test's own fixtures compile; see to it that there is something to count."""
        self._see_to_it()
        self._own, self._sums = [], {}
        with self.ledger.within(Owner("setup", ids.of(item))):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count what is compiled at a test's end; of fixtures of wider scope too, as no hook tells of their ends."""
        with self.ledger.within(Owner("teardown", ids.of(item))):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Count what a test compiles, and fail it where that is more than its baseline."""
        name = ids.of(item)
        with self.ledger.within(Owner("call", name)):
            try:
                result = yield
            except BaseException:
                if (text := self._judged(name)) is not None:
                    item.add_report_section("call", "jaxwatch", text)
                raise
        if (text := self._judged(name)) is not None:
            pytest.fail(text, pytrace=False)
        return result

    def _see_to_it(self) -> None:
        """Listen again, and watch again, where an earlier test has switched that off."""
        self.ledger.begin()
        if not _install.installed():
            _install.install(attach=True)
            self._watched_again = _install.installed()  # it is not with JAXWATCH=0
        if (listeners := sys.modules.get("jaxwatch._listeners")) is not None:
            listeners.ensure()  # a test may have called jax.monitoring.clear_event_listeners()

    # -------------------------------------------------------------- the baseline

    def _judged(self, name: str) -> str | None:
        """Judge what the test has compiled; return why it fails, if so."""
        self._take()
        if self._judge is None:
            return None
        verdict = self._judge.judge(Entry("test", name), merged(tally.by_cause for tally in self._own))
        self._tell(Tally(), kind="test", name=name, **_plain(verdict))
        seen = [seen for tally in self._own for seen in tally.seen]
        if self._asked.update:
            return None
        if verdict.new:
            return exceeded(name, verdict.new, seen, self._root, self._file)
        if self._asked.strict and not verdict.listed and verdict.misses:
            return unlisted(name, seen, self._root, self._file)
        return None

    def _take(self) -> None:
        """Take over what was compiled since this was last done; judge what fixtures of wider scope and imports did."""
        for owner, tally in self.ledger.take().items():
            if owner.kind == "fixture" or owner.kind == "collection":  # noqa: PLR1714 -- mypy follows these
                self._tell(tally, kind=owner.kind, name=owner.name, **self._wide(Entry(owner.kind, owner.name), tally))
                continue
            self._tell(tally, kind="rest" if owner.kind == "rest" else "test", name=owner.name, phase=owner.kind)
            if owner.kind in ("setup", "call"):
                self._own.append(tally)
            for key, value in _properties(tally).items() if owner.kind != "rest" else ():
                self._sums[key] = self._sums.get(key, 0) + value

    def _wide(self, entry: Entry, tally: Tally) -> dict[str, Any]:
        if self._judge is None:
            return {}
        misses = self._by_entry[entry] = merged([self._by_entry.get(entry, {}), tally.by_cause])
        return _plain(self._judge.judge(entry, misses))

    def _tell(self, tally: Tally, **more: Any) -> None:
        self._waiting.append({**tally.plain(), "by_cause": to_plain(tally.by_cause), **more})

    # -------------------------------------------------------------- reports

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Add the figures of a test's phase to its report, and those of the test to junitxml's properties."""
        self._take()
        if call.when == "teardown" and any(self._sums.values()):
            item.user_properties += [
                (f"jaxwatch_{key}", f"{value:.3f}" if isinstance(value, float) else value)
                for key, value in self._sums.items()
            ]
        report = yield
        name = ids.of(item)
        place = self._places.get(name, -1)
        late, again = place < self._last_place, self._watched_again
        setattr(report, ATTRIBUTE, {"test": name, "parts": self._waiting, "late": late, "watched_again": again})
        self._waiting, self._last_place, self._watched_again = [], max(place, self._last_place), False
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send what was collected to the process that sums up, where this is a worker of pytest-xdist."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[ATTRIBUTE] = self.gathered()

    def gathered(self) -> dict[str, list[str]]:
        """Return what was collected, as plain data."""
        return {"collected": self.collected, "files": self.files, "order": self.order}


def _plain(verdict: Verdict) -> dict[str, Any]:
    new = [{"function": new.function, "misses": new.misses, "causes": list(new.causes)} for new in verdict.new]
    return {"new": new, "listed": verdict.listed}


def _properties(tally: Tally) -> dict[str, float]:
    return {
        "misses": tally.misses,
        "compile_seconds": tally.seconds,
        "eager_compiles": tally.eager,
        "eager_compile_seconds": tally.eager_seconds,
    }
