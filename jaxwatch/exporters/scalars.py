"""What the sinks for training charts have in common: each event as numbers that only grow, and as lines of text."""

from collections import Counter
from typing import Any

from jaxwatch import _limits
from jaxwatch._words import changes_text
from jaxwatch.errors import MissingExtraError
from jaxwatch.events import CacheMiss, EagerCompile, Event

PREFIX = "jaxwatch/"
BY_FUNCTION = "jaxwatch_by_function/"  # apart: where a name is a path, "misses" is no folder
OTHER = "other"


class Scalars:
    """Event → name → value so far: misses, recompiles and their seconds, in all and of each function.

    At most 100 functions have values of their own, as in the metrics; the rest share those of "other".
    """

    def __init__(self) -> None:
        self._sums: Counter[str] = Counter()
        self._functions: set[str] = set()

    def of(self, event: Event) -> dict[str, float]:
        """Count ``event``, and return the values that it changed: none, but for misses and eager compiles."""
        if isinstance(event, EagerCompile):
            return self._added({"eager_compiles": 1, "eager_compile_seconds": event.seconds})
        if not isinstance(event, CacheMiss) or event.layer == "dispatch":
            return {}
        name = self._name(event.function)
        changed = {"misses": 1, "compile_seconds": event.seconds.total}
        if event.is_recompile:
            changed |= {"recompiles": 1, "recompile_seconds": event.seconds.total}
        changed |= {f"misses/{name}": 1, f"compile_seconds/{name}": event.seconds.total}
        return self._added(changed)

    def _name(self, function: str) -> str:
        if function not in self._functions and len(self._functions) >= _limits.LABEL_FUNCTIONS:
            return OTHER
        self._functions.add(function)
        return function

    def _added(self, changed: dict[str, Any]) -> dict[str, float]:
        for name, value in changed.items():
            self._sums[name] += value
        return {(BY_FUNCTION if "/" in name else PREFIX) + name: float(self._sums[name]) for name in changed}


def recompiled_text(event: Event) -> str | None:
    """Return what was recompiled, why, and what to do, in Markdown; None of an event that is no recompile."""
    if not isinstance(event, CacheMiss) or not event.is_recompile:
        return None
    what = changes_text(event.changes) or event.reasons[0].replace("_", " ")
    lines = [f"**{event.function}** {what}", f"{event.site}, call {event.call}, {event.seconds.total:.2f} s"]
    return "  \n".join([*lines, *(f"→ {advice.text}" for advice in event.advice)])


def missing(package: str) -> MissingExtraError:
    """Return the error of a sink whose package is not installed."""
    problem = f"This sink needs the package {package}, which is not installed."
    return MissingExtraError(problem, f"Run pip install {package}.")
