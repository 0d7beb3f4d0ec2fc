"""What is said of a guard that was broken: the event, the count, and the warning where one is asked for."""

import warnings
from collections.abc import Sequence

from jaxwatch._guards import Guard
from jaxwatch._hub import HUB
from jaxwatch._origin import origin
from jaxwatch._places import place_here
from jaxwatch._policy import Broken
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._words import changes_text
from jaxwatch.errors import JaxwatchWarning, RetraceError
from jaxwatch.events import CacheMiss, Violation


def violated(subject: Subject, entry: Broken, miss: CacheMiss | None, site: str) -> None:
    """Count and publish a violation; ``miss`` is None where the call was refused."""
    REGISTRY.count_violation(subject, entry.action)
    HUB.publish(
        Violation(
            origin=origin(),
            function=subject.name,
            action=entry.action,
            limit=entry.limit,
            miss=None if miss is None else miss.id,
            by=entry.by,
            site=site,
        )
    )


def tell(subject: Subject, broken: Sequence[tuple[Guard | None, Broken]], miss: CacheMiss) -> None:
    """Tell of all that a miss broke, once it is over.

    Raises:
        JaxwatchWarning: The program turns warnings into errors.
    """
    if not broken:
        return
    told = changes_text(miss.changes) or miss.reasons[0].replace("_", " ")
    done = "compiled" if miss.compiles else "traced"
    text = f"{miss.function} was {done} at {place_here(miss.site)} (call {miss.call}): {told}."
    for guard, entry in broken:
        violated(subject, entry, miss, miss.site)
        if guard is not None and entry.action == "record":
            lines = text, *(advice.text for advice in miss.advice[:2]), f"Forbidden by {entry.by}."
            guard.broken.append("\n  ".join(lines))
    by = next((entry.by for _, entry in broken if entry.action == "warn" and not entry.steady), None)
    if by is not None:  # last: the program may turn warnings into errors
        file, _, line = miss.site.rpartition(":")
        text += f" Forbidden by {by}. [{RetraceError.slug}]"
        warnings.warn_explicit(text, JaxwatchWarning, file or "<unknown>", int(line) if line.isdigit() else 0)
