"""Where a line of the console goes: the program's structlog, the program's logging, or stderr."""

import functools
import sys
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

Way = Literal["auto", "logging"]
Level = Literal["info", "warning"]
NAME = "jaxwatch"


class Say(Protocol):
    """Writes one line: its level, what happened, and the fields that say more."""

    def __call__(self, level: Level, event: str, fields: Mapping[str, Any], /) -> None:
        """Write a line."""


class Voice(NamedTuple):
    """How a line is to be said."""

    say: Say
    is_programs: bool  # it goes where the program configured it to: then first compiles and small losses do too


def voice(way: Way = "auto") -> Voice | None:
    """Return where a line goes now; None where nobody wants it.

    A structlog that the program configured comes first, then handlers of the standard library's logging that a record
    of the logger "jaxwatch" would reach, then stderr; there too that logger's level is obeyed.
    """
    if way == "auto" and structlog_is_configured():
        return Voice(_by_structlog, is_programs=True)
    if way == "logging" or _has_handlers():
        return Voice(_by_logging, is_programs=True)
    if sys.stderr is None or not _wants_warnings():  # as under pythonw: nowhere to say it
        return None
    return Voice(_on_stderr, is_programs=False)


def structlog_is_configured() -> bool:
    """Whether the program configured structlog; one that never imported it has not."""
    structlog = sys.modules.get("structlog")
    return structlog is not None and bool(structlog.is_configured())


def _has_handlers() -> bool:
    logging = sys.modules.get("logging")
    if logging is None:
        return False
    logger = logging.getLogger(NAME)
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _wants_warnings() -> bool:
    logging = sys.modules.get("logging")
    return logging is None or bool(logging.getLogger(NAME).isEnabledFor(logging.WARNING))


# ------------------------------------------------------------------ the three ways


def _by_structlog(level: Level, event: str, fields: Mapping[str, Any], /) -> None:
    import structlog  # noqa: PLC0415 -- 40 ms, paid at the first line and not at import

    logger = structlog.get_logger(NAME).bind()
    logger = getattr(logger, "sync_bl", logger)  # an AsyncBoundLogger's methods are coroutines
    getattr(logger, level)(event, **fields)


def _by_logging(level: Level, event: str, fields: Mapping[str, Any], /) -> None:
    import logging  # noqa: PLC0415 -- a program that has none of it pays for none

    told = " ".join(f"{name}={_shown(value)}" for name, value in fields.items())
    # all fields in one attribute: no filter and no record factory of the program's has one of that name
    getattr(logging.getLogger(NAME), level)(f"{event} %s", told, extra={NAME: dict(fields)})


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text or "'" in text else text


def _on_stderr(level: Level, event: str, fields: Mapping[str, Any], /) -> None:
    import structlog  # noqa: PLC0415 -- as above

    # unconfigured, structlog prints to stdout, which is the program's
    logger = structlog.wrap_logger(structlog.PrintLogger(sys.stderr), processors=_processors(sys.stderr.isatty()))
    getattr(logger, level)(event, **fields)


@functools.cache
def _processors(colours: bool) -> list[Any]:  # noqa: FBT001 -- what the cache is by
    """Return what renders a line; made once, since a renderer is a cycle for the collector."""
    import structlog  # noqa: PLC0415 -- as above

    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=0, sort_keys=False),
    ]
