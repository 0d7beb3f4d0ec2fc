"""Records in, frames out."""

import tracemalloc
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from event_records import TRAIN, Rec, change, eager, miss, other_length, record, run_end, run_start, stats, training_run
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._live import LiveState
from jaxwatch._live_data import EAGER_SHOWN, FUNCTIONS_SHOWN, HAPPENINGS_KEPT, Frame, to_json
from jaxwatch._report import ReportBuilder

NOON = 1_777_636_800.0  # 2026-05-01T12:00:00Z, which event_records counts from


def frame_of(records: list[Rec], now: float = NOON + 60, **more: Any) -> Frame:
    state = LiveState("one")
    for one in records:
        state.add(one)
    return state.frame(now, **more)


def test_figures_are_those_of_the_report() -> None:
    builder = ReportBuilder()
    for one in training_run():
        builder.add(one)
    report = builder.build()

    frame = frame_of(training_run())

    assert frame.program == "train.py"
    for name in ("wall_seconds", "compile_seconds", "again_seconds", "processes", "unlogged", "faults", "eager_count"):
        assert getattr(frame, name) == getattr(report, name)
    assert [(one.function, one.calls, one.misses, one.keys, one.seconds) for one in frame.functions] == [
        (row.function, row.calls, row.misses, row.signatures, row.seconds) for row in report.functions
    ]
    assert frame.functions[0].p99 == report.functions[0].dispatch_quantile(0.99)


def test_a_recompile_is_told_with_all_that_the_page_needs() -> None:
    frame = frame_of([run_start(), miss(1), other_length(2, 57, 5, seconds=1.31)])

    first, again = frame.happened
    assert (first.number, first.kind, first.what) == (1, "first", "first call")
    assert (again.number, again.kind, again.function, again.call) == (2, "recompile", "step", 57)
    assert again.what == "batch['x']: float32[32,64] → float32[5,64]; batch['y']: int32[32] → int32[5]"
    assert (again.seconds, again.site, again.time, again.process) == (1.31, "train.py:71", NOON, "1")
    assert again.advice == "Pad batch['x'] and batch['y'] to 32 rows and mask, or drop the remainder."


def test_failures_and_departures_are_told_too() -> None:
    error = record(
        "trace_error", function="f", definition=f"{TRAIN}:3", site=f"{TRAIN}:9", call=4, error="TypeError", seconds=0.5
    )
    violation = record("violation", function="f", action="warn", limit=3, miss=None)
    departure = miss(3, "fast_path", layer="dispatch", changes=[{**change("fast_path"), "note": "it has effects"}])

    frame = frame_of([run_start(), error, violation, departure])

    assert [(one.kind, one.what) for one in frame.happened] == [
        ("error", "TypeError"),
        ("violation", "warn, limit 3"),
        ("dispatch", "it has effects"),
    ]
    assert frame.timeline.once


def test_a_miss_without_changes_is_told_by_its_reason() -> None:
    assert frame_of([miss(2, "cache_lost")]).happened[0].what == "cache lost"


def test_the_timeline_tells_once_again_and_outside_apart() -> None:
    frame = frame_of([miss(1, seconds=1.0), other_length(2, 2, 5, seconds=2.0), eager(seconds=4.0)])
    timeline = frame.timeline

    assert [round(sum(part), 3) for part in (timeline.once, timeline.again, timeline.eager)] == [1.0, 2.0, 4.0]


def test_a_run_that_has_ended_gets_no_longer() -> None:
    running, ended = [run_start(), miss(1)], [run_start(), miss(1), run_end(at=41.0)]

    assert len(frame_of(running, NOON + 100).timeline.once) > len(frame_of(running, NOON + 50).timeline.once)
    assert frame_of(ended, NOON + 9_000).timeline == frame_of(ended, NOON + 50).timeline
    assert (frame_of(running).running, frame_of(ended).running) == (1, 0)


def test_eager_compiles_are_told_by_line() -> None:
    names = [f"op{number}" for number in range(8)]
    frame = frame_of([run_start(), *(eager(name, seconds=0.5) for name in names), eager("x", "/y.py:1", seconds=9.0)])

    assert [(one.site, one.count, one.seconds) for one in frame.eager] == [
        ("/y.py:1", 1, 9.0),
        ("metrics.py:18", 8, 4.0),
    ]
    assert frame.eager[1].what == "op0, op1, op2, op3, op4 and 3 more"


