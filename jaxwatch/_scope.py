"""``JAXWATCH_JIT_SCOPE``: which watched functions are jitted in this process; the others run as they are written."""

import os
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from jaxwatch._registry import Subject

VARIABLE = "JAXWATCH_JIT_SCOPE"
NOTHING = "none"


class Scope:
    """The functions that a process jits, by name; or by ``name@file:line``, where several have one name.

    Attributes:
        names: As they were given.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def jits(self, name: str, definition: str) -> bool:
        """Whether the function of that name and definition (``file:line``) is named."""
        name = name.replace(",", ";")  # commas stand between names
        if name in self.names:
            return True
        return any(
            said.startswith(f"{name}@") and _is_end(said.removeprefix(f"{name}@"), definition) for said in self.names
        )


def _is_end(place: str, definition: str) -> bool:
    return definition == place or definition.endswith(f"/{place}")


def named(environ: Mapping[str, str] = os.environ) -> Scope | None:
    """Return the scope that the environment asks for; None: all is jitted that the program jits."""
    said = [name.strip() for name in environ.get(VARIABLE, "").split(",")]
    names = [name for name in said if name]
    if not names:
        return None
    return Scope(() if names == [NOTHING] else names)


def unmatched(functions: Iterable[tuple[str, str]]) -> list[str]:
    """Return the names of the scope that no function is called by: misspelt, most likely.

    Args:
        functions: Name and definition of all that were watched and called.
    """
    scope = named()
    if scope is None:
        return []
    every = list(functions)
    return sorted(said for said in scope.names if not any(Scope([said]).jits(*each) for each in every))


class Hooking(NamedTuple):
    """How a function is to be hooked.

    Attributes:
        scoped: By the call that knows of scopes, and can measure outermost calls.
        bypass: The user's function is called in place of JAX's.
    """

    scoped: bool
    bypass: bool


class Record(NamedTuple):
    """One outermost call: of a watched function, and not within the call of another one.

    Attributes:
        begun: When, in nanoseconds of the monotonic clock, as the next two.
        returned: When JAX had returned.
        ready: When what was to follow each call had been done: to wait for its result, say.
        function: ``id`` of its subject.
    """

    begun: int
    returned: int
    ready: int
    function: int


class Measuring:
    """Whether outermost calls are to be measured in this process: for `jaxwatch advise`, never in an ordinary one."""

    on = False
    subjects: ClassVar[dict[int, Subject]] = {}  # all that are watched since, by id


def hooking(subject: Subject) -> Hooking:
    """Return how a function is to be hooked."""
    scope = named()
    if Measuring.on:
        Measuring.subjects[id(subject)] = subject
    bypass = scope is not None and not scope.jits(subject.name, subject.definition)
    return Hooking(bypass or Measuring.on, bypass)
