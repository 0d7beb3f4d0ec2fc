"""Parts of Grafana dashboards as classic JSON (version 1): the standard library is enough to write it."""

# ruff: noqa: INP001 -- a part of a script, no package

from typing import Any

Json = dict[str, Any]
Row = tuple[str, int, list[tuple[Json, int]]]  # title, height, panels with their widths, of 24

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
BAR = {"type": "gauge", "mode": "gradient", "valueDisplayMode": "text"}
STACKED = {"mode": "normal", "group": "A"}
HEADS = {"process_index": "Rank", "abstract": "Arguments", "jax_version": "JAX", "jaxlib_version": "jaxlib"}
"""Heads of the columns that labels make, where they are not the label's own name."""


def query(expression: str, legend: str = "", *, ref: str = "A", kind: str = "range") -> Json:
    """Return one query of a panel; ``kind`` is ``range``, ``instant``, ``table`` or ``heatmap``."""
    instant = kind in {"instant", "table"}
    return {
        "refId": ref,
        "datasource": SOURCE,
        "expr": expression,
        "legendFormat": legend,
        "editorMode": "code",
        "range": not instant,
        "instant": instant,
        "format": kind if kind in {"table", "heatmap"} else "time_series",
    }


def thresholds(*values: float, colors: tuple[str, ...] = ("green", "orange", "red")) -> Json:
    """Return thresholds: the first colour from the start, each next one from its value on."""
    steps = [{"color": color, "value": value} for color, value in zip(colors, (None, *values), strict=True)]
    return {"mode": "absolute", "steps": steps}


PLAIN = thresholds(colors=("text",))


def panel(kind: str, title: str, description: str, queries: list[Json], **parts: Any) -> Json:
    """Return a panel; ``parts`` are ``options``, ``defaults``, ``overrides``, ``transformations`` and ``points``."""
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": queries,
        "options": parts.get("options", {}),
        "fieldConfig": {"defaults": parts["defaults"], "overrides": parts.get("overrides", [])},
        "transformations": parts.get("transformations", []),
        "maxDataPoints": parts.get("points"),
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
    queries = [query(expression, title, kind="instant" if chosen["graphMode"] == "none" else "range")]
    return panel("stat", title, description, queries, options=chosen, defaults=defaults, points=100)


def series(title: str, description: str, queries: list[Json], defaults: Json, *, side: str = "bottom") -> Json:
    """Return a panel of lines or bars over time, with its legend at that side: a table only where there is room."""
    narrow = side == "bottom"
    calcs = ["mean"] if narrow else ["mean", "max"]
    legend = {"displayMode": "list" if narrow else "table", "placement": side, "showLegend": True, "calcs": calcs}
    options = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    defaults = {"min": 0, **defaults}
    return panel("timeseries", title, description, queries, options=options, defaults=defaults, points=240)


def heatmap(title: str, description: str, expression: str, unit: str) -> Json:
    """Return a panel of a classic histogram over time: ``expression`` gives its rates by ``le``."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "fill": "dark-orange"},
        "filterValues": {"le": 1e-9},
        "yAxis": {"unit": unit, "axisPlacement": "left", "reverse": False},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": True},
    }
    queries = [query(expression, "{{le}}", kind="heatmap")]
    return panel("heatmap", title, description, queries, options=options, defaults={"unit": unit}, points=120)


def text(title: str, description: str, content: str) -> Json:
    """Return a panel of markdown, which asks for nothing."""
    options = {"mode": "markdown", "content": content}
    return {"type": "text", "title": title, "description": description, "options": options}


def lines() -> Json:
    """Return the style of lines."""
    return {"lineWidth": 2, "fillOpacity": 10, "showPoints": "never", "spanNulls": False}


def areas() -> Json:
    """Return the style of stacked areas."""
    return {**lines(), "lineWidth": 1, "fillOpacity": 40, "stacking": STACKED}


def bars() -> Json:
    """Return the style of stacked bars."""
    return {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0, "stacking": STACKED}


def head(label: str) -> str:
    """Return the head of the column that a label makes."""
    return HEADS.get(label, label.capitalize())


def table(  # noqa: PLR0913 -- what a table is made of
    keys: tuple[str, ...],
    title: str,
    description: str,
    columns: dict[str, tuple[str, str]],
    overrides: list[Json],
    *,
    sort: str = "",
    descending: bool = True,
) -> Json:
    """Return a table of a row for each value of the labels ``keys``, sorted by the column ``sort``.

    ``columns`` are head → (query, unit); by default the first one sorts. A query gives just the labels of ``keys``.
    """
    refs = [chr(65 + number) for number in range(len(columns))]
    # So Grafana's Prometheus source names the values: by query only where there is more than one.
    values = [f"Value #{ref}" for ref in refs] if len(refs) > 1 else ["Value"]
    queries = [query(asked, ref=ref, kind="table") for ref, (asked, _) in zip(refs, columns.values(), strict=True)]
    units = [override(column, unit=unit) for column, (_, unit) in columns.items()]
    organized = {
        "excludeByName": {"Time": True},
        "indexByName": {name: place for place, name in enumerate([*keys, *values])},
        "renameByName": {key: head(key) for key in keys} | dict(zip(values, columns, strict=True)),
    }
    sorting = [{"displayName": sort or next(iter(columns)), "desc": descending}]
    return panel(
        "table",
        title,
        description,
        queries,
        options={"showHeader": True, "cellHeight": "sm", "sortBy": sorting},
        defaults={"custom": {"align": "auto", "minWidth": 80}},
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


def colored(column: str, width: int, *values: float, **properties: Any) -> Json:
    """Return what colours a column's numbers: green, orange from the first value on, red from the second."""
    style = {"type": "color-text"}
    return override(
        column, custom__cellOptions=style, custom__width=width, thresholds=thresholds(*values), **properties
    )


def linked(column: str, title: str, uid: str, width: int, **values: str) -> Json:
    """Return what links a column to a dashboard, with ``values`` for its variables; the rest goes along as chosen."""
    chosen = "".join(f"&var-{name}=${{__data.fields.{field}:percentencode}}" for name, field in values.items())
    kept = "".join(f"&${{{name}:queryparam}}" for name in ("datasource", "job", "instance") if name not in values)
    link = {"title": title, "url": f"/d/{uid}?${{__url_time_range}}{kept}{chosen}"}
    return override(column, links=[link], custom__minWidth=width)
