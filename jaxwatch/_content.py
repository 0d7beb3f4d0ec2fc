"""What a program is made of, read off the jaxpr that JAX is about to lower: equations, constants, jits within.

Duck-typed: the classes of a jaxpr have moved from version to version. Nothing of it is kept, no constant either.
"""

import hashlib
import math
import types
from typing import Any, NamedTuple

from jaxwatch import _compat, _limits
from jaxwatch._makeup import Makeup, Visited, makeup_of
from jaxwatch._touched import touched
from jaxwatch.events import Donatable

_FINGERPRINT_DIGITS = 16  # 64 bits
_JITS = ("jit", "pjit")  # the primitive's name since 0.7, and before


class Called(NamedTuple):
    """A jitted function that a program calls; jits of JAX's own library are left out."""

    name: str
    definition: str  # file:line, as JAX has it, or ""
    calls: int
    variants: int  # different programs that it is in there, each traced for itself


class Constant(NamedTuple):
    """An array that the program holds."""

    text: str  # ``float32[300,300]``
    size: int  # bytes


class Content(NamedTuple):
    """What one program is made of."""

    equations: int  # of each jaxpr within once, however often it is called
    constants: tuple[Constant, ...]  # largest first
    called: tuple[Called, ...]
    partial: bool  # there is more than was looked at
    makeup: Makeup = Makeup()
    touched: int | None = None  # numbers that one run reads and writes at most, of a small program
    donatable: tuple[Donatable, ...] = ()


def content_of(jaxpr: Any, *, constants: bool = True) -> Content:
    """Return what a jaxpr, closed or not, is made of; at most ``PROGRAM_EQUATIONS`` equations are looked at.

    Args:
        jaxpr: As JAX lowers it.
        constants: Whether its constants become part of what is compiled.
    """
    seen: dict[int, Visited] = {}
    held: dict[int, Constant] = {}
    calls: dict[tuple[str, str], list[int]] = {}
    equations, todo, odd = 0, [(jaxpr, -1, None)], False
    while todo and equations < _limits.PROGRAM_EQUATIONS:
        current, caller, calling = todo.pop()
        if id(current) in seen:
            continue
        number = len(seen)
        found: dict[int, list[Any]] = {}
        seen[id(current)] = Visited(current, caller, calling, found)
        if constants:
            held.update((id(value), _constant(value)) for value in getattr(current, "consts", ()))
        for place, equation in enumerate(current.eqns):
            try:
                if equation.params and (below := _below(equation.params)):
                    found[place] = below
                    todo += [(each, number, equation) for each in below]
                    if equation.primitive.name in _JITS:
                        calls.setdefault(_called(equation), []).append(id(equation.params["jaxpr"]))
            except Exception:  # noqa: BLE001 -- a primitive of the user's may hold anything
                odd = True
        equations += len(current.eqns)
    return Content(
        equations,
        tuple(sorted((each for each in held.values() if each.size), key=lambda each: -each.size)),
        tuple(
            Called(name, definition, len(found), len(set(found)))
            for (name, definition), found in calls.items()
            if not definition.startswith(_compat.jax_folder())
        ),
        bool(todo) or odd,
        _makeup(list(seen.values())),
        None if todo or odd else touched(jaxpr, _below),
    )


def _makeup(visited: list[Visited]) -> Makeup:
    try:
        return makeup_of(visited)
    except Exception:  # noqa: BLE001 -- as above; or it is nested too deeply
        return Makeup()


class Fingerprint:
    """Hash of the lowered texts of a call's programs, without locations: equal wherever the same is compiled."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, text: str) -> None:
        """Take the text of one more program."""
        self._hash.update(text.encode("utf-8", "surrogatepass"))

    def __str__(self) -> str:
        """Return it as hex digits."""
        return self._hash.hexdigest()[:_FINGERPRINT_DIGITS]


def _below(params: Any) -> list[Any]:
    """Return the jaxprs among an equation's parameters; most have none, so this is short."""
    found = []
    for value in params.values():
        kind = type(value)
        if kind is tuple and value and _is_jaxpr(type(value[0])):  # a cond's branches
            found += [each for each in value if _is_jaxpr(type(each))]
        elif _JAXPRS.get(kind, True) and _is_jaxpr(kind):
            found.append(value)
    return found


_DESCRIPTORS = (property, types.MemberDescriptorType)  # what ``eqns`` is of jaxprs, closed ones and not
_LASTING = ("builtins", "jax", "jaxlib", "numpy", "ml_dtypes")
_JAXPRS: dict[type, bool] = {}  # some dozens of types; to ask each value for the attribute is ten times the price


def _is_jaxpr(kind: type) -> bool:
    found = _JAXPRS.get(kind)
    if found is None:
        found = isinstance(getattr(kind, "eqns", None), _DESCRIPTORS)
        if kind.__module__.partition(".")[0] in _LASTING:  # a class of the user's must not be kept alive
            _JAXPRS[kind] = found
    return found


def _called(equation: Any) -> tuple[str, str]:
    """Return name and definition of what a jit's equation calls."""
    inner = equation.params["jaxpr"]
    info = getattr(getattr(inner, "jaxpr", inner), "debug_info", None)
    source = str(getattr(info, "func_src_info", None) or "")
    return str(equation.params.get("name", "")), source.rpartition(" at ")[2]


def _constant(value: Any) -> Constant:
    shape, dtype = getattr(value, "shape", ()), getattr(value, "dtype", None)
    size = math.prod(shape) * getattr(dtype, "itemsize", 0)
    return Constant(f"{dtype}[{','.join(map(str, shape))}]", size)
