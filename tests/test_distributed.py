"""A job of four processes under jax.distributed on this machine: the rank that compiled otherwise is named."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

RANKS = 4
ODD = 2
PROGRAM = f"""
import sys
import jax
import jaxwatch

port, rank, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
jax.distributed.initialize(f"127.0.0.1:{{port}}", {RANKS}, rank, local_device_ids=[0])
import jax.numpy as jnp

odd = rank == {ODD}


@jaxwatch.jit
def step(x):
    return x * (3 if odd and how == "program" and x.shape[0] == 8 else 2)


step(jnp.ones(4))
if not (odd and how == "behind"):
    step(jnp.ones(5 if odd and how == "key" else 8))
"""


def run_job(folder: Path, how: str) -> list[Path]:
    """Run the job; return the log of each rank."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = folder / "job.py"
    program.write_text(PROGRAM)
    logs = [folder / f"rank{rank}.jsonl" for rank in range(RANKS)]
    running = [
        subprocess.Popen(
            [sys.executable, program, str(port), str(rank), how],
            env={**os.environ, "JAXWATCH_LOG": str(log), "JAX_PLATFORMS": "cpu"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, log in enumerate(logs)
    ]
    try:
        failures = [process.communicate(timeout=240)[1] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * RANKS, failures
    return logs


def report(logs: list[Path]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "jaxwatch", "report", *map(str, logs)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("same", None),
        ("key", "rank 2: x: float32[4] → float32[5]; job.py:"),
        ("program", "step: rank 2 compiled another program than ranks 0-1, 3, from compile 2 on"),
        ("behind", "rank 2: nothing more"),
    ],
)
def test_the_rank_that_differs_is_named_out_of_the_logs(tmp_path: Path, how: str, told: str | None) -> None:
    logs = run_job(tmp_path, how)
    misses = [
        record
        for log in logs
        for record in map(json.loads, log.read_text().splitlines())
        if record["event"] == "cache_miss"
    ]

    assert {(one["process_index"], one["process_count"]) for one in misses} == {(rank, RANKS) for rank in range(RANKS)}
    first = {one["fingerprint"] for one in misses if one["call"] == 1}
    assert len(first) == 1, "all ranks compile the same first"
    text = report(logs)
    if told is None:
        assert "!  step" not in text
    else:
        assert told in text
        assert "!  step: rank 2" in text
