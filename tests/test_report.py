import ast
import dataclasses
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from event_records import TRAIN, change, eager, miss, record, report_of, run_end, run_start, stats, training_run
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _report
from jaxwatch._histogram import bucket, upper_seconds
from jaxwatch._report import ReportBuilder
from jaxwatch.events import FunctionStatsEvent, Origin, to_record

JUNK = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
)
EVENTS = [
    *training_run(),
    record("trace_error", function="f", site="a:1", definition="a:1", call=1, error="E", seconds=0.1),
]


def test_the_figures_of_a_run() -> None:
    report = report_of(training_run())

    assert (report.programs, report.processes, report.wall_seconds) == ((TRAIN,), 1, 41.2)
    assert report.compile_seconds == pytest.approx(2.4 + 1.3 + 4 * 1.3 + 2.03 + 0.07 + 1.4)
    assert report.again_seconds == pytest.approx(1.3 + 4 * 1.3 + 0.07 + 1.4 * 8 / 9)
    step, evaluate = report.functions
    assert (step.function, step.calls, step.misses, step.signatures) == ("step", 1204, 6, 6)
    assert step.seconds == pytest.approx(8.9)
    assert (step.dispatch_quantile(0.5), step.dispatch_quantile(0.99)) == (6.1e-05, 0.00024)
    assert (evaluate.calls, evaluate.misses) == (40, 2)
    assert [finding.cause.reason for finding in report.findings] == ["shape", "", "weak_type", "dtype"]
    assert report.findings[0].compared_with == (1,)


def test_a_first_call_is_no_finding() -> None:
    report = report_of([miss(1, seconds=100.0), stats(), run_end()])

    assert report.findings == ()
    assert report.again_seconds == 0.0
    assert report.healthy


def test_dispatch_is_no_recompile() -> None:
    report = report_of([miss(1), miss(2, "fast_path", layer="dispatch", seconds=0.5), run_end()])

    assert report.again_seconds == 0.0
    assert [finding.cause.kind for finding in report.findings] == ["dispatch"]


def test_the_call_compared_with_is_told_by_its_number_and_not_by_the_miss() -> None:
    misses = [miss(1, call=40), miss(2, "shape", call=57, compared_with=1), miss(3, "shape", call=60, compared_with=99)]

    (finding,) = report_of(misses).findings

    assert finding.compared_with == (40,)


def test_figures_are_cumulative_so_the_last_of_each_process_counts_and_processes_are_summed() -> None:
    report = report_of(
        [
            stats(calls=10, misses=0, dispatch={"0.001": 5}, pid=1),
            stats(calls=20, misses=0, dispatch={"0.001": 15}, pid=1),
            stats(calls=7, misses=0, dispatch={"0.001": 1, "0.002": 5}, pid=2),
            run_end(10.0, pid=1),
            run_end(11.0, pid=2),
        ]
    )

    (row,) = report.functions
    assert (row.calls, row.calls_exact, row.dispatch) == (27, True, ((0.001, 16), (0.002, 5)))
    assert report.wall_seconds == 21.0


def test_runs_that_were_appended_to_one_log_are_told_apart_though_the_pid_is_the_same() -> None:
    one = [run_start(), miss(1), stats(calls=10), run_end(5.0)]

    report = report_of(one + one)

    assert (report.processes, report.wall_seconds, report.functions[0].calls) == (2, 10.0, 20)
    assert report.functions[0].most_misses == 1


def test_a_process_that_was_killed_is_reported_by_what_is_there() -> None:
    report = report_of([run_start(), miss(1, at=1.0), miss(2, "shape", at=30.0, call=57, seconds=2.0)])

    (row,) = report.functions
    assert (report.unfinished, report.wall_seconds) == (1, 30.0)
    assert (row.calls, row.calls_exact, row.misses, row.signatures) == (57, False, 2, 2)


def test_misses_that_were_counted_but_not_logged_are_told_and_the_run_is_not_healthy() -> None:
    report = report_of([miss(1), stats(misses=4), run_end()])

    assert report.unlogged == 3
    assert not report.healthy


