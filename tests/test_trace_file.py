import gzip
import json
import os
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from event_records import eager, miss, record, run_start, training_run, write_log
from trace_format import NO_COMPLAINTS, asked, check, read

from jaxwatch import _cli
from jaxwatch._trace_file import TraceFile
from jaxwatch.errors import ReportUnwritableError


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_a_trace_is_whole_valid_and_of_the_documented_format(tmp_path: Path, name: str) -> None:
    with TraceFile(str(tmp_path / name)) as file:
        for one in training_run():
            file.add(one)

    events = read(tmp_path / name)
    check(events)
    assert len(events) == file.count
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_perfetto_itself_reads_it_without_a_complaint(tmp_path: Path, require_program: Callable[[str], str]) -> None:
    within: Any = {"compiled_within_seconds": 0.3, "at": 9.0, "function": "outer \ud800\x1b"}
    second = [
        run_start(pid=1),
        miss(1, pid=1, **within),
        eager(at=8.5, pid=1),
        record("process_stats", jax_version="1"),
    ]
    with TraceFile(str(tmp_path / "trace.json.gz")) as file:
        for one in [*training_run(), *second]:
            file.add(one)

    complaints, processes, misses, phases, deepest, counted = asked(
        tmp_path / "trace.json.gz",
        NO_COMPLAINTS,
        "select group_concat(name) from process where pid > 0",
        "select group_concat(name) from (select name from slice where category = 'recompile' order by ts, id limit 3)",
        "select count(*) || '' from slice where category = 'phase' and depth = 1",
        "select max(depth) || '' from slice",
        "select max(value) || '' from counter join process_counter_track t on t.id = track_id where name like 'miss%'",
        require=require_program,
    )

    assert complaints == ""
    assert processes == "train.py,train.py"
    assert misses == "step,step,step"
    assert phases == "10", "8 misses and the last one have one phase that took time each, and that was traced for long"
    assert (deepest, counted) == ("1", "8.0")


def test_an_empty_log_makes_a_valid_trace(tmp_path: Path) -> None:
    with TraceFile(str(tmp_path / "t.json")):
        pass

    assert read(tmp_path / "t.json") == []


def test_where_reading_fails_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("before")
    file = TraceFile(str(tmp_path / "t.json"))
    file.__enter__()
    file.add(miss(1))
    file.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert (tmp_path / "t.json").read_text() == "before"
    assert len(list(tmp_path.iterdir())) == 1


def test_what_cannot_be_written_is_said_with_a_way_out(tmp_path: Path) -> None:
    with (
        pytest.raises(ReportUnwritableError, match=r"no such file.*Give --perfetto a file"),
        TraceFile(str(tmp_path / "none" / "t.json")),
    ):
        pass
    with pytest.raises(ReportUnwritableError, match="null"), TraceFile("a\0b"):
        pass
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ReportUnwritableError), TraceFile(str(tmp_path / "folder.json")):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_memory_does_not_grow_with_events(tmp_path: Path) -> None:
    with TraceFile(str(tmp_path / "t.json")) as file:
        for number in range(500):
            file.add(miss(number, at=number))
        tracemalloc.start()
        for number in range(500, 3_000):
            file.add(miss(number, at=number))
        grown = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()

    assert grown < 300_000


def test_report_writes_one_beside_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, trace = write_log(tmp_path / "run.jsonl", training_run()), tmp_path / "trace.json.gz"

    assert _cli.main(["report", str(log), "--perfetto", str(trace)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("jaxwatch · train.py · 41.2 s")
    assert f"{trace} has a trace of" in err
    assert "https://ui.perfetto.dev" in err
    assert json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    assert _cli.main(["report", str(log), "--perfetto", str(log)]) == 2
    assert "would overwrite " in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--unknown"], []], ids=["unknown", "folder"])
def test_report_says_where_there_is_no_trace_to_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    (tmp_path / "parquet" / "cache_miss").mkdir(parents=True)

    assert _cli.main(["report", str(tmp_path / "parquet"), "--perfetto", str(tmp_path / "t.json"), *options]) == 2

    assert "--perfetto" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()


def test_a_pipe_is_written_to_and_a_link_stays_one(tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    for path in (pipe, link):
        with TraceFile(str(path)) as file:
            file.add(miss(1))
    reader.join()

    assert json.loads(read[0])["traceEvents"] == json.loads(target.read_text())["traceEvents"]
    assert (pipe.is_fifo(), link.is_symlink()) == (True, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe", "target"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_device_is_never_replaced() -> None:
    before = os.stat("/dev/full").st_rdev
    with pytest.raises(ReportUnwritableError, match="no space left on device"), TraceFile("/dev/full") as file:
        file.add(miss(1))

    assert os.stat("/dev/full").st_rdev == before


def test_stdout_is_no_place_for_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "run.jsonl", training_run())

    assert _cli.main(["report", str(log), "--perfetto", "-"]) == 2

    assert "give a FILE" in capsys.readouterr().err
