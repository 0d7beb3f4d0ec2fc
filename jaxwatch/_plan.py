"""How the arguments of one watched function are to be read: its parameters, statics, name and place."""

import functools
import inspect
import itertools
import os
import re
import sysconfig
import threading
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from jaxwatch import _cells, _compat, _limits
from jaxwatch._texts import shortened


class Plan(NamedTuple):
    """What does not change from call to call."""

    positional: tuple[str, ...]  # names of the parameters that may be given by position, in order
    star: str | None  # the name of *args
    stars: str | None  # the name of **kwargs
    defaults: frozenset[str]
    static_argnums: frozenset[int]
    static_argnames: frozenset[str]
    options: tuple[tuple[str, str], ...]
    code: str  # equal for function objects made of the same code by the same line
    identity: str  # equal for function objects that JAX takes for the same
    gradient: bool = False  # what it returns is jax.grad's, or jax.value_and_grad's
    cell: int | None = None  # of a function of a notebook's: the cell that was run when it was jitted

    def name_of(self, position: int) -> str:
        """Return the path of the argument at a position, from 0."""
        if position < len(self.positional):
            return self.positional[position]
        return f"{self.star or 'args'}[{position - len(self.positional)}]"

    def keyword_path(self, name: str) -> str:
        """Return the path of an argument given by keyword."""
        if name in self.positional or name in self.defaults or self.stars is None:
            return name
        return f"{self.stars}[{name!r}]"

    def is_static(self, position: int | None, name: str) -> bool:
        """Whether JAX takes that argument as static."""
        return name in self.static_argnames or (position is not None and position in self.static_argnums)


def make_plan(fun: Callable[..., Any], jitted: Any, given: Mapping[str, Any]) -> Plan:
    """Return the plan of a function, as jitted with the keywords ``given``."""
    options = _compat.jit_options(jitted, given)
    positional, star, stars, keyword_only, defaults = _parameters(fun)
    count = len(positional)
    argnums = frozenset(n + count if n < 0 else n for n in options.static_argnums)
    return Plan(
        positional=positional,
        star=star,
        stars=stars,
        defaults=frozenset(defaults | keyword_only),
        static_argnums=argnums,
        static_argnames=frozenset({*options.static_argnames, *(positional[n] for n in argnums if 0 <= n < count)}),
        options=options.texts,
        code=code_of(fun),
        identity=identity_of(fun),
        gradient=any(map(_is_gradient, layers(fun))),
        cell=_cell_of(fun),
    )


def _parameters(fun: Callable[..., Any]) -> tuple[tuple[str, ...], str | None, str | None, set[str], set[str]]:
    try:
        parameters = inspect.signature(fun).parameters.values()
    except (TypeError, ValueError):  # builtins without one; JAX jits them all the same
        return (), None, None, set(), set()
    kinds = inspect.Parameter
    positional = tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))
    star = next((p.name for p in parameters if p.kind is kinds.VAR_POSITIONAL), None)
    stars = next((p.name for p in parameters if p.kind is kinds.VAR_KEYWORD), None)
    keyword_only = {p.name for p in parameters if p.kind is kinds.KEYWORD_ONLY}
    return positional, star, stars, keyword_only, {p.name for p in parameters if p.default is not p.empty}


# ------------------------------------------------------------------ layers: partials, wrappers, methods


def layers(fun: Any) -> Iterator[Any]:
    """List the function and what it wraps, outermost first: partials, ``functools.wraps``, methods, callables."""
    for _ in range(32):  # a bound: __wrapped__ may lead in a circle
        yield fun
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif isinstance((inner := _attribute(fun, "__wrapped__")), Callable):  # type: ignore[arg-type]  # is a class
            fun = inner
        else:
            return


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute that lies in the object's own dictionary; a proxy's ``__getattr__`` is never asked."""
    try:
        found = vars(value).get(name)
    except TypeError:
        return None
    return found


def _is_gradient(layer: Any) -> bool:
    """Whether the layer is what jax.grad made: a wrapper of JAX's, with that function in its closure."""
    code = _code(layer)
    if code is None or not code.co_filename.startswith(_compat.jax_folder()):
        return False
    held = [cell.cell_contents for cell in getattr(layer, "__closure__", None) or ()]
    return any("grad" in each.__code__.co_name for each in held if isinstance(each, types.FunctionType))


def innermost(fun: Any) -> Any:
    """Return the user's function under partials, wrappers and methods."""
    *_, last = layers(fun)
    return last


def _code(fun: Any) -> types.CodeType | None:
    code = getattr(fun, "__code__", None) if isinstance(fun, types.FunctionType) else None
    if code is None and isinstance((call := type(fun).__dict__.get("__call__")), types.FunctionType):
        code = call.__code__
    return code


