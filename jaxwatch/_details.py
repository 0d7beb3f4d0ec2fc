"""What a page shows beside the report: each function's keys and what they were compared with, and when was compiled.

Pure; bounded by ``_limits``, and what is beyond a bound is counted.
"""

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jaxwatch import _limits
from jaxwatch._records import SeenChange, SeenMiss
from jaxwatch._timeline import Slots, Timeline

# Seconds from the start of a process for which it is told how much of them went into compiling.
WINDOWS = (10.0, 60.0, 600.0, 3_600.0)
_LONGEST_FIRST = tuple(sorted(WINDOWS, reverse=True))
PHASES = ("trace", "lower", "backend_compile")

Function = tuple[str, str]  # name and definition
Phases = tuple[float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key of a function, over all processes.

    Attributes:
        number: From 1 in each function, in the order in which they were first seen.
        signature: As in the event.
        abstract: The key, readable; may be cut.
        parent: Number of the key that it was compared with when it was first seen; None where there was none, or where
            it is no longer known.
        compared: Whether it was compared with any.
        changes: What differed from that one; texts may be cut.
        changes_left_out: How many more.
        reasons: ``(reason, misses)`` of all its misses, most first.
        layer: The deepest that had to work for its first miss: ``compile``, ``trace`` or ``dispatch``.
        call: Number of the call of its first miss.
        site: ``file:line`` of that call.
        misses: With this key.
        phases: Seconds of all its misses, as ``PHASES``.
        from_disk: Misses that JAX's persistent cache served.
    """

    number: int
    signature: str
    abstract: str
    parent: int | None
    compared: bool
    changes: tuple[SeenChange, ...]
    changes_left_out: int
    reasons: tuple[tuple[str, int], ...]
    layer: str
    call: int
    site: str
    misses: int
    phases: Phases
    from_disk: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionDetails:
    """What is known of one function's keys.

    Attributes:
        function: Its name.
        definition: ``file:line`` of it.
        phases: Seconds of all its misses, as ``PHASES``.
        keys: In the order in which they were first seen.
        left_out: Misses of further keys.
    """

    function: str
    definition: str
    phases: Phases
    keys: tuple[Key, ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One compile.

    Attributes:
        function: The function, or the operation.
        definition: ``file:line`` of it; of an operation outside jit, the line that called it.
        kind: ``once``, ``again`` or ``eager``, as the series of a timeline.
        start: In seconds since the start of its process.
        seconds: What it took.
        call: Number of the call; 0 outside jit.
    """

    function: str
    definition: str
    kind: str
    start: float
    seconds: float
    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """All of it.

    Attributes:
        functions: Dearest first.
        timeline: Over the time since the start of each process; those of many are laid over each other.
        seconds: How long the longest process ran.
        windows: ``(seconds from the start, seconds of them that went into compiling)``, all processes together.
        points: The dearest compiles, in the order of their start.
        points_left_out: Further ones.
        eager: ``(file:line, names, compiles, seconds)`` outside jit, dearest first.
        eager_left_out: Further lines.
    """

    functions: tuple[FunctionDetails, ...]
    timeline: Timeline
    seconds: float
    windows: tuple[tuple[float, float], ...]
    points: tuple[Point, ...]
    points_left_out: int
    eager: tuple[tuple[str, tuple[str, ...], int, float], ...]
    eager_left_out: int

    @property
    def phases(self) -> Phases:
        """Seconds of all misses, as ``PHASES``."""
        return _sums(one.phases for one in self.functions)


class Compiled(NamedTuple):
    """What is told of one compile; see ``Point``."""

    function: str
    place: str
    kind: str
    process: int  # its number
    first: float  # when that wrote its first event, in seconds since 1970
    time: float  # when this one was written
    seconds: float
    call: int = 0


class _Key:
    """A key, as it is gathered."""

    def __init__(self, number: int, parent: "int | None", miss: SeenMiss) -> None:
        cut = _limits.REPORT_TEXT_CHARACTERS
        self.number, self.parent = number, parent
        self.signature, self.abstract = miss.signature, miss.abstract
        self.compared = miss.compared_with is not None
        self.changes = tuple(_cut(change, cut) for change in miss.changes[: _limits.REPORT_CHANGES])
        self.changes_left_out = len(miss.changes) - len(self.changes)
        self.layer, self.call, self.site = miss.layer, miss.call, miss.site
        self.reasons: dict[str, int] = {}
        self.misses = self.from_disk = 0
        self.trace = self.lower = self.backend = 0.0
        if self.compared and parent is not None:
            self.abstract = self.abstract[:cut]

    @property
    def characters(self) -> int:
        texts = (text for change in self.changes for text in (change.path, change.before, change.after, change.note))
        return len(self.abstract) + len(self.site) + sum(len(text or "") for text in texts)

    def build(self) -> Key:
        return Key(
            number=self.number,
            signature=self.signature,
            abstract=self.abstract,
            parent=self.parent,
            compared=self.compared,
            changes=self.changes,
            changes_left_out=self.changes_left_out,
            reasons=tuple(sorted(self.reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
            layer=self.layer,
            call=self.call,
            site=self.site,
            misses=self.misses,
            phases=(self.trace, self.lower, self.backend),
            from_disk=self.from_disk,
        )


def _cut(change: SeenChange, most: int) -> SeenChange:
    texts = (change.path, change.before, change.after, change.note)
    if all(text is None or len(text) <= most for text in texts):
        return change
    return SeenChange(change.reason[:most], *(text if text is None else text[:most] for text in texts))


class _Function:
    """A function's keys, as they are gathered."""

    def __init__(self) -> None:
        self.keys: dict[str, _Key] = {}
        self.trace = self.lower = self.backend = 0.0
        self.left_out = 0


class DetailsBuilder:
    """Gathers the details of many processes. Not thread-safe."""

    def __init__(self) -> None:
        self._functions: dict[Function, _Function] = {}
        self._compared: OrderedDict[tuple[int, int], _Key] = OrderedDict()  # process and number of the miss → its key
        self._keys_left, self._characters_left = _limits.REPORT_KEYS, _limits.REPORT_CHARACTERS
        self._slots = Slots()
        self._windows = dict.fromkeys(WINDOWS, 0.0)
        self._origins: dict[int, float] = {}
        self._points: list[tuple[float, int, tuple[str, str, str, float, int]]] = []
        self._seen = 0

    def add_miss(self, miss: SeenMiss, process: int, first: float, time: float) -> None:
        """Add a miss.

        Args:
            miss: Of any layer.
            process: A number of its process.
            first: When that wrote its first event, in seconds since 1970.
            time: When the miss was written.
        """
        trace, lower = miss.before_xla
        backend = max(0.0, miss.seconds - trace - lower)
        function = self._functions.setdefault((miss.function, miss.definition), _Function())
        function.trace, function.lower, function.backend = (
            function.trace + trace,
            function.lower + lower,
            function.backend + backend,
        )
        key = function.keys.get(miss.signature) or self._new_key(function, miss, process)
        if key is None:
            function.left_out += 1
        else:
            key.misses += 1
            key.from_disk += miss.from_disk
            key.trace, key.lower, key.backend = key.trace + trace, key.lower + lower, key.backend + backend
            key.reasons[miss.reasons[0]] = key.reasons.get(miss.reasons[0], 0) + 1
            if len(self._compared) >= _limits.REPORT_COMPARED:
                self._compared.popitem(last=False)
            self._compared[process, miss.number] = key
        kind = "again" if miss.is_recompile else "once"
        self.add_compile(Compiled(miss.function, miss.definition, kind, process, first, time, miss.seconds, miss.call))

    def _new_key(self, function: _Function, miss: SeenMiss, process: int) -> _Key | None:
        if self._keys_left <= 0 or self._characters_left <= 0:
            return None
        if len(function.keys) >= _limits.REPORT_KEYS_PER_FUNCTION:
            return None
        with_what = None if miss.compared_with is None else self._compared.get((process, miss.compared_with))
        number = None if with_what is None or with_what.signature not in function.keys else with_what.number
        key = function.keys[miss.signature] = _Key(len(function.keys) + 1, number, miss)
        self._keys_left -= 1
        self._characters_left -= key.characters
        return key

    def add_compile(self, done: Compiled) -> None:
        """Add something that was compiled."""
        seconds = done.seconds
        if seconds <= 0:
            return
        if (origin := self._origins.get(done.process)) is None:
            origin = self._origins[done.process] = min(done.first, done.time - seconds)
        end = max(done.time - origin, seconds)
        start = end - seconds
        self._slots.add(done.kind, end, seconds)
        for window in _LONGEST_FIRST:
            if start >= window:
                break
            self._windows[window] += min(end, window) - start
        self._seen += 1
        if len(self._points) >= _limits.REPORT_POINTS and seconds <= self._points[0][0]:
            return
        point = (seconds, -self._seen, (done.function, done.place, done.kind, start, done.call))
        if len(self._points) < _limits.REPORT_POINTS:
            heapq.heappush(self._points, point)
        else:
            heapq.heapreplace(self._points, point)

    def build(
        self, process_seconds: Mapping[int, float], eager: Iterable[tuple[str, list[str], int, float]]
    ) -> Details:
        """Return all that was added.

        Args:
            process_seconds: Number of each process → how long it ran.
            eager: ``(file:line, names, compiles, seconds)`` outside jit, dearest first.
        """
        lines = list(eager)
        ends = (point[2][3] + point[0] for point in self._points)
        seconds = max([0.0, *process_seconds.values(), *ends])
        functions = (
            FunctionDetails(
                function=name,
                definition=definition,
                phases=(found.trace, found.lower, found.backend),
                keys=tuple(key.build() for key in found.keys.values()),
                left_out=found.left_out,
            )
            for (name, definition), found in self._functions.items()
        )
        points = (
            Point(function=function, definition=place, kind=kind, start=start, seconds=took, call=call)
            for took, _, (function, place, kind, start, call) in self._points
        )
        return Details(
            functions=tuple(sorted(functions, key=lambda one: (-sum(one.phases), one.function, one.definition))),
            timeline=self._slots.timeline(seconds),
            seconds=seconds,
            windows=tuple(self._windows.items()),
            points=tuple(sorted(points, key=lambda one: (one.start, one.function))),
            points_left_out=self._seen - len(self._points),
            eager=tuple(
                (site, tuple(names), count, cost) for site, names, count, cost in lines[: _limits.REPORT_EAGER_LINES]
            ),
            eager_left_out=max(0, len(lines) - _limits.REPORT_EAGER_LINES),
        )


def _sums(every: Iterable[Phases]) -> Phases:
    trace = lower = backend = 0.0
    for one in every:
        trace, lower, backend = trace + one[0], lower + one[1], backend + one[2]
    return trace, lower, backend
