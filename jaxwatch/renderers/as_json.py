"""A report for programs: one JSON object, ``jaxwatch.report/1``; docs/reports.md has its fields.

Within a version, fields are only added. Names are as the program has them: only lone surrogates, which many readers of
JSON refuse, are written as an escape.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, TextIO

from jaxwatch._details import PHASES, Details, FunctionDetails, Key
from jaxwatch._findings import Finding
from jaxwatch._report_data import Report
from jaxwatch._rows import FunctionRow
from jaxwatch._worth import Worth
from jaxwatch.renderers import phrases, summary, worth
from jaxwatch.renderers.headline import folder_of


def write(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:  # noqa: ARG001 -- it has all
    """Write ``report`` to ``stream``; see ``Renderer``."""
    stream.writelines(json.JSONEncoder(indent=1, allow_nan=False).iterencode(_told(record(report))))
    stream.write("\n")
    stream.flush()


def record(report: Report) -> dict[str, Any]:
    """Return ``report`` as JSON has it."""
    folder = folder_of(report)
    plain = ("unfinished", "processes", "wall_seconds", "compile_seconds", "again_seconds", "faults")
    return {
        "schema": report.schema,
        "summary": summary.sentences(report),
        "healthy": report.healthy,
        "programs": list(report.programs),
        **{name: getattr(report, name) for name in plain},
        "exit_codes": _pairs(("exit_code", "processes"), report.exit_codes),
        "functions": [_function(row) for row in report.functions],
        "eager": {"compiles": report.eager_count, "seconds": report.eager_seconds},
        "findings": [_finding(one, folder) for one in report.findings],
        "worth": [_worth(one) for one in report.worth],
        "notes": [asdict(note) for note in report.notes],
        "divergences": [asdict(found) for found in report.divergences],
        "disk": _pairs(("what", "programs", "seconds"), report.disk),
        "slow_programs": [asdict(program) for program in report.slow],
        "overhead_seconds": dict(report.overhead),
        "unlogged": report.unlogged,
        "folded": dict(report.folded),
        "details": None if report.details is None else _details(report.details),
    }


def _told(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_told(key): _told(one) for key, one in value.items()}
    return [_told(one) for one in value] if isinstance(value, list | tuple) else value


def _pairs(names: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def _function(row: FunctionRow) -> dict[str, Any]:
    return {
        **asdict(row),
        "dispatch": _pairs(("at_most_seconds", "calls"), row.dispatch),
        "inlined": dict(row.inlined),
        "dispatch_p50_seconds": row.dispatch_quantile(0.5),
        "dispatch_p99_seconds": row.dispatch_quantile(0.99),
    }


def _finding(found: Finding, folder: str) -> dict[str, Any]:
    title = phrases.titles(found, folder)[0]
    cause, trace_lower = found.cause, found.before_xla
    return {
        "kind": cause.kind,
        "function": cause.function,
        "definition": cause.definition,
        "reason": cause.reason,
        "title": title,
        "evidence": phrases.evidence(found, title, folder),
        "advice": None if found.advice is None else {"code": found.advice[0], "text": found.advice[1]},
        "count": found.count,
        "seconds": found.seconds,
        "trace_seconds": trace_lower[0],
        "lower_seconds": trace_lower[1],
        "from_disk": found.from_disk,
        "processes": found.processes,
        "via": found.via,
        "calls": list(found.calls),
        "calls_left_out": found.calls_left_out,
        "compared_with": list(found.compared_with),
        "sites": _pairs(("site", "count"), found.sites),
        "sites_left_out": found.sites_left_out,
        "values": [{**asdict(one), "pairs": _pairs(("before", "after"), one.pairs)} for one in found.values],
    }


def _worth(found: Worth) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "notable": found.notable,
        "functions": [{"function": row.function, "definition": row.definition} for row in found.rows],
        "seconds": found.seconds,
        "title": worth.title(found),
        "advice": worth.advice(found),
    }


def _details(found: Details) -> dict[str, Any]:
    return {
        "seconds": found.seconds,
        "phases": dict(zip(PHASES, found.phases, strict=True)),
        "functions": [_keys(one) for one in found.functions],
        "timeline": asdict(found.timeline),
        "windows": _pairs(("first_seconds", "compile_seconds"), found.windows),
        "points": [asdict(point) for point in found.points],
        "points_left_out": found.points_left_out,
        "eager": _pairs(("site", "functions", "compiles", "seconds"), found.eager),
        "eager_left_out": found.eager_left_out,
    }


def _keys(found: FunctionDetails) -> dict[str, Any]:
    return {
        "function": found.function,
        "definition": found.definition,
        "phases": dict(zip(PHASES, found.phases, strict=True)),
        "keys": [_key(key) for key in found.keys],
        "left_out": found.left_out,
    }


def _key(key: Key) -> dict[str, Any]:
    return {**asdict(key), "reasons": dict(key.reasons), "phases": dict(zip(PHASES, key.phases, strict=True))}
