"""A report for programs: one JSON object, ``jaxwatch.report/1``; docs/reports.md has its fields."""

import json
from dataclasses import asdict
from typing import Any, TextIO

from jaxwatch._report_data import Report


def write(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:  # noqa: ARG001 -- it has all
    """Write ``report`` to ``stream``; see ``Renderer``."""
    json.dump(record(report), stream, indent=1, allow_nan=False)
    stream.write("\n")
    stream.flush()


def record(report: Report) -> dict[str, Any]:
    """Return ``report`` as JSON has it."""
    return {"schema": report.schema, **asdict(report)}
