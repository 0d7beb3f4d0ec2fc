"""Records of events as the log holds them, for tests of what reads them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jaxwatch._report import Report, ReportBuilder
from jaxwatch.events import SCHEMA

Rec = dict[str, Any]
TRAIN = "/home/u/proj/train.py"


def record(event: str, at: float = 0.0, pid: int = 1, rank: int | None = None, **fields: Any) -> Rec:
    """Return a record of an event ``at`` seconds after noon."""
    minutes, seconds = divmod(at, 60)
    time = f"2026-05-01T12:{int(minutes):02}:{seconds:09.6f}+00:00"
    origin = {"time": time, "pid": pid, "process_index": rank, "thread_name": "MainThread"}
    return {"schema": SCHEMA, "event": event, **origin, **fields}


def change(reason: str, path: str | None = None, before: str | None = None, after: str | None = None) -> Rec:
    return {"reason": reason, "path": path, "before": before, "after": after, "note": None}


def miss(number: int, reason: str = "first_call", *, seconds: float = 1.0, **fields: Any) -> Rec:
    """Return a cache_miss; ``fields`` replace what it holds by default."""
    text = fields.pop("advice_text", None)
    values: Rec = {
        "id": number,
        "function": "step",
        "definition": f"{TRAIN}:30",
        "site": f"{TRAIN}:71",
        "call": number,
        "layer": "compile",
        "persistent_cache": None,
        "seconds": {"trace": 0.0, "lower": 0.0, "backend_compile": seconds, "total": seconds},
        "reasons": [reason],
        "changes": [],
        "compared_with": None if reason == "first_call" else 1,
        "signature": f"s{number}",
        "abstract": "",
        "advice": [{"code": "pad_or_bucket", "text": text}] if text else [],
    }
    return record("cache_miss", **{**values, **fields})


def eager(function: str = "cumsum", site: str = "/home/u/proj/metrics.py:18", seconds: float = 0.1, **more: Any) -> Rec:
    values = {"function": function, "site": site, "seconds": seconds, "persistent_cache": None, "count": 1}
    return record("eager_compile", **{**values, **more})


def stats(function: str = "step", calls: int = 10, misses: int = 1, **more: Any) -> Rec:
    values = {"function": function, "definition": f"{TRAIN}:30", "calls": calls, "misses": misses, "signatures": misses}
    return record("function_stats", **{**values, "dispatch": {}, **more})


def run_start(**more: Any) -> Rec:
    values = {"phase": "start", "argv": ["train.py"], "program": TRAIN, "wall_seconds": 0.0, "exit_code": None}
    return record("run", **{**values, **more})


def run_end(wall_seconds: float = 41.2, exit_code: int | None = 0, **more: Any) -> Rec:
    values = {"phase": "end", "argv": ["train.py"], "program": TRAIN}
    return record("run", wall_seconds=wall_seconds, exit_code=exit_code, **{**values, **more})


def other_length(number: int, call: int, length: int, seconds: float = 1.3) -> Rec:
    """Return the miss of a batch of another length."""
    changes = [
        change("shape", "batch['x']", "float32[32,64]", f"float32[{length},64]"),
        change("shape", "batch['y']", "int32[32]", f"int32[{length}]"),
    ]
    text = "Pad batch['x'] and batch['y'] to 32 rows and mask, or drop the remainder."
    return miss(number, "shape", seconds=seconds, call=call, changes=changes, advice_text=text)


def training_run() -> list[Rec]:
    """Return the log of a training run with a finding of each kind; test_renderers.py has its report."""
    evaluate = {"function": "evaluate", "definition": f"{TRAIN}:50", "site": f"{TRAIN}:80"}
    return [
        run_start(),
        miss(1, seconds=2.4),
        miss(
            2,
            "weak_type",
            seconds=1.3,
            changes=[change("weak_type", "lr", "~float32[]", "float32[]")],
            advice_text="Pass lr=jnp.float32(0.01) from the first call on.",
        ),
        *(other_length(3 + i, call, n) for i, (call, n) in enumerate([(57, 5), (203, 9), (488, 17), (911, 30)])),
        miss(7, seconds=2.03, call=1, **evaluate),
        miss(8, "dtype", seconds=0.07, call=7, changes=[change("dtype", "y", "int32[]", "int16[]")], **evaluate),
        *(eager(seconds=1.4 / 9) for _ in range(9)),
        stats(calls=1204, misses=6, dispatch={"6.1e-05": 1100, "0.00024": 98}),
        stats("evaluate", calls=40, misses=2, definition=f"{TRAIN}:50", dispatch={"5.8e-05": 36, "0.00019": 2}),
        run_end(),
    ]


def report_of(records: Iterable[Rec], **more: Any) -> Report:
    builder = ReportBuilder()
    for one in records:
        builder.add(one)
    return builder.build(**more)


def write_log(path: Path, records: Sequence[Rec]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path
