"""Runs an action right after a module was imported for the first time, and changes nothing else about the import.

A finder at the head of ``sys.meta_path`` lets the others find the module, and puts itself between the import system and
the loader's ``exec_module`` for the one execution. The module, its spec and its loader are those it would have had.
"""

import importlib.machinery
import sys
import threading
import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from jaxwatch.errors import JaxwatchWarning

# Frames of this file are skipped by ``warnings`` and left out of tracebacks like the import system's own.
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"

# Modules that were executed under our eyes, or are just being. The import system has not finished with the former while
# their action runs; and a lazy module looks finished all the time.
_executed: set[str] = set()
_executing: set[str] = set()


def when_imported(name: str, action: Callable[[], None]) -> Callable[[], None]:
    """Run ``action`` once, as soon as module ``name`` has been executed; at once if that is behind us.

    What ``action`` raises is warned of, and the import goes on.

    Args:
        name: A top-level module, ``jax`` say.
        action: Runs on the importing thread, before the import statement is through.

    Returns:
        A function that calls it off; once the action has run, it does nothing.

    Warns:
        JaxwatchWarning: ``action`` raised an ``Exception``.
    """
    finder = _Finder(name, action)
    if _is_ready(name):
        finder.fire()
    else:
        sys.meta_path.insert(0, finder)
    return finder.remove


def _is_ready(name: str) -> bool:
    module = sys.modules.get(name)
    if module is None or name in _executing or type(module).__name__ == "_LazyModule":  # a look would load it
        return False
    return name in _executed or not getattr(getattr(module, "__spec__", None), "_initializing", False)


class _Finder:
    """Finds the one module through the others; stays first, since a program's own finders may come before it."""

    def __init__(self, name: str, action: Callable[[], None]) -> None:
        self._name = name
        self._action: Callable[[], None] | None = action
        self._lock = threading.Lock()
        self._here = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec that the other finders have for our module; None for all else."""
        if self._action is None or getattr(self._here, "busy", False):  # busy: another finder asks the whole path
            return None
        if fullname == self._name:
            spec = self._found_by_others(fullname, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _firing(spec.loader, fullname, self.fire)
            return spec
        self._keep_watch()
        return None

    def fire(self) -> None:
        """Run the action, the first time."""
        with self._lock:
            action, self._action = self._action, None
        self.remove()
        if action is None:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 -- the program's import must succeed as it would without us
            _warn(f"jaxwatch could not start when {self._name} was imported: {type(error).__name__}: {error}")

    def remove(self) -> None:
        """Call the action off."""
        self._action = None
        others = [finder for finder in sys.meta_path or () if finder is not self]
        if len(others) < len(sys.meta_path or ()):
            # A new list: another thread may walk along the present one, and would miss a finder if it got shorter.
            sys.meta_path = others

    def _found_by_others(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        self._here.busy = True
        try:
            for finder in list(sys.meta_path):
                find: Any = getattr(finder, "find_spec", None)
                spec = find(fullname, path, target) if find is not None and finder is not self else None
                if spec is not None:
                    return spec  # type: ignore[no-any-return]  # the import system trusts its finders too
            return None
        finally:
            self._here.busy = False

    def _keep_watch(self) -> None:
        """Go back to the head of the path; and if another finder has given out our module meanwhile, fire now."""
        if _is_ready(self._name):
            self.fire()
            return
        with self._lock:
            path: list[Any] = sys.meta_path
            if path[0] is not self and any(finder is self for finder in path):
                path.insert(0, self)  # in this order, who walks along the list misses nothing
                del path[max(index for index, finder in enumerate(path) if finder is self)]


def _warn(text: str) -> None:
    try:
        warnings.warn(text, JaxwatchWarning, stacklevel=2)
    except JaxwatchWarning:  # warnings are errors, and an error here would break the import
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


def _firing(loader: Any, name: str, fire: Callable[[], None]) -> Any:
    """Return ``loader``, or one like it, that fires after it has executed module ``name``."""
    execute = getattr(loader, "exec_module", None)
    if execute is None:  # a loader of the old kind; the next import of anything else will fire
        return loader

    in_place = hasattr(loader, "__dict__") and not isinstance(loader, type)  # a class loads all frozen modules

    def exec_module(module: types.ModuleType) -> None:
        ours = not in_place or module.__name__ == name  # the loader of an archive is one for all its modules
        try:
            if ours:
                _restore(loader, module, in_place=in_place)
                _executing.add(name)
            execute(module)
        except BaseException as error:
            # The frame of this function goes: the traceback is that of a plain import.
            error.__traceback__ = error.__traceback__.tb_next if error.__traceback__ else None
            raise
        finally:
            if ours:
                _executing.discard(name)
        if ours:
            _executed.add(name)
            fire()

    exec_module.__code__ = exec_module.__code__.replace(co_filename=_IMPORT_SYSTEM)
    if not in_place:
        return _StandIn(loader, exec_module)
    vars(loader)["exec_module"] = exec_module
    return loader


def _restore(loader: Any, module: types.ModuleType, *, in_place: bool) -> None:
    """Make loader and module what they are without us, before the module's code can look."""
    if in_place:
        vars(loader).pop("exec_module", None)
    else:
        module.__loader__ = loader
        if module.__spec__ is not None:
            module.__spec__.loader = loader


class _StandIn:
    """Stands in for a loader that takes no attribute, until the module is executed."""

    def __init__(self, loader: Any, exec_module: Callable[[types.ModuleType], None]) -> None:
        self._loader = loader
        self.exec_module = exec_module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
