"""The hooks of the process that sums up: all reports of a run, be it of workers → the summary, the baseline."""

import os
from typing import Any

import pytest

from jaxwatch._options import switched_off
from jaxwatch._testing import baseline as baselines
from jaxwatch._testing import runs, summary
from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.options import Asked
from jaxwatch._testing.recording import ATTRIBUTE, Recorder
from jaxwatch._testing.runs import Gathered
from jaxwatch._testing.sums import Sums
from jaxwatch._testing.update import Ran, changes, updated
from jaxwatch.errors import BaselineError
from jaxwatch.renderers.cells import clean

_OFF = "JAXWATCH=0 in the environment switches jaxwatch off: nothing is counted"


def begin(config: pytest.Config, asked: Asked) -> None:
    """Begin to record, and in a process that is no worker of pytest-xdist, to sum up.

    Raises:
        pytest.UsageError: The baseline cannot be read, or JAXWATCH=0 forbids to write it.
    """
    worker = getattr(config, "workerinput", None)
    baseline = None
    if worker is not None:
        text = worker.get(ATTRIBUTE)
        baseline = None if text is None else baselines.parsed(text, asked.baseline or "")
    elif asked.baseline is not None:
        if asked.update and switched_off():
            raise pytest.UsageError(f"{_OFF}, so no baseline can be written. Unset it. [baseline]")
        try:
            baseline = baselines.read(asked.baseline, may_be_missing=asked.update)
        except BaselineError as error:
            raise pytest.UsageError(str(error)) from None
    recorder = Recorder(config, asked, baseline)
    recorder.ledger.begin()
    config.add_cleanup(recorder.ledger.end)
    config.pluginmanager.register(recorder, "jaxwatch-recorder")
    if worker is None:
        config.pluginmanager.register(Reporter(asked, baseline, recorder), "jaxwatch-reporter")


class Reporter:
    """Sums up, and ends the run with what there is to say."""

    def __init__(self, asked: Asked, baseline: Baseline | None, recorder: Recorder) -> None:
        self._asked = asked
        self._baseline = baseline
        self._recorder = recorder
        self._sums = Sums()
        self._workers = 0
        self._gathered: dict[str, list[str]] = {}  # by a worker
        self._lines: list[str] = []

    # -------------------------------------------------------------- workers

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the baseline to a worker, which may have no such file."""
        self._workers += 1
        if self._baseline is not None:
            node.workerinput[ATTRIBUTE] = baselines.dumped(self._baseline)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker collected; all collect the same."""
        self._gathered = getattr(node, "workeroutput", {}).get(ATTRIBUTE, self._gathered)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add a report; of a test whose worker crashed there are no figures."""
        figures = getattr(report, ATTRIBUTE, None)
        if figures is not None:
            outcome = "xfailed" if hasattr(report, "wasxfail") and report.skipped else report.outcome
            self._sums.add(figures, when=report.when, outcome=outcome, seconds=report.duration)

    # -------------------------------------------------------------- the end

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Bring the baseline up to date, or hold the run against it."""
        if self._baseline is None or session.config.option.collectonly:
            return
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            if self._asked.update:
                self._lines.append("baseline not written: the run did not come to its end")
            return
        if self._asked.update:
            self._update(session)
            return
        self._lines = summary.verdicts(self._sums, strict=self._asked.strict)
        found = self._ran(session.config)
        if runs.complete(found, self._baseline, runs.order_of(self._sums, self._collected())):
            less = summary.fewer(self._baseline, {entry: each.misses for entry, each in found.items()})
            self._lines += [less] if less else []
        wide = any(sum_.new for entry, sum_ in self._sums.entries.items() if entry.kind != "test")
        if exitstatus == pytest.ExitCode.OK and wide:  # no test has failed for it
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _update(self, session: pytest.Session) -> None:
        path, before = self._asked.baseline or "", self._baseline or Baseline()
        if self._sums.late:
            self._lines.append(
                "baseline not written: tests did not run in the order of their collection. Leave out --dist"
            )
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        found = self._ran(session.config)
        order = runs.order_of(self._sums, self._collected())
        no_more = self._gone(session.config)
        if found and all(each.exact for each in found.values()):  # fixtures and imports that nothing needs any more
            no_more |= {entry for entry in before.entries if entry.kind != "test" and entry not in found}
        whole = runs.whole(before, self._collected(), no_more)
        after = updated(before, order, found, no_more, whole=whole)
        try:
            baselines.write(path, after)
        except BaselineError as error:
            self._lines.append(str(error))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            return
        shown = os.path.relpath(path, session.config.invocation_params.dir)
        self._lines.append(summary.written(shown, after.tests, changes(before, after)))
        failed = sum(each.failed for each in found.values())
        if failed:
            self._lines.append(summary.ended_early(failed))

    def _collected(self) -> Gathered:
        return Gathered(**(self._gathered if self._workers else self._recorder.gathered()))

    def _gone(self, config: pytest.Config) -> set[Entry]:
        def exists(file: str) -> bool:
            return (config.rootpath / file).exists()

        in_full = not config.getoption("lf", default=False)
        return runs.gone(self._baseline or Baseline(), self._collected(), config.args, exists, in_full=in_full)

    def _ran(self, config: pytest.Config) -> dict[Entry, Ran]:
        no_more = self._gone(config)
        return runs.ran(self._sums, self._baseline or Baseline(), self._collected(), no_more, alone=not self._workers)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Tell what there is to tell."""
        title, lines = "jaxwatch", []
        if switched_off():
            lines = [_OFF]
        elif self._asked.report is not None and self._sums.entries:
            title, lines = summary.slowest(self._sums, self._asked.report)
        lines += self._lines if not switched_off() else []
        if self._sums.watched_again:
            first = clean(self._sums.watched_again[0])
            lines.append(f"jaxwatch.uninstall() was called before {first}: what was jitted until then is not counted")
        if lines or title != "jaxwatch":
            terminalreporter.write_sep("=", title)
        for line in lines:
            terminalreporter.write_line(line)
