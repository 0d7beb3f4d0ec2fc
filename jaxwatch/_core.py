"""``jaxwatch.jit``: jax.jit, and what it returns watched. Picks the core that does so."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from jaxwatch import _compat, _listeners, _plan, _session, _wrap
from jaxwatch._guards import subject_of
from jaxwatch._options import Watch, checked_watch, switched_off
from jaxwatch._registry import REGISTRY
from jaxwatch._stats import FunctionStats

CORE_NAME: Final = "python"  # the native core comes later


class _Missing:
    """Stands for a function that is not given yet."""

    def __repr__(self) -> str:
        return "<function>"


_MISSING: Any = _Missing()


def jit(fun: Callable[..., Any] = _MISSING, /, *, watch: Watch | None = None, **options: Any) -> Any:
    """Jit ``fun`` as ``jax.jit`` does, and watch it.

    Args:
        fun: The function; left out, a decorator is returned.
        watch: How it is watched; None for the defaults.
        options: All that ``jax.jit`` of the installed version takes, with its meaning and its errors.

    Returns:
        The jitted function; it behaves as JAX's own does.

    Raises:
        BadWatchError: ``watch`` is no ``Watch``.
    """
    chosen = checked_watch(watch)
    if fun is _MISSING:
        _check(options)
        return lambda later: jit(later, watch=watch, **options)
    jitted = _compat.ORIGINAL_JIT(fun, **options)
    if not chosen.enabled or switched_off() or type(jitted) is not _compat.PJIT_TYPE:
        return jitted
    try:
        return _wrap.watch(jitted, fun, chosen, options)
    except Exception:  # noqa: BLE001 -- a function that we cannot read is still jitted
        REGISTRY.count_dropped("event")
        return jitted


def _check(options: dict[str, Any]) -> None:
    """Let JAX refuse what it refuses where ``jit`` is called without a function; before 0.8.1 it never could be."""
    if inspect.signature(_compat.ORIGINAL_JIT).parameters["fun"].default is not inspect.Parameter.empty:
        _compat.ORIGINAL_JIT(**options)


def installed_jit() -> Callable[..., Any]:
    """Return what ``install`` puts in place of ``jax.jit``: it leaves alone functions whose code lies in jax itself."""

    @functools.wraps(_compat.ORIGINAL_JIT)
    def installed(fun: Callable[..., Any] = _MISSING, /, **options: Any) -> Any:
        if fun is _MISSING:
            _check(options)
            return lambda later: installed(later, **options)
        if _plan.in_jax(fun):
            return _compat.ORIGINAL_JIT(fun, **options)
        return jit(fun, **options)

    installed.__jaxwatch__ = True  # type: ignore[attr-defined]  # how uninstall knows it
    return installed


def stats(function: Any) -> FunctionStats:
    """Return the figures of a watched function as they are now.

    Args:
        function: What ``jaxwatch.jit`` returned, or a method bound to it.

    Returns:
        A frozen ``FunctionStats``.

    Raises:
        NotWatchedError: It is not watched.
    """
    return REGISTRY.stats(subject_of(function))


if not switched_off():  # from here on eager compiles are seen too, before any function is watched
    _session.start()
    _listeners.ensure()
