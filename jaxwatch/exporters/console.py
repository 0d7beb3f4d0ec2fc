"""Events as lines for people: warnings for what was recompiled, and for what was compiled after the warm-up."""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxwatch import _limits
from jaxwatch._loggers import Way, voice
from jaxwatch._places import place_here
from jaxwatch._words import changes_text
from jaxwatch.events import CacheMiss, Event


def console_exporter(clock: Callable[[], float] = time.monotonic, way: Way = "auto") -> Callable[[Event], None]:
    """Return an exporter that writes to structlog's logger "jaxwatch", or to the standard library's of that name.

    Where the program configured one of them, events go its way: ``info`` for first compiles, ``warning`` for
    recompiles. Otherwise warnings alone, on stderr, above a threshold of seconds lost. What was compiled after the
    warm-up (``steady_after``) is a warning in any case. One site of one function is told at most once in a while, and
    so many are after the warm-up; what was not told is told as a number with the next one.
    """
    rate = _Rate(clock)

    def export(event: Event, /) -> None:
        if not isinstance(event, CacheMiss) or event.layer == "dispatch":
            return
        said = voice(way)
        if said is None:
            return
        if not event.steady and not event.is_recompile:
            if said.is_programs:
                said.say("info", "compiled", _fields(event))
            return
        least = 0.0 if said.is_programs or event.steady else _limits.CONSOLE_SECONDS_LOST
        if (more := rate.due(event, least=least)) is not None:
            said.say("warning", "compiled after warm-up" if event.steady else "recompiled", _fields(event) | more)

    return export


@dataclass(slots=True)
class _Untold:
    number: int = 0
    seconds: float = 0.0

    def add(self, seconds: float, number: int = 1) -> None:
        self.number += number
        self.seconds += seconds

    def taken(self, name: str) -> dict[str, Any]:
        """Return them as fields, and begin anew."""
        fields = {name: self.number, f"{name}_seconds": round(self.seconds, 3)} if self.number else {}
        self.number, self.seconds = 0, 0.0
        return fields


@dataclass(slots=True)
class _Site:
    said: float
    untold: _Untold


class _Rate:
    """What may be told now, and what was not told so far; for any thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self._sites: OrderedDict[tuple[str, str, bool], _Site] = OrderedDict()
        self._steady: deque[float] = deque(maxlen=_limits.CONSOLE_STEADY_LINES)  # when the last ones were told
        self._elsewhere = _Untold()  # of sites that are kept no more, or were beyond what the process may tell

    def due(self, event: CacheMiss, *, least: float) -> dict[str, Any] | None:
        """Return fields of what was not told before, if the event is to be told now; else keep it for the next time."""
        with self._lock:
            now, seconds = self._clock(), event.seconds.total
            site = self._site(
                (event.function, event.site, event.steady), now
            )  # what was told of it cold holds back nothing
            if now - site.said < _limits.CONSOLE_EVERY_SECONDS or seconds + site.untold.seconds < least:
                site.untold.add(seconds)
                return None
            if event.steady and not self._may_be_told(now):
                self._elsewhere.add(seconds)
                return None
            site.said = now
            return site.untold.taken("more") | self._elsewhere.taken("elsewhere")

    def _site(self, key: tuple[str, str, bool], now: float) -> _Site:
        site = self._sites.get(key)
        if site is None:
            if len(self._sites) >= _limits.CONSOLE_SITES:
                _, gone = self._sites.popitem(last=False)
                self._elsewhere.add(gone.untold.seconds, gone.untold.number)
            site = self._sites[key] = _Site(now - _limits.CONSOLE_EVERY_SECONDS, _Untold())
        return site

    def _may_be_told(self, now: float) -> bool:
        told = self._steady
        if len(told) == told.maxlen and now - told[0] < _limits.CONSOLE_EVERY_SECONDS:
            return False
        told.append(now)
        return True


def _fields(event: CacheMiss) -> dict[str, Any]:
    """Return what a line says. No field is called level or thread: structlog and logging keep those for themselves."""
    from jaxwatch.renderers.cells import clean  # noqa: PLC0415 -- with all renderers, paid at the first line

    return {
        "function": clean(event.function[: _limits.NAME_CHARACTERS]),
        "call": event.call,
        "what": clean(changes_text(event.changes) or event.reasons[0].replace("_", " ")),
        "seconds": round(event.seconds.total, 3),
        "site": clean(place_here(event.site)),
    }
