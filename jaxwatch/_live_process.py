"""This process as a live state: an exporter that only appends, and all thinking when somebody asks."""

import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable

from jaxwatch._hub import HUB
from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame
from jaxwatch._origin import origin
from jaxwatch._places import program_folder
from jaxwatch._registry import REGISTRY
from jaxwatch._session import stats_events
from jaxwatch.events import Event, Run, to_record

EXPORTER = "live"
# Events that wait to be taken in. At the bound the oldest goes, counted as dropped "event".
WAITING = 2_000
# So many wait when somebody is woken to take them in, though nobody asks.
WAKE_AT = 250
# A frame is made anew at most so often, in seconds, however many ask.
FRAME_SECONDS = 0.25


class LiveProcess:
    """Gathers the events of this process from its start on.

    The exporter costs the program's thread an append. Events become a state when a frame is asked for, or on the thread
    of whom ``wake`` wakes; any thread may ask.

    Args:
        wake: Has some other thread call ``take_in``; called on the program's threads.
        clock: Returns seconds since 1970.
    """

    def __init__(self, wake: Callable[[], None], clock: Callable[[], float] = time.time) -> None:
        self._wake, self._clock = wake, clock
        self._waiting: deque[Event] = deque(maxlen=WAITING)
        self._lock = threading.Lock()
        self._state = LiveState(uuid.uuid4().hex)
        self._frame: Frame | None = None
        self._begun = False
        HUB.add(EXPORTER, self.export)
        self._started = origin()

    def export(self, event: Event, /) -> None:
        """Keep an event until somebody asks; an exporter of the hub."""
        waiting = self._waiting
        if len(waiting) == WAITING:
            self._state.lost += 1
            REGISTRY.count_dropped("event")
        waiting.append(event)
        if len(waiting) % WAKE_AT == 0:
            self._wake()

    def close(self) -> None:
        """Take no further event."""
        HUB.remove(EXPORTER)

    def take_in(self) -> None:
        """Take in what waits."""
        with self._lock:
            self._take_in()

    def _take_in(self) -> None:
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        if not self._begun and (main or self._waiting):  # not before: ``jaxwatch run`` may not have begun the program
            self._begun = True
            self._state.folder = program_folder()
            self._state.add(to_record(self._start(main)))
        while self._waiting:
            self._state.add(to_record(self._waiting.popleft()))

    def _start(self, main: str | None) -> Run:
        return Run(
            origin=self._started,
            phase="start",
            argv=(),
            program=os.path.abspath(main) if main else "",
            wall_seconds=0.0,
            exit_code=None,
            jax_version=None,
        )

    def frame(self) -> Frame:
        """Return what is to be seen now, or was a moment ago."""
        with self._lock:
            now = self._clock()
            if self._frame is None or not self._frame.time <= now < self._frame.time + FRAME_SECONDS:
                self._frame = self._made(now)
            return self._frame

    def _made(self, now: float) -> Frame:
        started = time.thread_time()
        self._take_in()
        for event in stats_events():
            self._state.add(to_record(event))
        frame = self._state.frame(now, calls_exact=True, wall_seconds=max(now - self._started.unix_seconds, 0.0))
        REGISTRY.add_overhead("scrape", time.thread_time() - started)
        return frame
