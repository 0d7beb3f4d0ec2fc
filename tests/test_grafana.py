"""The dashboards: that they are as built, and ask only for what the collector and the recording rules give."""

import copy
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from board_lint import METRICS, board_faults, expressions, filled_in, nodes, panels, query_faults, recorded

from jaxwatch._metrics import PREFIX

GRAFANA = Path(__file__).parent.parent / "grafana"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
RULES = (GRAFANA / "rules" / "jaxwatch.yml").read_text("utf-8")
RECORDED = recorded(re.findall(r"record: (\S+)", RULES))
KNOWN = {**METRICS, **RECORDED}


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


UIDS = [read(path)["uid"] for path in DASHBOARDS]


def test_there_are_an_overview_a_function_and_a_fleet() -> None:
    assert [path.stem for path in DASHBOARDS] == ["fleet", "function", "overview"]
    assert UIDS == ["jaxwatch-fleet", "jaxwatch-function", "jaxwatch-overview"]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
class TestDashboard:
    def test_it_is_as_built(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(GRAFANA)
        builder = importlib.import_module("build_dashboards")

        built = {file.name: text for file, text in builder.files().items()}
        assert path.read_text("utf-8") == built[path.name], "run python grafana/build_dashboards.py"

    def test_nothing_is_wrong_with_it(self, path: Path) -> None:
        assert board_faults(read(path), KNOWN, UIDS) == []

    def test_its_variables_are_those_that_the_links_hand_on(self, path: Path) -> None:
        names = [variable["name"] for variable in read(path)["templating"]["list"]]

        assert names[:4] == ["datasource", "job", "instance", "function"]
        assert names[4:] in ([], ["raw"])

    def test_its_variables_ask_for_what_there_is(self, path: Path) -> None:
        for variable in read(path)["templating"]["list"]:
            if variable["name"] == "raw":
                query = variable["definition"].removeprefix("query_result(").removesuffix(")")
                assert list(query_faults(query, KNOWN)) == []
            elif variable["type"] == "query":
                asked = re.search(r"label_values\((.+), (\w+)\)", variable["definition"])
                assert asked is not None, variable["definition"]
                assert list(query_faults(asked[1], KNOWN)) == []
                (name,) = {node.name for node in nodes(importlib.import_module("promql_parser").parse(asked[1]))}
                assert asked[2] in KNOWN[name]

    def test_panels_have_places_of_their_own(self, path: Path) -> None:
        board = read(path)
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in board["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]

        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) == 23
        assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])

    def test_every_query_of_a_process_heeds_the_job(self, path: Path) -> None:
        for text in expressions(read(path)):
            for selector in re.findall(rf"(?:{PREFIX}|:{PREFIX})\w+(?::\w+)?{{(.*?)}}", text):
                assert 'job=~"$job"' in selector, text

    def test_prometheus_understands_every_query(
        self, path: Path, require_program: Callable[[str], str], tmp_path: Path
    ) -> None:
        require_program("prometheus")  # the package that promtool is in
        rules = [{"record": f"a:b{n}", "expr": filled_in(text)} for n, text in enumerate(expressions(read(path)))]
        file = tmp_path / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))  # JSON is YAML
        done = promtool(require_program, "check", "rules", str(file))

        assert done.returncode == 0, done.stderr


