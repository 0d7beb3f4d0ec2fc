"""Logs of 1,000 hosts as Parquet: seconds, sizes and peak memory of the export and of the report on it."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jaxwatch.events import SCHEMA

HOSTS = 1_000
EVENTS = 10_000_000
_FUNCTIONS = 8
_MISSES = 0.05  # of the events; the others are function_stats, each minute and function
_FILES = 50  # logs; each of several hosts, as where a shared folder collects them
_MEMORY = "1GB"


@dataclass(frozen=True, slots=True)
class Columns:
    """What an export and a report take."""

    events: int
    hosts: int
    log_megabytes: float
    parquet_megabytes: float
    export_seconds: float
    export_peak_megabytes: float
    report_seconds: float
    report_peak_megabytes: float
    python_events: int  # of the plain reader, for comparison
    python_seconds: float

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool, events: int = EVENTS) -> Columns:
    """Write logs to a temporary folder, export them, and report on both."""
    events = 100_000 if quick else events
    with tempfile.TemporaryDirectory() as folder:
        logs = [os.path.join(folder, f"{number}.jsonl") for number in range(_FILES)]
        for number, log in enumerate(logs):
            _write(log, number, events // _FILES)
        out = os.path.join(folder, "out")
        export = _child("export", "--parquet", out, "--memory", _MEMORY, *logs)
        report = _child("report", out)
        some = logs[: max(1, min(_FILES, 1_000_000 * _FILES // events))]
        plain = _child("report", *some)
        return Columns(
            events=events // _FILES * _FILES,
            hosts=HOSTS,
            log_megabytes=sum(map(os.path.getsize, logs)) / 1e6,
            parquet_megabytes=sum(_sizes(out)) / 1e6,
            export_seconds=export[0],
            export_peak_megabytes=export[1],
            report_seconds=report[0],
            report_peak_megabytes=report[1],
            python_events=events // _FILES * len(some),
            python_seconds=plain[0],
        )


def _sizes(folder: str) -> Iterator[int]:
    for path, _, names in os.walk(folder):
        yield from (os.path.getsize(os.path.join(path, name)) for name in names)


_CHILD = """
import resource, sys, time
from jaxwatch._cli import main
started = time.perf_counter()
sys.stdout = open("/dev/null", "w")
code = main(sys.argv[1:])
print(code, time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def _child(*arguments: str) -> tuple[float, float]:
    """Run a command in a process of its own; return its seconds and its peak memory in MB."""
    command = [sys.executable, "-c", _CHILD, *arguments]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603 -- ourselves
    code, seconds, kilobytes = done.stderr.splitlines()[-1].split()
    if code != "0":
        raise SystemExit(done.stderr)
    return float(seconds), int(kilobytes) / 1e3


def _write(path: str, number: int, events: int) -> None:
    """Write a log of some hosts: each minute the figures of each function, and now and then a miss."""
    draw = random.Random(number)  # noqa: S311 -- data, no secret
    hosts = range(number * HOSTS // _FILES, (number + 1) * HOSTS // _FILES)
    ids = dict.fromkeys(hosts, 0)
    with open(path, "w", encoding="ascii") as file:
        for step in range(events):
            host = hosts[step % len(hosts)]
            at = step // len(hosts)
            clock = f"{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}"
            origin = {
                "time": f"2026-05-{1 + at // 86400 % 28:02}T{clock}.000000+00:00",
                "pid": 1_000 + host,
                "process_index": host,
                "thread_name": "MainThread",
                "process_count": HOSTS,
            }
            name = f"step_{draw.randrange(_FUNCTIONS)}"
            if draw.random() < _MISSES:
                ids[host] += 1
                line = _miss(ids[host], origin, name, draw.randrange(1, 60))
            else:
                line = _stats(origin, name, at)
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _stats(origin: dict[str, Any], name: str, at: int) -> dict[str, Any]:
    where = {"function": name, "definition": "/srv/train.py:30", "calls": 100 * at, "misses": 1, "signatures": 1}
    dispatch = {f"{6.1e-05 * (1 + bucket / 16):.6g}": at + bucket for bucket in range(8)}
    return {"schema": SCHEMA, "event": "function_stats", **origin, **where, "dispatch": dispatch}


def _miss(number: int, origin: dict[str, Any], name: str, rows: int) -> dict[str, Any]:
    change = {
        "reason": "shape",
        "path": "batch['x']",
        "before": "float32[32,64]",
        "after": f"float32[{rows},64]",
        "note": None,
    }
    return {
        "schema": SCHEMA,
        "event": "cache_miss",
        "id": number,
        **origin,
        "function": name,
        "definition": "/srv/train.py:30",
        "site": "/srv/train.py:71",
        "via": None,
        "call": 100 * number,
        "layer": "compile",
        "traces": 1,
        "lowerings": 1,
        "compiles": 1,
        "persistent_cache": None,
        "seconds": {"trace": 0.1, "lower": 0.1, "backend_compile": 1.0, "total": 1.2},
        "reasons": ["shape"],
        "changes": [change],
        "compared_with": 1,
        "fingerprint": f"f{rows}",
        "signature": f"s{rows}",
        "abstract": f"(batch: dict(['x']: float32[{rows},64], ['y']: int32[{rows}]))",
        "advice": [{"code": "pad_or_bucket", "text": "Pad batch['x'] to 32 rows and mask, or drop the remainder."}],
        "program": None,
        "disk": None,
        "compiled_within": 0,
        "compiled_within_seconds": 0.0,
        "seconds_per_call": None,
        "keys": [],
    }
