"""Differences between keys in words, for the console, errors and warnings."""

from collections.abc import Iterable

from jaxwatch._records import SeenChange
from jaxwatch.events import Change


def change_text(change: Change | SeenChange) -> str:
    """Return one difference in a line: ``x: float32[4] → float32[5]``."""
    head = f"{change.path}: " if change.path else ""
    if change.before is None and change.after is None:
        return head + (change.note or change.reason.replace("_", " "))
    kind = f" ({change.reason.replace('_', ' ')})" if change.reason in _NOT_IN_THE_VALUES else ""
    return f"{head}{change.before or '(none)'} → {change.after or '(none)'}{kind}"


_NOT_IN_THE_VALUES = {"weak_type", "static", "config", "call_form", "layout", "options", "transform"}


def changes_text(changes: Iterable[Change | SeenChange], most: int = 3) -> str:
    """Return the first differences in one line, and how many more there are; a leaf that differs twice, once."""
    told = list(dict.fromkeys(map(change_text, changes)))
    more = f"; and {len(told) - most} more" if len(told) > most else ""
    return "; ".join(told[:most]) + more
