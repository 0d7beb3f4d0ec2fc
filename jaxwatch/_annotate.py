"""Misses in the trace that ``jax.profiler`` writes: an annotation from a miss's first phase until it is compiled.

Off unless asked for; a call from the cache never comes here. It ends with the compile, and not with the call, so that
it lies within JAX's own annotation of the call: Perfetto leaves out what lies across the end of another one. Each is an
object of its own: which of two ends first does not matter, and one that is never ended, as its call was abandoned, ends
when its frame goes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxwatch import _options
from jaxwatch._frames import Frame
from jaxwatch._registry import REGISTRY

# The profiler writes all in one text, `name#key=value,key=value#`, and reads it without escapes; within brackets that
# are closed again a comma is part of the value.
_AS_TEXT = str.maketrans({"#": "＃"})  # noqa: RUF001 -- looks like it, and is read as text
_OPEN, _CLOSE = "([{", ")]}"


def begin(frame: Frame) -> None:
    """Begin the annotation of a call that misses, where that is asked for and a profiler runs."""
    if not _options.annotated():
        return
    try:
        kind: Any = jax.profiler.TraceAnnotation
        if kind.is_enabled():
            annotation = kind(f"jaxwatch: {_name(frame.subject.name)}", call=frame.call)
            annotation.__enter__()
            frame.annotation = annotation
    except Exception:  # noqa: BLE001 -- a fault of ours must not reach the user's call
        REGISTRY.count_dropped("event")


def end(frame: Frame, tell: Callable[[], Mapping[str, str]] = dict) -> None:
    """End the annotation, if the frame has one, with what there is to tell."""
    annotation, frame.annotation = frame.annotation, None
    if annotation is None:
        return
    try:
        annotation.set_metadata(**{name: value(text) for name, text in tell().items()})
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
