"""Misses without a known reason: a report of each that can be sent as it is. Pure: records in, text out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from jaxwatch._records import MalformedError, Record, text

MOST = 10
"""Misses that are told whole; further ones are counted."""

_HEAD = """\
# Misses that jaxwatch could not explain

Each is a miss in which no difference between the keys could be shown. Please send this to the place where jaxwatch
is developed, with the few lines of code that lead to it if you can. It holds names, shapes and values of static
arguments, shortened: take out what must not be seen (`redact` leaves values out from the start).
"""
_BESIDE = ("config", "mesh", "axis_env", "transform", "options", "partial")


class UnknownMisses:
    """Gathers the misses without a known reason; one of each function and note is told."""

    def __init__(self) -> None:
        self.count = 0
        self._first: dict[tuple[str, str, str], Record] = {}
        self._versions: dict[str, None] = {}

    def add(self, record: Record) -> None:
        """Take one record; others than misses without a known reason are passed over."""
        if record.get("event") == "run" and isinstance(record.get("jax_version"), str):
            self._versions[text(record, "jax_version")] = None
        reasons = record.get("reasons")
        if record.get("event") != "cache_miss" or not isinstance(reasons, list) or "unknown" not in reasons:
            return
        self.count += 1
        try:
            kind = text(record, "function"), text(record, "definition"), json.dumps(record.get("changes"))
        except (MalformedError, ValueError):
            return
        if kind in self._first or len(self._first) < MOST:
            self._first.setdefault(kind, record)

    def report(self) -> str:
        """Return the report as Markdown; "" where every miss has a reason."""
        if not self.count:
            return ""
        versions = f"jax {', '.join(self._versions)}\n" if self._versions else ""
        parts = [_HEAD, versions, *(_section(record) for record in self._first.values())]
        if left_out := self.count - len(self._first):
            parts.append(f"{left_out:,} more, of the same functions or beyond the first {MOST}.\n")
        return "\n".join(filter(None, parts))


def _section(record: Record) -> str:
    shown = {name: record.get(name) for name in _SHOWN}
    lines = [f"## {record['function']}, call {record.get('call')}", "", *_fenced(shown)]
    keys = record.get("keys")
    if isinstance(keys, list) and len(keys) == 2 and all(isinstance(key, Mapping) for key in keys):  # noqa: PLR2004
        lines += ["", "The nearest earlier key, and what is not the same in this one:", "", *_key(keys[0])]
        lines += ["", *(_differences(*keys) or ["Nothing is: as far as they can be read the keys are equal."])]
    elif isinstance(keys, list):
        for key in keys:
            lines += ["", "The only key that is known:", "", *_key(key)]
    return "\n".join([*lines, ""])


_SHOWN = ("function", "definition", "layer", "traces", "lowerings", "compiles", "changes", "signature", "abstract")


def _fenced(value: Any) -> list[str]:
    return ["```json", json.dumps(value, indent=1, default=str), "```"]


def _key(key: Any) -> list[str]:
    if not isinstance(key, Mapping):
        return []
    arguments = [f"- `{path}`: {row}" for path, row in _rows(key.get("arguments"))]
    return [*arguments, "", *_fenced({name: key.get(name) for name in _BESIDE})]


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    old, new = (dict(_rows(key.get("arguments"))) for key in (before, after))
    found = [(path, old.get(path), new.get(path)) for path in {**old, **new} if old.get(path) != new.get(path)]
    found += [(name, before.get(name), after.get(name)) for name in _BESIDE if before.get(name) != after.get(name)]
    return [f"- `{path}`: {was} → {now}" for path, was, now in found]


def _rows(value: Any) -> Iterable[tuple[str, str]]:
    for row in value if isinstance(value, list) else ():
        if isinstance(row, list) and len(row) == 2:  # noqa: PLR2004 -- path and text
            yield str(row[0]), str(row[1])
