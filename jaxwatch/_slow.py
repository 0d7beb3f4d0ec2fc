"""Programs that took long to compile, each with the source line that most of its equations come from. Pure; bounded."""

from collections.abc import Iterable
from dataclasses import dataclass

from jaxwatch import _limits

_ROOM = 10  # times what is told; beyond, the cheapest are forgotten, which changes nothing of what is told


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowProgram:
    """The slowest program of one function.

    Attributes:
        function: Its name.
        definition: ``file:line`` of it.
        seconds: Tracing, lowering and compiling.
        equations: Of the program.
        line: ``file:line`` that most of them come from.
        of_line: How many.
    """

    function: str
    definition: str
    seconds: float
    equations: int
    line: str
    of_line: int


def slowest(programs: Iterable[SlowProgram], most: int | None = None) -> tuple[SlowProgram, ...]:
    """Return the slowest program of each function, slowest first, as many as are told."""
    found: dict[tuple[str, str], SlowProgram] = {}
    for program in programs:
        key = program.function, program.definition
        if key not in found or program.seconds > found[key].seconds:
            found[key] = program
    order = sorted(found.values(), key=lambda one: (-one.seconds, one.function, one.definition))
    return tuple(order[: _limits.SLOW_PROGRAMS if most is None else most])


class SlowPrograms:
    """Gathers the programs of a run or of many."""

    def __init__(self) -> None:
        self._kept: list[SlowProgram] = []
        self._least = 0.0  # seconds of the fastest that is told, once there are as many as are told

    def is_told(self, seconds: float) -> bool:
        """Whether a program that took so long may be one of the slowest so far; only then it needs to be added."""
        return seconds >= self._least

    def add(self, program: SlowProgram | None) -> None:
        """Take a program; None: of which no line is known."""
        if program is None:
            return
        self._kept.append(program)
        if len(self._kept) >= _ROOM * _limits.SLOW_PROGRAMS:
            self._kept = list(self.rows())
            if len(self._kept) == _limits.SLOW_PROGRAMS:
                self._least = self._kept[-1].seconds

    def rows(self) -> tuple[SlowProgram, ...]:
        """Return those that are told."""
        return slowest(self._kept)
