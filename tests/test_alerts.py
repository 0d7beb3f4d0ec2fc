"""The alerts: their rules by promtool, their runbook, and one that really reaches a webhook."""

import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from programs import ROOT, environment
from servers import alertmanager, ask, prometheus, running, values, wait_for, webhook

from jaxwatch._metrics import FAMILIES, PREFIX

GRAFANA = ROOT / "grafana"
ALERTS = GRAFANA / "alerts" / "jaxwatch.yml"
TESTS = sorted((GRAFANA / "tests").glob("alerts*.yml"))
RUNBOOK = (GRAFANA / "runbook.md").read_text("utf-8")
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"] for rule in group["rules"]
]
NAMES = {rule["alert"] for rule in RULES}


@pytest.fixture
def promtool(require_program: Callable[[str], str]) -> Callable[..., str]:
    """Return a function that runs promtool, which must find nothing amiss, and returns what it says."""
    require_program("prometheus")  # the package that promtool is in
    tool = require_program("promtool")

    def call(*arguments: object) -> str:
        command = [tool, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return call


def blocks(language: str) -> list[str]:
    """Return the code of that language in the runbook."""
    return re.findall(rf"^```{language}\n(.*?)^```", RUNBOOK, re.MULTILINE | re.DOTALL)


# ------------------------------------------------------------------ the rules


def test_promtool_has_nothing_to_say_to_the_rules(promtool: Callable[..., str]) -> None:
    assert f"{len(RULES)} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_alerts_fire_and_do_not_as_promtool_is_told(path: Path, promtool: Callable[..., str]) -> None:
    assert "SUCCESS" in promtool("test", "rules", path)


def test_promtool_can_fail(promtool: Callable[..., str], tmp_path: Path) -> None:
    text = TESTS[0].read_text("utf-8").replace("../alerts", str(ALERTS.parent))
    file = tmp_path / "wrong.yml"
    file.write_text(text.replace("exp_labels: {severity: ticket", "exp_labels: {severity: page", 1))

    with pytest.raises(AssertionError, match="FAILED"):
        promtool("test", "rules", file)


def test_every_alert_is_tested_to_fire_and_not_to() -> None:
    asked = [
        (alert["alertname"], *alarm["exp_labels"].values()) if alarm else (alert["alertname"], None)
        for path in TESTS
        for test in yaml.safe_load(path.read_text("utf-8"))["tests"]
        for alert in test["alert_rule_test"]
        for alarm in alert.get("exp_alerts") or [None]
    ]
    quiet = {name for name, *labels in asked if labels == [None]}
    fired = {(name, label) for name, *labels in asked for label in labels}

    assert quiet == NAMES
    for rule in RULES:
        assert {(rule["alert"], value) for value in rule["labels"].values()} <= fired, rule["alert"]


def test_alerts_ask_only_for_what_the_collector_gives() -> None:
    histograms = [family.name for family in FAMILIES if family.kind == "histogram"]
    known = {family.name for family in FAMILIES} | {f"{name}_{part}" for name in histograms for part in _PARTS}
    for text in [*(json.dumps(rule) for rule in RULES), *blocks("promql")]:
        asked = set(re.findall(rf"\b{PREFIX}\w+", text))
        assert asked <= known, asked - known


_PARTS = ("bucket", "sum", "count")


def test_the_bucket_that_is_asked_for_is_one() -> None:
    (family,) = [family for family in FAMILIES if family.name == "jaxwatch_compile_duration_seconds"]
    (bound,) = set(re.findall(r'le=\\"([\d.]+)\\"', json.dumps(RULES)))

    assert bound in [str(float(bucket)) for bucket in family.buckets]


# ------------------------------------------------------------------ what they say


def test_every_alert_has_a_section_and_every_section_an_alert() -> None:
    assert re.findall(r"^## (\w+)$", RUNBOOK, re.MULTILINE) == list(dict.fromkeys(rule["alert"] for rule in RULES))


def test_every_section_says_what_it_means_how_to_look_what_to_do_and_when_to_silence() -> None:
    for section in RUNBOOK.split("\n## ")[1:]:
        assert re.findall(r"\*\*(What it means|How to look|What to do|When to silence)\.\*\*", section) == [
            "What it means",
            "How to look",
            "What to do",
            "When to silence",
        ], section


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule['alert']}-{rule['labels']['severity']}")
def test_an_alert_says_how_bad_it_is_where_and_what_to_read(rule: dict[str, Any]) -> None:
    said = rule["annotations"]
    (uid,) = re.findall(r"^/d/([\w-]+)\?", said["dashboard"])
    boards = [json.loads(path.read_text("utf-8"))["uid"] for path in (GRAFANA / "dashboards").glob("*.json")]

    assert rule["labels"]["severity"] in {"page", "ticket", "info"}
    assert said["runbook_url"] == f"runbook.md#{rule['alert'].lower()}"
    assert uid in boards
    assert said["summary"].startswith("{{ $labels.job }}: ")
    assert said["description"]


def test_only_what_is_lost_for_long_pages() -> None:
    assert [(rule["alert"], rule["for"]) for rule in RULES if rule["labels"]["severity"] == "page"] == [
        ("JaxRecompilationStorm", "20m")
    ]


