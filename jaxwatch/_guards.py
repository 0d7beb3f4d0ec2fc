"""``no_retraces``, what a miss breaks (rules: ``_policy``), and the error that says so."""

import contextlib
import copy
import functools
import inspect
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar

from jaxwatch import _cells, _policy
from jaxwatch._history import Explanation
from jaxwatch._options import ACTIONS, Action, switched_off
from jaxwatch._places import place_here
from jaxwatch._policy import Broken
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._words import change_text
from jaxwatch.errors import BadOptionError, NotWatchedError, RetraceError
from jaxwatch.events import Advice

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OWN = os.path.join(os.path.dirname(__file__), "")


@dataclass(eq=False)
class Guard:
    """One ``no_retraces`` that is in force, on all threads."""

    subjects: tuple[Subject, ...]  # empty: all watched functions
    action: Action
    allow: int  # misses that each function may have
    by: str
    seen: Counter[Subject] = field(default_factory=Counter)
    refusals: list[tuple[int, RetraceError]] = field(default_factory=list)  # thread, what was raised on it
    broken: list[str] = field(default_factory=list)  # the texts of what was only recorded

    def covers(self, subject: Subject) -> bool:
        """Whether that function is guarded."""
        return not self.subjects or any(kept is subject for kept in self.subjects)


_active: tuple[Guard, ...] = ()
_lock = threading.RLock()  # what is allocated under it may run a finalizer that misses


def any_for(subject: Subject) -> bool:
    """Whether a miss of that function may be forbidden; cheap, asked at each miss."""
    return subject.watch.forbids or _policy.in_use() or any(guard.covers(subject) for guard in _active)


def judge(
    subject: Subject, signature: str | None, *, new_signature: bool, first: bool
) -> list[tuple[Guard | None, Broken]]:
    """Count a miss of ``subject`` with every guard, and return those that forbid it, and the rule that does.

    Args:
        subject: The function.
        signature: The key's, where it is known.
        new_signature: Whether none of the watched object's misses had this signature.
        first: Whether it is the watched object's first miss.
    """
    found: list[tuple[Guard | None, Broken]] = []
    with _lock:
        for guard in _active:
            if not guard.covers(subject):
                continue
            guard.seen[subject] += 1
            if guard.seen[subject] > guard.allow:
                found.append((guard, Broken(guard.action, guard.allow, guard.by)))
    said = _policy.verdict(subject, signature, new_signature=new_signature, first=first)
    if said is not None:
        found.append((None, said))
    return found


# ------------------------------------------------------------------ the error


def refusal(  # noqa: PLR0913 -- each is a part of the one message
    subject: Subject,
    explanation: Explanation,
    advice: Sequence[Advice],
    by: str,
    *,
    site: str,
    call: int,
    phase: Literal["trace", "lower", "compile"],
) -> RetraceError:
    """Return the error for a forbidden miss that has not been compiled yet."""
    name = subject.name
    done = {"trace": "traced", "lower": "lowered", "compile": "compiled"}[phase]
    again = "" if explanation.reasons[0] == "first_call" else " again"
    lines = [f"{name} would be {done}{again} at {place_here(site)} (call {call})."]
    lines += evidence(explanation)
    lines += [f"  {entry.text}" for entry in advice[:2]]
    left = "stays off JAX's fast path" if phase == "trace" else "is lowered and compiled anew at each call"
    lines.append(f"  Forbidden by {by}. Nothing was compiled; other keys of {name} are untouched;")
    lines.append(f"  this one {left} until {name}.clear_cache().")
    return RetraceError("\n".join(lines))


def evidence(explanation: Explanation) -> list[str]:
    """Return a line for each of the first differences."""
    told = list(dict.fromkeys(map(change_text, explanation.changes)))[:5]
    if not told:
        return ["  It is the first call of this function." if explanation.reasons[0] == "first_call" else ""]
    if explanation.compared_with is not None:
        told[-1] += f"; compared with call {explanation.compared_with.call}"
    return [f"  {line}" for line in told]


# ------------------------------------------------------------------ no_retraces


