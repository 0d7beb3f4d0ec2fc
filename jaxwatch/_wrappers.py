"""Where a library stands between: which of the user's arguments the jitted function's own parameter is.

Told only where it is the very object: an array that the user gave to the library's function, found again at the path
that changed. Looked for at a miss that came by way of a library, and nowhere else.
"""

import dis
import inspect
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType, FrameType
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from jaxwatch import _limits
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
    if not _LOCALS_ARE_SAFE or any(change.reason in _MOVES for change in changes):
        return {}
    try:
        entered = _entered(sys._getframe(depth))  # noqa: SLF001 -- as in `_callsite`
        return {} if entered is None else _found(frame, {change.path for change in changes if change.path}, entered)
    except KeyboardInterrupt:  # as in `_texts`
        raise
    except BaseException:  # noqa: BLE001 -- a tree that cannot be read, whatever it raises: the path alone is told
        return {}


# Before, to read a frame's locals changes what its own `locals()` returned, and keeps them alive until it returns.
_LOCALS_ARE_SAFE = sys.version_info >= (3, 13)
_MOVES = ("structure", "metadata", "static")  # then a flat list of leaves may hold others at the same index


def with_users_argument(change: Change, found: Mapping[str, str]) -> Change:
    """Return a change whose note says which of the user's arguments it is, where that goes by another name."""
    name = found.get(change.path or "", "")
    if not name or name.partition(" of ")[0] == change.path:
        return change
    return replace(change, note="; ".join(filter(None, [f"argument {name}", change.note])))


def _found(frame: Frame, wanted: set[str], entered: FrameType) -> dict[str, str]:
    own = [(path, id(leaf)) for path, leaf in _own_leaves(frame.subject.plan, frame)]
    given = [(f"{name}{below} of {function}", id(leaf)) for name, function, below, leaf in _given_leaves(entered)]
    ours, theirs = (Counter(number for _, number in leaves) for leaves in (own, given))
    names = {number: name for name, number in given}
    # what stands twice on either side may be either
    return {path: names[n] for path, n in own if path in wanted and ours[n] == theirs.get(n, 0) == 1}


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
    """Yield the arrays among the jitted function's arguments, with their paths: JAX has flattened them too."""
    for position, value in enumerate(frame.args):
        name = plan.name_of(position)
        if not plan.is_static(position, name):
            yield from ((name + below, leaf) for below, leaf in _flat(value))
    for keyword, value in frame.kwargs.items():
        if not plan.is_static(None, keyword):
            yield from ((plan.keyword_path(keyword) + below, leaf) for below, leaf in _flat(value))


def _flat(value: Any) -> Iterator[tuple[str, Any]]:
    for path, leaf in tree_flatten_with_path(value)[0]:
        if isinstance(leaf, _ARRAYS):
            yield "".join(label_text(keystr((key,))) for key in path), leaf


def _given_leaves(frame: FrameType) -> Iterator[tuple[str, str, str, Any]]:
    """Yield name, function, path below and array for what the library was given; Python's own containers alone.

    To flatten anything else would run code of the user's that JAX does not run. Scalars are left out, since one object
    may be several arguments.
    """
    left = _limits.GIVEN_LEAVES
    for name, function, value in _given(frame):
        todo: list[tuple[str, Any]] = [("", value)]
        while todo and left:
            below, found = todo.pop()
            left -= 1
            if isinstance(found, _ARRAYS):
                yield name, function, below, found
            elif type(found) in (list, tuple):
                todo += [(f"{below}[{index}]", each) for index, each in enumerate(found[:left])]
            elif type(found) is dict:
                todo += [(f"{below}[{label_text(repr(key))}]", found[key]) for key in list(found)[:left] if _plain(key)]


def _plain(key: Any) -> bool:
    return type(key) in (str, int)


def _bound_anew(code: CodeType) -> Iterator[str]:
    for found in dis.get_instructions(code):
        if found.opname.startswith(("STORE_", "DELETE_")):
            # one instruction may do the work of two
            several = found.argval if isinstance(found.argval, tuple) else (found.argval,)
            yield from several[:1] if found.opname.endswith("LOAD_FAST") else several


def _given(frame: FrameType) -> Iterator[tuple[str, str, Any]]:
    """Yield name, function and value of each argument that the frame's function was given, and has not bound anew."""
    code, local = frame.f_code, frame.f_locals
    bound = set(_bound_anew(code))
    named = code.co_argcount + code.co_kwonlyargcount
    names = [name for name in code.co_varnames[: named + 2] if name not in bound and name in local]
    yield from ((name, code.co_name, local[name]) for name in names if name in code.co_varnames[:named])
    parameters, function = _parameters(local.get("self"), code.co_name) if code.co_name == "__call__" else ([], "")
    place = named
    if code.co_flags & inspect.CO_VARARGS:
        name = code.co_varnames[place]
        values = local[name] if name in names else ()
        for index, value in enumerate(values):
            known = index < len(parameters)
            yield (parameters[index] if known else f"{name}[{index}]"), (function if known else code.co_name), value
        place += 1
    if code.co_flags & inspect.CO_VARKEYWORDS and code.co_varnames[place] in names:
        for name, value in local[code.co_varnames[place]].items():
            yield str(name), function or code.co_name, value


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
