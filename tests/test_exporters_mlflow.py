"""What MLflow's own client reads back from a local store."""

import subprocess
import sys
from pathlib import Path

import pytest

from jaxwatch.errors import MissingExtraError
from jaxwatch.exporters.mlflow import mlflow_exporter

PROGRAM = """
import numpy as np
import mlflow
import jaxwatch
from jaxwatch.errors import BadOptionError
from jaxwatch.exporters.mlflow import mlflow_exporter

try:
    mlflow_exporter()
except BadOptionError as error:
    print("no active run" in str(error))
mlflow.set_tracking_uri("file:./store")
step = jaxwatch.jit(lambda x: x * 2)
with mlflow.start_run() as run, jaxwatch.subscribe(mlflow_exporter(step=lambda: 7), kinds=["cache_miss"]):
    for rows in (3, 4, 4, 5):
        step(np.ones(rows, np.float32))
client = mlflow.MlflowClient()
history = client.get_metric_history(run.info.run_id, "jaxwatch/misses")
print([(one.value, one.step) for one in history])
found = client.get_run(run.info.run_id).data
print(sorted(found.metrics))
print(found.tags["jaxwatch.recompiled"])
"""


def test_mlflow_reads_metrics_and_the_last_recompile(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path,
        env={"MLFLOW_ALLOW_FILE_STORE": "true", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    refused, history, names, *text = done.stdout.splitlines()

    assert refused == "True"
    assert history == "[(1.0, 7), (2.0, 7), (3.0, 7)]"
    assert "'jaxwatch_by_function/compile_seconds/_lambda_'" in names
    assert "x: float32[3] → float32[5]" in text[0]


def test_without_the_package_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match="mlflow-skinny"):
        mlflow_exporter()
