"""Where a library stands between: which of the user's arguments the jitted function's own parameter is.

Told only where it is the very object: an array that the user gave to the library's function, found again at the path
that changed. Looked for at a miss that came by way of a library, and nowhere else.
"""

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from jaxwatch._callsite import whose
from jaxwatch._frames import Frame
from jaxwatch._plan import Plan
from jaxwatch._texts import label_text
from jaxwatch.events import Change

_ARRAYS = (jax.Array, np.ndarray)


def users_arguments(frame: Frame, changes: Sequence[Change], depth: int = 1) -> dict[str, str]:
    """Return path → the user's argument, as ``x of step``, for the changed paths that it can be shown of.

    Args:
        frame: The call, which has not returned yet.
        changes: What changed.
        depth: How many frames up to look for the library's.
    """
    if any(change.reason in _MOVES for change in changes):
        return {}
    try:
        entered = _entered(sys._getframe(depth))  # noqa: SLF001 -- as in `_callsite`
        return {} if entered is None else _found(frame, {change.path for change in changes if change.path}, entered)
    except Exception:  # noqa: BLE001 -- a library's tree that cannot be read: the path alone is told
        return {}


_MOVES = ("structure", "metadata", "static")  # then a flat list of leaves may hold others at the same index


def with_users_argument(change: Change, found: Mapping[str, str]) -> Change:
    """Return a change whose note says which of the user's arguments it is, where that goes by another name."""
    name = found.get(change.path or "", "")
    if not name or name.partition(" of ")[0] == change.path:
        return change
    return replace(change, note="; ".join(filter(None, [f"argument {name}", change.note])))


def _found(frame: Frame, wanted: set[str], entered: FrameType) -> dict[str, str]:
    ours = {id(leaf): path for path, leaf in _own_leaves(frame.subject.plan, frame) if path in wanted}
    if not ours:
        return {}
    found: dict[str, str] = {}
    for name, value in _given(entered):
        for below, leaf in _leaves(value):
            path = ours.get(id(leaf))
            if path is not None:
                found.setdefault(path, f"{name[0]}{below} of {name[1]}")
    return found


def _entered(frame: FrameType | None) -> FrameType | None:
    """Return the library's frame that the user's code called."""
    last = None
    while frame is not None:
        kind = whose(frame.f_code.co_filename)
        if kind == "user":
            return last
        last = frame if kind == "library" else last
        frame = frame.f_back
    return None


def _own_leaves(plan: Plan, frame: Frame) -> Iterator[tuple[str, Any]]:
    for position, value in enumerate(frame.args):
        name = plan.name_of(position)
        if not plan.is_static(position, name):
            yield from ((name + below, leaf) for below, leaf in _leaves(value))
    for keyword, value in frame.kwargs.items():
        if not plan.is_static(None, keyword):
            yield from ((plan.keyword_path(keyword) + below, leaf) for below, leaf in _leaves(value))


def _leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a tree with the paths below it; scalars are not, since one object may be many arguments."""
    for path, leaf in tree_flatten_with_path(value)[0]:
        if isinstance(leaf, _ARRAYS):
            yield "".join(label_text(keystr((key,))) for key in path), leaf


def _given(frame: FrameType) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield (name, function) and value of each argument that the frame's function was given."""
    code, local = frame.f_code, frame.f_locals
    named = code.co_argcount + code.co_kwonlyargcount
    first = local.get("self") if code.co_argcount and code.co_varnames[0] == "self" else None
    for name in code.co_varnames[:named]:
        if name in local:
            yield (name, code.co_name), local[name]
    place = named
    if code.co_flags & inspect.CO_VARARGS:
        names, function = _parameters(first, code.co_name)
        values = local.get(code.co_varnames[place], ())
        for index, value in enumerate(values if isinstance(values, tuple) else ()):
            known = names[index] if index < len(names) else f"{code.co_varnames[place]}[{index}]"
            yield (known, function if index < len(names) else code.co_name), value
        place += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        keywords = local.get(code.co_varnames[place], {})
        for name, value in keywords.items() if isinstance(keywords, Mapping) else ():
            yield (str(name), _parameters(first, code.co_name)[1]), value


def _parameters(wrapper: Any, otherwise: str) -> tuple[list[str], str]:
    """Return the parameters, and the name, of the function that a wrapper's object stands for; none, if it does not."""
    try:
        inner = inspect.unwrap(wrapper) if callable(wrapper) and hasattr(wrapper, "__wrapped__") else None
        if inner is None:
            return [], otherwise
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [each.name for each in inspect.signature(inner).parameters.values() if each.kind in positional]
        return names, str(getattr(inner, "__name__", otherwise))
    except Exception:  # noqa: BLE001 -- a library's own attribute that fails: its own names are told
        return [], otherwise
