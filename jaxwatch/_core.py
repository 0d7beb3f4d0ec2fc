"""``jaxwatch.jit``: jax.jit, and what it returns watched. Picks the core; nobody else imports the extension."""

import copy
import copyreg
import functools
import importlib
import os
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from jaxwatch import _compat, _hook, _listeners, _plan, _session, _wrap
from jaxwatch._guards import subject_of
from jaxwatch._options import Watch, checked_watch, switched_off
from jaxwatch._registry import REGISTRY
from jaxwatch._stats import FunctionStats
from jaxwatch._subject import make_subject
from jaxwatch.errors import BadOptionError, NoNativeCoreError


class Core(NamedTuple):
    """The core in use, and why it is that one."""

    name: str  # native or python
    reason: str
    hooks: _hook.Hooks | None  # of the native core


def pick(environ: Mapping[str, str] = os.environ) -> Core:
    """Return the native core where it is built and fits this JAX, else the Python twin.

    ``JAXWATCH_CORE=python`` asks for the twin, ``JAXWATCH_CORE=native`` fails where the native core cannot be used.

    Raises:
        NoNativeCoreError: It was asked for and cannot be used.
        BadOptionError: ``JAXWATCH_CORE`` has another value.
    """
    wanted = environ.get("JAXWATCH_CORE", "")
    if wanted not in ("", "native", "python"):
        raise BadOptionError(f"JAXWATCH_CORE={wanted!r} is no core.", "Give native or python, or leave it unset.")
    if wanted == "python":
        return Core("python", "JAXWATCH_CORE=python asks for it", None)
    try:
        hooks = _hook.Hooks(importlib.import_module("jaxwatch._native.core"))
    except ImportError as error:
        reason = f"the native core was not built: {error}"
    except Exception as error:  # noqa: BLE001 -- whatever does not fit, the twin works
        reason = f"the native core does not fit this JAX: {error}"
    else:
        seen = "departures from the fast path are seen" if hooks.exact else "departures from the fast path are not seen"
        return Core("native", seen, hooks)
    if wanted == "native":
        raise NoNativeCoreError(f"{reason}.", "Unset JAXWATCH_CORE, or install jaxwatch with a C compiler.")
    return Core("python", reason, None)


CORE = pick()
REGISTRY.call_seconds = _wrap.call_seconds() if CORE.hooks is None else CORE.hooks.call_seconds


# ------------------------------------------------------------------ jit


def _adopt(jitted: Any, fun: Any, watch: Watch | None, options: Mapping[str, Any]) -> Any:
    """Return what ``jax.jit`` returned watched; without a function, the decorator that does so."""
    chosen = checked_watch(watch)
    if fun is None:
        return _decorator(jitted, options, lambda later, function, _, __: _adopt(later, function, chosen, options))
    if not chosen.enabled or switched_off() or type(jitted) is not _compat.PJIT_TYPE:
        return jitted
    try:
        _listeners.ensure()
        if CORE.hooks is None:
            return _wrap.watch(jitted, fun, chosen, options)
        return CORE.hooks.watch(jitted, fun, chosen, options)
    except Exception:  # noqa: BLE001 -- a function that we cannot read is still jitted
        REGISTRY.count_dropped("event")
        return jitted


def _adopt_installed(jitted: Any, fun: Any, watch: Any, options: Mapping[str, Any]) -> Any:
    """As ``_adopt``, under ``install``: functions whose code lies in jax are left alone, and watch= is unknown."""
    if watch is not None:
        return _compat.ORIGINAL_JIT(fun, watch=watch, **options)  # JAX's own error
    if fun is None:
        return _decorator(
            jitted, options, lambda later, function, _, __: _adopt_installed(later, function, None, options)
        )
    return jitted if _plan.in_jax(fun) else _by_install(_adopt(jitted, fun, None, options))


def _by_install(watched: Any) -> Any:
    subject = REGISTRY.find(watched)
    if subject is not None:
        subject.by_install = True
    return watched


def _decorator(made: Any, options: Mapping[str, Any], adopt: Callable[..., Any]) -> Any:
    """Return what ``jit(**options)`` is, of JAX's own decorator; None for a JAX that has none."""
    if "fun" in options:  # that JAX takes it by name too, and warns
        return adopt(_compat.ORIGINAL_JIT(**options), options["fun"], None, {})
    return _jit_of(made or functools.partial(_compat.ORIGINAL_JIT, **options), adopt)


def _jit_of(original: Callable[..., Any], adopt: Callable[[Any, Any, Any, Any], Any], *, decorates: bool = True) -> Any:
    """Return ``original``, with what it returns handed to ``adopt``; by the native core without a Python frame.

    Without a function ``adopt`` gets None for it, and None for what was returned where ``original`` takes none.
    """
    if CORE.hooks is not None:
        return CORE.hooks.native.Jit(original, adopt, decorates)

    def jit(*args: Any, watch: Any = None, **options: Any) -> Any:
        made = original(*args, **options) if args or decorates else None
        return adopt(made, args[0] if args else None, watch, options)

    return jit


def _signature_of_jit(fun: Callable[..., Any] = ..., /, *, watch: Watch | None = None, **options: Any) -> Any:
    """Jit ``fun`` as ``jax.jit`` does, and watch it.

    Args:
        fun: The function; left out, a decorator is returned.
        watch: How it is watched; None for the defaults.
        options: All that ``jax.jit`` of the installed version takes, with its meaning and its errors.

    Returns:
        The jitted function; with the native core it is JAX's own object.

    Raises:
        BadWatchError: ``watch`` is no ``Watch``.
    """
    raise NotImplementedError


