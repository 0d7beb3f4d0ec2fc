"""What is wrong with a dashboard, or with a query: its metrics, labels, units, descriptions, links, data sources."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import promql_parser as promql

from jaxwatch._metrics import FAMILIES

Json = dict[str, Any]
OF_SCRAPE = {"job", "instance"}
METRICS: Mapping[str, set[str]] = {f.name: {*f.labels, *OF_SCRAPE} for f in FAMILIES if f.kind != "histogram"} | {
    f"{f.name}{suffix}": {*f.labels, *OF_SCRAPE, *(["le"] if suffix == "_bucket" else [])}
    for f in FAMILIES
    if f.kind == "histogram"
    for suffix in ("_bucket", "_sum", "_count")
}
_VARIABLES = {"__range": "5m", "__rate_interval": "5m", "__interval": "30s"}
_PARTS = ("expr", "lhs", "rhs", "param", "vector_selector", "vs")


def recorded(names: Iterable[str]) -> dict[str, set[str]]:
    """Return recorded series and their labels, which the part before the first colon tells."""
    return {name: {*name.partition(":")[0].split("_"), "instance"} for name in names}  # which, empty, may be asked for


def filled_in(text: str) -> str:
    """Return a query with Grafana's own variables filled in."""
    return re.sub(r"\$(__\w+)", lambda found: _VARIABLES.get(found[1], found[0]), text)


# ------------------------------------------------------------------ queries


def query_faults(text: str, known: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield what is wrong with a query: it does not parse, or asks for what there is not."""
    try:
        tree = promql.parse(filled_in(text))
    except ValueError as error:
        yield f"does not parse: {error}: {text}"
        return
    names = {node.name for node in nodes(tree) if type(node).__name__ == "VectorSelector"}
    if not names:
        yield f"asks for no metric: {text}"
    for name in names - known.keys():
        yield f"there is no metric {name}: {text}"
    labels = set().union(*(known.get(name, set()) for name in names))
    for node in nodes(tree):
        if type(node).__name__ == "VectorSelector":
            asked = {matcher.name for matcher in node.matchers.matchers}
            missing = asked - known.get(node.name, asked)
        else:
            missing = set(_grouped(node)) - labels
        yield from (f"there is no label {label}: {text}" for label in sorted(missing))


def nodes(tree: Any) -> Iterator[Any]:
    """Yield every node of a query."""
    yield tree
    for part in _PARTS:
        below = getattr(tree, part, None)
        if below is not None and not isinstance(below, str | float | int):
            yield from nodes(below)
    for argument in getattr(tree, "args", None) or ():
        yield from nodes(argument)


def _grouped(node: Any) -> Iterator[str]:
    modifier = getattr(node, "modifier", None)
    for holder in (modifier, getattr(modifier, "matching", None)):
        labels = getattr(holder, "labels", None)
        if labels is not None:
            yield from labels


# ------------------------------------------------------------------ dashboards


def panels(board: Json) -> Iterator[Json]:
    """Yield the panels that are no rows."""
    for panel in board["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def expressions(board: Json) -> list[str]:
    """Return every query of a dashboard."""
    return [target["expr"] for panel in panels(board) for target in panel.get("targets", [])]


def board_faults(board: Json, known: Mapping[str, set[str]], uids: Iterable[str]) -> list[str]:
    """Return what is wrong with a dashboard; ``uids`` are of those that it may link to."""
    found: list[str] = []
    for panel in panels(board):
        found += [f"{panel['title']!r}: {fault}" for fault in _panel_faults(panel, known)]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query" and variable["datasource"]["uid"] != "${datasource}":
            found.append(f"variable {variable['name']}: its data source is fixed")
    links = re.findall(r'"url": *"/d/([\w-]+)', str(board).replace("'", '"'))
    return [*found, *(f"a link to {uid}, which is no dashboard" for uid in links if uid not in set(uids))]


def _panel_faults(panel: Json, known: Mapping[str, set[str]]) -> Iterator[str]:
    if not panel.get("title"):
        yield "has no title"
    if panel["type"] == "text":
        return
    if not panel.get("description", "").endswith("."):
        yield "has no description"
    units = [panel["fieldConfig"]["defaults"].get("unit")]
    units += [p["value"] for o in panel["fieldConfig"]["overrides"] for p in o["properties"] if p["id"] == "unit"]
    if not any(units):
        yield "has no unit"
    for asking in (panel, *panel["targets"]):
        if asking["datasource"]["uid"] != "${datasource}":
            yield "its data source is fixed"
    for target in panel["targets"]:
        yield from query_faults(target["expr"], known)
