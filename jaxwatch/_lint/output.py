"""What ``jaxwatch lint`` prints: text for people, JSON and SARIF for programs."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from jaxwatch._lint import sarif
from jaxwatch._lint.rules import Finding
from jaxwatch.renderers.cells import clean

FORMATS = ("text", "json", "sarif")


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in all files.

    Attributes:
        findings: With the path of each, and of a notebook the cell, else 0.
        files: How many were looked at.
    """

    findings: Sequence[tuple[str, int, Finding]]
    files: int


def text(report: Report) -> str:
    """Return a line for each finding, as ruff does, and one for all."""
    lines = []
    for path, cell, finding in report.findings:
        place = f"{path}:cell {cell}" if cell else path
        lines.append(clean(f"{place}:{finding.line}:{finding.column}: {finding.code} {finding.message}"))
    files = f"{report.files:,} file{'' if report.files == 1 else 's'}"
    if not lines:
        return f"Found nothing in {files}.\n"
    count = len(lines)
    return "\n".join([*lines, f"Found {count:,} finding{'' if count == 1 else 's'} in {files}.", ""])


def as_json(report: Report) -> str:
    """Return one JSON object: ``version``, ``files``, and a list of ``findings``; ``cell`` is null but in notebooks."""
    findings = [
        {
            "path": path,
            "cell": cell or None,
            "line": finding.line,
            "column": finding.column,
            "code": finding.code,
            "message": finding.message,
            "certain": finding.certain,
        }
        for path, cell, finding in report.findings
    ]
    return json.dumps({"version": 1, "files": report.files, "findings": findings}, indent=1) + "\n"


def rendered(report: Report, output_format: str) -> str:
    """Return the report in one of ``FORMATS``."""
    if output_format == "sarif":
        return sarif.render(report.findings)
    return as_json(report) if output_format == "json" else text(report)
