"""What is to be seen of a run at one moment, for the page and for ``jaxwatch top``: bounded, as JSON and back.

Version ``jaxwatch.live/1``: further fields may be added, none is renamed or removed within a version. All texts are fit
to be shown: what a reader would obey in place of showing is written as an escape.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, TypeVar, cast

from jaxwatch._records import MalformedError, Record, counts, seconds, text, whole
from jaxwatch._timeline import SLOTS, Timeline
from jaxwatch.renderers.cells import clean

T = TypeVar("T")

# The most of each that a frame has; what was left out is counted in it.
FUNCTIONS_SHOWN = 200
HAPPENINGS_KEPT = 500
EAGER_SHOWN = 100

KINDS = ("recompile", "first", "dispatch", "error", "violation")


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLine:
    """One watched function.

    Attributes:
        function: Its name.
        definition: ``file:line``.
        calls: Calls so far; at least so many where not ``calls_exact``.
        calls_exact: Whether they were just read, and not last told by a log.
        misses: Calls that did not run straight from the cache.
        keys: Distinct keys.
        seconds: Tracing, lowering and compiling it.
        p50: Dispatch latency in seconds that half of the calls from the cache did not exceed; None of none.
        p99: As above, of 99 in 100.
    """

    function: str
    definition: str
    calls: int
    calls_exact: bool
    misses: int
    keys: int
    seconds: float
    p50: float | None
    p99: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """A miss, a failed trace or a broken guard.

    Attributes:
        number: From 1, in the order in which they came to be known.
        time: Seconds since 1970.
        kind: One of ``KINDS``.
        function: Where.
        call: Number of the call; 0 where there is none.
        what: What changed, before → after; of a first compile its key; of a failure, which.
        seconds: What it cost.
        site: ``file:line`` of the call; may be empty.
        advice: What to change; may be empty.
        process: Its pid, with its rank where it has one.
    """

    number: int
    time: float
    kind: str
    function: str
    call: int
    what: str
    seconds: float
    site: str
    advice: str
    process: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerLine:
    """Compiles outside watched functions at one line: which, how often, and what they cost in seconds."""

    site: str
    what: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """All that is to be seen at one moment.

    Attributes:
        state: Changes when what came before is no longer known, as after a restart of the program.
        time: When, in seconds since 1970.
        program: Names of the programs.
        processes: How many.
        running: How many of them did not tell of their end.
        wall_seconds: How long they ran so far, summed.
        compile_seconds: Tracing, lowering and compiling, eager ops and all.
        again_seconds: The part of it that went into what was compiled before under another key.
        unlogged: Misses that were counted, and whose events came before the watching.
        faults: Records that were malformed, and lines that were no records.
        functions: Dearest first, at most ``FUNCTIONS_SHOWN``.
        functions_left_out: The others.
        happened: The last ones, at most ``HAPPENINGS_KEPT``, oldest first.
        dropped: How many came before these, and events that were lost at a bound.
        eager: Dearest first, at most ``EAGER_SHOWN``.
        eager_left_out: Other lines.
        eager_count: Compiles outside watched functions, all of them.
        eager_seconds: What they cost.
        timeline: Compiling over time.
        overhead: What jaxwatch itself took, in seconds by part; empty where it is not known.
    """

    schema: ClassVar[str] = "jaxwatch.live/1"
    state: str
    time: float
    program: str
    processes: int
    running: int
    wall_seconds: float
    compile_seconds: float
    again_seconds: float
    unlogged: int
    faults: int
    functions: tuple[FunctionLine, ...]
    functions_left_out: int
    happened: tuple[Happening, ...]
    dropped: int
    eager: tuple[EagerLine, ...]
    eager_left_out: int
    eager_count: int
    eager_seconds: float
    timeline: Timeline
    overhead: dict[str, float]

    def since(self, number: int) -> "Frame":
        """Return the frame with those happenings alone that came after the one of that number."""
        return replace(self, happened=tuple(one for one in self.happened if one.number > number))


def to_json(frame: Frame) -> dict[str, Any]:
    """Return the frame as a JSON object."""
    return {"schema": frame.schema, **asdict(frame)}


def from_json(found: Any) -> Frame:
    """Return the frame that ``to_json`` made an object of; its texts are cleaned once more, as it may be another's.

    Raises:
        MalformedError: It is none.
    """
    if not isinstance(found, Mapping) or found.get("schema") != Frame.schema:
        raise MalformedError("schema")
    return _of(Frame, found)


def _of(kind: type[T], found: Any) -> T:
    """Return the dataclass whose fields, by name and type, are in ``found``."""
    if not isinstance(found, Mapping):
        raise MalformedError(kind.__name__)
    return kind(**{one.name: _READERS[one.type](found, one.name) for one in fields(cast("Any", kind))})


def _flag(record: Record, key: str) -> bool:
    if not isinstance(value := record.get(key), bool):
        raise MalformedError(key)
    return value


def _slots(record: Record, key: str) -> tuple[float, ...]:
    return tuple(seconds({key: value}, key) for value in _listed(record, key, SLOTS))


def _listed(record: Record, key: str, most: int) -> list[Any]:
    value = record.get(key)
    if not isinstance(value, list) or len(value) > most:
        raise MalformedError(key)
    return value


# Type of a field → what reads and checks it.
_READERS: dict[Any, Callable[[Record, str], Any]] = {
    str: lambda record, key: clean(text(record, key)),
    int: whole,
    float: seconds,
    bool: _flag,
    float | None: lambda record, key: None if record.get(key) is None else seconds(record, key),
    tuple[float, ...]: _slots,
    dict[str, float]: lambda record, key: {clean(part): value for part, value in counts(record, key, seconds).items()},
    Timeline: lambda record, key: _of(Timeline, record.get(key)),
    tuple[FunctionLine, ...]: lambda record, key: tuple(
        _of(FunctionLine, one) for one in _listed(record, key, FUNCTIONS_SHOWN)
    ),
    tuple[Happening, ...]: lambda record, key: tuple(
        _of(Happening, one) for one in _listed(record, key, HAPPENINGS_KEPT)
    ),
    tuple[EagerLine, ...]: lambda record, key: tuple(_of(EagerLine, one) for one in _listed(record, key, EAGER_SHOWN)),
}
