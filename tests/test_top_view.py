"""A frame on the terminal."""

import datetime as dt
import io
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from event_records import eager, miss, other_length, record, run_end, run_start, stats, training_run
from rich.console import Console

from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame
from jaxwatch._top_view import View, headline
from jaxwatch.renderers.cells import width

NOON = 1_777_636_800.0


def frame_of(records: list[Any]) -> Frame:
    state = LiveState("one")
    for one in records:
        state.add(one)
    return state.frame(NOON + 60)


def drawn(frame: Frame, columns: int = 80, note: str = "", **more: Any) -> str:
    text = io.StringIO()
    console = Console(file=text, width=columns, highlight=False, emoji=False, markup=False)
    console.print(View(zone=dt.UTC, **more).draw(frame, note))
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def test_a_frame_in_80_columns() -> None:
    records = [
        run_start(),
        miss(1, seconds=1.3, at=1.5),
        other_length(2, 57, 5),
        stats(calls=1_204, misses=2, dispatch={"6.1e-05": 100, "0.00024": 2}),
        eager(),
        eager("add"),
        record("process_stats", overhead_seconds={"miss": 0.002, "export": 0.0001}),
        run_end(),
    ]

    assert (
        drawn(frame_of(records))
        == """\
jaxwatch · train.py · 41.2 s, 2.8 s (7 %) of it compiling, 1.3 s of that again
11:59:58 ▂█▆▄ a sign: 1.0 s

function  calls  misses  keys  compiling  dispatch p50     p99
step      1,204       2     2      2.6 s         61 µs  240 µs

time      function  what changed                               cost  where
12:00:00  step      batch['x']: float32[32,64] →              1.3 s  train.py:71
                    float32[5,64]; batch['y']: int32[32] →
                    int32[5]
                    → Pad batch['x'] and batch['y'] to 32
                    rows and mask, or drop the remainder.

outside jit, at  operations   compiles   cost
metrics.py:18    cumsum, add         2  0.2 s

jaxwatch itself took 2 ms: miss 2 ms, export 100 µs"""
    )


def test_a_run_without_recompiles_says_so() -> None:
    assert "No recompile so far." in drawn(frame_of([run_start(), miss(1)]))


def test_nothing_at_all_is_a_frame_too() -> None:
    assert "unnamed program" in drawn(LiveState("one").frame(NOON))


def test_many_processes_are_told() -> None:
    assert "2 processes, 1 running" in headline(frame_of([run_start(), run_end(), run_start(pid=2)]))


def test_the_note_is_below_the_headline() -> None:
    assert drawn(frame_of([run_start()]), note="[bold]still reading").splitlines()[1] == "[bold]still reading"


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("lines", [None, 10, 24, 60])
def test_no_line_is_wider_than_the_terminal(columns: int, lines: int | None) -> None:
    text = drawn(frame_of(training_run()), columns, lines=lines)

    assert max(map(width, text.splitlines())) <= columns


def test_on_a_screen_a_row_has_one_line_and_fits() -> None:
    records = [run_start(), *(other_length(number, number, number) for number in range(1, 200))]

    for lines in (24, 40, 60):
        assert len(drawn(frame_of(records), lines=lines).splitlines()) <= lines


def test_the_newest_recompile_is_on_top() -> None:
    text = drawn(frame_of([run_start(), miss(1), *(other_length(n, n, n + 100) for n in range(2, 50))]), 200, lines=24)

    assert text.index("float32[149,64]") < text.index("float32[148,64]")
    assert "float32[102,64]" not in text


def test_a_long_run_has_a_short_timeline() -> None:
    frame = frame_of([miss(number, at=number * 30.0, seconds=20.0) for number in range(1, 119)])
    bars = drawn(frame).splitlines()[1]

    assert len(bars) <= 80
    assert "█" not in bars, "never all of the time"


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.5, 1.0, 50.0])
def test_every_height_of_a_bar_can_be_drawn(seconds: float) -> None:
    timeline = frame_of([miss(1)]).timeline
    frame = replace(frame_of([miss(1)]), timeline=replace(timeline, once=(seconds,), again=(0.0,), eager=(0.0,)))

    assert " a sign: 1.0 s" in drawn(frame)


def test_a_terminal_of_ascii_gets_ascii() -> None:
    text = drawn(frame_of([*training_run(), other_length(9, 9, 9)]), 100, lines=24, ascii_signs=True)
    narrow = drawn(frame_of(training_run()), 60, lines=24, ascii_signs=True)

    assert (text + narrow).isascii()
    assert "float32[32,64] -> " in text


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    name = "[red]x[/red]\x1b[2J\u202e\n:smile: " + "very long " * 50
    text = drawn(frame_of([run_start(), miss(1, function=name), other_length(2, 3, 4), eager(name), stats(name)]), 200)

    assert "[red]x[/red]\\x1b[2J" in text
    assert {unicodedata.category(sign) for sign in text.replace("\n", "")}.isdisjoint({"Cc", "Cf", "Cs"})
    assert max(map(width, text.splitlines())) <= 200


def test_a_time_beyond_all_calendars_is_no_error() -> None:
    frame = frame_of([run_start(), other_length(2, 3, 4)])

    assert "?" in drawn(replace(frame, happened=(replace(frame.happened[0], time=9e9 * 1e3),)))
