"""Events for structlog: warnings for what was recompiled; with a structlog of the user's, first compiles too."""

import functools
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxwatch import _limits
from jaxwatch._labels import program_folder
from jaxwatch._words import changes_text, place_text
from jaxwatch.events import CacheMiss, Event


@dataclass(slots=True)
class _Site:
    said: float
    untold: int = 0
    untold_seconds: float = 0.0


def console_exporter(clock: Callable[[], float] = time.monotonic) -> Callable[[Event], None]:
    """Return an exporter that writes to structlog's logger "jaxwatch".

    Where the program configured structlog, events go its way: ``info`` for first compiles, ``warning`` for
    recompiles. Otherwise warnings alone, on stderr, above a threshold of seconds lost. One site of one function is
    told at most once in a while; what was not told is told as a number with the next one.
    """
    sites: OrderedDict[tuple[str, str], _Site] = OrderedDict()

    def export(event: Event, /) -> None:
        if not isinstance(event, CacheMiss) or event.layer == "dispatch":
            return
        configured = _configured()
        if not event.is_recompile:
            if configured:
                _logger().info("compiled", **_fields(event))
            return
        if sys.stderr is None and not configured:  # as under pythonw: nowhere to say it
            return
        site = _due(sites, event, clock(), least=0.0 if configured else _limits.CONSOLE_SECONDS_LOST)
        if site is not None:
            more = {"more": site.untold, "more_seconds": round(site.untold_seconds, 3)} if site.untold else {}
            site.untold, site.untold_seconds = 0, 0.0
            _logger().warning("recompiled", **_fields(event), **more)

    return export


def _due(sites: OrderedDict[tuple[str, str], _Site], event: CacheMiss, now: float, *, least: float) -> _Site | None:
    """Return the site's record if it is to be told now; else keep the event for the next time."""
    key = event.function, event.site
    site = sites.get(key)
    seconds = event.seconds.total
    if site is None:
        if len(sites) >= _limits.CONSOLE_SITES:
            sites.popitem(last=False)
        site = sites[key] = _Site(said=-_limits.CONSOLE_EVERY_SECONDS + now)
    if now - site.said < _limits.CONSOLE_EVERY_SECONDS or seconds + site.untold_seconds < least:
        site.untold += 1
        site.untold_seconds += seconds
        return None
    site.said = now
    return site


def _fields(event: CacheMiss) -> dict[str, Any]:
    """Return what a line says. No field is called level or thread: structlog and logging keep those for themselves."""
    return {
        "function": event.function,
        "call": event.call,
        "what": changes_text(event.changes) or event.reasons[0].replace("_", " "),
        "seconds": round(event.seconds.total, 3),
        "site": place_text(event.site.removeprefix(os.path.join(program_folder(), ""))),
    }


def _configured() -> bool:
    """Whether the program configured structlog; one that never imported it has not."""
    structlog = sys.modules.get("structlog")
    return structlog is not None and bool(structlog.is_configured())


def _logger() -> Any:
    import structlog  # noqa: PLC0415 -- 40 ms, paid at the first line and not at import

    if structlog.is_configured():
        return structlog.get_logger("jaxwatch")
    # unconfigured, structlog prints to stdout, which is the program's
    return structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors=_processors(sys.stderr.isatty()))


@functools.cache
def _processors(colours: bool) -> list[Any]:  # noqa: FBT001 -- what the cache is by
    """Return what renders a line; made once, since a renderer is a cycle for the collector."""
    import structlog  # noqa: PLC0415 -- as above

    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=0, sort_keys=False),
    ]
