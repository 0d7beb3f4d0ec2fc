"""What a comparison may come to, and what it exceeds. Pure."""

import math
from dataclasses import dataclass

from jaxwatch._compare.data import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of the second side; None: no limit.

    Attributes:
        max_new_misses: Misses that the first side did not have: no first calls, and compiles outside of watched
            functions where the report has a finding of them.
        max_misses: Misses in all.
        max_compile_seconds: Seconds of compiling in all.
        max_slowdown: Seconds of compiling beyond those of the first side, in percent of them.
    """

    max_new_misses: int | None = 0
    max_misses: int | None = None
    max_compile_seconds: float | None = None
    max_slowdown: float | None = None


def exceeded(found: Comparison, limits: Limits) -> tuple[str, ...]:
    """Return what exceeds the limits, in words: ``--max-misses 10 exceeded: 14``."""
    seconds, before = found.after.compile_seconds, found.before.compile_seconds
    slowdown = 100 * (seconds - before) / before if before else math.inf if seconds else 0.0
    told = (
        ("--max-new-misses", limits.max_new_misses, found.new_misses, ",d", ""),
        ("--max-misses", limits.max_misses, found.after.misses, ",d", ""),
        ("--max-compile-seconds", limits.max_compile_seconds, seconds, ",.1f", " s"),
        ("--max-slowdown", limits.max_slowdown, slowdown, ",.0f", " %"),
    )
    return tuple(
        f"{option} {limit:,g} exceeded: {value:{form}}{unit}"
        for option, limit, value, form, unit in told
        if limit is not None and value > limit
    )
