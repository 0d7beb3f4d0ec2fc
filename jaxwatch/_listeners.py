"""jax.monitoring → the active call of this thread. One set of listeners for the process."""

import sys
import time
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from jaxwatch import _annotate, _compat, _donation, _limits, _misses
from jaxwatch._content import Fingerprint, content_of
from jaxwatch._disk import Lookup
from jaxwatch._frames import THREAD, Active, Frame, OpenPhase, Phase, home, under_way
from jaxwatch._progress import PROGRESS
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import RetraceError

_PHASES: dict[str, Phase] = {
    _compat.TRACE_EVENT: "trace",
    _compat.LOWER_EVENT: "lower",
    _compat.COMPILE_EVENT: "compile",
}
_INDEX: dict[Phase, int] = {"trace": 0, "lower": 1, "compile": 2}
_PENDING = 64  # names of eager ops whose compile never came; a bound, for a program that lowers and never compiles


def ensure() -> bool:
    """Register the listeners that are not registered: at the start, and when the program has cleared them.

    Returns:
        Whether any was missing.
    """
    return bool(_compat.register_missing(_on_event, _on_duration, _on_scalar))


def remove() -> None:
    """Take the listeners out, for tests."""
    _compat.unregister(_on_event, _on_duration, _on_scalar)


def _bare(name: object) -> str:
    """Return ``f`` of ``jit(f)``, as lowering and compiling are reported."""
    text = name if isinstance(name, str) else ""
    return text[4:-1] if text.startswith("jit(") and text.endswith(")") else text


def _on_scalar(event: str, _value: float, **kwargs: Any) -> None:
    """Take the start of a phase."""
    phase = _PHASES.get(event)
    if phase is None:
        return
    started = time.perf_counter()
    try:
        if not THREAD.open:  # a phase within another: the outer one has looked
            ensure()
        _start(phase, _bare(kwargs.get("fun_name")))
        REGISTRY.add_overhead("miss", time.perf_counter() - started)
    except RetraceError:
        THREAD.open.pop()  # where the start is refused, JAX tells no end
        if PROGRESS.on:
            PROGRESS.end()
        raise
    except Exception:  # noqa: BLE001 -- a fault of ours must not reach the user's call
        REGISTRY.count_dropped("event")


def _start(kind: Phase, name: str) -> None:
    within, frame = under_way(), Active.frame()
    if not within and (frame is None or frame.subject.event_name != name):
        frame = Active.ahead() or frame
    own = (
        frame is not None
        and name == frame.subject.event_name
        and not any(opened.frame is frame for opened in THREAD.open)  # else it is something that the body does
    )
    where = home()
    phase = OpenPhase(kind, name, frame, where, own=own)
    while THREAD.open and THREAD.open[-1].home == phase.home:  # a frame holds one phase open: that one never ended
        THREAD.open.pop()
    THREAD.open.append(phase)
    if PROGRESS.on:
        PROGRESS.begin(phase)
    if own and frame is not None and not frame.seen:
        _misses.begin(frame, kind)
        _annotate.begin(frame)
    if kind == "lower" and own and frame is not None:
        _read_program(frame, where)
    elif kind == "compile":
        phase.calls_back = _compat.calls_back(where)
        if own and frame is not None and not frame.aot:
            _read_lowered(frame, where)


def _read_program(frame: Frame, where: FrameType | None) -> None:
    jaxpr = _compat.lowered_jaxpr(where)
    if jaxpr is None or frame.aot:
        return
    content = content_of(jaxpr, constants=_compat.bakes_constants(where))
    if frame.content is None or content.equations > frame.content.equations:
        frame.content = content  # first of all: to flatten arguments may run code of the user's, which may fail
        plan, donated = frame.subject.plan, _compat.donated_inputs(where)
        given = _donation.arguments(plan, frame.args, frame.kwargs)
        frame.content = content._replace(donatable=_donation.donatable(jaxpr, donated, given))


