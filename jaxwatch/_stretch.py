"""A stretch of this process's life, as a cell of a notebook is one: what was compiled in it, as a report."""

import copy
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from jaxwatch import _session
from jaxwatch._origin import origin
from jaxwatch._processes import CALLS_KEPT
from jaxwatch._report import Report, ReportBuilder
from jaxwatch.events import CacheMiss, Event, FunctionStatsEvent, ProcessStatsEvent, Run, to_record

Stats = FunctionStatsEvent | ProcessStatsEvent
_Number = TypeVar("_Number", int, float)


class Calls(Mapping[int, int]):
    """Of the last misses of this process: id → number of the call. The oldest go at ``_processes.CALLS_KEPT``."""

    def __init__(self) -> None:
        self._calls: OrderedDict[int, int] = OrderedDict()

    def note(self, event: Event, /) -> None:
        """Take an event; an exporter of the hub."""
        if isinstance(event, CacheMiss):
            self._calls[event.id] = event.call
            while len(self._calls) > CALLS_KEPT:
                self._calls.popitem(last=False)

    def __getitem__(self, miss: int) -> int:
        return self._calls[miss]

    def __iter__(self) -> Iterator[int]:
        return iter(self._calls)

    def __len__(self) -> int:
        return len(self._calls)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Calls":
        return self  # what a report is built of may share it


class Stretch:
    """Gathers from now on what this process compiles; its figures are those of the stretch alone.

    Args:
        calls: Of the misses before it.
        clock: Gives seconds.
        stats: Gives the figures of the process, which are cumulative.
    """

    def __init__(
        self,
        calls: Mapping[int, int],
        clock: Callable[[], float] = time.monotonic,
        stats: Callable[[], Iterable[Stats]] = _session.stats_events,
    ) -> None:
        self._builder = ReportBuilder(earlier=calls)
        self._clock, self._stats = clock, stats
        self._before = list(stats())
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a garbage collection during `add` may publish
        self._started = clock()

    def export(self, event: Event, /) -> None:
        """Take an event; an exporter of the hub."""
        if os.getpid() == self._pid:  # a fork's compiles are its own
            with self._lock:
                self._builder.add(to_record(event))

    def report(self, program: str, seconds: float | None = None) -> Report:
        """Return the report from the beginning up to now, as that of a program of this name; it may go on.

        Args:
            program: The name.
            seconds: How long of that something ran; None: all of it.
        """
        seconds = self._clock() - self._started if seconds is None else seconds
        with self._lock:
            builder = copy.deepcopy(self._builder)
        for event in since(self._before, self._stats()):
            builder.add(to_record(event))
        end = Run(
            origin=origin(),
            phase="end",
            argv=(),
            program=program,
            wall_seconds=seconds,
            exit_code=0,
            jax_version=None,
        )
        builder.add(to_record(end))
        return builder.build(folder=_folder())


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def since(before: Iterable[Stats], after: Iterable[Stats]) -> Iterator[Stats]:
    """Yield figures less what they were before; a function that was not called meanwhile is left out.

    How many signatures there were is not told: that is counted by the misses.
    """
    known = {_key(event): event for event in before}
    for event in after:
        earlier = known.get(_key(event))
        if isinstance(event, ProcessStatsEvent):
            of_process = earlier if isinstance(earlier, ProcessStatsEvent) else None
            overhead = _less(event.overhead_seconds, {} if of_process is None else of_process.overhead_seconds)
            yield replace(event, overhead_seconds=overhead)
        else:
            of_function = earlier if isinstance(earlier, FunctionStatsEvent) else replace(event, **_NOTHING)
            if event.calls > of_function.calls or event.misses > of_function.misses:
                yield _function_since(of_function, event)


_NOTHING: dict[str, Any] = {
    "calls": 0,
    "misses": 0,
    "dispatch": {},
    "inlined": {},
    "inlined_read": 0,
    "inlined_keys": 0,
}


def _key(event: Stats) -> tuple[str, str] | None:
    return (event.function, event.definition) if isinstance(event, FunctionStatsEvent) else None


def _function_since(before: FunctionStatsEvent, after: FunctionStatsEvent) -> FunctionStatsEvent:
    return replace(
        after,
        calls=after.calls - before.calls,
        misses=after.misses - before.misses,
        signatures=0,
        dispatch=_less(after.dispatch, before.dispatch),
        inlined=_less(after.inlined, before.inlined),
        inlined_read=after.inlined_read - before.inlined_read,
        inlined_keys=after.inlined_keys - before.inlined_keys,
    )


def _less(after: Mapping[str, _Number], before: Mapping[str, _Number]) -> dict[str, _Number]:
    left = {name: number - before.get(name, 0) for name, number in after.items()}
    return {name: number for name, number in left.items() if number > 0}
