"""Parts of Grafana dashboards as classic JSON (version 1): the standard library is enough to write it."""

# ruff: noqa: INP001 -- a script and its parts, no package

from typing import Any

Json = dict[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
BAR = {"type": "gauge", "mode": "gradient", "valueDisplayMode": "text"}
STACKED = {"mode": "normal", "group": "A"}


def query(expression: str, legend: str = "", *, ref: str = "A", instant: bool = False, table: bool = False) -> Json:
    """Return one query of a panel."""
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": expression,
        "legendFormat": legend,
        "editorMode": "code",
        "range": not (instant or table),
        "instant": instant or table,
        "format": "table" if table else "time_series",
    }


def thresholds(*values: float, colors: tuple[str, ...] = ("green", "orange", "red")) -> Json:
    """Return thresholds: the first colour from the start, each next one from its value on."""
    steps = [{"color": color, "value": value} for color, value in zip(colors, (None, *values), strict=True)]
    return {"mode": "absolute", "steps": steps}


def panel(kind: str, title: str, description: str, queries: list[Json], **parts: Any) -> Json:
    """Return a panel; ``parts`` are ``options``, ``defaults``, ``overrides`` and ``transformations``."""
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": queries,
        "options": parts.get("options", {}),
        "fieldConfig": {"defaults": parts["defaults"], "overrides": parts.get("overrides", [])},
        "transformations": parts.get("transformations", []),
    }


def stat(title: str, description: str, expression: str, defaults: Json, **options: Any) -> Json:
    """Return a panel of one number; with ``graphMode="area"`` its course is drawn behind it."""
    chosen = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "value",
        "graphMode": "none",
        "textMode": "value",
        "justifyMode": "center",
        **options,
    }
    queries = [query(expression, title, instant=chosen["graphMode"] == "none")]
    return panel("stat", title, description, queries, options=chosen, defaults=defaults)


def series(title: str, description: str, queries: list[Json], defaults: Json, *, side: str = "bottom") -> Json:
    """Return a panel of lines or bars over time, with its legend at that side: a table only where there is room."""
    narrow = side == "bottom"
    calcs = ["mean"] if narrow else ["mean", "max"]
    legend = {"displayMode": "list" if narrow else "table", "placement": side, "showLegend": True, "calcs": calcs}
    options = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    return panel("timeseries", title, description, queries, options=options, defaults={"min": 0, **defaults})


def lines() -> Json:
    """Return the style of lines."""
    return {"lineWidth": 2, "fillOpacity": 10, "showPoints": "never", "spanNulls": False}


def areas() -> Json:
    """Return the style of stacked areas."""
    return {**lines(), "lineWidth": 1, "fillOpacity": 40, "stacking": STACKED}


def bars() -> Json:
    """Return the style of stacked bars."""
    return {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0, "stacking": STACKED}


def table(key: str, title: str, description: str, columns: dict[str, tuple[str, str]], overrides: list[Json]) -> Json:
    """Return a table of a row for each value of the label ``key``, sorted by the first column.

    ``columns`` are head → (query, unit).
    """
    names = {f"Value #{chr(65 + number)}": head for number, head in enumerate(columns)}
    queries = [query(text, ref=chr(65 + number), table=True) for number, (text, _) in enumerate(columns.values())]
    units = [override(head, unit=unit) for head, (_, unit) in columns.items()]
    organized = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate([key, *names])},
        "renameByName": {key: key.capitalize(), **names},
    }
    sorting = [{"displayName": next(iter(columns)), "desc": True}]
    return panel(
        "table",
        title,
        description,
        queries,
        options={"showHeader": True, "cellHeight": "sm", "sortBy": sorting},
        defaults={"custom": {"align": "auto", "cellOptions": {"type": "auto"}}},
        overrides=units + overrides,
        transformations=[{"id": "merge", "options": {}}, {"id": "organize", "options": organized}],
    )


def override(column: str, **properties: Any) -> Json:
    """Return properties of one column; in their names two underscores stand for a dot."""
    found = [{"id": name.replace("__", "."), "value": value} for name, value in properties.items()]
    return {"matcher": {"id": "byName", "options": column}, "properties": found}


def bar(column: str, width: int, decimals: int) -> Json:
    """Return what makes a column one of bars, each as long as its share of the column's largest value."""
    return override(
        column,
        custom__cellOptions=BAR,
        custom__width=width,
        color={"mode": "continuous-GrYlRd"},
        min=0,
        fieldMinMax=True,
        decimals=decimals,
    )


def source_variable() -> Json:
    """Return the variable that chooses the data source."""
    return {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "regex": "",
        "hide": 0,
        "current": {},
        "multi": False,
        "includeAll": False,
        "refresh": 1,
        "options": [],
    }


def variable(name: str, label: str, text: str) -> Json:
    """Return a variable of label values, several of which may be chosen."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "definition": text,
        "query": {"query": text, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1},
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "hide": 0,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "options": [],
    }


def laid_out(rows: list[tuple[str, int, list[tuple[Json, int]]]]) -> list[Json]:
    """Return the panels of all rows in their places; a row is its title, its height and its panels with widths."""
    panels: list[Json] = []
    top = 0
    for title, height, places in rows:
        place = {"x": 0, "y": top, "w": 24, "h": 1}
        panels.append({"type": "row", "title": title, "gridPos": place, "collapsed": False, "panels": []})
        left = 0
        for one, width in places:
            panels.append(one | {"gridPos": {"x": left, "y": top + 1, "w": width, "h": height}})
            left += width
        top += 1 + height
    return [{"id": number, **one} for number, one in enumerate(panels, 1)]


def dashboard(uid: str, title: str, description: str, variables: list[Json], panels: list[Json]) -> Json:
    """Return a whole dashboard."""
    return {
        "uid": uid,
        "title": title,
        "description": description,
        "tags": ["jaxwatch"],
        "schemaVersion": 42,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "browser",
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "links": [],
        "annotations": {"list": []},
        "templating": {"list": variables},
        "panels": panels,
    }
