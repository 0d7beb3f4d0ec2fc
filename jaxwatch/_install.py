"""``install`` and ``uninstall``: ``jax.jit`` replaced, for programs that are not to be changed."""

import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

from jaxwatch import _importhook, _options
from jaxwatch.errors import JaxwatchWarning, NoNativeCoreError

_lock = threading.RLock()


class _State:
    """What is installed."""

    installed = False
    replaced = False  # jax is imported, and its jit is ours
    attached = False  # what was jitted before was looked for
    cancel: Callable[[], None] | None = None  # of the import hook, while jax is not imported


def install(*, attach: bool = False) -> None:
    """Replace ``jax.jit`` by one that watches; where jax is not imported yet, as soon as it is.

    What was jitted before stays as it was, and so does what JAX jits itself. Calling it again changes nothing.
    ``JAXWATCH=0`` in the environment makes it do nothing.

    Args:
        attach: Watch also what was jitted before, in place: functions that are a global of a loaded module or an
            attribute of a class there, also as staticmethod, classmethod or property. Out of reach are those that only
            another object holds: a ``functools.partial``, an instance, a closure; hand these to ``jaxwatch.attach``.
            Called again, it attaches what has come since.

    Warns:
        JaxwatchWarning: ``attach`` found functions and there is no native core; all else is done.
    """
    with _lock:
        if _options.switched_off():
            return
        if not _State.installed:
            _State.installed = True
            _State.cancel = _importhook.when_imported("jax", _replace)
        why_not = _attach_earlier() if attach and _State.replaced else None  # without jax, nothing is jitted
    if why_not is not None:
        warnings.warn(str(why_not), JaxwatchWarning, stacklevel=2)


def _attach_earlier() -> NoNativeCoreError | None:
    from jaxwatch import _earlier  # noqa: PLC0415 -- it imports jax, which is there

    _State.attached = True
    try:
        _earlier.attach_all()
    except NoNativeCoreError as error:  # a program must run the same where no compiler was
        return error
    return None


def uninstall() -> None:
    """Put ``jax.jit`` back, and detach what ``install`` attached; what was jitted meanwhile stays watched."""
    with _lock:
        if not _State.installed:
            return
        _State.installed = _State.replaced = False
        if _State.cancel is not None:
            _State.cancel()
            _State.cancel = None
        if _State.attached:
            from jaxwatch import _earlier  # noqa: PLC0415 -- as above

            _State.attached = False
            _earlier.detach_all()
        jax: Any = sys.modules.get("jax")
        if jax is not None and getattr(jax.jit, "__jaxwatch__", False):
            from jaxwatch import _compat  # noqa: PLC0415 -- as above

            jax.jit = _compat.ORIGINAL_JIT


def _replace() -> None:
    """Put ours in place of ``jax.jit``; runs right after jax was imported."""
    jax: Any = sys.modules["jax"]
    from jaxwatch import _core  # noqa: PLC0415 -- it imports jax, which install() must not

    with _lock:
        if _State.installed:
            jax.jit = _core.installed_jit()
            _State.replaced = True


def installed() -> bool:
    """Whether ``install`` is in force."""
    return _State.installed
