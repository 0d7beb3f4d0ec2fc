"""Misses counted by function and cause: what a baseline holds, and what a test is compared by. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jaxwatch import _limits
from jaxwatch._texts import shortened
from jaxwatch.events import CacheMiss, Change
from jaxwatch.renderers.cells import clean

OTHER = "other"
# Causes that depend on who came before, not on what differs: never new by themselves.
OF_ORDER = frozenset({"first call", "new function", "cache lost", "unknown", OTHER})
_ROOT = re.compile(r"[^\[.\s]+")


@dataclass(slots=True)
class Counts:
    """The misses of one function: how many, and how many by each cause; one miss may have several causes."""

    misses: int = 0
    causes: Counter[str] = field(default_factory=Counter)

    def add(self, causes: Iterable[str], misses: int = 1) -> None:
        """Count misses that have these causes each."""
        self.misses += misses
        for cause in causes:
            full = cause not in self.causes and len(self.causes) >= _limits.CAUSES_PER_TEST
            self.causes[OTHER if full else cause] += misses


Misses = dict[str, Counts]


def function_text(name: str) -> str:
    """Return a function's name as baselines and reports hold it."""
    return shortened(clean(name), _limits.NAME_CHARACTERS)


def causes_of(miss: CacheMiss) -> tuple[str, ...]:
    """Return the causes of a miss: ``first call``, ``shape batch['x']``; no values, no places."""
    paths: dict[str, list[str]] = {}
    for change in miss.changes:
        paths.setdefault(_words(change.reason), []).append(_path(change))
    for each in miss.reasons:
        paths.setdefault(_words(each), [""])
    found: list[str] = []
    for words, named in paths.items():
        many = len(named) > _limits.PATHS_PER_CAUSE  # all leaves of a tree: one cause, not a hundred
        found += dict.fromkeys(f"{words} {_root(path)}…" if many else f"{words} {path}".rstrip() for path in named)
    return tuple(found)


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _path(change: Change) -> str:
    return shortened(clean(change.path or ""), _limits.NAME_CHARACTERS)


def _root(path: str) -> str:
    found = _ROOT.match(path)
    return found[0] if found else path


def kind_of(cause: str) -> str:
    """Return a cause without the way into its argument: ``shape batch`` of ``shape batch['x']``.

    By it causes are looked up in a whole baseline: of which leaf a difference is told may depend on the order of tests.
    """
    words = cause.split(" ")
    for length in (2, 1):
        reason = " ".join(words[:length])
        if reason in _REASONS and len(words) > length:
            return f"{reason} {_root(' '.join(words[length:])).rstrip('…')}"
    return cause


_REASONS = frozenset(
    {"shape", "dtype", "weak type", "sharding", "placement", "layout", "structure", "metadata", "static"}
)


def total(misses: Mapping[str, Counts]) -> int:
    """Return how many misses there are of all functions."""
    return sum(counts.misses for counts in misses.values())


def merged(parts: Iterable[Mapping[str, Counts]]) -> Misses:
    """Return the sum of several counts."""
    found: Misses = {}
    for part in parts:
        for function, counts in part.items():
            mine = found.setdefault(function, Counts())
            mine.misses += counts.misses
            mine.causes.update(counts.causes)
    return found


def at_most(parts: Iterable[Mapping[str, Counts]]) -> Misses:
    """Return of each function the larger counts: of a test that was run again, its fullest run."""
    found: Misses = {}
    for part in parts:
        for function, counts in part.items():
            mine = found.setdefault(function, Counts())
            mine.misses = max(mine.misses, counts.misses)
            mine.causes |= counts.causes
    return found


def to_plain(misses: Mapping[str, Counts]) -> dict[str, Any]:
    """Return plain data, sorted: functions by name; causes as they read."""
    return {
        function: {"misses": counts.misses, "causes": dict(sorted(counts.causes.items()))}
        for function, counts in sorted(misses.items())
    }


def from_plain(found: Any) -> Misses:
    """Return what ``to_plain`` wrote.

    Raises:
        ValueError: It is something else; the text says what is wrong.
    """
    if not isinstance(found, dict):
        raise ValueError(f"misses are {_shown(found)}, and no object")  # noqa: TRY004 -- one kind of error for bad data
    misses: Misses = {}
    for function, counts in found.items():
        if (
            not isinstance(counts, dict)
            or set(counts) != {"misses", "causes"}
            or not isinstance(counts["causes"], dict)
        ):
            raise ValueError(f"{function!r} has {_shown(counts)}, and not misses and causes")
        numbers = [counts["misses"], *counts["causes"].values()]
        if any(isinstance(number, bool) or not isinstance(number, int) or number < 1 for number in numbers):
            raise ValueError(f"{function!r} has a count that is no whole number from 1")
        misses[function] = Counts(counts["misses"], Counter(counts["causes"]))
    return misses


def _shown(value: object) -> str:
    return shortened(repr(value), _limits.NAME_CHARACTERS)
