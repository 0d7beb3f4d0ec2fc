"""SARIF 2.1.0, which code hosts show beside the lines of a change."""

import json
import os
from collections.abc import Iterable
from urllib.parse import quote

from jaxwatch._lint.rules import RULES, Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(findings: Iterable[tuple[str, int, Finding]]) -> str:
    """Return a log of one run; a notebook's lines are those of its cell, which the message names."""
    rules = [
        {
            "id": rule.code,
            "name": "".join(word.capitalize() for word in rule.name.split()),
            "shortDescription": {"text": rule.name},
            "fullDescription": {"text": rule.message.format(what="…")},
        }
        for rule in RULES.values()
    ]
    results = [_result(path, cell, finding) for path, cell, finding in findings]
    driver = {"name": "jaxwatch", "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


def _result(path: str, cell: int, finding: Finding) -> dict[str, object]:
    where = {
        "artifactLocation": {"uri": quote(os.fsencode(path.replace(os.sep, "/")), safe="/")},
        "region": {"startLine": finding.line, "startColumn": finding.column},
    }
    return {
        "ruleId": finding.code,
        "ruleIndex": list(RULES).index(finding.code),
        "level": "warning" if finding.certain else "note",
        "message": {"text": f"cell {cell}: {finding.message}" if cell else finding.message},
        "locations": [{"physicalLocation": where}],
    }