def promtool(require_program: Callable[[str], str], *arguments: str) -> subprocess.CompletedProcess[str]:
    require_program("prometheus")  # the package that promtool is in
    command = [require_program("promtool"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


# ------------------------------------------------------------------ the recording rules


def test_promtool_finds_nothing_wrong_with_the_rules(require_program: Callable[[str], str]) -> None:
    path = str(GRAFANA / "rules" / "jaxwatch.yml")
    done = promtool(require_program, "check", "rules", "--lint=all", "--lint-fatal", path)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_record_what_they_are_to(require_program: Callable[[str], str]) -> None:
    done = promtool(require_program, "test", "rules", str(GRAFANA / "tests" / "rules_test.yml"))

    assert done.returncode == 0, done.stdout + done.stderr


def rule_expressions() -> Iterator[str]:
    """Yield the rules' expressions, of the two forms of YAML that they are written in."""
    for folded, plain in re.findall(r"expr: (?:>-\n((?: {10}.*\n)+)|(\S.*)\n)", f"{RULES}\n"):
        yield folded or plain


def test_the_rules_ask_for_what_there_is() -> None:
    found = list(rule_expressions())

    assert len(found) == len(RECORDED)
    assert [fault for text in found for fault in query_faults(text, KNOWN)] == []


def test_the_fleets_figures_are_recorded_ones() -> None:
    """At 1,000 hosts a sum over every process's histogram would be slow: it is added up once, by the rules."""
    asked = [text for text in expressions(read(GRAFANA / "dashboards" / "fleet.json")) if "_bucket" in text]

    assert asked
    assert all(f"job_le:{PREFIX}" in text for text in asked)


# ------------------------------------------------------------------ the linter


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("sum(", "does not parse"),
        ("1 + 1", "asks for no metric"),
        ("jaxwatch_cals_total", "there is no metric jaxwatch_cals_total"),
        ('jaxwatch_calls_total{reason="shape"}', "there is no label reason"),
        ("sum by (host) (jaxwatch_calls_total)", "there is no label host"),
        ("jaxwatch_calls_total / on (le) jaxwatch_calls_total", "there is no label le"),
        ("histogram_quantile(0.9, sum by (le) (rate(jaxwatch_dispatch_seconds_bucket[5m])))", "there is no metric"),
        ("max_over_time((sum(jaxwatch_nothing) > 1)[5m:30s])", "there is no metric jaxwatch_nothing"),
        ('topk(3, -(jaxwatch_calls_total{host="a"}))', "there is no label host"),
    ],
)
def test_a_faulty_query_is_found(text: str, fault: str) -> None:
    assert any(found.startswith(fault) for found in query_faults(text, KNOWN))


def changed(path: str, value: Any) -> dict[str, Any]:
    """Return the overview with one place of its first panel that shows data set to something else."""
    board = copy.deepcopy(read(GRAFANA / "dashboards" / "overview.json"))
    place: Any = next(panels(board))
    *way, last = path.split(".")
    for key in way:
        place = place[int(key) if key.isdigit() else key]
    place[last] = value
    return board


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("title", "", "has no title"),
        ("description", "", "has no description"),
        ("fieldConfig.defaults.unit", None, "has no unit"),
        ("datasource.uid", "prometheus", "its data source is fixed"),
        ("targets.0.datasource", {"uid": "prometheus"}, "its data source is fixed"),
        ("targets.0.expr", "nothing", "there is no metric nothing"),
        ("fieldConfig.defaults.links", [{"url": "/d/jaxwatch-gone?a=b"}], "a link to jaxwatch-gone"),
    ],
)
def test_a_faulty_dashboard_is_found(path: str, value: Any, fault: str) -> None:
    (found,) = board_faults(changed(path, value), KNOWN, UIDS)

    assert fault in found


# ------------------------------------------------------------------ files


def test_the_builder_writes_what_is_committed(tmp_path: Path) -> None:
    for path in GRAFANA.glob("*.py"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "dashboards").mkdir()
    subprocess.run([sys.executable, tmp_path / "build_dashboards.py"], check=True, timeout=60)

    written = {path.name: path.read_bytes() for path in (tmp_path / "dashboards").iterdir()}
    assert written == {path.name: path.read_bytes() for path in DASHBOARDS}


def test_no_file_names_a_host_that_packages_come_from() -> None:
    for path in sorted(GRAFANA.rglob("*")):
        if path.is_file() and not {"node_modules", "dist", "__pycache__"} & set(path.parts):
            hosts = set(re.findall(r"https?://([\w.-]+)", path.read_text("utf-8")))
            assert hosts <= {"127.0.0.1", "www.w3.org", "localhost", "grafana", "example.com"}, path
