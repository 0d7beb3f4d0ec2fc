"""Work ahead of time on a function that the native core watches: ``lower``, ``trace`` and ``eval_shape``.

These are methods of JAX's own type, in Python, and no call of the function: they are found on the stack when their
first phase begins.
"""

import inspect
import sys
import threading
from types import CodeType, FrameType

from jaxwatch import _compat, _misses
from jaxwatch._frames import Frame, Phase
from jaxwatch._registry import REGISTRY

_ENDS: dict[str, Phase] = {"lower": "lower", "trace": "trace", "eval_shape": "trace"}


def _code_of(method: str) -> CodeType | None:
    found = getattr(_compat.PJIT_TYPE, method, None)
    return getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None


_METHODS = {id(code): (code, end) for method, end in _ENDS.items() if (code := _code_of(method)) is not None}


class _Last(threading.local):
    """The phase that was found last: ``lower`` has two, which are told as one."""

    home = 0  # the identity of JAX's frame
    frame: Frame | None = None  # without arguments


_LAST = _Last()


def under_way() -> Frame | None:
    """Return the work ahead of time on a watched function that this thread's stack shows, ready to count; or None."""
    found: FrameType | None = None
    above: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- as in `_callsite`
    while above is not None:
        if id(above.f_code) in _METHODS:
            found = above  # the outermost: `lower` calls `trace`
        above = above.f_back
    return None if found is None else _made(found)


def _made(found: FrameType) -> Frame | None:
    code, end = _METHODS[id(found.f_code)]
    jitted, args, kwargs = (found.f_locals.get(name) for name in code.co_varnames[:3])
    subject = REGISTRY.find(jitted)
    if subject is None or not isinstance(args, tuple) or not isinstance(kwargs, dict):
        return None
    frame = Frame(subject, 0, args, kwargs)
    frame.aot, frame.aot_end = True, end
    _misses.begin(frame, end)
    frame.args, frame.kwargs = (), {}  # nothing of the user's is kept
    last = _LAST.frame
    if last is not None and last.aot_end is not None and last.subject is subject and _LAST.home == id(found):
        frame.seconds = last.seconds
    _LAST.home, _LAST.frame = id(found), frame
    return frame
