"""The hot path in Python: an object in front of JAX's own. The readable specification of what a native core does.

No state of its own can be reached through ``__dict__``: that is the jitted function's, since ``functools.wraps``, and
with it ``jax.grad`` and others, copies it.
"""

import threading
import types
from collections.abc import Callable, Mapping
from time import monotonic_ns, perf_counter_ns
from typing import Any, ClassVar

from jaxwatch import _compat, _inner, _listeners, _misses, _scope
from jaxwatch._frames import THREAD, Frame, under_way
from jaxwatch._options import Watch
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._subject import make_subject

_compat.leave_out(__file__)
_PRICED_CALLS = 100  # some 150 µs
_MOST_RECORDS = 1 << 21  # as the native core
_SLOW_NANOSECONDS = 1_000_000  # a call so slow is worth a look whether the listeners are still there


def _forwarded(name: str) -> Any:
    """Return a property that is the jitted function's attribute, where a class would answer by itself."""
    return property(
        lambda self: getattr(self._inner, name),
        lambda self, value: setattr(self._inner, name, value),
        lambda self: delattr(self._inner, name),
    )


def _ahead(name: str, text: str) -> Callable[..., Any]:
    """Return a method that calls the jitted function's own of that name; one frame, which no traceback shows."""

    def ahead(self: "WatchedPjitFunction", /, *args: Any, **kwargs: Any) -> Any:
        thread = THREAD
        up = thread.top
        thread.top = frame = Frame(self._subject, 0, args, kwargs)
        frame.aot = True
        try:
            return getattr(self._inner, name)(*args, **kwargs)
        except BaseException as error:
            trace = error.__traceback__
            error.__traceback__ = None if trace is None else trace.tb_next
            raise
        finally:
            thread.top = up
            if frame.seen:
                _misses.ahead_of_time(frame)

    ahead.__name__, ahead.__doc__ = name, text
    return ahead


class WatchedPjitFunction:
    """What ``jaxwatch.jit`` returns: calls the jitted function, counts, and times each call.

    Everything but the call is the jitted function's own answer. Safe for threads; holds nothing of a call. Its name has
    that of JAX's type in it, by which libraries know a jitted function: ``is_traceable`` of chex 0.1.92.
    """

    __slots__ = ("__weakref__", "_inner", "_subject")
    __dict__ = _forwarded("__dict__")
    __doc__ = _forwarded("__doc__")
    __module__ = _forwarded("__module__")

    def __init__(self, inner: Any, subject: Subject) -> None:
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_subject", subject)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the jitted function."""
        subject: Subject = self._subject
        cell = subject.counters.cell
        cell.calls = call = cell.calls + 1
        thread = THREAD
        up = thread.top
        thread.top = frame = Frame(subject, call, args, kwargs)
        started = perf_counter_ns()
        try:
            result = self._inner(*args, **kwargs)
        except BaseException as error:
            thread.top = up
            if frame.seen:
                _misses.failed(frame, error)
            # A bare `raise` adds no frame (CPython 3.11 on), so with ours taken out the traceback is as with jax.jit.
            refused = frame.seen and error is frame.refusal
            error.__traceback__ = None if refused or error.__traceback__ is None else error.__traceback__.tb_next
            raise
        nanoseconds = perf_counter_ns() - started
        thread.top = up
        if frame.seen:
            if _misses.finish(frame):
                cell.add(nanoseconds)
        elif thread.open and under_way():  # inside an outer trace it is no dispatch
            _inner.note(frame)
        else:
            cell.add(nanoseconds)
            if nanoseconds > _SLOW_NANOSECONDS:
                _listeners.ensure()
        return result

    # ---------------------------------------------------------------- ahead of time

    lower = _ahead("lower", "Lower the function for these arguments, as JAX does.")
    trace = _ahead("trace", "Trace the function for these arguments, as JAX does.")
    eval_shape = _ahead("eval_shape", "Return the shapes of the result, as JAX does.")

    def clear_cache(self) -> None:
        """Clear the function's caches, as JAX does."""
        self._inner.clear_cache()

    # ---------------------------------------------------------------- JAX's own object answers

    def __getattr__(self, name: str) -> Any:
        """Return the jitted function's attribute."""
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the jitted function's attribute."""
        setattr(self._inner, name, value)

    def __delattr__(self, name: str) -> None:
        """Delete the jitted function's attribute."""
        delattr(self._inner, name)

    def __dir__(self) -> list[str]:
        """List the jitted function's attributes."""
        return dir(self._inner)

    def __repr__(self) -> str:
        """Return the jitted function's ``repr``."""
        return repr(self._inner)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind to an instance, as functions do."""
        return self if instance is None else types.MethodType(self, instance)

    def __getstate__(self) -> Any:
        """Return the jitted function's state."""
        return self._inner.__getstate__()