def test_failed_traces_and_broken_guards_are_notes() -> None:
    failed: dict[str, Any] = {
        "function": "step",
        "definition": "a:1",
        "site": "a:9",
        "call": 2,
        "error": "TypeError",
        "seconds": 0.5,
    }
    broken: dict[str, Any] = {"function": "step", "action": "warn", "limit": 4, "miss": 1}

    report = report_of(
        [record("trace_error", **failed), record("trace_error", **failed), record("violation", **broken)]
    )

    assert [(note.kind, note.what, note.count) for note in report.notes] == [
        ("trace_error", "TypeError", 2),
        ("violation", "warn, limit 4", 1),
    ]
    assert report.compile_seconds == 1.0
    assert not report.healthy


def test_compiling_ahead_of_time_is_compiling_and_no_miss() -> None:
    ahead = record("ahead_of_time", function="step", definition="a:1", site="a:2", seconds=2.0, signature=None)

    report = report_of([ahead, run_end()])

    assert report.compile_seconds == 2.0
    assert report.functions[0].misses == 0
    assert report.healthy


def test_what_a_live_process_publishes_is_understood() -> None:
    origin = Origin(unix_seconds=1_777_636_800.0, pid=1, process_index=None, thread_name="MainThread")
    bound = upper_seconds(bucket(61_000))
    event = FunctionStatsEvent(
        origin=origin, function="f", definition="a:1", calls=3, misses=1, signatures=1, dispatch={repr(bound): 2}
    )

    report = report_of([to_record(event)])

    assert report.functions[0].dispatch == ((bound, 2),)
    assert report.faults == 0


@given(which=st.integers(0, len(EVENTS) - 1), data=st.data())
def test_a_malformed_record_is_counted_and_leaves_no_trace(which: int, data: st.DataObject) -> None:
    whole = EVENTS[which]
    broken = {**whole, data.draw(st.sampled_from(sorted(set(whole) - {"schema", "event"}))): data.draw(JUNK)}

    report = report_of([run_start(), broken])

    if report.faults:
        assert report == dataclasses.replace(report_of([run_start()]), faults=1)


@pytest.mark.parametrize("event", [None, 3, ["x"], {"a": 1}, "invented_later"])
def test_an_unknown_event_is_passed_over(event: Any) -> None:
    report = report_of([{"event": event}])

    assert (report.processes, report.faults) == (0, 0)


def test_memory_is_bounded_by_groups_and_not_by_events() -> None:
    builder = ReportBuilder()
    base = miss(2, "static")

    def add(numbers: range) -> None:
        for number in numbers:
            changes = [change("static", "n", "0", f"value {number}")]
            builder.add({**base, "id": number, "call": number, "signature": f"s{number}", "changes": changes})

    add(range(2, 12_000))  # all bounds are reached
    tracemalloc.start()
    try:
        add(range(12_000, 32_000))
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    report = builder.build()
    assert grown < 3_000_000, "the remembered calls turn over; nothing else is kept"
    assert report.findings[0].count == report.functions[0].misses == 31_998


def test_notes_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_report, "NOTES", 2)
    broken = [record("violation", function=f"f{i}", action="warn", limit=1, miss=None) for i in range(5)]

    report = report_of(broken)

    assert report.folded == (("note", 3),)
    assert sum(note.count for note in report.notes) == 5


def test_eager_compiles_of_many_processes_are_counted_once_each() -> None:
    report = report_of([eager(pid=pid) for pid in range(10)] + [run_end(pid=pid) for pid in range(10)])

    assert report.eager_count == 10
    assert report.healthy


def test_building_twice_and_adding_between_is_fine() -> None:
    builder = ReportBuilder()
    builder.add(miss(1))
    early = builder.build()
    builder.add(miss(2, "shape"))

    assert early.findings == ()
    assert len(builder.build().findings) == 1


def test_a_log_that_names_no_program_is_called_as_the_caller_says() -> None:
    assert report_of([miss(1)], program="run.jsonl").programs == ("run.jsonl",)
    assert report_of([run_start(), miss(1)], program="run.jsonl").programs == (TRAIN,)


def test_a_full_path_is_preferred_to_a_bare_name() -> None:
    assert report_of([run_start(), run_end(program="train.py")]).programs == (TRAIN,)
    assert report_of([run_start(program="mod"), run_end(program="/a/mod.py")]).programs == ("/a/mod.py",)


def test_it_is_pure() -> None:
    code = "import sys, jaxwatch._report; print([m for m in ('jax', 'rich', 'click', 'numpy') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ast.literal_eval(shown.stdout) == []
    source = Path(_report.__file__).read_text(encoding="utf-8")
    assert "open(" not in source
