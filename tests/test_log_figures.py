"""Figures out of logs: those that the processes had of themselves, the dead ones included."""

import dataclasses
import json
import time
from typing import Any

import cores
import jax.numpy as jnp
import numpy as np
import pytest
from event_records import Rec, eager, miss, record, run_end, run_start, stats
from hypothesis import given
from hypothesis import strategies as st

import jaxwatch
from jaxwatch import _limits, _log_figures, _session
from jaxwatch._build import Build, build
from jaxwatch._hub import HUB
from jaxwatch._log_figures import LogFigures
from jaxwatch._registry import REGISTRY
from jaxwatch._stats import FunctionStats
from jaxwatch.events import PhaseSeconds, to_record


def figures(*records: Rec) -> LogFigures:
    found = LogFigures()
    for one in records:
        found.add(one)
    return found


def only(found: LogFigures) -> FunctionStats:
    (function,) = found.snapshot().functions
    return function


def process_stats(**more: Any) -> Rec:
    own: dict[str, Any] = {"dropped": {}, "label_overflows": {}, "exporter_errors": {}, "overhead_seconds": {}}
    versions = {"version": "1", "jax_version": "2", "jaxlib_version": "3", "backend": "cpu", "core": "native"}
    return record("process_stats", **{**versions, **own, **more})


def told(stats: FunctionStats) -> FunctionStats:
    """Return what the log tells in full, or exactly, and metrics show: not what only a report reads."""
    bare = dataclasses.replace(stats, traces=0, lowerings=0, compiles=0, in_library=False, touched=None)
    return dataclasses.replace(bare, seconds=PhaseSeconds(), last_miss_unix_seconds=0.0)


@pytest.mark.parametrize("core", cores.CORES)
@pytest.mark.usefixtures("fresh")
def test_a_process_reads_of_its_log_what_it_has_of_itself(core: str) -> None:
    found = LogFigures()
    HUB.add("figures", lambda event: found.add(json.loads(json.dumps(to_record(event)))))
    with cores.in_use(core):
        step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(max_signatures=2))
        other = jaxwatch.jit(lambda x, y: x @ y)
        for rows in (3, 3, 4, 5, 4):
            step(np.ones(rows, np.float32))
        for _ in range(3):
            other(np.ones((2, 2), np.float32), np.ones((2, 2), np.float32))
        with pytest.raises(TypeError):
            other(np.ones((2, 2), np.float32), np.ones((3, 3), np.float32))
        _ = jnp.arange(17) * jnp.arange(17)
        for event in _session.stats_events():
            found.add(json.loads(json.dumps(to_record(event))))
        mine, here = REGISTRY.snapshot(), build()
    HUB.remove("figures")
    theirs = found.snapshot()

    assert found.faults == 0
    for one, other_one in zip(mine.functions, theirs.functions, strict=True):
        assert told(one) == told(other_one)
        assert dataclasses.astuple(one.seconds) == pytest.approx(dataclasses.astuple(other_one.seconds))
        assert one.last_miss_unix_seconds == pytest.approx(other_one.last_miss_unix_seconds, abs=1e-3)
    assert (theirs.eager, theirs.disk, theirs.dropped) == (mine.eager, mine.disk, mine.dropped)
    assert theirs.exporter_errors == mine.exporter_errors
    assert theirs.overhead_seconds.keys() == mine.overhead_seconds.keys()
    assert found.builds(time.time()) == [here]


def test_processes_are_summed_and_the_dead_go_on_to_count() -> None:
    found = figures(
        run_start(pid=1),
        miss(1, pid=1),
        stats(calls=10, pid=1, dispatch={"0.000256": 9}),
        run_end(pid=1),
        run_start(pid=2),
        miss(1, pid=2),
        miss(2, "shape", pid=2),
        stats(calls=7, pid=2, dispatch={"0.000256": 5}),
    )

    function = only(found)
    assert (function.calls, function.misses) == (17, 3)
    assert sum(function.dispatch.values()) == 14
    assert function.misses_by_cause == {("compile", "first_call"): 2, ("compile", "shape"): 1}


def test_figures_are_cumulative_and_a_pid_that_comes_again_starts_anew() -> None:
    once = [stats(calls=10, dispatch={"0.000256": 9}), stats(calls=15, dispatch={"0.000256": 14})]

    assert only(figures(run_start(), *once)).calls == 15
    assert only(figures(run_start(), *once, run_start(), *once)).calls == 30
    assert sum(only(figures(run_start(), *once, run_end(), *once)).dispatch.values()) == 28


def test_a_process_that_gets_its_rank_stays_the_same() -> None:
    found = figures(run_start(), stats(calls=10), stats(calls=12, rank=3), run_end(rank=3), run_start(), stats(calls=1))

    assert only(found).calls == 13


def test_misses_that_no_figures_followed_were_calls() -> None:
    found = figures(run_start(), miss(1), miss(2, "shape"))
    assert only(found).calls == 2
    found.add(stats(calls=9))
    assert only(found).calls == 9


