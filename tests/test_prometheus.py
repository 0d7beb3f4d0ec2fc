"""A real Prometheus scrapes a real program whose functions were really compiled again."""

import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from figures import BUSY, process
from prometheus_client import CollectorRegistry, generate_latest

from jaxwatch import metrics

SECONDS = 90.0
"""How long to wait for anything; on a busy machine jax alone may take 20 s to start."""

NAME = 'st"ep\\n\n{x="1"} ü'
"""A function's name that no exposition may stumble over."""

PROGRAM = f"""
import sys
import jax.numpy as jnp
import jaxwatch

@jaxwatch.jit(watch=jaxwatch.Watch(name={NAME!r}))
def step(x):
    return x + 1

with jaxwatch.serve(port=0) as server:
    for rows in (4, 4, 5, 6, 5):
        step(jnp.ones(rows)).block_until_ready()
    print(server.port, flush=True)
    sys.stdin.read()
"""
CONFIG = """
global: {{scrape_interval: 500ms}}
scrape_configs:
  - job_name: trainer
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


@contextlib.contextmanager
def running(*command: str, **pipes: object) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and stop it by its own pid whatever happens."""
    with subprocess.Popen(command, text=True, **pipes) as found:  # type: ignore[call-overload]
        try:
            yield found
        finally:
            found.terminate()
            try:
                found.wait(10)
            except subprocess.TimeoutExpired:
                found.kill()


@pytest.fixture
def program() -> Iterator[int]:
    """Yield the port of a program that has missed three times."""
    with running(sys.executable, "-c", PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        line = found.stdout.readline()
        assert line, "the program failed; its error is above"
        yield int(line)


@pytest.fixture
def prometheus(program: int, require_program: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """Yield the address of a Prometheus that scrapes the program; this machine's alone, with storage of its own."""
    path = require_program("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(port=program))
    options = (
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    with running(path, *options):
        yield f"http://127.0.0.1:{port}"


def ask(address: str, path: str, **arguments: str) -> dict[str, Any]:
    """Return the data of an answer of Prometheus' API; of none, nothing."""
    url = f"{address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- our own server
            return dict(json.load(answer)["data"])
    except OSError:  # not up yet
        return {}


def values(address: str, query: str) -> dict[str, float]:
    """Return the values of an instant query by the label ``function``."""
    found = ask(address, "query", query=query).get("result", [])
    return {one["metric"].get("function", ""): float(one["value"][1]) for one in found}


def wait_for(probe: Callable[[], object]) -> None:
    """Wait until ``probe`` finds something."""
    end, pause = time.monotonic() + SECONDS, threading.Event()
    while not probe():
        assert time.monotonic() < end, "waited in vain"
        pause.wait(0.1)


def test_prometheus_has_the_misses_of_a_program(prometheus: str) -> None:
    wait_for(lambda: values(prometheus, "jaxwatch_calls_total"))

    assert values(prometheus, "jaxwatch_calls_total") == {NAME: 5}
    assert values(prometheus, "sum by (function) (jaxwatch_cache_misses_total)") == {NAME: 3}
    assert values(prometheus, 'jaxwatch_cache_misses_total{layer="compile",reason="shape"}') == {NAME: 2}
    assert values(prometheus, 'jaxwatch_cache_misses_total{reason="dtype"}') == {NAME: 0}
    assert values(prometheus, "jaxwatch_signatures") == {NAME: 3}
    assert values(prometheus, "jaxwatch_compile_duration_seconds_count") == {NAME: 3}
    assert values(prometheus, 'jaxwatch_dispatch_duration_seconds_bucket{le="+Inf"}') == {NAME: 2}
    assert values(prometheus, "up") == {"": 1}
    (target,) = ask(prometheus, "targets")["activeTargets"]
    assert target["lastError"] == ""


def test_promtool_finds_nothing_to_say(require_program: Callable[[str], str]) -> None:
    registry = CollectorRegistry()
    registry.register(metrics.Collector(lambda: process(BUSY)))
    require_program("prometheus")  # the package that promtool is in
    tool = require_program("promtool")
    done = subprocess.run(
        [tool, "check", "metrics"], input=generate_latest(registry), capture_output=True, check=False, timeout=60
    )

    assert (done.stdout, done.stderr, done.returncode) == (b"", b"", 0)
