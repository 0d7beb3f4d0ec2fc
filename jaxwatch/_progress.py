"""A line while something compiles for long: its name, the seconds so far, the phase. Off unless it is asked for.

The phases of each thread are those that ``_listeners`` keeps. One daemon thread looks at them; it is started when the
first phase begins, and sleeps while nothing is compiled. Nothing here runs for a call that hits the cache.
"""

import atexit
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol

from jaxwatch import _limits
from jaxwatch._frames import THREAD, OpenPhase, Phase, homes
from jaxwatch._registry import REGISTRY

_NAME_CELLS = 40
_ORDER: dict[Phase, int] = {"trace": 0, "lower": 1, "compile": 2}
_WORDS: dict[Phase, str] = {"trace": "tracing", "lower": "lowering", "compile": "backend compile"}


class Sink(Protocol):
    """Where the line is shown."""

    def show(self, text: str, job: int) -> None:
        """Show ``text``, of the how-manieth thing that compiles, in place of what is shown."""

    def hide(self, text: str) -> None:
        """Take the line away, or leave ``text`` in its place where nothing can be taken away."""


class Job:
    """What one thread compiles: the phases of one call, or of one operation outside of calls."""

    def __init__(self, number: int, phase: OpenPhase, opened: list[OpenPhase], started: float) -> None:
        subject = phase.frame.subject if phase.own and phase.frame is not None else None
        self.number = number
        self.name = subject.name if subject is not None else phase.name
        self.key = self.name, subject.definition if subject is not None else ""
        self.kind, self.phase_name = phase.kind, phase.name
        self.opened = opened  # the thread's own list
        self.thread = threading.current_thread()
        self.started = started
        self.ended: float | None = None

    def goes_on(self, phase: OpenPhase) -> bool:
        """Whether ``phase``, which this thread begins now, is a further one of the same."""
        return phase.name == self.phase_name and _ORDER[phase.kind] > _ORDER[self.kind]


class Line(NamedTuple):
    """What is shown."""

    text: str
    job: Job


