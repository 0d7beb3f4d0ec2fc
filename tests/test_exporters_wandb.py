"""What stands in the file of an offline run of Weights & Biases."""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxwatch.errors import BadOptionError
from jaxwatch.exporters.wandb import wandb_exporter

PROGRAM = """
import numpy as np
import wandb
import jaxwatch
from jaxwatch.exporters.wandb import wandb_exporter

run = wandb.init(project="p", dir=".", mode="offline", settings=wandb.Settings(silent=True))
step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
run.log({"loss": 1.0})
with jaxwatch.subscribe(wandb_exporter(run), kinds=["cache_miss"]):
    for rows in (3, 4, 4, 5):
        step(np.ones(rows, np.float32))
run.log({"loss": 0.5})
run.log({"loss": 0.25})
run.finish()
"""
_BLOCK = 32768


def records(path: Path) -> list[Any]:
    """Return the records of a run's file: blocks of LevelDB's log format after a head of seven bytes."""
    messages = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, place, part, found = path.read_bytes(), 7, b"", []
    while place + 7 <= len(data):
        if (rest := _BLOCK - place % _BLOCK) < 7:
            place += rest
            continue
        _, size, kind = struct.unpack_from("<IHB", data, place)
        part += data[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            found.append(messages.Record.FromString(part))
            part = b""
    return found


def values(items: Any) -> dict[str, Any]:
    return {"/".join([item.key, *item.nested_key]).strip("/"): json.loads(item.value_json) for item in items}


def test_the_run_has_the_values_at_the_programs_own_steps(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    (file,) = (path for path in tmp_path.rglob("*.wandb") if not path.is_symlink() and "latest" not in str(path))
    found = records(file)
    rows = [values(one.history.item) for one in found if one.WhichOneof("record_type") == "history"]

    assert [row.get("loss") for row in rows] == [1.0, 0.5, 0.25], "no step of the program's moved"
    assert rows[1]["jaxwatch/misses"] == 3
    assert rows[1]["jaxwatch/recompiles"] == 2
    assert rows[1]["jaxwatch_by_function/compile_seconds/step"] > 0
    assert "jaxwatch/misses" not in rows[0].keys() | rows[2].keys()
    text = str([values(one.summary.update) for one in found if one.WhichOneof("record_type") == "summary"])
    assert "x: float32[3] → float32[5]" in text


@pytest.mark.parametrize("run", [None, "run", 3])
def test_what_is_no_run_is_told(run: object) -> None:
    with pytest.raises(BadOptionError, match="no run"):
        wandb_exporter(run)
