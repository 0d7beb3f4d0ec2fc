"""What was jitted before ``install``: found in the modules that are loaded, and watched in place.

Looking runs nothing of theirs: dictionaries are read past every ``__getattr__`` and property, so no lazy module loads.
"""

import sys
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from jaxwatch import _compat, _core, _plan
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch.errors import NoNativeCoreError

_JAX = {"jax", "jaxlib"}
_NESTED = 2  # a module's classes, and the classes in these
_MODULES_OWN: Any = vars(types.ModuleType)["__dict__"]
_CLASS_OWN: Any = vars(type)["__dict__"]

# What was attached here; not what the program attached itself, or attached again.
_attached: weakref.WeakKeyDictionary[Any, Subject] = weakref.WeakKeyDictionary()


def attach_all() -> None:
    """Begin to watch the functions that were jitted before, as far as loaded modules and their classes hold them.

    Raises:
        NoNativeCoreError: There are such functions, and the Python twin cannot watch in place.
    """
    found = [function for function in jitted_functions(_compat.PJIT_TYPE) if _is_wanted(function)]
    if found and _core.CORE.hooks is None:
        these = "1 function that was" if len(found) == 1 else f"{len(found)} functions that were"
        problem = f"{these} jitted before install(attach=True) cannot be watched in place; {_core.CORE.reason}."
        way_out = "Install before the modules that jit are imported; `jaxwatch doctor` tells of the native core."
        raise NoNativeCoreError(problem, way_out)
    for function in found:
        try:
            _core.attach(function)
            subject = REGISTRY.find(function)
            if subject is not None:
                _attached[function] = subject
        except Exception:  # noqa: BLE001 -- a function that we cannot read stays as it is
            REGISTRY.count_dropped("event")


def detach_all() -> None:
    """Stop watching what ``attach_all`` began to watch."""
    for function, subject in list(_attached.items()):
        if REGISTRY.find(function) is subject:
            _core.detach(function)
    _attached.clear()


def _is_wanted(function: Any) -> bool:
    """Whether a jitted function is the user's or a library's, and is not watched yet."""
    try:
        return REGISTRY.find(function) is None and not _plan.in_jax(_compat.function_of(function))
    except Exception:  # noqa: BLE001 -- a callable of the user's whose attributes raise
        REGISTRY.count_dropped("event")
        return False


def jitted_functions(kind: type) -> list[Any]:
    """Return the objects of type ``kind`` in globals and class attributes of all modules but JAX's, each once."""
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):  # a copy: other threads import
        if type(name) is str and name.partition(".")[0] not in _JAX and issubclass(type(module), types.ModuleType):
            values = list(_MODULES_OWN.__get__(module).values())
            found.update((id(value), value) for value in _in(values, kind, name, _NESTED))
    return list(found.values())


def _in(values: Iterable[Any], kind: type, module: str, nested: int) -> Iterator[Any]:
    for held in values:
        value = _behind(held)
        if type(value) is kind:
            yield value
        elif nested and issubclass(type(value), type):
            attributes = _CLASS_OWN.__get__(value)
            home = attributes.get("__module__")
            if type(home) is str and home == module:  # else it was imported, and is another module's
                yield from _in(list(attributes.values()), kind, module, nested - 1)


def _behind(held: Any) -> Any:
    """Return the function of a method; all else as it is."""
    if type(held) is staticmethod or type(held) is classmethod:
        return held.__func__
    return held.fget if type(held) is property else held
