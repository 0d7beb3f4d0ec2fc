"""The active calls of each thread, and the phases of JAX that are open on it."""

import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Literal

from jaxwatch._registry import Subject

Phase = Literal["trace", "lower", "compile"]


class Frame:
    """One active call of a watched function; lives as long as the call, and so do the arguments that it names."""

    __slots__ = (
        "annotation",
        "aot",
        "aot_end",
        "args",
        "broken",
        "call",
        "compiles",
        "content",
        "disk",
        "entry",
        "fingerprint",
        "inner",
        "key",
        "kwargs",
        "lowerings",
        "phases",
        "refusal",
        "seconds",
        "seen",
        "subject",
        "traces",
        "within",
        "within_seconds",
    )

    def __init__(self, subject: Subject, call: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.subject = subject
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.aot = False  # inside `lower`, `trace` or `eval_shape`, not a call
        self.aot_end: Phase | None = None  # the phase that ends it, where nothing else tells its end
        self.seen = False  # a phase of this very function began

    def begin(self) -> None:
        """Make the frame ready to count; not done for a call that runs from the cache."""
        self.seen = True
        self.annotation: Any = None  # a jax.profiler.TraceAnnotation
        self.traces = self.lowerings = self.compiles = 0
        self.seconds = [0.0, 0.0, 0.0]
        self.disk: list[str] = []
        self.entry: Any = None  # an events.DiskEntry, of the last look-up
        self.content: Any = None  # a _content.Content, of the largest program
        self.fingerprint: Any = None  # a _content.Fingerprint, of all its programs
        self.inner: dict[Subject, Any] | None = None  # watched functions that it calls while traced: _inner.Within
        self.within = 0  # compiles that happened while it was traced
        self.within_seconds = 0.0
        self.key: Any = None  # a _keys.Key, once it is known
        self.refusal: BaseException | None = None
        self.broken: list[Any] = []  # (guard or None, _guards.Broken): what this miss breaks


class OpenPhase:
    """A phase that JAX has begun on this thread and not ended."""

    __slots__ = ("calls_back", "elsewhere", "frame", "home", "kind", "lookup", "name", "own")

    def __init__(self, kind: Phase, name: str, frame: Frame | None, home: FrameType | None, *, own: bool) -> None:
        self.kind = kind
        self.name = name
        self.frame = frame  # the innermost active call when it began
        self.own = own  # whether it is that call's own phase, and not of something done within
        self.lookup: Any = None  # a _disk.Lookup
        self.calls_back = False
        self.elsewhere = 0.0  # seconds within that an event of its own tells of
        # of JAX's frame that holds it open and of its code: of the former alone, another may soon be at its place
        self.home = id(home), 0 if home is None else id(home.f_code)


class Thread(threading.local):
    """What is going on on this thread."""

    def __init__(self) -> None:
        self.top: Frame | None = None  # the Python twin's innermost active call
        self.open: list[OpenPhase] = []
        self.pending: dict[str, float] = {}  # name → seconds of trace and lowering that no compile has followed yet


THREAD = Thread()


def twins_frame() -> Frame | None:
    """Return the Python twin's innermost active call of this thread."""
    return THREAD.top


def nothing_ahead() -> None:
    """Return what is under way ahead of time, for the twin, whose own methods make it the active call."""


class Active:
    """How the core in use tells what is under way on this thread."""

    frame: Callable[[], Frame | None] = staticmethod(twins_frame)  # the innermost active call
    ahead: Callable[[], Frame | None] = staticmethod(nothing_ahead)  # `lower`, `trace`, `eval_shape`


_OPENING = {"record_scalar", "__enter__", "log_elapsed_time"}  # what JAX runs to begin a phase


def home() -> FrameType | None:
    """Return JAX's frame that holds the phase open which begins now."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- as in `_callsite`
    while frame is not None and frame.f_code.co_name != "record_scalar":
        frame = frame.f_back
    while frame is not None and frame.f_code.co_name in _OPENING:
        frame = frame.f_back
    return frame


def homes(frame: FrameType | None) -> set[tuple[int, int]]:
    """Return the frame and all that it was called from, as an ``OpenPhase.home`` names one."""
    found = set()
    while frame is not None:
        found.add((id(frame), id(frame.f_code)))
        frame = frame.f_back
    return found


def under_way() -> bool:
    """Whether a phase is open on this thread.

    Those whose frame is gone are forgotten: where another's listener raised at their start, JAX tells no end.
    """
    opened = THREAD.open
    if opened:
        here = homes(sys._getframe(1))  # noqa: SLF001 -- as above
        while opened and opened[-1].home not in here:
            opened.pop()
    return bool(opened)
