"""``install`` and ``uninstall``: ``jax.jit`` replaced, for programs that are not to be changed."""

import sys
import threading
from collections.abc import Callable
from typing import Any

from jaxwatch import _importhook, _options

_lock = threading.RLock()


class _State:
    """What is installed."""

    installed = False
    cancel: Callable[[], None] | None = None  # of the import hook, while jax is not imported


def install() -> None:
    """Replace ``jax.jit`` by one that watches; where jax is not imported yet, as soon as it is.

    What was jitted before stays as it was, and so does what JAX jits itself. Calling it again changes nothing.
    ``JAXWATCH=0`` in the environment makes it do nothing.
    """
    with _lock:
        if _State.installed or _options.switched_off():
            return
        _State.installed = True
        _State.cancel = _importhook.when_imported("jax", _replace)


def uninstall() -> None:
    """Put ``jax.jit`` back; what was jitted meanwhile stays watched."""
    with _lock:
        if not _State.installed:
            return
        _State.installed = False
        if _State.cancel is not None:
            _State.cancel()
            _State.cancel = None
        jax: Any = sys.modules.get("jax")
        if jax is not None and getattr(jax.jit, "__jaxwatch__", False):
            from jaxwatch import _compat  # noqa: PLC0415 -- it imports jax, which is there

            jax.jit = _compat.ORIGINAL_JIT


def _replace() -> None:
    """Put ours in place of ``jax.jit``; runs right after jax was imported."""
    jax: Any = sys.modules["jax"]
    from jaxwatch import _core  # noqa: PLC0415 -- it imports jax, which install() must not

    with _lock:
        if _State.installed:
            jax.jit = _core.installed_jit()


def installed() -> bool:
    """Whether ``install`` is in force."""
    return _State.installed
