"""The dashboards: that they are as built, and ask only for what the collector gives."""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxwatch._metrics import FAMILIES, PREFIX

GRAFANA = Path(__file__).parent.parent / "grafana"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
MINE = {f.name: f.labels for f in FAMILIES if f.kind != "histogram"} | {
    f"{f.name}{suffix}": (*f.labels, *(["le"] if suffix == "_bucket" else []))
    for f in FAMILIES
    if f.kind == "histogram"
    for suffix in ("_bucket", "_sum", "_count")
}
OF_SCRAPE = {"job", "instance"}


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text("utf-8")))


def panels(board: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the panels that show data."""
    for panel in board["panels"]:
        if panel["type"] != "row":
            yield panel


def expressions(board: dict[str, Any]) -> list[str]:
    """Return every query of a dashboard, with Grafana's own variables filled in."""
    found = [target["expr"] for panel in panels(board) for target in panel["targets"]]
    return [re.sub(r"\$__(range|rate_interval|interval)", "5m", text) for text in found]


def test_there_is_an_overview() -> None:
    assert "overview.json" in [path.name for path in DASHBOARDS]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
class TestDashboard:
    def test_it_is_as_built(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(GRAFANA)
        builder = importlib.import_module("build_dashboards")

        built = {file.name: text for file, text in builder.files().items()}
        assert path.read_text("utf-8") == built[path.name], "run python grafana/build_dashboards.py"

    def test_every_panel_says_what_it_shows_and_in_what_unit(self, path: Path) -> None:
        for panel in panels(read(path)):
            units = [panel["fieldConfig"]["defaults"].get("unit")]
            for override in panel["fieldConfig"]["overrides"]:
                units += [p["value"] for p in override["properties"] if p["id"] == "unit"]
            assert panel["title"]
            assert panel["description"].endswith(".")
            assert any(units), panel["title"]

    def test_the_data_source_is_a_variable(self, path: Path) -> None:
        board = read(path)
        asking = [*panels(board), *(t for p in panels(board) for t in p["targets"])]
        asking += [v for v in board["templating"]["list"] if v["type"] == "query"]

        assert {one["datasource"]["uid"] for one in asking} == {"${datasource}"}
        assert [v["name"] for v in board["templating"]["list"]] == ["datasource", "job", "instance", "function"]

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

    def test_queries_ask_for_metrics_and_labels_that_there_are(self, path: Path) -> None:
        board = read(path)
        asked = expressions(board) + [v["definition"] for v in board["templating"]["list"] if v["type"] == "query"]
        for text in asked:
            names = set(re.findall(rf"\b{PREFIX}\w+", text))
            assert names
            assert names <= MINE.keys()
            known = OF_SCRAPE.union(*(MINE[name] for name in names))
            selected = set(re.findall(r"[{,](\w+)[!=]", text))
            grouped = {label for found in re.findall(r"(?:by|on) \(([\w, ]*)\)", text) for label in found.split(", ")}
            assert (selected | grouped) - {""} <= known, text

    def test_every_query_of_a_process_heeds_job_and_instance(self, path: Path) -> None:
        for text in expressions(read(path)):
            for selector in re.findall(rf"{PREFIX}\w+{{(.*?)}}", text):
                assert 'job=~"$job",instance=~"$instance"' in selector
            assert len(re.findall(rf"\b{PREFIX}\w+{{", text)) == len(re.findall(rf"\b{PREFIX}\w+", text))

    def test_prometheus_understands_every_query(
        self, path: Path, require_program: Callable[[str], str], tmp_path: Path
    ) -> None:
        require_program("prometheus")  # the package that promtool is in
        rules = [{"record": f"a:b{n}", "expr": text} for n, text in enumerate(expressions(read(path)))]
        file = tmp_path / "rules.yml"
        file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))  # JSON is YAML
        done = subprocess.run(
            [require_program("promtool"), "check", "rules", str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

        assert done.returncode == 0, done.stderr


def test_the_builder_writes_what_is_committed(tmp_path: Path) -> None:
    for name in ("build_dashboards.py", "panels.py"):
        (tmp_path / name).write_bytes((GRAFANA / name).read_bytes())
    (tmp_path / "dashboards").mkdir()
    subprocess.run([sys.executable, tmp_path / "build_dashboards.py"], check=True, timeout=60)

    written = {path.name: path.read_bytes() for path in (tmp_path / "dashboards").iterdir()}
    assert written == {path.name: path.read_bytes() for path in DASHBOARDS}


def test_no_file_names_a_host_that_packages_come_from() -> None:
    for path in sorted(GRAFANA.rglob("*")):
        if path.is_file() and not {"node_modules", "dist", "__pycache__"} & set(path.parts):
            hosts = set(re.findall(r"https?://([\w.-]+)", path.read_text("utf-8")))
            assert hosts <= {"127.0.0.1", "www.w3.org", "localhost"}, path
