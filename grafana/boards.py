"""The frame of a Grafana dashboard, as classic JSON: variables, places of panels, links between dashboards."""

# ruff: noqa: INP001 -- a part of a script, no package

from panels import SOURCE, Json, Row
from queries import PROCESS, RAW_DEFINITION

OVERVIEW, FUNCTION, FLEET = "jaxwatch-overview", "jaxwatch-function", "jaxwatch-fleet"


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


def variable(name: str, label: str, definition: str, *, several: bool = True) -> Json:
    """Return a variable of label values: several of which may be chosen, or exactly one."""
    return {
        "type": "query",
        "name": name,
        "label": label,
        "datasource": SOURCE,
        "definition": definition,
        "query": {"query": definition, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1},
        "refresh": 2,
        "sort": 1,
        "regex": "",
        "hide": 0,
        "multi": several,
        "includeAll": several,
        "allValue": ".*" if several else None,
        "current": {"text": ["All"], "value": ["$__all"]} if several else {},
        "options": [],
    }


def raw_variable() -> Json:
    """Return the hidden variable that says whether the recording rules can be read; see ``queries.EACH``."""
    return variable("raw", "", RAW_DEFINITION, several=False) | {"hide": 2, "regex": '/raw="([^"]*)"/', "sort": 0}


def variables(*, one_function: bool = False) -> list[Json]:
    """Return the variables that every dashboard has."""
    return [
        source_variable(),
        variable("job", "Job", "label_values(jaxwatch_build_info, job)"),
        variable("instance", "Instance", 'label_values(jaxwatch_build_info{job=~"$job"}, instance)'),
        variable(
            "function",
            "Function",
            f"label_values(jaxwatch_calls_total{{{PROCESS}}}, function)",
            several=not one_function,
        ),
    ]


def laid_out(rows: list[Row]) -> list[Json]:
    """Return the panels of all rows in their places."""
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


def link_bar() -> Json:
    """Return the links at a dashboard's top to the others, which keep what is chosen."""
    return {
        "type": "dashboards",
        "title": "jaxwatch",
        "tags": ["jaxwatch"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def dashboard(uid: str, title: str, description: str, chosen: list[Json], rows: list[Row]) -> Json:
    """Return a whole dashboard with these variables."""
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
        "links": [link_bar()],
        "annotations": {"list": []},
        "templating": {"list": chosen},
        "panels": laid_out(rows),
    }
