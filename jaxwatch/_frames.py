"""The active calls of each thread, and the phases of JAX that are open on it."""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Literal

from jaxwatch._registry import Subject

Phase = Literal["trace", "lower", "compile"]


class Frame:
    """One active call of a watched function; lives as long as the call, and so do the arguments that it names."""

    __slots__ = (
        "aot",
        "args",
        "broken",
        "call",
        "compiles",
        "disk",
        "key",
        "kwargs",
        "lowerings",
        "phases",
        "refusal",
        "seconds",
        "seen",
        "subject",
        "traces",
    )

    def __init__(self, subject: Subject, call: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.subject = subject
        self.call = call
        self.args = args
        self.kwargs = kwargs
        self.aot = False  # inside `lower`, `trace` or `eval_shape`, not a call
        self.seen = False  # a phase of this very function began

    def begin(self) -> None:
        """Make the frame ready to count; not done for a call that runs from the cache."""
        self.seen = True
        self.traces = self.lowerings = self.compiles = 0
        self.seconds = [0.0, 0.0, 0.0]
        self.disk: list[str] = []
        self.key: Any = None  # a _keys.Key, once it is known
        self.refusal: BaseException | None = None
        self.broken: list[Any] = []  # _guards.Broken: guards that this miss breaks and that do not raise


class OpenPhase:
    """A phase that JAX has begun on this thread and not ended."""

    __slots__ = ("asked_disk", "elsewhere", "found_on_disk", "frame", "kind", "name", "own")

    def __init__(self, kind: Phase, name: str, frame: Frame | None, *, own: bool) -> None:
        self.kind = kind
        self.name = name
        self.frame = frame  # the innermost active call when it began
        self.own = own  # whether it is that call's own phase, and not of something done within
        self.asked_disk = self.found_on_disk = False
        self.elsewhere = 0.0  # seconds within that an event of its own tells of


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


class Active:
    """Which function tells the innermost active call of this thread: the twin's, or the native core's."""

    frame: Callable[[], Frame | None] = staticmethod(twins_frame)
