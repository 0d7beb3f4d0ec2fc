"""Functions of the user's that one program holds several times: called without a jit of their own, traced each time."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple

from jaxwatch import _cells, _limits
from jaxwatch._callsite import whose
from jaxwatch._sources import Frame
from jaxwatch.events import Body

_CLASS_OR_OBJECT = ("self", "cls")


class Made(NamedTuple):
    """An equation: the number of its frames, and what is equal for equations that do the same."""

    frames: int
    kind: int


class _Level(NamedTuple):
    """One function of the user's among an equation's frames."""

    code: CodeType
    site: int  # equal for what was made by way of the same call of it
    inside: int  # equal for what was made at the same place within it
    instruction: int  # of the function itself
    repeats: bool  # what recurs is another call: a loop is around the call, and none within the function


class Bodies:
    """Looks for equal calls in the jaxprs of one program."""

    def __init__(self) -> None:
        self._levels: dict[int, tuple[_Level, ...]] = {}
        self._known: dict[Any, int] = {}
        self._found: list[tuple[CodeType, int, int]] = []  # code, calls, equations of one

    def missing(self, made: Iterable[Made]) -> set[int]:
        """Return of which numbers the frames are not known yet."""
        return {each.frames for each in made} - self._levels.keys()

    def know(self, number: int, frames: Sequence[Frame], loops: Sequence[bool]) -> None:
        """Take the frames of a number, outermost first, and whether each is in a loop."""
        self._levels[number] = tuple(
            _Level(
                code,
                self._number(("site", code, *frames[:depth])),
                self._number(("inside", *frames[depth:])),
                instruction,
                any(loops[:depth]) and not any(loops[depth:]),
            )
            for depth, (code, instruction) in enumerate(frames)
            if depth and _can_be_jitted(code)
        )

    def look(self, made: Iterable[Made]) -> None:
        """Look at the equations of one jaxpr."""
        sites: dict[tuple[CodeType, int], Counter[int]] = defaultdict(Counter)
        places: dict[tuple[CodeType, int], set[int]] = defaultdict(set)
        single: set[tuple[CodeType, int]] = set()
        for frames, kind in made:
            for level in self._levels[frames]:
                site = level.code, level.site
                sites[site][self._number((level.inside, kind))] += 1
                places[site].add(level.instruction)
                if not level.repeats:
                    single.add(site)
        calls: Counter[tuple[CodeType, frozenset[tuple[int, int]]]] = Counter()
        for site, counts in sites.items():
            # what all comes from one place may be the work of a loop within JAX
            times = 1 if site in single or len(places[site]) == 1 else min(counts.values())
            calls[site[0], frozenset((symbol, count // times) for symbol, count in counts.items())] += times
        self._found += [(code, count, sum(n for _, n in body)) for (code, body), count in calls.items()]

    def most(self, equations: int) -> tuple[Body, ...]:
        """Return the function of which a single body would leave out most, of so many equations; or none."""
        enough = [each for each in self._found if each[1] >= _limits.BODY_CALLS]
        if not enough:
            return ()
        code, calls, size = max(enough, key=lambda each: (each[1] - 1) * each[2])
        share = round((calls - 1) * size / max(equations, 1), 4)
        definition = _cells.definition(code)
        return (Body(function=code.co_name, definition=definition, calls=calls, equations=size, share=share),)

    def _number(self, what: Any) -> int:
        return self._known.setdefault(what, len(self._known))


def _can_be_jitted(code: CodeType) -> bool:
    """Whether it is a function of the user's, by name, that holds no object: another one would be traced anew."""
    alone = not code.co_freevars and code.co_varnames[:1] not in [(name,) for name in _CLASS_OR_OBJECT]
    return alone and code.co_name[:1] != "<" and whose(code.co_filename) == "user"
