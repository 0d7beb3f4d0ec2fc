"""One scrape for many processes: forked ones, spawned ones, one that is killed; none of their counts is lost."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from event_records import miss, run_start, stats, write_log
from programs import HEARS_CTRL_C
from prometheus_client.parser import text_string_to_metric_families as parse

from jaxwatch._exporter import LogExporter

PROCESSES = 8
WORKER = """
import os, sys, time
import numpy as np
import jaxwatch

@jaxwatch.jit
def step(x):
    return x * 2

def train(rows, folder):
    for count in range(1, rows + 1):
        step(np.ones(count, np.float32))
    open(os.path.join(folder, f"{os.getpid()}.ready"), "w").close()
    while not os.path.exists(os.path.join(folder, "go")):
        time.sleep(0.02)
"""
# four that were started by themselves, two that are spawned and two that are forked before JAX runs a program
TRAINER = """
import multiprocessing, os, sys
sys.path.insert(0, sys.argv[2])
import worker

if __name__ == "__main__":
    kind = sys.argv[1]
    if kind == "alone":
        worker.train(3, sys.argv[2])
    else:
        context = multiprocessing.get_context(kind)
        children = [context.Process(target=worker.train, args=(rows, sys.argv[2])) for rows in (2, 4)]
        for child in children:
            child.start()
        for child in children:
            child.join()
"""


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[LogExporter]:
    with LogExporter([str(tmp_path)], 0) as found:
        yield found


def scrape(exporter: LogExporter, path: str = "metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/{path}", timeout=20) as answer:
        return str(answer.read().decode())


def totals(exporter: LogExporter) -> dict[str, float]:
    """Return metric → its sum over all labels."""
    exporter.poll()
    found: Counter[str] = Counter()
    for family in parse(scrape(exporter)):
        for sample in family.samples:
            found[sample.name] += sample.value  # type: ignore[assignment]  # a Counter of floats
    return dict(found)


def wait_for(folder: Path, number: int) -> list[int]:
    until = time.monotonic() + 240
    while len(found := list(folder.glob("*.ready"))) < number:
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
    return sorted(int(path.stem) for path in found)


def test_eight_processes_one_killed_and_every_count_is_there(exporter: LogExporter, tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "trainer.py").write_text(TRAINER)
    log = tmp_path / "host.jsonl"
    environ = {**os.environ, "JAXWATCH_LOG": str(log), "JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"}
    parents = [
        subprocess.Popen([sys.executable, tmp_path / "trainer.py", kind, tmp_path], env=environ)
        for kind in ("alone", "alone", "alone", "alone", "spawn", "fork")
    ]
    try:
        pids = wait_for(tmp_path, PROCESSES)
        killed = next(parent.pid for parent in parents if parent.pid in pids)
        exporter.poll()
        os.kill(killed, signal.SIGKILL)
        (tmp_path / "go").touch()
        for parent in parents:
            parent.wait(240)
    finally:
        for parent in parents:
            parent.kill()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    misses = [event for event in events if event["event"] == "cache_miss"]
    found = totals(exporter)

    assert {event["pid"] for event in misses} == set(pids)
    assert len(misses) == 4 * 3 + 2 * (2 + 4)
    assert found["jaxwatch_cache_misses_total"] == len(misses)
    assert found["jaxwatch_signature_cache_misses_total"] == len(misses)
    assert found["jaxwatch_calls_total"] == len(misses), "each call missed, and of the dead one too each counts"
    assert found["jaxwatch_compile_duration_seconds_count"] == len(misses)
    assert found["jaxwatch_compile_phase_seconds_total"] == pytest.approx(
        sum(one["seconds"]["total"] for one in misses)
    )
    assert sum(one["pid"] == killed for one in misses) == 3
    assert all(parent.returncode == (-signal.SIGKILL if parent.pid == killed else 0) for parent in parents)


def test_before_all_that_was_there_is_read_a_scrape_is_refused(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", [run_start(), miss(1)])
    with LogExporter([str(tmp_path)], 0) as exporter:
        with pytest.raises(urllib.error.HTTPError) as refused:
            scrape(exporter)
        assert (refused.value.code, "still being read" in refused.value.read().decode()) == (503, True)
        exporter.poll()
        assert 'jaxwatch_cache_misses_total{function="step",layer="compile",reason="first_call"} 1.0' in scrape(
            exporter
        )


def test_what_comes_later_is_added(exporter: LogExporter, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", [run_start(), miss(1), stats(calls=4)])
    assert totals(exporter)["jaxwatch_calls_total"] == 4
    write_log(tmp_path / "b.jsonl", [run_start(pid=2), miss(1, pid=2), stats(calls=5, pid=2)])
    assert totals(exporter)["jaxwatch_calls_total"] == 9


def test_the_live_page_shows_the_logs(exporter: LogExporter, tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", [run_start(), miss(1), miss(2, "shape"), stats(calls=4)])
    exporter.poll()

    frame = json.loads(scrape(exporter, "live.json"))
    assert [one["function"] for one in frame["functions"]] == ["step"]
    assert "<html" in scrape(exporter, "")


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    write_log(tmp_path / "a.jsonl", [run_start(), miss(1)])
    command = [sys.executable, "-c", HEARS_CTRL_C, "exporter", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stderr is not None
            line = running.stderr.readline()
            url = line.split()[-1]
            assert url.startswith("http://127.0.0.1:")
            until = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 -- ours
                        assert b"jaxwatch_calls_total" in answer.read()
                        break
                except urllib.error.HTTPError as error:
                    assert (error.code, time.monotonic() < until) == (503, True)  # noqa: PT017 -- it comes and goes
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0
            assert running.stderr.read() == ""
        finally:
            running.kill()