def test_links_get_a_base_as_the_runbook_says(tmp_path: Path) -> None:
    (tmp_path / "alerts").mkdir()
    (tmp_path / "alerts" / "jaxwatch.yml").write_bytes(ALERTS.read_bytes())
    (command,) = [text for text in blocks("sh") if "sed" in text]
    bases = environment(WIKI="http://localhost/wiki", GRAFANA="http://localhost:3000")
    subprocess.run(command, shell=True, cwd=tmp_path, env=bases, check=True, timeout=60)  # noqa: S602 -- ours

    found = yaml.safe_load((tmp_path / "alerts" / "jaxwatch.yml").read_text("utf-8"))
    for group in found["groups"]:
        for rule in group["rules"]:
            assert rule["annotations"]["runbook_url"].startswith("http://localhost/wiki/runbook.md#jax")
            assert rule["annotations"]["dashboard"].startswith("http://localhost:3000/d/jaxwatch-")


# ------------------------------------------------------------------ from a storm to a webhook

PROGRAM = """
import sys, threading, time
import numpy as np
import jax, jaxwatch

@jaxwatch.jit
def step(x, lr):
    return x * lr

@jaxwatch.jit
def evaluate(x):
    return x.sum()

with jaxwatch.serve(port=0) as server:
    print(server.port, flush=True)
    sys.stdin.readline()
    ended = threading.Thread(target=sys.stdin.read, daemon=True)
    ended.start()
    length, turn = 8, 0
    step(np.ones(4, "float32"), 0.1), step(np.ones(4, "float32"), np.float32(0.1))
    while ended.is_alive():
        step(np.ones(length, "float32"), np.float32(0.1))
        evaluate(np.ones(turn % 5, "float32"))
        length, turn = length + (sys.argv[1] == "storm"), turn + 1
        time.sleep(0.05)
"""
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ["{alertmanager}"]}}]}}]}}
scrape_configs:
  - job_name: storm
    static_configs: [{{targets: ["127.0.0.1:{storm}"]}}]
  - job_name: healthy
    static_configs: [{{targets: ["127.0.0.1:{healthy}"]}}]
"""


@contextlib.contextmanager
def program(kind: str) -> Iterator[tuple[int, Callable[[], None]]]:
    """Run a program that serves its metrics; yield its port, and what lets it begin."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment()}
    with running(sys.executable, "-c", PROGRAM, kind, **pipes) as found:
        assert found.stdout is not None
        assert found.stdin is not None
        port, begin = int(found.stdout.readline()), found.stdin

        def go() -> None:
            begin.write("\n")
            begin.flush()

        yield port, go


def of_runbook(address: str) -> str:
    """Return the configuration for Alertmanager that the runbook gives, with our address and no long wait."""
    (config,) = [text for text in blocks("yaml") if "receivers:" in text]
    return config.replace("http://127.0.0.1:9094", address).replace("group_wait: 30s", "group_wait: 1s")


def test_a_storm_reaches_the_webhook_and_a_healthy_run_does_not(
    require_program: Callable[[str], str], tmp_path: Path
) -> None:
    programs = require_program("prometheus"), require_program("prometheus-alertmanager")
    with (
        webhook() as (address, heard),
        program("storm") as (storm, begin_storm),
        program("healthy") as (healthy, begin_healthy),
        alertmanager(programs[1], of_runbook(address), tmp_path) as manager,
    ):
        config = CONFIG.format(rules=ALERTS, alertmanager=manager, storm=storm, healthy=healthy)
        with prometheus(programs[0], config, tmp_path) as server:
            wait_for(lambda: len(ask(server, "query", query="jaxwatch_build_info").get("result", [])) == 2)
            started = time.monotonic()
            begin_storm()
            begin_healthy()
            wait_for(lambda: heard)
            after = time.monotonic() - started
            calls = values(server, 'jaxwatch_calls_total{job="healthy"}')
            alerts = ask(server, "alerts")["alerts"]
            rules = [rule for group in ask(server, "rules")["groups"] for rule in group["rules"]]

    (message,) = heard
    (alert,) = message["alerts"]
    assert (message["path"], alert["status"]) == ("/ticket", "firing")
    assert alert["labels"] == {
        "alertname": "JaxRecompilationStorm",
        "severity": "ticket",
        "job": "storm",
        "instance": f"127.0.0.1:{storm}",
        "function": "step",
    }
    assert re.fullmatch(
        r"\d+ recompilations of step in 5 minutes, which took .+s, most of them for another shape\.",
        alert["annotations"]["description"],
    )
    assert after > 60  # a storm must last a minute; that it came at all is what wait_for asks
    assert set(calls) == {"step", "evaluate"}
    assert min(calls.values()) > 20
    assert {(found["labels"]["job"], found["labels"]["alertname"]) for found in alerts} == {
        ("storm", "JaxRecompilationStorm"),
        ("storm", "JaxwatchLabelOverflow"),
    }
    assert sorted((rule["name"], rule["health"]) for rule in rules) == sorted((rule["alert"], "ok") for rule in RULES)