@given(st.lists(st.integers(0, 50), min_size=1, max_size=20))
def test_no_count_ever_goes_down(calls: list[int]) -> None:
    found, seen = figures(run_start()), 0
    for number in calls:
        found.add(stats(calls=number, dispatch={"0.000256": number}))
        function = only(found) if found.snapshot().functions else None
        now = 0 if function is None else function.calls
        assert now == max(seen, number)
        seen = now


def test_programs_of_one_key_that_differ_are_all_told() -> None:
    found = figures(
        *(
            miss(1, pid=rank, rank=rank, fingerprint=fingerprint, signature="s1")
            for rank, fingerprint in enumerate("aab")
        )
    )

    assert only(found).fingerprints == {"s1": ("a", "b")}


def test_what_a_process_says_of_itself_is_summed_and_what_runs_is_told_once() -> None:
    found = figures(
        process_stats(dropped={"key": 2}, overhead_seconds={"miss": 0.5}, exporter_errors={"log": 1}),
        process_stats(dropped={"key": 3}, overhead_seconds={"miss": 0.75}, exporter_errors={"log": 1}),
        process_stats(pid=2, dropped={"key": 1}, overhead_seconds={"miss": 0.25}, label_overflows={"site": 4}),
    )
    snapshot = found.snapshot()

    assert (snapshot.dropped, snapshot.exporter_errors) == ({"key": 4}, {"log": 1})
    assert snapshot.overhead_seconds == {"miss": 1.0}
    assert snapshot.label_overflows == {"site": 4}
    now = found._processes[1, None].last_seconds
    assert found.builds(now) == [Build("1", "2", "3", "cpu", "native")]
    assert found.builds(now + _log_figures.GONE_SECONDS) == []


def test_eager_compiles_errors_and_violations_are_counted() -> None:
    found = figures(
        miss(1, persistent_cache="miss"),
        eager(persistent_cache="hit"),
        eager(seconds=0.3),
        record("trace_error", function="step", definition="t.py:1", site="t.py:9", call=1, error="E", seconds=0.1),
        record("violation", function="step", action="warn", limit=None, miss=1),
    )
    snapshot = found.snapshot()

    (site,) = snapshot.eager.values()
    assert site.count == 2
    assert site.seconds == pytest.approx(0.4)
    assert snapshot.disk == {"miss": 1, "hit": 1}
    assert sum(function.trace_errors for function in snapshot.functions) == 1
    assert [function.violations for function in snapshot.functions if function.violations] == [{"warn": 1}]


@pytest.mark.parametrize(
    "wrong",
    [
        miss(1, reasons=[]),
        miss(1, "no such reason"),
        miss(1, layer="elsewhere"),
        miss(1, seconds=float("nan")),
        stats(calls=-1),
        stats(calls=1, dispatch={"x": 1}),
        eager(seconds=-1.0),
        process_stats(dropped={"key": -1}),
        process_stats(overhead_seconds={"miss": "a"}),
        process_stats(exporter_errors=[]),
        process_stats(core=3),
        record("violation", function="step", action="shout", limit=None, miss=1),
        record("run", phase=1),
        {"schema": "jaxwatch.event/1", "event": "cache_miss"},
    ],
    ids=str,
)
def test_what_is_malformed_is_counted_and_changes_nothing(wrong: Rec) -> None:
    found = figures(run_start(), miss(1), stats(calls=3))
    before = found.snapshot()
    found.add(wrong)

    assert found.faults == 1
    assert found.snapshot() == before


def test_it_stays_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_log_figures, "PROCESSES", 5)
    monkeypatch.setattr(_limits, "DEFINITIONS", 10)
    found = LogFigures()
    for number in range(100):
        found.add(miss(1, pid=number, function=f"f{number}", fingerprint=f"{number}", signature="s1"))
    functions = found.snapshot().functions

    assert len(found._processes) == 5
    assert len(functions) == 11
    assert sum(function.misses for function in functions) == 100
    assert (
        max(len(told) for function in functions for told in function.fingerprints.values())
        <= _limits.LABEL_FINGERPRINTS
    )


def test_figures_that_come_after_jax_distributed_was_shut_down_are_counted_once() -> None:
    own = process_stats(rank=2, overhead_seconds={"miss": 1.0})
    found = figures(
        run_start(), stats(calls=10, rank=2), own, stats(calls=12), process_stats(overhead_seconds={"miss": 1.5})
    )

    assert only(found).calls == 12
    assert found.snapshot().overhead_seconds == {"miss": 1.5}
    now = found._latest[1].last_seconds
    assert [build.process_index for build in found.builds(now)] == ["2"]
    found.add(run_end())
    assert found._processes == {}


def test_a_rank_that_is_started_again_under_the_same_pid_starts_anew() -> None:
    once = [run_start(), stats(calls=10, rank=0), stats(calls=15, rank=0)]

    assert only(figures(*once, *once)).calls == 30
    assert only(figures(*once, run_end(rank=0), *once)).calls == 30
    assert only(figures(*once, run_end(), *once)).calls == 30
