"""A real Prometheus scrapes a real program whose functions were really compiled again."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from figures import BUSY, process
from prometheus_client import CollectorRegistry, generate_latest
from servers import ask, prometheus, running, values, wait_for

from jaxwatch import metrics

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


@pytest.fixture
def program() -> Iterator[int]:
    """Yield the port of a program that has missed three times."""
    with running(sys.executable, "-c", PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        line = found.stdout.readline()
        assert line, "the program failed; its error is above"
        yield int(line)


@pytest.fixture
def address(program: int, require_program: Callable[[str], str], tmp_path: Path) -> Iterator[str]:
    """Yield the address of a Prometheus that scrapes the program."""
    with prometheus(require_program("prometheus"), CONFIG.format(port=program), tmp_path) as found:
        yield found


def test_prometheus_has_the_misses_of_a_program(address: str) -> None:
    wait_for(lambda: values(address, "jaxwatch_calls_total"))

    assert values(address, "jaxwatch_calls_total") == {NAME: 5}
    assert values(address, "sum by (function) (jaxwatch_cache_misses_total)") == {NAME: 3}
    assert values(address, 'jaxwatch_cache_misses_total{layer="compile",reason="shape"}') == {NAME: 2}
    assert values(address, 'jaxwatch_cache_misses_total{reason="dtype"}') == {NAME: 0}
    assert values(address, "jaxwatch_signatures") == {NAME: 3}
    assert values(address, "jaxwatch_compile_duration_seconds_count") == {NAME: 3}
    assert values(address, 'jaxwatch_dispatch_duration_seconds_bucket{le="+Inf"}') == {NAME: 2}
    assert values(address, "up") == {"": 1}
    (target,) = ask(address, "targets")["activeTargets"]
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
