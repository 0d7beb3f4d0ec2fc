"""Which rule decides about a miss: ``configure``, ``Watch``, ``stance``; the innermost that says something wins.

``no_retraces`` is no such rule: it asserts, whatever they say (``_guards``).
"""

import os
import threading
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from jaxwatch._counters import OTHER
from jaxwatch._options import Action
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._steady import Steady


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule or guard that a miss breaks."""

    action: Action
    limit: int | None
    by: str  # what the user wrote, and where
    steady: bool = False  # of ``steady_after``: told by the console, and by no Python warning


Said = Broken | None
"""What a rule says of a miss; None: it is free."""

_STRICTNESS = {"record": 1, "warn": 2, "raise": 3}


def strictness(said: Said) -> int:
    """Return how strict that is; 0 for what is free."""
    return 0 if said is None else _STRICTNESS[said.action]


def decide(base: Said, started: Sequence[Said], elsewhere: Sequence[Said], own: Sequence[Said]) -> Said:
    """Return what counts, of what the rules that cover a function say of its miss; each sequence outermost first.

    Args:
        base: What ``configure`` and ``Watch`` say.
        started: Stances begun by ``start``: the last one takes the place of all before it.
        elsewhere: Blocks of other threads and tasks: they may make it stricter and never laxer.
        own: Blocks that the miss is in: the innermost decides alone.
    """
    if own:
        return own[-1]
    return max((started[-1] if started else base, *elsewhere), key=strictness)


# ------------------------------------------------------------------ the process's own


class Process:
    """What ``configure`` chose for all functions that say nothing themselves."""

    on_retrace: Action | None = None
    max_signatures: int | None = None
    steady: Steady | None = None


def said_at_first(subject: Subject, *, new_signature: bool, first: bool) -> Said:
    """Return what the function's ``Watch`` says of its miss, and where that is silent, the process.

    Args:
        subject: The function.
        new_signature: Whether none of the watched object's misses had this signature.
        first: Whether it is the watched object's first miss.
    """
    watch = subject.watch
    action: Action = watch.on_retrace or Process.on_retrace or "record"
    limit = Process.max_signatures if watch.max_signatures is None else watch.max_signatures
    said: Said = None
    if limit is not None:
        signatures = len(subject.counters.by_signature) - (OTHER in subject.counters.by_signature)
        if new_signature and signatures >= limit:
            where = "configure" if watch.max_signatures is None else "Watch"
            said = Broken(action, limit, f"{where}(max_signatures={limit})")
    elif action != "record" and not (first and (watch.on_retrace is not None or not REGISTRY.missed(subject))):
        where = "configure" if watch.on_retrace is None else "Watch"
        said = Broken(action, None, f"{where}(on_retrace={action!r})")
    if watch.on_retrace is not None or watch.max_signatures is not None or strictness(said) == _STRICTNESS["raise"]:
        return said
    steady = Process.steady
    if steady is not None and steady.reached(lambda: REGISTRY.calls(subject) - 1):
        return Broken("warn", None, f"steady_after={steady.text!r}", steady=True)
    return said


# ------------------------------------------------------------------ stances


@dataclass(frozen=True, slots=True, eq=False)
class InForce:
    """One stance in force; each is itself and no other."""

    subjects: tuple[Subject, ...]  # empty: all watched functions
    action: Action
    allowed: tuple[Subject, ...]
    signatures: frozenset[str]  # allowed, of whichever function
    by: str

    def covers(self, subject: Subject) -> bool:
        """Whether it says anything about that function."""
        return not self.subjects or any(kept is subject for kept in self.subjects)

    def says(self, subject: Subject, signature: str | None) -> Said:
        """Return what it says about a miss of a function that it covers."""
        if self.action == "record" or signature in self.signatures or any(kept is subject for kept in self.allowed):
            return None
        return Broken(self.action, None, self.by)


_started: tuple[InForce, ...] = ()
_blocks: tuple[InForce, ...] = ()  # of all threads
_own: ContextVar[tuple[InForce, ...]] = ContextVar("jaxwatch_stances", default=())
_lock = threading.RLock()  # as in `_guards`


def start(stance: InForce) -> None:
    """Put it in force on all threads, until it is stopped."""
    global _started  # noqa: PLW0603 -- replaced as a whole, so that readers need no lock
    with _lock:
        _started = (*_started, stance)


def enter(stance: InForce) -> None:
    """Put it in force as the innermost block of this thread or task."""
    global _blocks  # noqa: PLW0603 -- as above
    with _lock:
        _blocks = (*_blocks, stance)
    _own.set((*_own.get(), stance))


def lift(stance: InForce) -> None:
    """Put it out of force; it may be of another thread or context, or out of it already."""
    global _started, _blocks  # noqa: PLW0603 -- as above
    with _lock:
        _started = tuple(kept for kept in _started if kept is not stance)
        _blocks = tuple(kept for kept in _blocks if kept is not stance)
    _own.set(tuple(kept for kept in _own.get() if kept is not stance))


def is_own(stance: InForce) -> bool:
    """Whether it is a block of this thread or task."""
    return any(own is stance for own in _own.get())


def in_force() -> int:
    """Return how many stances are in force."""
    return len(_started) + len(_blocks)


def in_use() -> bool:
    """Whether any rule but a ``Watch`` may forbid a miss; cheap, asked at each."""
    process = Process
    chosen = process.on_retrace is not None or process.max_signatures is not None or process.steady is not None
    return chosen or bool(_started or _blocks)


def verdict(subject: Subject, signature: str | None, *, new_signature: bool, first: bool) -> Said:
    """Return what counts for a miss on this thread and in this context; see ``decide`` and ``said_at_first``."""
    inside = _own.get()  # a context that was copied within a block outlives it
    own = [stance for stance in _blocks if any(kept is stance for kept in inside)]
    elsewhere = [stance for stance in _blocks if not any(kept is stance for kept in inside)]
    base = said_at_first(subject, new_signature=new_signature, first=first)

    def said(stances: Sequence[InForce]) -> list[Said]:
        return [stance.says(subject, signature) for stance in stances if stance.covers(subject)]

    return decide(base, said(_started), said(elsewhere), said(own))


def reset() -> None:
    """Forget all that was chosen; for tests."""
    global _started, _blocks  # noqa: PLW0603 -- as above
    _started = _blocks = ()
    Process.on_retrace = Process.max_signatures = Process.steady = None


def _after_fork() -> None:
    """In a forked child: blocks of threads that are not there hold no more."""
    global _lock, _blocks  # noqa: PLW0603 -- as above
    _lock = threading.RLock()
    inside = _own.get()
    _blocks = tuple(kept for kept in _blocks if any(own is kept for own in inside))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