# Up to the last <locals>., and the comprehension that a lambda stands in (3.11 names it, 3.12 does not).
_NESTED = re.compile(r"^.*<locals>\.(<(listcomp|dictcomp|setcomp|genexpr)>\.)*", re.DOTALL)


def function_name(fun: Any) -> str:
    """Return what follows the last ``<locals>.`` in the qualified name of the innermost function."""
    inner = innermost(fun)
    name = getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None)
    if not isinstance(name, str) or not name:
        name = type(inner).__name__
    return shortened(_NESTED.sub("", name) or name, _limits.NAME_CHARACTERS)


def definition_of(fun: Any) -> str:
    """Return ``file:line`` of the innermost function, or ``<type name>`` where it has no code of Python's."""
    inner = innermost(fun)
    code = _code(inner)
    return _cells.definition(code) if code else f"<{type(inner).__name__}>"


def _cell_of(fun: Any) -> int | None:
    code = _code(innermost(fun))
    return _cells.running() if code is not None and _cells.number(code.co_filename) is not None else None


def code_of(fun: Any) -> str:
    """Return a text that is equal for function objects made of the same code in the same layers.

    A wrapper that a library makes of each function, and names as that, is as many functions as it has names.
    """
    return " < ".join(map(_layer_code, layers(fun)))


def _layer_code(layer: Any) -> str:
    code = _code(layer)
    if code is None:
        return type(layer).__name__
    name = layer.__name__ if isinstance(layer, types.FunctionType) else code.co_name
    renamed = f":{name}" if name != code.co_name else ""
    if _cells.number(code.co_filename) is not None:  # wherever it stands: a cell is run again, and edited before
        return f"cell:{_cells.fingerprint(code)}{renamed}{_closed_over(layer)}"
    # its hash is that of its value, and tells two lambdas of one line apart
    return f"{code.co_filename}:{code.co_firstlineno}:{hash(code)}{renamed}{_closed_over(layer)}"


_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial, _compat.PJIT_TYPE)
_CLOSED_OVER = 16  # functions of a closure that are looked at


def _closed_over(layer: Any) -> str:
    """Return the code of the functions that a function closes over: what a library makes of two is two."""
    parts: list[str] = []
    for cell in (layer.__closure__ or ()) if isinstance(layer, types.FunctionType) else ():
        try:
            held = cell.cell_contents
        except ValueError:  # the cell is empty: a function that refers to itself, not yet bound
            continue
        if type(held) not in _FUNCTIONS:  # to ask anything of what else may lie there can run code of the user's
            continue
        inner = innermost(held)
        if isinstance(inner, types.FunctionType) and inner is not layer and len(parts) < _CLOSED_OVER:
            parts.append(str(hash(inner.__code__)))
    return f" over {' '.join(parts)}" if parts else ""


# ------------------------------------------------------------------ identity

_serials = itertools.count(1)
_known: dict[int, tuple[weakref.ref[Any], int]] = {}
_lock = threading.RLock()  # what is allocated under it may run a finalizer that jits


def serial(value: Any) -> str:
    """Return a text that no other object, living or dead, has; its address where it cannot be referenced weakly."""
    key = id(value)
    try:
        with _lock:
            kept = _known.get(key)
            if kept is not None and kept[0]() is value:
                return str(kept[1])
            number = next(_serials)
            _known[key] = weakref.ref(value, lambda ref: _forget(key, ref)), number
            return str(number)
    except TypeError:
        return f"0x{key:x}"


def _forget(key: int, ref: weakref.ref[Any]) -> None:
    kept = _known.get(key)  # no lock: this may run in the midst of its owner
    if kept is not None and kept[0] is ref:
        _known.pop(key, None)


def identity_of(fun: Any) -> str:
    """Return a text that is equal for function objects that are equal to JAX: the same one, or equal bound methods."""
    if isinstance(fun, types.MethodType):
        return f"{serial(fun.__self__)}.{serial(fun.__func__)}"
    return serial(fun)


# ------------------------------------------------------------------ whose code it is

_LIBRARY_FOLDERS = tuple(
    {os.path.join(path, "") for name in ("purelib", "platlib", "stdlib") if (path := sysconfig.get_path(name))}
)


def in_library(definition: str) -> bool:
    """Whether ``file:line`` belongs to an installed package or the standard library."""
    return definition.startswith(_LIBRARY_FOLDERS) or definition.startswith("<")


def in_jax(fun: Any) -> bool:
    """Whether the innermost function's code lies in jax itself."""
    return definition_of(fun).startswith(_compat.jax_folder())
