"""With ``redact`` on, no value of the program's comes out anywhere: log, metrics, console, page, sinks, errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRETS = {
    "static": "hunter2-static",
    "again": "hunter2-again",
    "aux": "hunter2-aux",
    "closed": "hunter2-closed",
    "argument": "hunter2-argument",
    "raised": "hunter2-raised",
}
PROGRAM = """
import dataclasses, json, sys, urllib.request
import jax, numpy as np
import jaxwatch
from jaxwatch.exporters.otel import miss_attributes
from jaxwatch.exporters.scalars import recompiled_text

if sys.argv[1] == "code":
    jaxwatch.configure(redact=True)

@jax.tree_util.register_pytree_node_class
class Layer:
    def __init__(self, w, name): self.w, self.name = w, name
    def tree_flatten(self): return (self.w,), self.name
    @classmethod
    def tree_unflatten(cls, name, children): return cls(children[0], name)

SECRETS = json.loads(sys.stdin.read())
closed = SECRETS["closed"]

@jaxwatch.jit(static_argnames=("password", "token"))
def step(layer, password, token=None):
    if token == "raise":
        raise ValueError(SECRETS["raised"])
    return layer.w * len(password) * len(closed)

texts = []

def told(event):
    texts.append(repr(event))
    if event.kind == "cache_miss":
        texts.append(str(miss_attributes(event)) + str(recompiled_text(event)))

ones = np.ones(3, np.float32)
with jaxwatch.serve(port=0) as server, jaxwatch.subscribe(told):
    step(Layer(ones, "a"), SECRETS["static"])
    step(Layer(ones, "a"), SECRETS["again"])
    step(Layer(ones, SECRETS["aux"]), SECRETS["again"])
    step(Layer(np.ones(4, np.float32), "a"), SECRETS["static"])
    try:
        step(Layer(ones, "a"), SECRETS["static"], token="raise")
    except ValueError:
        pass
    try:
        with jaxwatch.no_retraces(step):
            step(Layer(ones, "a"), SECRETS["static"] + "2")
    except jaxwatch.RetraceError as error:
        texts.append(str(error))
    for path in ("metrics", "live.json"):
        texts.append(urllib.request.urlopen(f"http://127.0.0.1:{server.port}/{path}").read().decode())
print("\\n".join(texts))
"""


@pytest.mark.parametrize("how", ["environment", "code"])
def test_no_value_comes_out_anywhere(tmp_path: Path, how: str) -> None:
    log, told = tmp_path / "run.jsonl", run(tmp_path, how)

    assert "float32[4]" in told
    assert "Layer" in told
    assert [secret for secret in SECRETS.values() if secret in told] == []
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {one["event"] for one in events} >= {"cache_miss", "trace_error", "violation", "run", "process_stats"}


def test_without_it_static_values_are_told() -> None:
    told = run(Path(os.devnull).parent, "not", log="")

    assert SECRETS["static"] in told


def run(folder: Path, how: str, log: str | None = None) -> str:
    """Run the program; return all that it and jaxwatch wrote, the report of its log too."""
    path = str(folder / "run.jsonl") if log is None else log
    environ = {**os.environ, "JAXWATCH_LOG": path, "JAXWATCH_REDACT": "1" if how == "environment" else ""}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how, SECRETS["argument"]],
        input=json.dumps(SECRETS),
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout + done.stderr
    if not path:
        return told
    command = [sys.executable, "-m", "jaxwatch", "report", "--all", path]
    report = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    return told + report + Path(path).read_text()
