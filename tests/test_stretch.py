"""The report of a stretch of the process."""

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jaxwatch import _processes
from jaxwatch._stretch import Calls, Stats, Stretch, since
from jaxwatch.events import CacheMiss, FunctionStatsEvent, Origin, PhaseSeconds, ProcessStatsEvent

HERE = Origin(unix_seconds=1.0, pid=os.getpid(), process_index=None, thread_name="main")


def figures(function: str = "f", **values: object) -> FunctionStatsEvent:
    event = FunctionStatsEvent(origin=HERE, function=function, definition="a.py:1", calls=0, misses=0, signatures=0)
    return replace(event, **values)  # type: ignore[arg-type]  # names of its fields


def miss(number: int = 1, *, call: int, seconds: float = 0.5, compared_with: int | None = None) -> CacheMiss:
    return CacheMiss(
        id=number,
        origin=HERE,
        function="f",
        definition="train.py:1",
        site="cell [3]:1",
        via=None,
        call=call,
        layer="compile",
        traces=1,
        lowerings=1,
        compiles=1,
        persistent_cache=None,
        seconds=PhaseSeconds(backend_compile=seconds),
        reasons=("first_call",) if compared_with is None else ("dtype",),
        changes=(),
        compared_with=compared_with,
        fingerprint=None,
        signature="s",
        abstract="",
        advice=(),
    )


def process(**overhead: float) -> ProcessStatsEvent:
    return ProcessStatsEvent(
        origin=HERE,
        version="1",
        jax_version="",
        jaxlib_version="",
        backend="",
        core="python",
        dropped={},
        label_overflows={},
        exporter_errors={},
        overhead_seconds=overhead,
    )


def test_figures_are_those_of_the_stretch() -> None:
    before: list[Stats] = [
        process(miss=1.0, call=0.5),
        figures(calls=10, misses=2, dispatch={"0.1": 5, "0.2": 3}, inlined={"g": 1}),
    ]
    after: list[Stats] = [
        process(miss=1.5, call=0.5, export=0.25),
        figures(calls=14, misses=3, signatures=3, dispatch={"0.1": 5, "0.2": 5, "0.4": 1}, inlined={"g": 2, "h": 4}),
        figures("new", calls=2, dispatch={"0.1": 2}),
    ]

    of_process, of_f, of_new = since(before, after)

    assert isinstance(of_process, ProcessStatsEvent)
    assert of_process.overhead_seconds == {"miss": 0.5, "export": 0.25}
    assert isinstance(of_f, FunctionStatsEvent)
    assert (of_f.calls, of_f.misses, of_f.signatures) == (4, 1, 0)
    assert of_f.dispatch == {"0.2": 2, "0.4": 1}
    assert of_f.inlined == {"g": 1, "h": 4}
    assert of_new == figures("new", calls=2, dispatch={"0.1": 2})


def test_what_was_not_called_meanwhile_is_left_out() -> None:
    assert list(since([figures(calls=3)], [figures(calls=3)])) == []


class Process:
    """A process of which the figures are given, and the time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls = 5

    def clock(self) -> float:
        return self.now

    def stats(self) -> Iterator[Stats]:
        yield figures("f", definition="train.py:1", calls=self.calls)


def stretch(of: Process, calls: Calls) -> Stretch:
    return Stretch(calls, of.clock, of.stats)


def test_its_report_tells_its_own_calls_and_seconds_and_goes_on() -> None:
    process, calls = Process(), Calls()
    cell = stretch(process, calls)
    process.now, process.calls = 102.0, 9
    cell.export(miss(call=7, seconds=0.5))

    first = cell.report("cell [3]")
    process.now = 103.0
    cell.export(miss(number=2, call=8, seconds=0.25))
    second = cell.report("cell [3]")

    assert first.programs == ("cell [3]",)
    assert (first.wall_seconds, first.compile_seconds, first.functions[0].calls) == (2.0, 0.5, 4)
    assert (second.wall_seconds, second.compile_seconds) == (3.0, 0.75)
    assert cell.report("x", seconds=1.5).wall_seconds == 1.5


def test_a_miss_is_compared_with_a_call_before_the_stretch() -> None:
    calls = Calls()
    calls.note(miss(number=1, call=4))
    cell = stretch(Process(), calls)
    cell.export(miss(number=2, call=7, compared_with=1))

    (finding,) = cell.report("cell").findings

    assert (finding.calls, finding.compared_with) == ((7,), (4,))


def test_calls_of_misses_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxwatch._stretch.CALLS_KEPT", 3)
    calls = Calls()

    for number in range(1, 6):
        calls.note(miss(number=number, call=number))

    assert dict(calls) == {3: 3, 4: 4, 5: 5}
    assert _processes.CALLS_KEPT > 3
