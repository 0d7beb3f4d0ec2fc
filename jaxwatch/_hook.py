"""The native core's other half: which function is hooked how, and what its slow path calls."""

import struct
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import jax

from jaxwatch import _ahead, _compat, _departures, _frames, _misses, _scope
from jaxwatch._options import Watch
from jaxwatch._registry import REGISTRY
from jaxwatch._subject import make_subject
from jaxwatch.errors import BadOptionError

_PRICED_CALLS = 300  # some 20 µs


class ProbeFailedError(Exception):
    """Something that the native core rests on does not hold on this JAX; never seen by users."""


class Hooks:
    """Watches functions by the native core ``native`` (the extension module).

    Attributes:
        native: The extension module.
        exact: Whether departures from JAX's fast path are seen.
        call_seconds: What a call from the cache pays for being watched, as measured at the start.

    Raises:
        ProbeFailedError: The core cannot be used here.
    """

    call_seconds: float

    def __init__(self, native: Any) -> None:
        self.native = native
        native.setup(_compat.PJIT_TYPE, _frames.Frame, _misses.finish, _refused, _departures.left)
        self.exact = self._probe()
        _frames.Active.frame = staticmethod(native.current)
        _frames.Active.ahead = staticmethod(_ahead.under_way)

    def watch(self, jitted: Any, fun: Any, chosen: Watch, options: Mapping[str, Any]) -> Any:
        """Return a jitted function watched: set up anew, with its departures from the fast path seen, and hooked."""
        cell = self.native.Cell()
        watched = self._seen_through(jitted, fun, cell)
        self._hook(watched, fun, chosen, options, cell)
        return watched

    def attach(self, jitted: Any, fun: Any, chosen: Watch) -> None:
        """Begin to watch a jitted function in place; departures from the fast path are not seen."""
        try:
            self._hook(jitted, fun, chosen, {}, self.native.Cell(), called_before=_compat.called_before(jitted))
        except ValueError:  # another thread was first
            if not self.native.is_hooked(jitted):
                raise

    def detach(self, jitted: Any) -> bool:
        """Stop watching a function; return whether it was watched."""
        REGISTRY.remove(jitted)
        return bool(self.native.unhook(jitted))

    def measure(self, after: Callable[[Any, int], None] | None, nested: Callable[[Any, Any], None] | None) -> None:
        """Keep a record of each outermost scoped call from now on; see ``_wrap.measure``."""
        self.native.measure(after, nested)

    def measured(self) -> tuple[int, list[_scope.Record]]:
        """Return the number of outermost calls, and the records of the first ones."""
        count, records = self.native.measured()
        return count, [_scope.Record(*fields) for fields in struct.iter_unpack("=QQQQ", records)]

    def plain(self, function: Any) -> Any:
        """Return a jitted function set up anew, as JAX's own copy is; the very one where that cannot be had."""
        if not _weakly_referable(_compat.function_of(function)):
            return function
        return self.native.plain(function)

    def _hook(  # noqa: PLR0913 -- as `make_subject`
        self,
        jitted: Any,
        fun: Any,
        chosen: Watch,
        options: Mapping[str, Any],
        cell: Any,
        *,
        called_before: bool = False,
    ) -> None:
        subject = make_subject(jitted, fun, chosen, options, cell)
        subject.called_before = called_before
        scoped, bypass = _scope.hooking(subject)
        self.native.hook(jitted, cell, subject, scoped, fun if bypass else None)
        REGISTRY.add(jitted, subject)

    def _seen_through(self, jitted: Any, fun: Any, cell: Any) -> Any:
        """Return the function with its cache misses seen, or as it is where that cannot be had."""
        # Without weak references __setstate__ raises, and its half-made object crashes when it is freed.
        if not self.exact or not _weakly_referable(fun):
            return jitted
        try:
            return self.native.exact(jitted, cell)
        except Exception:  # noqa: BLE001 -- another kind of state than expected: hooked all the same
            return jitted

    def _probe(self) -> bool:
        """Try the hook on a throw-away function, without a backend; return whether departures can be seen.

        The call fails for want of an argument, after JAX's fast path and before any array is made.
        """
        native, exact = self.native, True
        cell = native.Cell()
        jitted = _compat.ORIGINAL_JIT(_throw_away)
        try:
            function = native.exact(jitted, cell)
        except Exception:  # noqa: BLE001 -- not on this JAX
            function, exact = jitted, False
        native.hook(function, cell, None)
        try:
            with jax.disable_jit(False):  # noqa: FBT003 -- JAX's own; a program may begin with it on
                function()
        except TypeError:
            pass
        else:
            raise ProbeFailedError("a call without its argument did not fail")
        seen, departed = cell.calls == 1 and native.is_hooked(function), cell.left == 1
        if seen:
            self.call_seconds = 1e-9 * min(native.price(function, _PRICED_CALLS) for _ in range(3))
        if not seen or not native.unhook(function):
            raise ProbeFailedError("a hooked call was not seen")
        if type(function) is not _compat.PJIT_TYPE or _compat.function_of(function) is not _throw_away:
            raise ProbeFailedError("a hooked function is not what it was")
        return exact and departed


def _weakly_referable(value: Any) -> bool:
    try:
        weakref.ref(value)
    except TypeError:
        return False
    return True


def _throw_away(x: Any) -> Any:
    return x


def _refused(frame: _frames.Frame, error: BaseException) -> bool:
    """Tell of a call that failed; return whether the error is our own refusal, whose frames nobody wants to see."""
    _misses.failed(frame, error)
    return error is frame.refusal


def wrapped_function(jitted: Any) -> Any:
    """Return the user's function of a jitted one.

    Raises:
        BadOptionError: It is no jitted function.
    """
    if type(jitted) is not _compat.PJIT_TYPE or (fun := _compat.function_of(jitted)) is None:
        problem = f"attach({getattr(jitted, '__name__', jitted)!r}) was given a {type(jitted).__name__}."
        raise BadOptionError(problem, "Give what jax.jit returned.")
    return fun