def _read_lowered(frame: Frame, where: FrameType | None) -> None:
    text = _compat.lowered_text(where, _limits.FINGERPRINT_ELEMENTS)
    if text is not None:
        frame.fingerprint = frame.fingerprint or Fingerprint()
        frame.fingerprint.add(text)


def _on_duration(event: str, seconds: float, **kwargs: Any) -> None:
    """Take the end of a phase; it comes also when the phase raised."""
    phase = _PHASES.get(event)
    started = time.perf_counter()
    try:
        if phase is None:
            _on_disk_duration(event, seconds)
            return
        opened = _ended(phase, _bare(kwargs.get("fun_name")))
        if PROGRESS.on:
            PROGRESS.end()
        tell = None if opened is None else _end(opened, max(0.0, seconds))  # JAX's clock may be set back
        REGISTRY.add_overhead("miss", time.perf_counter() - started)
        if tell is not None:
            tell()  # most of it is the exporters' time, which is counted as theirs
    except Exception:  # noqa: BLE001 -- as above
        REGISTRY.count_dropped("event")


def _ended(kind: Phase, name: str) -> OpenPhase | None:
    """Return the open phase that ends now; those begun after it have ended untold, by an exception."""
    opened = THREAD.open
    for place in range(len(opened) - 1, -1, -1):
        if opened[place].kind == kind and opened[place].name == name:
            found = opened[place]
            del opened[place:]
            return found
    return None


def _end(opened: OpenPhase, seconds: float) -> Callable[[], None] | None:
    """Count a phase that ended; return what tells of it, where it has an event of its own."""
    disk = None if opened.lookup is None else opened.lookup.result
    if opened.own and opened.frame is not None:
        frame = opened.frame
        frame.seconds[_INDEX[opened.kind]] += max(0.0, seconds - opened.elsewhere)
        if opened.kind == "trace":
            frame.traces += 1
        elif opened.kind == "lower":
            frame.lowerings += 1
        else:
            frame.compiles += 1
            if frame.annotation is not None:
                _annotate.compiled(frame)
            if disk is not None:
                frame.disk.append(disk)
                frame.entry = opened.lookup.entry(seconds)
        if frame.aot_end == opened.kind:
            frame.aot_end = None
            return partial(_misses.ahead_of_time, frame)
    elif opened.kind == "compile":
        return partial(_misses.outside, opened.name, seconds + THREAD.pending.pop(opened.name, 0.0), disk)
    else:
        if len(THREAD.pending) >= _PENDING:
            THREAD.pending.clear()
        THREAD.pending[opened.name] = THREAD.pending.get(opened.name, 0.0) + seconds
    return None


def _on_event(event: str, **_kwargs: Any) -> None:
    """Take a look-up in the persistent cache; it belongs to the compile that is open."""
    opened = THREAD.open[-1] if THREAD.open else None
    if opened is None or opened.kind != "compile":
        return
    try:
        _look_up(opened, event)
    except Exception:  # noqa: BLE001 -- as above
        REGISTRY.count_dropped("event")


def _look_up(opened: OpenPhase, event: str) -> None:
    if event == _compat.DISK_REQUEST_EVENT:
        key = _compat.disk_key(sys._getframe(2)) if _compat.disk_cache_on() else None  # noqa: SLF001 -- as in `_frames`
        opened.lookup = Lookup(key, calls_back=opened.calls_back)
    elif opened.lookup is None:
        return
    elif event == _compat.DISK_HIT_EVENT:
        opened.lookup.found = True
    elif event == _compat.DISK_WRITE_EVENT:
        opened.lookup.written = True


def _on_disk_duration(event: str, seconds: float) -> None:
    """Take what a hit in the persistent cache cost and saved."""
    lookup = THREAD.open[-1].lookup if THREAD.open else None
    if lookup is None:
        return
    if event == _compat.DISK_READ_EVENT:
        lookup.read_seconds = seconds
    elif event == _compat.DISK_SAVED_EVENT:
        lookup.saved_seconds = seconds
