"""Where in the user's source an equation comes from, and which Python loop made several of them.

Read off the frames that JAX keeps with each equation: code objects and instructions, no source file. Equal frames are
looked at once; a look-up takes some 0.3 µs. All of it lives as long as one program is read.
"""

import dis
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from jaxwatch import _cells, _compat
from jaxwatch._callsite import whose

Frame = tuple[CodeType, int]  # the byte of the instruction
_TRACES = (
    "trace_to_jaxpr_dynamic",
    "trace_to_jaxpr",
)  # where the trace of a jaxpr begins; from 0.10 on, frames end there

# JAX's files whose loops are about traces and arguments, and make no equations one after the other
_BINDING = tuple(f"{_compat.jax_folder()}_src/{name}" for name in ("core.py", "pjit.py", "interpreters/"))


class Place(NamedTuple):
    """A Python loop of the user's."""

    line: str  # file:line, the first of its body that made one of the equations
    loop: tuple[CodeType, int, int]  # code, and from where to where its instructions reach


class Sources:
    """The frames of one program's equations, by number."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._tracebacks: list[Any] = []
        self._lines: list[str | None] = []
        self._loops: dict[CodeType, tuple[tuple[int, int], ...]] = {}

    def number(self, equation: Any) -> int:
        """Return a number that is equal for equations made at the same instruction by way of the same calls."""
        traceback = equation.source_info.traceback if _compat.HAS_TRACEBACKS else None
        found = self._numbers.get(traceback)
        if found is None:
            found = self._numbers[traceback] = len(self._tracebacks)
            self._tracebacks.append(traceback)
            self._lines.append(None if traceback is None else _line(traceback))
        return found

    def line(self, number: int) -> str | None:
        """Return ``file:line`` of the user's frame, or of a library's where there is none; None: of JAX alone."""
        return self._lines[number]

    def frames(self, number: int) -> list[Frame]:
        """Return the frames of a number, outermost first; none where they are not known."""
        traceback = self._tracebacks[number]
        return [] if traceback is None else frames_of(traceback)[::-1]

    def in_loops(self, frames: Sequence[Frame]) -> list[bool]:
        """Return of each frame, outermost first, whether a loop there may make the equations of what it calls.

        None does below the innermost frame outside of JAX: how JAX makes the equations of one call is its own matter.
        """
        last = max((at for at, (code, _) in enumerate(frames) if whose(code.co_filename) != "skipped"), default=-1)
        return [at <= last and self._in_loop(frame) for at, frame in enumerate(frames)]

    def _in_loop(self, frame: Frame) -> bool:
        code, instruction = frame
        if code.co_filename.startswith(_BINDING):
            return False
        return any(start <= instruction <= stop for start, stop in self._loops_in(code))

    def loop(self, numbers: Iterable[int]) -> Place | None:
        """Return the innermost loop that made all of these equations, where it is the user's own."""
        tracebacks = [self._tracebacks[number] for number in numbers]
        if not tracebacks or None in tracebacks:
            return None
        chains = [list(reversed(frames_of(traceback))) for traceback in tracebacks]
        for depth in range(_common(chains), -1, -1):
            here = [chain[depth] for chain in chains if depth < len(chain)]
            if len(here) < len(chains) or len({code for code, _ in here}) > 1:
                continue
            code, instructions = here[0][0], {instruction for _, instruction in here}
            if code.co_filename.startswith(_BINDING):
                continue
            around = [r for r in self._loops_in(code) if r[0] <= min(instructions) and max(instructions) <= r[1]]
            if around:
                start, stop = min(around, key=lambda r: r[1] - r[0])
                line = min(_line_of(tracebacks[0], code, instruction) for instruction in instructions)
                user = whose(code.co_filename) == "user"
                return Place(_cells.place(code.co_filename, line), (code, start, stop)) if user else None
        return None

    def _loops_in(self, code: CodeType) -> tuple[tuple[int, int], ...]:
        found = self._loops.get(code)
        if found is None:
            found = self._loops[code] = loops_in(code)
        return found


_BACKWARD = {
    number for name, number in dis.opmap.items() if "JUMP_BACKWARD" in name and "NO_INTERRUPT" not in name
}  # without what waits, in `await` say


def loops_in(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return from which instruction to which each ``for``, ``while`` and comprehension of a code object reaches."""
    if _BACKWARD.isdisjoint(code.co_code[::2]):  # most code has none, and is told by that at a hundredth of the price
        return ()
    raw, found, wide = code.co_code, [], 0
    for at in range(0, len(raw), 2):  # `dis` takes milliseconds for a long function
        if raw[at] == dis.EXTENDED_ARG:
            wide = (wide | raw[at + 1]) << 8
            continue
        if raw[at] in _BACKWARD:
            found.append((at - 2 * (wide | raw[at + 1]), at))
        wide = 0
    return tuple(found)


def frames_of(traceback: Any) -> list[Frame]:
    """Return a traceback's frames within the trace of its own jaxpr, innermost first."""
    found = []
    for code, instruction in zip(*traceback.raw_frames(), strict=True):
        if code.co_name in _TRACES and code.co_filename.startswith(_compat.jax_folder()):
            break
        found.append((code, instruction))
    return found


def _line(traceback: Any) -> str | None:
    """Return ``file:line`` of the innermost frame of the user's, else of a library's."""
    library = None
    for code, instruction in frames_of(traceback):
        kind = whose(code.co_filename)
        if kind == "user" and (code.co_filename[:1] != "<" or _cells.number(code.co_filename) is not None):
            return _cells.place(code.co_filename, _line_of(traceback, code, instruction))
        if kind == "library" and library is None:
            library = code, instruction
    return None if library is None else f"{library[0].co_filename}:{_line_of(traceback, *library)}"


def _line_of(traceback: Any, code: CodeType, instruction: int) -> int:
    return int(traceback.code_addr2line(code, instruction))


def _common(chains: list[list[Frame]]) -> int:
    """Return how many frames, from the outermost on, all chains share."""
    first, shortest = chains[0], min(map(len, chains))
    return next((depth for depth in range(shortest) if any(chain[depth] != first[depth] for chain in chains)), shortest)
