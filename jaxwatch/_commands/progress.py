"""How far the reading of logs is, on a terminal, where it takes long."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

    from jaxwatch._reader import LogReading
    from jaxwatch._records import Record

AFTER_SECONDS = 2.0
_EVERY_SECONDS = 0.1
_RECORDS = 512  # between two looks at the clock


def told(
    reading: "LogReading", stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> "Iterable[Record]":
    """Return the records of ``reading``; while they are taken, a bar is shown, and erased at the end.

    Args:
        reading: Some logs.
        stream: Where; by default stderr. Where it is no terminal, nothing is shown.
        clock: In seconds.
    """
    stream = sys.stderr if stream is None else stream
    return _told(reading, stream, clock) if stream is not None and stream.isatty() else reading


def _told(reading: "LogReading", stream: TextIO, clock: Callable[[], float]) -> "Iterator[Record]":
    next_look, bar = clock() + AFTER_SECONDS, None
    try:
        for number, record in enumerate(reading):
            if number % _RECORDS == 0 and clock() >= next_look:
                next_look = clock() + _EVERY_SECONDS
                bar = _bar(stream) if bar is None else bar
                bar.update(bar.task_ids[0], completed=reading.bytes_done, total=reading.bytes_in_all, refresh=True)
            yield record
    finally:
        if bar is not None:
            bar.stop()


def _bar(stream: TextIO) -> "Progress":
    from rich.console import Console  # noqa: PLC0415 -- slow to load, and needed here alone
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    # no thread of its own, and nothing stays
    bar = Progress(*columns, console=Console(file=stream), auto_refresh=False, transient=True)
    bar.add_task("reading the log", total=None)
    bar.start()
    return bar
