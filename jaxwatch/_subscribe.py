"""``jaxwatch.subscribe``: a callback of the user's gets events, isolated from the program and bounded."""

import atexit
import contextlib
import contextvars
import functools
import os
import queue
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection
from types import TracebackType
from typing import Self

from jaxwatch import _limits
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, JaxwatchWarning
from jaxwatch.events import AheadOfTime, CacheMiss, EagerCompile, Event, TraceError, Violation

PUBLISHED = tuple(kind.kind for kind in (CacheMiss, EagerCompile, TraceError, AheadOfTime, Violation))
"""The kinds of events that a callback can get; the others are made for the log alone."""


_Waiting = tuple[Event, contextvars.Context | None]


class Subscription:
    """Events on their way to one callback; ``with`` ends it at the end of the block.

    The callback is called on a daemon thread of its own, in the order of the events. A forked child begins with none
    waiting.
    """

    def __init__(
        self, callback: Callable[[Event], object], name: str, kinds: frozenset[str], waiting: int, *, context: bool
    ) -> None:
        self.name = name
        self._callback, self._kinds, self._most, self._context = callback, kinds, waiting, context
        self._warned = self._closed = False
        self._start_anew()
        HUB.add(name, self._take)
        _open.add(self)

    def _start_anew(self) -> None:
        self._waiting: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.RLock()  # a finalizer that runs under it may publish

    def close(self, seconds: float = _limits.FLUSH_SECONDS) -> None:
        """End it, after the events that wait; those that are not taken within so many seconds are lost and counted.

        Called by the callback itself, it waits for nothing: what waits comes once the callback has returned.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            HUB.remove(self.name)
            if self._thread is None and hasattr(self._callback, "close"):
                self._start()
            self._waiting.put(None)
        thread = self._thread
        if thread is threading.current_thread():
            return
        if thread is not None:
            thread.join(max(0.0, seconds))
        if thread is None or thread.is_alive():
            self._give_up()

    def _give_up(self) -> None:
        """Count what still waits as lost, and see to it that it is: the callback may come to its end some time."""
        lost = 0
        with contextlib.suppress(queue.Empty):
            while True:
                lost += self._waiting.get_nowait() is not None
        self._waiting.put(None)
        if lost:
            REGISTRY.count_dropped("hook_call", lost)

    def __enter__(self) -> Self:
        """Return the subscription itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self.close()

    # -------------------------------------------------------------- on the thread of the event

    def _take(self, event: Event, /) -> None:
        if event.kind not in self._kinds:
            return
        with self._lock:
            if self._closed or self._waiting.qsize() >= self._most:
                REGISTRY.count_dropped("hook_call")
                return
            self._waiting.put((event, contextvars.copy_context() if self._context else None))
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        name = f"jaxwatch {self.name}"
        thread = threading.Thread(target=self._deliver, args=(self._waiting,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending: what waits is counted by `close`
            return
        self._thread = thread

    # -------------------------------------------------------------- on its own

    def _deliver(self, waiting: "queue.SimpleQueue[_Waiting | None]") -> None:
        with HUB.exporting():
            while (taken := waiting.get()) is not None:
                event, context = taken
                call = functools.partial(self._callback, event)
                self._isolated(call if context is None else functools.partial(context.run, call))
                del taken, event, context, call  # nothing is kept until the next one comes
                if self._waiting is not waiting:  # the callback forked, and this is the child
                    return
            if (close := getattr(self._callback, "close", None)) is not None:
                self._isolated(close)

    def _isolated(self, call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 -- SystemExit too: it would end this thread, and nothing else
            REGISTRY.count_exporter_error(self.name)
            self._warn(error)

    def _warn(self, error: BaseException) -> None:
        if self._warned:
            return
        self._warned = True
        from jaxwatch.renderers.cells import clean  # noqa: PLC0415 -- with all renderers, paid by who fails

        text = (
            f"the subscribed {self.name} raised {type(error).__name__}: {_said(error)}. It goes on to get events; "
            "what it raises is counted. [hook-failed]"
        )
        try:
            warnings.warn(text, JaxwatchWarning, stacklevel=2)
        except Exception:  # noqa: BLE001 -- warnings are errors, or the program's showwarning fails: not to end by
            if sys.stderr is not None:
                sys.stderr.write(f"jaxwatch: {clean(text)}\n")


def _said(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001 -- its own text fails
        return "it cannot be shown"


def subscribe(
    callback: Callable[[Event], object],
    *,
    kinds: Collection[str] | None = None,
    name: str | None = None,
    waiting: int = _limits.HOOK_EVENTS,
    context: bool = False,
) -> Subscription:
    """Call ``callback`` with each event from now on, on a thread of its own.

    What it raises is counted in ``jaxwatch_exporter_errors_total`` and warned of once. A slow one never holds up the
    program: events that find ``waiting`` others before them are dropped, and counted as ``hook_call``. At the program's
    end those that wait are delivered, for at most ``_limits.FLUSH_SECONDS`` (5 s).

    Args:
        callback: Gets a frozen event of ``jaxwatch.events``, which it may keep. Where it has a ``close``, that is
            called after the last one.
        kinds: Of ``cache_miss``, ``eager_compile``, ``trace_error``, ``ahead_of_time`` and ``violation``; None for all.
        name: What it is called in metrics and warnings; by default its own name.
        waiting: How many events may wait.
        context: Whether it runs with the ``contextvars`` of the call that the event is of, a request's id say. What
            they hold is kept alive as long as the event waits.

    Returns:
        The subscription; its ``close()`` ends it.

    Raises:
        BadOptionError: An argument is of the wrong kind.
    """
    if not callable(callback):
        raise BadOptionError(f"subscribe({callback!r:.80}) cannot be called.", "Give a function of one event.")
    if isinstance(kinds, str) or not set(kinds or ()) <= set(PUBLISHED) or (kinds is not None and not kinds):
        raise BadOptionError(f"subscribe(kinds={kinds!r:.80}) names no such events.", f"Give some of {PUBLISHED}.")
    if name is not None and not (isinstance(name, str) and name):
        raise BadOptionError(f"subscribe(name={name!r:.80}) is no name.", "Give a text that is not empty, or None.")
    if isinstance(waiting, bool) or not isinstance(waiting, int) or waiting < 1:
        raise BadOptionError(f"subscribe(waiting={waiting!r:.80}) lets none wait.", "Give a whole number from 1.")
    if not isinstance(context, bool):
        raise BadOptionError(f"subscribe(context={context!r:.80}) is neither True nor False.", "Give a bool.")
    with _naming:
        chosen = _free_name((name or getattr(callback, "__name__", None) or type(callback).__name__)[:_NAME_CHARACTERS])
        return Subscription(
            callback, chosen, frozenset(PUBLISHED if kinds is None else kinds), waiting, context=context
        )


_NAME_CHARACTERS = 60  # a label of jaxwatch_exporter_errors_total
_naming = threading.RLock()
_open: "weakref.WeakSet[Subscription]" = weakref.WeakSet()


def _free_name(name: str) -> str:
    number, free = 1, name
    while free in HUB.names:  # of another one, which would be replaced
        number += 1
        free = f"{name}#{number}"
    return free


def _close_all() -> None:
    until = time.monotonic() + _limits.FLUSH_SECONDS
    for subscription in list(_open):
        subscription.close(max(0.0, until - time.monotonic()))


atexit.register(_close_all)


def _after_fork() -> None:
    """In a forked child: no thread delivers, and what waits is its parent's to deliver."""
    global _naming  # noqa: PLW0603 -- one lock per process
    _naming = threading.RLock()
    for subscription in list(_open):
        subscription._start_anew()  # noqa: SLF001 -- this module's own class


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