class Progress:
    """Shows what compiles for longer than ``_limits.PROGRESS_AFTER_SECONDS``.

    Args:
        clock: Gives seconds.
        threaded: Whether a thread of its own calls ``tick``; without, somebody else must.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, threaded: bool = True) -> None:
        self.on = False
        self._sink: Sink | None = None
        self._clock, self._threaded = clock, threaded
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()
        self.forget()

    def forget(self) -> None:
        """Begin anew, as in a forked child: no thread, nothing under way, nothing shown."""
        self._jobs: dict[int, Job] = {}
        self._number = 0
        self._shown: Job | None = None
        self._showing = self._idle = False
        self._drawing = threading.RLock()
        self._wake = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None

    def switch(self, sink: Sink | None) -> None:
        """Show the line there from now on; None: nowhere."""
        self._hide()
        self._sink, self.on = sink, sink is not None
        atexit.unregister(self._hide)
        if sink is not None:
            atexit.register(self._hide)

    # -------------------------------------------------------------- on the thread that compiles

    def begin(self, phase: OpenPhase) -> None:
        """Take the begin of a phase of this thread, which is open now."""
        opened, here = THREAD.open, threading.get_ident()
        if len(opened) > 1:  # within another one
            return
        job = self._jobs.get(here)
        if job is not None and job.opened is opened and job.goes_on(phase):
            job.kind, job.ended = phase.kind, None
        else:
            self._number += 1
            self._jobs[here] = Job(self._number, phase, opened, self._clock())
            if len(self._jobs) > _limits.PROGRESS_THREADS:
                self._jobs = {thread: job for thread, job in self._jobs.copy().items() if job.opened}
        if self._thread is None and self._threaded:
            self._start()
        elif self._idle:
            with self._wake:
                self._wake.notify()

    def end(self) -> None:
        """Take the end of a phase of this thread: before the program goes on, the line is gone."""
        if THREAD.open:
            return
        job = self._jobs.get(threading.get_ident())
        if job is not None and job.ended is None:
            job.ended = self._clock()
            if job.kind == "compile":
                self._last[job.key] = job.ended - job.started
                self._last.move_to_end(job.key)
                while len(self._last) > _limits.PROGRESS_NAMES:
                    self._last.popitem(last=False)
        if self._showing:
            self._draw()

    def _start(self) -> None:
        with self._wake:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jaxwatch-progress", daemon=True)
                self._thread.start()

    # -------------------------------------------------------------- on its own thread

    def _run(self) -> None:
        while True:
            with self._wake:
                self._idle = True  # before it looks: who begins after the look finds it so
                wait = self._wait()
                self._idle = wait is None
                self._wake.wait(wait)
            self._draw()

    def _wait(self) -> float | None:
        """Return in how many seconds there is something to show; None while nothing is compiled."""
        started = [job.started for job in list(self._jobs.values()) if job.opened]
        if self._showing:
            return _limits.PROGRESS_EVERY_SECONDS
        return max(0.0, min(started) + _limits.PROGRESS_AFTER_SECONDS - self._clock()) if started else None

    def tick(self) -> float | None:
        """Show what is to be shown now; return in how many seconds to look again, or None: not before a begin."""
        self._draw()
        return self._wait()

    def _draw(self) -> None:
        try:
            with self._drawing:
                self._showing = True  # before it looks: who ends meanwhile waits for the lock, and looks again
                line = self._line()
                if line is None:
                    self._hide()
                elif self._sink is not None:
                    self._sink.show(line.text, line.job.number)
                    self._shown = line.job
        except Exception:  # noqa: BLE001 -- a closed stream, a kernel that ends: the program goes on
            REGISTRY.count_exporter_error("progress")

    def _hide(self) -> None:
        with self._drawing:
            job, self._shown, self._showing = self._shown, None, False
            if job is not None and self._sink is not None:
                seconds = (self._clock() if job.ended is None else job.ended) - job.started
                self._sink.hide(f"jaxwatch · compiling {_short(job.name)} took {seconds:.0f} s")

    def _line(self) -> Line | None:
        """Return what compiles longest, and how many others do; None where nothing does for long."""
        stacks, now = sys._current_frames(), self._clock()  # noqa: SLF001 -- as in `_frames`
        found = []
        for thread, job in list(self._jobs.items()):
            opened = job.opened[:]
            frame = stacks.get(thread)
            if opened and job.thread.is_alive() and frame is not None and opened[0].home in homes(frame):
                found.append((job, opened))
        if not found:
            return None
        job, opened = min(found, key=lambda one: one[0].started)
        if now - job.started < _limits.PROGRESS_AFTER_SECONDS:
            return None
        last = f", last time {self._last[job.key]:.0f} s" if self._last.get(job.key, 0.0) >= 1 else ""
        more = f", +{len(found) - 1:,} more" if len(found) > 1 else ""
        text = f"jaxwatch · compiling {_short(job.name)} · {now - job.started:.0f} s ({_phase(opened)}){last}{more}"
        return Line(text, job)


def _phase(opened: list[OpenPhase]) -> str:
    """Return the phase in words; where something is compiled in the midst of it, that too."""
    told, inner = _WORDS[opened[0].kind], opened[-1]
    if len(opened) == 1 or inner.kind == "trace":
        return told
    return f"{told}, within: {_WORDS[inner.kind]} of {_short(inner.name)}"


def _short(name: str) -> str:
    from jaxwatch.renderers.cells import clean, cut  # noqa: PLC0415 -- with all renderers, where nothing may take long

    return cut(clean(name[: 2 * _NAME_CELLS]) or "?", _NAME_CELLS)


PROGRESS = Progress()


def _after_fork() -> None:
    """In a forked child: there is no thread, and the terminal's line is the parent's."""
    PROGRESS.forget()
    PROGRESS.on = False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
