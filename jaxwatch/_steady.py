"""When a process is warm: ``steady_after``, of ``configure`` and of ``JAXWATCH_STEADY_AFTER``."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from jaxwatch.errors import BadOptionError

VARIABLE = "JAXWATCH_STEADY_AFTER"
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,12})?) *(seconds?|s|calls?)", re.ASCII)
WAY_OUT = "Give '300 s', '200 calls', both as '300 s, 3 calls', or 'never'."


@dataclass(frozen=True, slots=True)
class Steady:
    """From when on a miss of a function is no part of the warm-up.

    Attributes:
        text: As it was given.
        since: When it was given, by the clock.
        seconds: So long after that.
        calls: After so many calls of the function itself.
        clock: What it goes by.
    """

    text: str
    since: float
    seconds: float
    calls: int
    clock: Callable[[], float] = time.monotonic

    def reached(self, calls_before: Callable[[], int]) -> bool:
        """Whether a miss that comes now is beyond the warm-up; ``calls_before`` is asked only where it matters."""
        if self.clock() - self.since < self.seconds:
            return False
        return not self.calls or calls_before() >= self.calls


def steady(text: object, *, by: str, clock: Callable[[], float] = time.monotonic) -> Steady | None:
    """Return what ``text`` says, beginning now; None for ``never``.

    Args:
        text: ``"300 s"``, ``"200 calls"``, both with a comma between, or ``"never"``.
        by: What it was given to, for the error, with ``{}`` for the text.
        clock: Seconds that never go back.

    Raises:
        BadOptionError: It says something else; a number without a unit too, as it may mean either.
    """
    problem = f"{by.format(f'{text!r:.80}')} says neither seconds nor calls."
    if not isinstance(text, str):
        raise BadOptionError(problem, WAY_OUT)
    told = " ".join(text.lower().split())
    if told == "never":
        return None
    found: dict[str, float] = {}
    for part in told.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None or match[2][0] in found or (match[2][0] == "c" and "." in match[1]):
            raise BadOptionError(problem, WAY_OUT)
        found[match[2][0]] = float(match[1])
    return Steady(told, clock(), found.get("s", 0.0), int(found.get("c", 0)), clock)
