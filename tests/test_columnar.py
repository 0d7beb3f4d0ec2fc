"""Logs as Parquet: the report of a folder is that of its logs; nothing is lost silently, nothing half done stays."""

import dataclasses
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from event_records import (
    Rec,
    change,
    eager,
    miss,
    other_length,
    record,
    run_end,
    run_start,
    stats,
    training_run,
    write_log,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from programs import ROOT
from test_divergence import rank_log

from jaxwatch import _cli
from jaxwatch._reader import read_log
from jaxwatch._report import Report, ReportBuilder
from jaxwatch.errors import LogUnreadableError, MissingExtraError, ParquetError

duckdb = pytest.importorskip("duckdb", reason="the extra duckdb is not installed")

from jaxwatch._columnar.export import export  # noqa: E402 -- after the line above
from jaxwatch._columnar.report import report_on  # noqa: E402


def of_logs(logs: Sequence[str]) -> Report:
    builder = ReportBuilder()
    for one in read_log(logs):
        builder.add(one)
    return builder.build(program=os.path.basename(logs[0]))


def plain(value: Any) -> Any:
    """Return a report as nested lists, its floats to twelve digits: sums depend on their order."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, field.name)) for field in dataclasses.fields(value))]
    if isinstance(value, tuple | list):
        return list(map(plain, value))
    return value


def same(folder: Path, logs: Sequence[Path]) -> Report:
    """Export logs, compare both reports, and return that of the folder."""
    paths = [str(log) for log in logs]
    export(paths, str(folder))
    found = report_on(folder).report
    expected = of_logs(paths)
    for field in dataclasses.fields(Report):
        if field.name != "faults":
            assert plain(getattr(found, field.name)) == plain(getattr(expected, field.name)), field.name
    return found


def process_stats(**more: Any) -> Rec:
    names = ("version", "jax_version", "jaxlib_version", "backend", "core")
    own: Rec = dict.fromkeys(names, "") | {"dropped": {}, "label_overflows": {}, "exporter_errors": {}}
    return record("process_stats", **{**own, "overhead_seconds": {"miss": 0.5}, **more})


def everything() -> list[Rec]:
    """Return records of every kind, of two processes."""
    disk = {"key": "k1", "read_seconds": None, "saved_seconds": None, "not_stored": "compiled too fast"}
    return [
        *training_run(),
        run_start(pid=2, at=100.0),
        miss(1, pid=2, at=101.0, persistent_cache="miss", disk=disk),
        miss(2, "static", pid=2, at=102.0, persistent_cache="hit", disk={**disk, "key": "k2", "saved_seconds": 2.5}),
        eager("add", pid=2, at=103.0, persistent_cache="hit"),
        record("trace_error", pid=2, function="f", definition="a.py:1", site="a.py:9", call=1, error="E", seconds=0.5),
        record("ahead_of_time", pid=2, function="f", definition="a.py:1", site="a.py:9", seconds=0.5, signature=None),
        record("violation", pid=2, function="f", action="warn", limit=3, miss=None),
        process_stats(pid=2),
        process_stats(pid=2, overhead_seconds={"miss": 0.75, "call": 0.25}),
        stats("gelu", 3, 0, inlined={"step": 2, "ü": 1}, inlined_read=3, inlined_keys=3, pid=2),
        stats("block", 300_000, dispatch={"6e-05": 299_999}, touched=9, inlined={}, pid=2),
        miss(3, "fast_path", pid=2, at=104.0, layer="dispatch", seconds=0.0, changes=[change("fast_path")]),
        run_end(pid=2, at=140.0),
    ]


def test_the_report_of_a_folder_is_that_of_its_log(tmp_path: Path) -> None:
    found = same(tmp_path / "out", [write_log(tmp_path / "a.jsonl", everything())])

    assert found.findings
    assert found.notes
    assert found.disk
    assert {one.kind for one in found.worth} == {"inner_alone"}
    assert [row.touched for row in found.functions if row.function == "block"] == [9]
    assert dict(found.overhead) == {"miss": 0.75, "call": 0.25}


def test_the_lines_of_slow_programs_are_those_of_the_log(tmp_path: Path) -> None:
    def program(*lines: tuple[str, int]) -> Rec:
        parts = [{"name": name, "equations": count} for name, count in lines]
        return {"equations": 9, "constant_bytes": 0, "lines": parts}

    log = [
        miss(1, seconds=1.0, program=program(("/a.py:1", 5), ("other", 4))),
        miss(2, "shape", seconds=2.0, program=program(("/a.py:2", 9))),
        miss(3, "shape", seconds=2.0, program=program(("/a.py:3", 9))),
        miss(4, seconds=9.0, function="unknown", program=program(("", 9))),
        miss(5, seconds=9.0, function="earlier"),
    ]
    found = same(tmp_path / "out", [write_log(tmp_path / "a.jsonl", log)])

    assert [(one.seconds, one.line, one.of_line) for one in found.slow] == [(2.0, "/a.py:2", 9)]


def test_pids_that_come_again_are_told_apart(tmp_path: Path) -> None:
    logs = [write_log(tmp_path / f"{host}.jsonl", [*training_run(), *training_run()]) for host in range(3)]

    assert same(tmp_path / "out", logs).processes == 6


def test_ranks_that_differ_are_found(tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / f"{rank}.jsonl", rank_log(rank, [4, 8] if rank != 3 else [4, 5], pid=rank))
        for rank in range(6)
    ]
    (found,) = same(tmp_path / "out", logs).divergences

    assert (found.kind, found.number, found.first_rank) == ("key", 2, 3)


def test_a_real_run_has_the_same_report(tmp_path: Path) -> None:
    log = tmp_path / "digits.jsonl"
    subprocess.run(
        [sys.executable, ROOT / "tests" / "logged.py", "4"],
        env={**os.environ, "JAXWATCH_LOG": str(log)},
        check=True,
        capture_output=True,
        timeout=240,
    )

    assert same(tmp_path / "out", [log]).functions


kinds_of_records = st.one_of(
    st.builds(
        miss,
        st.integers(1, 9),
        st.sampled_from(["first_call", "shape", "static", "weak_type"]),
        seconds=st.floats(0, 100),
        function=st.sampled_from(["step", "a'; DROP TABLE logs; --", 'x"y', "ü\n{", ""]),
        call=st.integers(1, 1_000),
        pid=st.integers(1, 3),
        at=st.floats(0, 3_000),
        changes=st.lists(
            st.builds(
                change, st.just("shape"), st.sampled_from(["x", "y", None]), st.just("float32[3]"), st.text(max_size=4)
            ),
            max_size=3,
        ),
        compared_with=st.one_of(st.none(), st.integers(1, 9)),
        persistent_cache=st.sampled_from([None, "hit", "miss"]),
    ),
    st.builds(eager, st.sampled_from(["add", "mul"]), seconds=st.floats(0, 10), pid=st.integers(1, 3)),
    st.builds(
        stats,
        st.sampled_from(["step", "eval"]),
        calls=st.integers(0, 100),
        pid=st.integers(1, 3),
        inlined=st.none() | st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=3),
        inlined_read=st.integers(0, 9),
        inlined_keys=st.integers(0, 9),
        touched=st.none() | st.integers(0, 9),
    ),
    st.builds(run_start, pid=st.integers(1, 3)),
    st.builds(run_end, st.floats(0, 100), st.sampled_from([0, 1, None]), pid=st.integers(1, 3)),
    st.builds(process_stats, pid=st.integers(1, 3)),
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(records=st.lists(kinds_of_records, min_size=1, max_size=40), number=st.integers())
def test_any_log_has_the_same_report(records: list[Rec], number: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    del number
    folder = tmp_path_factory.mktemp("any")
    same(folder / "out", [write_log(folder / "a.jsonl", records)])


def test_lines_that_are_none_are_counted_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    with log.open("ab") as file:
        file.write(b"garbage\n{}\n[1]\n\xff\n" + json.dumps(miss(9, reasons=[])).encode() + b"\n")
    done = export([str(log)], str(tmp_path / "out"))

    assert (done.logs, done.events, done.faults) == (1, len(training_run()) + 1, 5)
    assert done.named[0] == f"{log}:{len(training_run()) + 1} is no JSON"
    found = report_on(tmp_path / "out")
    assert (found.faults, found.report.faults) == (5, 1), "the last one is an event, and malformed"
    assert _cli.main(["report", str(tmp_path / "out")]) == 0
    assert "5 lines passed over" in capsys.readouterr().err


def test_packed_logs_and_patterns_are_read(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(log.read_bytes()))

    assert export([str(tmp_path / "*.jsonl*")], str(tmp_path / "out")).logs == 2


def test_any_reader_of_parquet_finds_the_columns(tmp_path: Path) -> None:
    export([str(write_log(tmp_path / "a.jsonl", everything()))], str(tmp_path / "out"))
    kinds = {path.name for path in (tmp_path / "out").iterdir()}
    with duckdb.connect() as opened:
        seen = opened.execute(
            f"SELECT function, call, reasons[1], changes[1].path, seconds.total "  # noqa: S608 -- a test's own folder
            f"FROM read_parquet('{tmp_path}/out/cache_miss/*.parquet') WHERE call = 57"
        ).fetchall()

    assert seen == [("step", 57, "shape", "batch['x']", 1.3)]
    assert {"cache_miss", "eager_compile", "function_stats", "process_stats", "run", "violation", "logs"} <= kinds


# ------------------------------------------------------------------ what can go wrong


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")
    with pytest.raises(ParquetError, match="is not empty"):
        export([str(log)], str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


@pytest.mark.parametrize("bad", ["missing.jsonl", "empty.jsonl"])
def test_logs_without_events_leave_nothing(tmp_path: Path, bad: str) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(LogUnreadableError):
        export([str(tmp_path / bad)], str(tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.jsonl"]


def test_an_export_that_is_interrupted_leaves_nothing_that_looks_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxwatch._columnar.export._write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export([str(log)], str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("memory", ["much", "-1GB", ""])
def test_a_size_that_is_none_is_told(tmp_path: Path, memory: str) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    with pytest.raises(ParquetError):
        export([str(log)], str(tmp_path / "out"), memory=memory)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_folder_of_something_else_is_told(tmp_path: Path) -> None:
    with pytest.raises(ParquetError, match="no folder that an export made"):
        report_on(tmp_path)


def test_a_damaged_folder_is_told(tmp_path: Path) -> None:
    export([str(write_log(tmp_path / "a.jsonl", training_run()))], str(tmp_path / "out"))
    next((tmp_path / "out" / "cache_miss").iterdir()).write_bytes(b"PAR1 nothing")
    with pytest.raises(ParquetError):
        report_on(tmp_path / "out")


def test_without_duckdb_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    log = write_log(tmp_path / "a.jsonl", training_run())
    with pytest.raises(MissingExtraError, match=r"jaxwatch\[duckdb\]"):
        export([str(log)], str(tmp_path / "out"))


# ------------------------------------------------------------------ the commands


def test_export_and_report_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = write_log(tmp_path / "a.jsonl", training_run()), tmp_path / "out"
    assert _cli.main(["export", "--parquet", str(out), str(log)]) == 0
    told = capsys.readouterr().out
    assert told == f"{len(training_run())} events of 1 logs written to {out}: jaxwatch report {out}\n"
    assert _cli.main(["report", str(log)]) == 0
    of_log = capsys.readouterr().out
    assert _cli.main(["report", str(out)]) == 0
    assert capsys.readouterr().out.replace(str(out), str(log)) == of_log


def test_bounds_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxwatch._findings.FINDINGS", 3)
    records = [run_start(), *(other_length(n, n, n) | {"site": f"a.py:{n}"} for n in range(1, 20)), run_end()]

    same(tmp_path / "out", [write_log(tmp_path / "a.jsonl", records)])
