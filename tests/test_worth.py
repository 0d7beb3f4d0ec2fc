"""What the figures of a run tell about what its jits are worth; and the programs of which nothing is to be said."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
from event_records import TRAIN, Rec, miss, report_of, run_end, run_start, stats
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _worth
from jaxwatch._report_data import Report, merged
from jaxwatch._rows import FunctionRow
from jaxwatch._worth import Worth, worth_of
from jaxwatch.renderers import headline
from jaxwatch.renderers import worth as words
from jaxwatch.renderers.page import Page
from jaxwatch.renderers.terminal import render

BLANK = FunctionRow(
    function="step",
    definition="train.py:7",
    calls=0,
    calls_exact=True,
    misses=0,
    signatures=0,
    seconds=0.0,
    from_disk=0,
    dispatch=(),
    most_misses=0,
    unlogged=0,
)


def row(function: str = "step", calls: int = 1, seconds: float = 0.0, **more: Any) -> FunctionRow:
    """Return figures of a function in one process, called so often outside traces, that missed once if it cost time."""
    misses = int(seconds > 0)
    values = {"misses": misses, "most_misses": misses, "signatures": misses, "most_own_calls": calls}
    return dataclasses.replace(BLANK, function=function, calls=calls, seconds=seconds, **{**values, **more})


def tiny(function: str = "step", calls: int = 40_000, latency: float = 6e-6, touched: int | None = 64) -> FunctionRow:
    return row(function, calls, 0.1, dispatch=((latency, calls - 1),), touched=touched)


def inner(function: str = "gelu", calls: int = 3, outer: str = "step", **more: Any) -> FunctionRow:
    values = {"inlined": ((outer, calls),), "inlined_read": calls, "inlined_keys": calls, "most_own_calls": 0}
    return row(function, calls, **{**values, **more})


def told(*rows: FunctionRow, wall: float = 10.0) -> list[str]:
    return [one.kind for one in worth_of(rows, wall)]


def text(*rows: FunctionRow, wall: float = 10.0) -> str:
    lines = words.lines(worth_of(rows, wall), Page(80, everything=True, folder="", calls={}))
    return "\n".join("".join(span.text for span in line) for line in lines).strip()


# ------------------------------------------------------------------ many functions, few calls


SELDOM = (row("init", 1, 2.1), row("make_data", 2, 1.9), row("evaluate", 1, 1.0))


def test_many_functions_that_are_seldom_called_and_took_much_of_the_run_are_told_dearest_first() -> None:
    (found,) = worth_of(SELDOM, 10.0)

    assert (found.kind, found.seconds, found.share, found.code) == ("few_calls", 5.0, 0.5, None)
    assert text(*SELDOM).splitlines() == [
        "·  3 functions called at most twice each: compiling is 50 % of the run     5.0 s",
        "   init 1 call 2.1 s, make_data 2 calls 1.9 s, evaluate 1 call 1.0 s; 1.2 s of",
        "   compiling for each call",
        "   → `jaxwatch advise` measures whether they are cheaper without jit.",
    ]


@pytest.mark.parametrize(
    ("rows", "wall"),
    [
        ([row("init", 1, 2.1), row("main", 1, 3.0), row("step", 500, 2.0)], 10.0),
        ([row("init", 1, 2.1), row("main", 1, 3.0)], 6.0),
        (SELDOM, 41.2),
        ([row("init", 1, 0.5), row("main", 1, 0.7), row("evaluate", 1, 0.4)], 3.0),
        ([row(name, 4, 2.0) for name in "abcdef"], 15.0),
        ([dataclasses.replace(one, calls_exact=False) for one in SELDOM], 10.0),
        ([dataclasses.replace(one, definition="/v/site-packages/flax/core.py:9") for one in SELDOM], 10.0),
        ([row(f"f{n}", 1, 0.05) for n in range(100)], 10.0),
        ([inner(f"f{n}", 2, seconds=1.0, most_own_calls=0) for n in range(9)], 10.0),
    ],
    ids=[
        "set-up, main and a step",
        "set-up and main",
        "a small share of the run",
        "few seconds",
        "called more often",
        "calls that are not known",
        "a library's",
        "each of them cheap",
        "only within traces",
    ],
)
def test_of_what_programs_usually_have_nothing_is_told(rows: Sequence[FunctionRow], wall: float) -> None:
    assert "few_calls" not in told(*rows, wall=wall)


def test_calls_are_told_without_those_within_traces_and_by_process() -> None:
    both = [dataclasses.replace(one, calls=one.calls + 50, inlined=(("step", 50),)) for one in SELDOM]
    assert told(*both)[0] == "few_calls"
    assert "init 1 call 2.1 s" in text(*both)

    ranks = [dataclasses.replace(one, calls=8 * one.calls) for one in SELDOM]
    assert words.title(worth_of(ranks, 10.0)[0]) == (
        "3 functions called at most twice a process: compiling is 50 % of the run"
    )


# ------------------------------------------------------------------ nothing but dispatch


def test_dispatch_of_tiny_programs_is_told_with_its_share_and_what_a_run_touches() -> None:
    calls = tiny(calls=1_000_001)
    (found,) = worth_of([calls], 10.0)

    assert (found.kind, found.code) == ("dispatch", "use_scan")
    assert found.seconds == pytest.approx(6.0)
    assert text(calls).splitlines() == [
        "·  step: dispatch of 1,000,000 calls of 6 µs each, 60 % of the run         6.0 s",
        "   train.py:7; median latency; a run touches at most 64 numbers",
        "   → Do more in one call, and measure: many steps by jax.lax.scan, or jit what",
        "     calls it.",
    ]


def test_functions_that_are_called_by_turns_are_told_together_and_those_that_take_little_are_not_named() -> None:
    rows = [tiny("a", 300_000), tiny("b", 300_000), tiny("c", 5_000)]
    (found,) = worth_of(rows, 10.0)

    assert [one.function for one in found.rows] == ["a", "b"]
    assert found.code == "jit_the_block"
    assert text(*rows).startswith("·  a, b: dispatch of 599,998 calls, 36 % of the run")
    assert "a 299,999 × 6 µs, b 299,999 × 6 µs; a run touches at most 64 numbers" in text(*rows)  # noqa: RUF001 -- as it is told


@pytest.mark.parametrize(
    ("rows", "wall"),
    [
        ([tiny(calls=10_000_000, touched=None)], 100.0),
        ([tiny(calls=10_000_000, touched=_worth.TINY + 1)], 100.0),
        ([tiny(calls=1_000_000)], 60.0),
        ([tiny(calls=100_000)], 1.0),
        ([tiny(calls=900, latency=1e-2)], 20.0),
        ([tiny(calls=1_000_000)], 5.0),
        ([tiny(calls=1_000_000)], 0.0),
        ([], 10.0),
        ([tiny(f"f{n}", 10_000) for n in range(100)], 10.0),
    ],
    ids=[
        "work that is not known",
        "more work",
        "a small share of the run",
        "little time",
        "few calls, each slow",
        "several threads at once",
        "a run of which nothing is known",
        "nothing at all",
        "many functions, a little of each",
    ],
)
def test_of_dispatch_that_is_not_much_of_the_run_or_may_be_work_nothing_is_told(
    rows: Sequence[FunctionRow], wall: float
) -> None:
    assert told(*rows, wall=wall) == []


# ------------------------------------------------------------------ jits within jits


def test_a_jit_that_is_only_called_within_traces_is_told_with_the_outer_functions_where_all_is_asked_for() -> None:
    gelu = inner(inlined=(("evaluate", 1), ("step", 2)))
    (found,) = worth_of([gelu], 10.0)

    assert (found.kind, found.code, found.notable) == ("inner_alone", "drop_inner_jit", False)
    assert text(gelu).splitlines() == [
        "·  gelu: 3 calls, only within traces of step and evaluate",
        "   train.py:7; never called alone, nor twice with one key",
        "   → Its jit may go: no call is faster for it, and it costs about 2 ms of",
        "     tracing and lowering (estimated).",
    ]


def test_it_is_told_by_itself_where_thousands_of_calls_add_up() -> None:
    (found,) = worth_of([inner(calls=4_000), row("step", 4_000, 20.0)], 60.0)

    assert found.notable
    assert found.seconds == pytest.approx(2.0)
    (found,) = worth_of([inner(calls=4_000), row("step", 4_000, 200.0)], 600.0)
    assert not found.notable, "a hundredth of what compiling took"


@pytest.mark.parametrize(
    "changes",
    [
        {"calls": 4},
        {"misses": 1, "seconds": 0.3},
        {"seconds": 0.3},
        {"inlined_read": 2, "inlined_keys": 2},
        {"inlined_read": 0, "inlined_keys": 0},
        {"calls_exact": False},
        {"definition": "/v/dist-packages/lib.py:3"},
        {"inlined": ()},
    ],
    ids=[
        "called alone too",
        "compiled alone too",
        "lowered ahead",
        "calls not looked at",
        "none looked at",
        "calls that are not known",
        "a library's",
        "never within a trace",
    ],
)
def test_a_jit_that_may_be_of_use_is_not_told_to_go(changes: dict[str, Any]) -> None:
    assert "inner_alone" not in told(dataclasses.replace(inner(), **changes))


def test_a_jit_whose_calls_share_a_trace_is_to_be_kept() -> None:
    block = inner("block", 48, inlined_keys=2)
    (found,) = worth_of([block], 10.0)

    assert (found.kind, found.code, found.notable) == ("inner_shared", None, False)
    assert text(block).splitlines() == [
        "·  block: 48 calls within traces of step",
        "   train.py:7; 46 of them with the key of an earlier one",
        "   → Keep its jit: calls with one key share a trace, and within a program a",
        "     lowering.",
    ]


# ------------------------------------------------------------------ all of them


rows_of_all_kinds = st.lists(
    st.one_of(
        st.builds(row, st.sampled_from("abc"), st.integers(1, 5), st.floats(0, 9)),
        st.builds(tiny, st.sampled_from("def"), st.integers(2, 10**6), touched=st.none() | st.integers(0, 2_000)),
        st.builds(inner, st.sampled_from("ghi"), st.integers(1, 9_000), inlined_keys=st.integers(0, 9_000)),
    ),
    max_size=8,
    unique_by=lambda one: one.function,
)


@given(rows_of_all_kinds, st.floats(0, 100), st.sampled_from([1, 20, 90]))
def test_what_is_told_was_seen_what_is_notable_comes_first_and_all_is_at_most_four_lines(
    every: list[FunctionRow], wall: float, repeated: int
) -> None:
    found = worth_of(every, wall)

    assert [one.notable for one in found] == sorted((one.notable for one in found), reverse=True)
    for one in found:
        rows = tuple(dataclasses.replace(each, function=each.function * repeated) for each in one.rows)
        assert set(one.rows) <= set(every)
        assert 0 <= one.share <= 1 or one.kind == "few_calls"
        block = list(
            words.lines(
                [dataclasses.replace(one, rows=rows, notable=True)], Page(80, everything=False, folder="", calls={})
            )
        )
        assert len(block) <= 1 + 4  # a blank one before
        assert max(sum(len(span.text) for span in line) for line in block) <= 80


def small_run() -> list[Rec]:
    """Return the log of a healthy run with a jit within a jit."""
    values = {"definition": f"{TRAIN}:9", "inlined": {"step": 2}, "inlined_read": 2, "inlined_keys": 2}
    return [run_start(), miss(1), stats(calls=90, dispatch={"6e-05": 89}), stats("gelu", 2, 0, **values), run_end()]


def test_a_healthy_run_stays_one_line_and_all_is_told_when_asked_for() -> None:
    report = report_of(small_run())

    assert report.healthy
    assert len(render(report).splitlines()) == 1
    shown = render(report, everything=True)
    assert "Nothing to improve." in shown
    assert "gelu: 2 calls, only within traces of step" in shown


def test_a_run_that_is_dispatch_alone_is_not_healthy() -> None:
    calls = stats(calls=5_000_000, dispatch={"6e-06": 4_999_999}, touched=64)
    report = report_of([run_start(), miss(1), calls, run_end()])

    assert not report.healthy
    assert "step: dispatch of 4,999,999 calls of 6 µs each, 73 % of the run" in render(report)
    assert headline.one_line(report).endswith(". step: dispatch of 4,999,999 calls of 6 µs each, 73 % of the run")


def worth(report: Report) -> tuple[Worth, ...]:
    return report.worth


def test_processes_are_weighed_together() -> None:
    def process(pid: int) -> list[Rec]:
        calls = stats(calls=3_000_000, dispatch={"6e-06": 2_999_999}, touched=pid, pid=pid)
        return [run_start(pid=pid), miss(1, pid=pid), calls, run_end(pid=pid)]

    whole = report_of([*process(1), *process(2)])
    (found,) = worth(whole)
    assert found.share == pytest.approx(2 * 18.0 / (2 * 41.2), rel=0.01)
    assert worth(merged([report_of(process(1)), report_of(process(2))])) == (found,)


def test_logs_of_earlier_versions_tell_nothing() -> None:
    assert report_of([run_start(), miss(1), stats(calls=5_000_000, dispatch={"6e-06": 4_999_999}), run_end()]).healthy