class no_retraces:  # noqa: N801 -- used as a context manager and decorator, as pytest.raises is
    """Forbid traces and compiles: ``with no_retraces(step): …``, or as a decorator, of an ``async def`` too.

    Inside, every trace or compile of the functions counts, the first call's too: warm up before, or ``allow=1``. It is
    in force on all threads. Calls that only leave JAX's fast path do not count.

    Args:
        functions: Watched functions; none means all watched ones.
        action: ``raise`` a ``RetraceError`` in the call, before XLA compiles; ``warn`` or ``record`` after it.
        allow: How many misses each function may have.

    Raises:
        NotWatchedError: A function is not watched.
        BadOptionError: ``action`` or ``allow`` means nothing; or it decorates a generator function.
        RetraceError: In the call that was refused; and at the end of the block for a call refused on another thread,
            where the error may have gone unseen.
    """

    def __init__(self, *functions: Callable[..., Any], action: Action = "raise", allow: int = 0) -> None:
        if action not in ACTIONS:
            raise BadOptionError(f"no_retraces(action={action!r}) is no action.", f"Give one of {ACTIONS}.")
        if isinstance(allow, bool) or not isinstance(allow, int) or allow < 0:
            raise BadOptionError(f"no_retraces(allow={allow!r}) is no number of misses.", "Give 0 or more.")
        self._subjects = () if switched_off() else tuple(map(subject_of, functions))
        self._action: Action = action
        self._allow = allow
        self._by = f"no_retraces at {written_at()}"
        self._guards: list[Guard] = []

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return ``function`` guarded: at each call a guard of its own, for as long as the call takes."""
        return decorated("no_retraces", function, self._again)

    def _again(self) -> "no_retraces":
        fresh = copy.copy(self)
        fresh._guards = []  # noqa: SLF001 -- of this very class
        return fresh

    def __enter__(self) -> Guard:
        """Put the guard in force."""
        guard = Guard(self._subjects, self._action, self._allow, self._by)
        self._guards.append(guard)
        _add(guard)
        return guard

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Lift the guard; raise what was refused on another thread where no error is under way."""
        guard = self._guards.pop()
        _remove(guard)
        here = threading.get_ident()
        elsewhere = [refused for thread, refused in guard.refusals if thread != here]
        if kind is None and elsewhere:
            raise elsewhere[0]


def decorated(
    name: str, function: Callable[_P, _R], block: Callable[[], contextlib.AbstractContextManager[object]]
) -> Callable[_P, _R]:
    """Return ``function`` with each call of it in a block of its own; an ``async def`` up to its end.

    Raises:
        BadOptionError: It is a generator function.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        problem = f"{name} cannot decorate the generator function {function.__qualname__}:"
        raise BadOptionError(f"{problem} its body runs after the call.", "Put a with block into the body.")

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with block():
            return function(*args, **kwargs)

    @functools.wraps(function)
    async def guarded_async(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        with block():
            return await function(*args, **kwargs)  # type: ignore[misc]  # a coroutine function it is

    return guarded_async if inspect.iscoroutinefunction(function) else guarded  # type: ignore[return-value]  # as above


def written_at() -> str:
    """Return where the user wrote it; without ``_callsite``, which needs jax."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- as in `_callsite`
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return "<unknown>" if frame is None else place_here(_cells.place(frame.f_code.co_filename, frame.f_lineno))


def subject_of(function: Any) -> Subject:
    """Return what is known of a watched function.

    Raises:
        NotWatchedError: It is not watched.
    """
    subject = REGISTRY.find(function)
    if subject is None:
        _not_watched(function)
    return subject


def _not_watched(function: Any) -> NoReturn:
    what = getattr(function, "__name__", None) or type(function).__name__
    way_out = (
        "Jit it with jaxwatch.jit, call jaxwatch.install() (in tests: pytest --jaxwatch) before it is jitted, "
        "or jaxwatch.attach it."
    )
    if switched_off():
        way_out = "JAXWATCH=0 in the environment switches jaxwatch off: unset it."
    raise NotWatchedError(f"{what!r} ({type(function).__name__}) is not watched by jaxwatch.", way_out)


def _add(guard: Guard) -> None:
    global _active  # noqa: PLW0603 -- replaced as a whole, so that readers need no lock
    with _lock:
        _active = (*_active, guard)


def _remove(guard: Guard) -> None:
    global _active  # noqa: PLW0603 -- as above
    with _lock:
        _active = tuple(kept for kept in _active if kept is not guard)


@contextlib.contextmanager
def lifted(guard: Guard) -> Iterator[None]:
    """Within the block, ``guard`` forbids and counts nothing."""
    _remove(guard)
    try:
        yield
    finally:
        _add(guard)


def in_force() -> int:
    """Return how many guards and stances are in force."""
    return len(_active) + _policy.in_force()