_Jit = TypeVar("_Jit", bound=Callable[..., Any])


def _named(made: Any, like: _Jit) -> _Jit:
    functools.update_wrapper(made, like)
    named: _Jit = made
    return named


jit = _named(_jit_of(_compat.ORIGINAL_JIT, _adopt, decorates=_compat.HAS_DECORATOR_FORM), _signature_of_jit)
jit.__name__ = jit.__qualname__ = "jit"
jit.__module__ = "jaxwatch"


def installed_jit() -> Any:
    """Return what ``install`` puts in place of ``jax.jit``."""
    jit_of = _jit_of(_compat.ORIGINAL_JIT, _adopt_installed, decorates=_compat.HAS_DECORATOR_FORM)
    made: Any = _named(jit_of, _compat.ORIGINAL_JIT)
    made.__module__ = "jax"  # where pickle finds it: in jax._src.api it is JAX's own
    made.__jaxwatch__ = True  # how uninstall knows it
    return made


# ------------------------------------------------------------------ copies


def rewatch(jitted: Any, chosen: Watch, by_install: bool) -> Any:  # noqa: FBT001 -- a pickle gives no names
    """Watch a function that was copied or unpickled; as it is where its function cannot be told, or it is no copy."""
    fun = _compat.function_of(jitted)
    if fun is None or REGISTRY.find(jitted) is not None:
        return jitted
    watched = _adopt(jitted, fun, chosen, {})
    return _by_install(watched) if by_install else watched


def _reduced(function: Any) -> Any:
    """Return what ``copy`` and ``pickle`` are to make of a jitted function: of a watched one, one that is watched.

    Where the program does not name jaxwatch its pickles do not either: they may be read where it is not installed.
    """
    subject = REGISTRY.find(function)
    inner = function if subject is None else _inner(function)
    copied = sys._getframe(1).f_globals is vars(copy)  # noqa: SLF001 -- and not pickled
    if subject is None or (subject.by_install and not copied):
        return inner.__reduce_ex__(_PROTOCOL)
    return rewatch, (inner, subject.watch, subject.by_install)


def _inner(watched: Any) -> Any:
    """Return a plain copy of the jitted function that a watched one is, or has behind it."""
    if isinstance(watched, _wrap.WatchedPjitFunction):
        return copy.copy(watched._inner)  # noqa: SLF001 -- the twin's
    return watched if CORE.hooks is None else CORE.hooks.plain(watched)


_PROTOCOL = 4  # of pickle; JAX's own needs 2 at least
for _kind in (_compat.PJIT_TYPE, _wrap.WatchedPjitFunction, _wrap.ScopedPjitFunction):
    copyreg.pickle(_kind, _reduced)


def measurer() -> Any:
    """Return what measures outermost calls: its ``measure`` and ``measured`` are those of ``_wrap``."""
    return _wrap if CORE.hooks is None else CORE.hooks


# ------------------------------------------------------------------ functions that were jitted elsewhere


def attach(function: Any, *, watch: Watch | None = None) -> Any:
    """Begin to watch a function that was jitted before, elsewhere, by a library, in place; return it.

    What is watched already stays as it is. Needs the native core.

    Raises:
        BadOptionError: It is not what ``jax.jit`` returned.
        BadWatchError: ``watch`` is no ``Watch``.
        NoNativeCoreError: Only the Python twin is there, which cannot watch in place.
    """
    chosen = checked_watch(watch)
    jitted = _unbound(function)
    fun = _hook.wrapped_function(jitted)
    if REGISTRY.find(jitted) is not None or switched_off():
        return function
    if CORE.hooks is None:
        problem = f"attach works in place, with the native core alone; {CORE.reason}."
        raise NoNativeCoreError(problem, "Jit with jaxwatch.jit, or call jaxwatch.install() before it is jitted.")
    _listeners.ensure()
    CORE.hooks.attach(jitted, fun, chosen)
    _by_install(jitted)
    return function


def _unbound(function: Any) -> Any:
    """Return the function of a bound method, and anything else as it is."""
    return function.__func__ if type(function) is types.MethodType else function


def detach(function: Any) -> Any:
    """Stop watching a function; return JAX's own: the same object with the native core, the one behind it otherwise.

    Its counts stay in the metrics.

    Raises:
        NotWatchedError: It is not watched.
    """
    if switched_off():
        return function
    subject_of(function)
    watched = _unbound(function)
    if isinstance(watched, _wrap.WatchedPjitFunction):
        REGISTRY.remove(watched)
        return watched._inner  # noqa: SLF001 -- the twin's
    if CORE.hooks is not None:
        CORE.hooks.detach(watched)
    return function


def stats(function: Any) -> FunctionStats:
    """Return the figures of a watched function as they are now.

    Args:
        function: What ``jaxwatch.jit`` returned, or a method bound to it.

    Returns:
        A frozen ``FunctionStats``; of nothing but zeros where ``JAXWATCH=0`` switches all off.

    Raises:
        NotWatchedError: It is not watched.
    """
    jitted = _unbound(function)
    if switched_off() and type(jitted) is _compat.PJIT_TYPE:
        return REGISTRY.stats(make_subject(jitted, _hook.wrapped_function(jitted), Watch(), {}))
    return REGISTRY.stats(subject_of(function))


if not switched_off():  # from here on eager compiles are seen too, before any function is watched
    _session.start()
    _listeners.ensure()