# ------------------------------------------------------------------ scopes


class _Outer(threading.local):
    subject: Subject | None = None  # of the innermost scoped call of this thread


class _Measured:
    """What is kept of outermost calls; as the native core has it."""

    on = False
    count = 0
    records: ClassVar[list[_scope.Record]] = []
    after: Callable[[Any, int], None] | None = None
    nested: Callable[[Subject, Subject], None] | None = None


_outer = _Outer()


def measure(after: Callable[[Any, int], None] | None, nested: Callable[[Any, Any], None] | None) -> None:
    """Keep a record of each outermost scoped call from now on.

    Args:
        after: Called with the result of each, and its number from 1; what it raises comes out of the call.
        nested: Called with the subjects of a call and of one within it.
    """
    _Measured.on, _Measured.count, _Measured.after, _Measured.nested = True, 0, after, nested
    _Measured.records.clear()


def measured() -> tuple[int, list[_scope.Record]]:
    """Return the number of outermost calls, and the records of the first ones."""
    return _Measured.count, list(_Measured.records)


class ScopedPjitFunction(WatchedPjitFunction):
    """A ``WatchedPjitFunction`` that may be bypassed, and whose outermost calls may be measured."""

    __slots__ = ("_instead",)

    def __init__(self, inner: Any, subject: Subject, instead: Any) -> None:
        super().__init__(inner, subject)
        object.__setattr__(self, "_instead", instead)  # the user's function, or None

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the jitted function, or the user's own."""
        subject, up = self._subject, _outer.subject
        if up is not None and _Measured.nested is not None:
            _Measured.nested(up, subject)
        _outer.subject, begun = subject, monotonic_ns()
        try:
            if self._instead is not None:
                subject.counters.cell.calls += 1
                result = self._instead(*args, **kwargs)
            else:
                result = super().__call__(*args, **kwargs)
            if up is None and _Measured.on:
                _keep(result, begun, id(subject))
        except BaseException as error:
            trace = error.__traceback__
            error.__traceback__ = None if trace is None else trace.tb_next  # as in `WatchedPjitFunction`
            raise
        finally:
            _outer.subject = up
        return result


def _keep(result: Any, begun: int, function: int) -> None:
    returned = monotonic_ns()
    _Measured.count += 1
    if _Measured.after is not None:
        _Measured.after(result, _Measured.count)
    if len(_Measured.records) < _MOST_RECORDS:
        _Measured.records.append(_scope.Record(begun, returned, monotonic_ns(), function))


# ------------------------------------------------------------------ price


def call_seconds() -> float:
    """Return what a call from the cache pays for being watched: measured now, on a function that does nothing."""
    subject = Subject(name="", definition="", event_name="", in_library=False, watch=Watch(), plan=None)
    watched = WatchedPjitFunction(_nothing, subject)
    return max(0.0, 1e-9 * (min(map(_nanoseconds, [watched] * 3)) - min(map(_nanoseconds, [_nothing] * 3))))


def _nanoseconds(function: Callable[[], object]) -> float:
    started = perf_counter_ns()
    for _ in range(_PRICED_CALLS):
        function()
    return (perf_counter_ns() - started) / _PRICED_CALLS


def _nothing() -> None:
    return None


def watch(jitted: Any, fun: Any, chosen: Watch, options: Mapping[str, Any]) -> WatchedPjitFunction:
    """Return a jitted function watched.

    Args:
        jitted: What ``jax.jit`` returned.
        fun: The user's function that was given to it.
        chosen: How it is to be watched.
        options: The keywords that were given to ``jax.jit``.
    """
    subject = make_subject(jitted, fun, chosen, options)
    scoped, bypass = _scope.hooking(subject)
    watched = (
        ScopedPjitFunction(jitted, subject, fun if bypass else None) if scoped else WatchedPjitFunction(jitted, subject)
    )
    REGISTRY.add(watched, subject)
    return watched