def test_what_jaxwatch_took_is_summed_over_processes_and_the_last_of_each_counts() -> None:
    def own(pid: int, seconds: float) -> Rec:
        return record("process_stats", pid=pid, overhead_seconds={"miss": seconds, "no part of ours": 9.0})

    assert frame_of([own(1, 1.0), own(1, 2.0), own(2, 0.5)]).overhead == {"miss": 2.5}


def test_processes_are_told_apart_by_pid_and_rank() -> None:
    frame = frame_of([miss(1, pid=7), miss(1, pid=8, rank=3)])

    assert [one.process for one in frame.happened] == ["7", "8, rank 3"]


def test_no_record_has_the_whole_report_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of each of thousands of processes would then take minutes."""
    state = LiveState("one")
    monkeypatch.setattr(ReportBuilder, "build", pytest.fail)

    for one in (run_start(program="train"), *training_run()):
        state.add(one)

    assert state.folder == str(Path(TRAIN).parent)


def test_calls_are_exact_where_they_were_just_read() -> None:
    records = [run_start(), stats("step", calls=10)]

    assert not frame_of(records).functions[0].calls_exact
    assert frame_of(records, calls_exact=True).functions[0].calls_exact
    assert frame_of(records, wall_seconds=12.5).wall_seconds == 12.5


def test_all_is_bounded_and_what_is_left_out_is_counted() -> None:
    many = HAPPENINGS_KEPT + 50
    state = LiveState("one")
    for number in range(many):
        state.add(miss(number + 1, function=f"f{number}", definition=f"{TRAIN}:{number}"))
        state.add(eager(site=f"{TRAIN}:{number}"))
    state.lost = 3

    frame = state.frame(NOON)

    assert len(frame.happened) == HAPPENINGS_KEPT
    assert frame.happened[-1].number == many
    assert frame.dropped == 50 + 3
    assert (len(frame.functions), frame.functions_left_out) == (FUNCTIONS_SHOWN, many - FUNCTIONS_SHOWN)
    assert (len(frame.eager), frame.eager_left_out) == (EAGER_SHOWN, many - EAGER_SHOWN)


def test_memory_does_not_grow_with_what_happens() -> None:
    state = LiveState("one")

    def run(numbers: range) -> int:
        for number in numbers:
            state.add(other_length(number, number, number % 40))
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    run(range(1, 2_000))
    before = run(range(2_000, 12_000))  # until all bounds are reached
    after = run(range(12_000, 14_000))
    tracemalloc.stop()

    assert after - before < 400_000


# ------------------------------------------------------------------ hostile texts

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "line\nbreak\r\ttab",
    "\u202eright to left\u2066",
    "\ud800 alone",
    "nul\0",
    "\x1b[2J\x9b31m",
    "a" * 100_000,
    "\0" * 2_000,
    "",
    "e\u0301 日本 🎉",
]


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for item in items for text in texts(item)]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_and_not_obeyed(text: str) -> None:
    hostile = [
        run_start(program=text),
        miss(1, function=text, site=text, definition=text, abstract=text),
        miss(2, "shape", changes=[change("shape", text, text, text)], advice_text=text or "-", site=text),
        eager(text, text),
        stats(text),
        record("violation", function=text, action=text, limit=None, miss=None),
    ]

    found = texts(to_json(frame_of(hostile)))

    assert len(found) > 10
    for one in found:
        assert len(one) <= 500
        assert {unicodedata.category(sign) for sign in one}.isdisjoint({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
RECORDS = [run_start(), miss(1), other_length(2, 3, 4), eager(), stats(), run_end()]


@given(st.data())
def test_malformed_records_are_counted_and_leave_no_trace(data: st.DataObject) -> None:
    one = dict(data.draw(st.sampled_from(RECORDS)))
    for key in data.draw(st.lists(st.sampled_from(sorted(one)), max_size=2)):
        one[key] = data.draw(VALUES)

    frame = frame_of([run_start(), one, miss(9, function="last")])

    assert frame.happened[-1].function == "last"
    to_json(frame)
