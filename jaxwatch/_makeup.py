"""The equations of a program by primitive and by line, and its unrolled Python loops. Duck-typed, as ``_content``."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jaxwatch import _compat, _limits
from jaxwatch._blocks import Run, runs
from jaxwatch._bodies import Bodies, Made
from jaxwatch._sources import Place, Sources
from jaxwatch.events import Body, Loop, Part

OTHER = "other"
_PLAIN = (int, float, str, bool, type(None))
_PRODUCTS = ("dot_general", "conv_general_dilated")
# What x[i] with an i from a Python loop differs in, and its transpose
_BY_STEP = {"slice": ("start_indices", "limit_indices"), "pad": ("padding_config",)}


class Makeup(NamedTuple):
    """What the equations of one program are, and where they come from."""

    primitives: tuple[Part, ...] = ()
    lines: tuple[Part, ...] = ()
    loops: tuple[Loop, ...] = ()
    bodies: tuple[Body, ...] = ()
    distinct: int = 0  # operations that differ in primitive, shapes or parameters


class Visited(NamedTuple):
    """A jaxpr of the program."""

    jaxpr: Any
    caller: int  # the number of the jaxpr that calls it first, among those visited; -1: none
    equation: Any  # of the caller
    below: Mapping[int, Sequence[Any]]  # place of an equation → the jaxprs in its parameters


def makeup_of(visited: Sequence[Visited]) -> Makeup:
    """Return what the jaxprs of a program, each after the first one that calls it, are made of."""
    if not visited:
        return Makeup()
    reading = _Reading(visited)
    if not _compat.HAS_TRACEBACKS:  # no lines and no loops without
        return Makeup(most(reading.primitives))
    equations, rows = reading.primitives.total(), list(reading.rows())
    loops = told(rows, reading.bodies[0].weight, equations)
    again = reading.again(rows).most(equations)
    return Makeup(most(reading.primitives), most(reading.lines), loops, again, len(reading.kinds))


def most(counts: Mapping[str, int]) -> tuple[Part, ...]:
    """Return the parts with the most equations, and the rest together."""
    parts = sorted(counts.items(), key=lambda part: (-part[1], part[0]))
    rest = sum(count for _, count in parts[_limits.PARTS_TOLD :])
    shown = [*parts[: _limits.PARTS_TOLD], *([(OTHER, rest)] if rest else [])]
    return tuple(Part(name=name, equations=count) for name, count in shown)


class Row(NamedTuple):
    """Equal blocks in a row, of one loop."""

    place: Place
    jaxpr: int  # where it lies
    run: Run
    block: float  # equations of a block, with those of the jits within, each call counted
    products: int  # matrix products and convolutions among them


def told(rows: Iterable[Row], whole: float, equations: int) -> tuple[Loop, ...]:
    """Return the loops that leave out most when they are rolled up, of those that lie in one another one alone."""
    by_loop: dict[Any, list[Row]] = {}
    for row in rows:
        by_loop.setdefault(row.place.loop, []).append(row)
    saved = {loop: sum(row.block * (row.run.blocks - 1) for row in found) for loop, found in by_loop.items()}
    taken: list[Row] = []
    loops = []
    for loop in sorted(saved, key=lambda loop: -saved[loop]):
        found = by_loop[loop]
        if any(_overlap(row, other) for row in found for other in taken):
            continue
        taken += found
        largest = max(found, key=lambda row: row.run.blocks * row.block)
        loops.append(
            Loop(
                line=min((row.place.line for row in found), key=_line_number),
                blocks=largest.run.blocks,
                equations=round(largest.block),
                share=round(min(saved[loop] / max(whole, 1.0), 1.0), 4),
                products=sum({row.run.period: row.products for row in found}.values()),
                traced_share=round(sum(row.run.period * (row.run.blocks - 1) for row in found) / max(equations, 1), 4),
            )
        )
    return tuple(loops[: _limits.LOOPS_TOLD])


def _line_number(line: str) -> int:
    return int(line.rpartition(":")[2])


def _overlap(one: Row, other: Row) -> bool:
    return one.jaxpr == other.jaxpr and one.run.start < other.run.stop and other.run.start < one.run.stop


class _Body(NamedTuple):
    """The equations of one jaxpr, as they are compared."""

    digest: int  # equal for jaxprs of the same operations
    kinds: list[int]  # of each equation: equal for the same operation
    symbols: list[int]  # of each equation: equal for the same operation by the same line
    weights: list[float]  # of each: its equations, with those of jaxprs within, each call counted
    products: list[int]  # of each: the matrix products and convolutions among them

    @property
    def weight(self) -> float:
        """How many equations it is."""
        return sum(self.weights)


class _Reading:
    """One look at all equations of a program."""

    def __init__(self, visited: Sequence[Visited]) -> None:
        self.visited = visited
        self.sources = Sources()
        self.primitives: Counter[str] = Counter()
        self.lines: Counter[str] = Counter()
        self.bodies: dict[int, _Body] = {}
        self.kinds: set[int] = set()
        self._numbers: list[list[int]] = []  # of each jaxpr, of each equation: of its frames
        self._known: dict[Any, int] = {}
        self._ids = {id(each.jaxpr): number for number, each in enumerate(visited)}
        self._count()
        if _compat.HAS_TRACEBACKS:
            self._body(0)

    def _count(self) -> None:
        around: list[str] = []  # the line from which each jaxpr is called
        for each in self.visited:
            numbers = [self.sources.number(equation) for equation in each.jaxpr.eqns]
            own = None if each.caller < 0 else self.sources.line(self.sources.number(each.equation))
            around.append(own or ("" if each.caller < 0 else around[each.caller]))
            for number, count in Counter(numbers).items():
                self.lines[self.sources.line(number) or around[-1]] += count
            self.primitives.update([equation.primitive.name for equation in each.jaxpr.eqns])
            self._numbers.append(numbers)

    def _body(self, number: int) -> _Body:
        known = self.bodies.get(number)
        if known is not None:
            return known
        each = self.visited[number]
        kinds, symbols, weights, products = [], [], [], []
        for place, equation in enumerate(each.jaxpr.eqns):
            below = each.below.get(place)
            inner = [self._body(self._ids[id(one)]) for one in below if id(one) in self._ids] if below else ()
            kind = self._number((_kind(equation), *[one.digest for one in inner]))
            kinds.append(kind)
            symbols.append(self._number((self._numbers[number][place], kind)))
            weights.append(1.0 + sum([one.weight for one in inner]))
            products.append((equation.primitive.name in _PRODUCTS) + sum([sum(one.products) for one in inner]))
        self.kinds.update(kinds)
        found = self.bodies[number] = _Body(self._number(tuple(kinds)), kinds, symbols, weights, products)
        return found

    def _number(self, what: Any) -> int:
        return self._known.setdefault(what, len(self._known))

    def again(self, rows: Iterable[Row]) -> Bodies:
        """Return what was called several times; what an unrolled loop made is left out, it is told as that."""
        found = Bodies()
        in_loops: dict[int, set[int]] = defaultdict(set)
        for row in rows:
            in_loops[row.jaxpr].update(range(row.run.start, row.run.stop))
        for number, body in self.bodies.items():
            taken = in_loops[number]
            made = [
                Made(frames, kind)
                for at, (frames, kind) in enumerate(zip(self._numbers[number], body.kinds, strict=True))
                if at not in taken
            ]
            for missing in found.missing(made):
                frames = self.sources.frames(missing)
                found.know(missing, frames, self.sources.in_loops(frames))
            found.look(made)
        return found

    def rows(self) -> Iterator[Row]:
        """Yield the rows of equal blocks that a loop of the user's made."""
        for number, body in self.bodies.items():
            for run in runs(body.symbols, _limits.LOOP_BLOCKS):
                inside = range(run.start, run.start + run.period)
                block = sum(body.weights[at] for at in inside)
                if block * (run.blocks - 1) < _limits.LOOP_EQUATIONS:
                    continue
                place = self.sources.loop({self._numbers[number][at] for at in inside})
                if place is not None:
                    yield Row(place, number, run, block, sum(body.products[at] for at in inside))


def _kind(equation: Any) -> Any:
    """Return what is equal for equations that do the same to values of the same shapes."""
    name = equation.primitive.name
    variables = (*equation.invars, *equation.outvars)
    avals = [(getattr(v.aval, "shape", None), getattr(v.aval, "dtype", None)) for v in variables]
    return name, len(equation.invars), tuple(avals), _params(name, equation.params) if equation.params else ()


def _params(name: str, params: Mapping[str, Any]) -> tuple[Any, ...]:
    by_step = _BY_STEP.get(name, ())
    return tuple([(key, _plain(value)) for key, value in params.items() if key not in by_step])


def _plain(value: Any) -> Any:
    """Return what of a parameter is compared: numbers and texts; of all else its type, no code of the user's is run."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return tuple([_plain(one) for one in value])
    return kind.__name__
