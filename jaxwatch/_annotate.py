"""Misses in the trace that ``jax.profiler`` writes: an annotation from a miss's first phase until it is compiled.

Off unless asked for; a call from the cache never comes here. It ends with the compile, and not with the call, so that
it lies within JAX's own annotation of the call: Perfetto leaves out what lies across the end of another one. Each is an
object of its own: which of two ends first does not matter, and one that is never ended, as its call was abandoned, ends
when its frame goes.
"""

from collections.abc import Mapping
from typing import Any

import jax

from jaxwatch import _compat, _options
from jaxwatch._callsite import user_site
from jaxwatch._frames import THREAD, Frame, OpenPhase
from jaxwatch._history import HISTORY
from jaxwatch._registry import REGISTRY
from jaxwatch._words import changes_text

# The profiler writes all in one text, `name#key=value,key=value#`, and reads it without escapes; within brackets that
# are closed again a comma is part of the value.
_AS_TEXT = str.maketrans({"#": "＃"})  # noqa: RUF001 -- looks like it, and is read as text
_OPEN, _CLOSE = "([{", ")]}"


def begin(frame: Frame) -> None:
    """Begin the annotation of a call that misses, where that is asked for and a profiler runs."""
    if not _options.annotated() or frame.aot or any(_traces(phase, frame) for phase in THREAD.open):
        return
    try:
        kind: Any = jax.profiler.TraceAnnotation
        if kind.is_enabled():
            annotation = kind(f"jaxwatch: {_name(frame.subject.name)}", call=frame.call)
            annotation.__enter__()
            frame.annotation = annotation
    except Exception:  # noqa: BLE001 -- a fault of ours must not reach the user's call
        REGISTRY.count_dropped("event")


def _traces(phase: OpenPhase, frame: Frame) -> bool:
    """Whether the phase is the trace of another call, which this one becomes a part of."""
    return phase.kind == "trace" and phase.frame is not frame


def compiled(frame: Frame) -> None:
    """End the annotation of a call that is compiled now, with the reason that its event will tell."""
    told: dict[str, str] = {}
    try:
        plan, again = frame.subject.plan, bool(frame.subject.counters.by_cause) or frame.subject.called_before
        traced, caches = frame.traces > 0, _compat.caches()
        found = HISTORY.explain(plan.code, plan.identity, frame.key, traced=traced, again=again, caches=caches)
        told = {"reason": found.reasons[0], "site": user_site(2).text, "changes": changes_text(found.changes)}
    except Exception:  # noqa: BLE001 -- as above
        REGISTRY.count_dropped("event")
    end(frame, told)


def end(frame: Frame, told: Mapping[str, str]) -> None:
    """End the annotation, if the frame has one, with what there is to tell."""
    annotation, frame.annotation = frame.annotation, None
    if annotation is None:
        return
    try:
        annotation.set_metadata(**{name: value(text) for name, text in told.items()})
    except Exception:  # noqa: BLE001 -- as above
        REGISTRY.count_dropped("event")
    finally:
        annotation.__exit__(None, None, None)


def _name(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode().translate(_AS_TEXT)


def value(text: str) -> str:
    """Return a text as the value of an annotation, which the profiler reads back whole; without quotes."""
    shown, expected, parts = _name(text).replace("'", "").replace('"', ""), [], []
    for character in shown:
        if character in _OPEN:
            expected.append(_CLOSE[_OPEN.index(character)])
        elif character in _CLOSE and (not expected or expected.pop() != character):
            expected.append("never closed")
            break
        parts.append(";" if character == "," and not expected else character)
    if expected:
        return shown.translate(dict.fromkeys(map(ord, _OPEN + _CLOSE + ","), " "))
    return "".join(parts)
