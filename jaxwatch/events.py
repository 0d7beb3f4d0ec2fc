"""The events that jaxwatch publishes: the public vocabulary of the log, of hooks and of exporters.

Version ``jaxwatch.event/1``: further events and fields may be added, none is renamed or removed within a version.
``docs/events.md`` describes every field. All of it is plain data: no array and no object of the user's can be reached.
"""

from dataclasses import dataclass, field, is_dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args

SCHEMA = "jaxwatch.event/1"

Layer = Literal["trace", "compile", "dispatch"]
Reason = Literal[
    "first_call",
    "new_function",
    "cache_lost",
    "shape",
    "dtype",
    "weak_type",
    "sharding",
    "placement",
    "layout",
    "structure",
    "metadata",
    "static",
    "call_form",
    "config",
    "mesh",
    "axis_env",
    "transform",
    "options",
    "fast_path",
    "unknown",
]
AdviceCode = Literal[
    "pad_or_bucket",
    "mark_static",
    "unmark_static",
    "make_hashable",
    "jit_once",
    "hoist_function",
    "pin_dtype",
    "commit_inputs",
    "fix_structure",
    "same_call_form",
    "set_config_once",
    "raise_cache_size",
    "pass_as_argument",
    "use_scan",
    "drop_inner_jit",
    "jit_outer",
    "jit_inner",
    "remove_jit",
    "remove_callback",
    "jit_the_block",
    "enable_persistent_cache",
    "donate_argument",
    "clear_cache",
]
DiskResult = Literal["hit", "miss"]
REASONS: tuple[Reason, ...] = get_args(Reason)


class Event:
    """Base of all events; every one is a frozen dataclass with a ``kind``."""

    __slots__ = ()
    kind: ClassVar[str]
    origin: "Origin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """When and where an event came about."""

    unix_seconds: float
    pid: int
    process_index: int | None  # jax.process_index() where jax.distributed runs
    thread_name: str
    process_count: int | None = None  # jax.process_count() there

    @property
    def time(self) -> str:
        """ISO 8601, UTC, microseconds; made when asked for, as that is a tenth of what a scalar's miss costs."""
        return datetime.fromtimestamp(self.unix_seconds, UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference between a key and the nearest earlier one."""

    reason: Reason
    path: str | None = None
    before: str | None = None
    after: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One change to make to the program: a code from the closed list, and the sentence that says it."""

    code: AdviceCode
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSeconds:
    """Seconds spent in each phase of one miss."""

    trace: float = 0.0
    lower: float = 0.0
    backend_compile: float = 0.0  # XLA's compile, or the load from the persistent cache

    @property
    def total(self) -> float:
        """Sum of the three phases, in seconds."""
        return self.trace + self.lower + self.backend_compile


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """A jitted function that the program calls; those of JAX's own library are left out."""

    function: str
    definition: str  # file:line
    calls: int  # places in the program
    variants: int  # different programs of it among them, each lowered for itself; under grad, a call has several
    signatures: int = 0  # different keys of the calls, where the function is watched; else 0
    changes: tuple[Change, ...] = ()  # what moved between these


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Equations of a program that have one primitive, or come from one line."""

    name: str  # the primitive, or file:line; "other" for the rest together, "" where no line is known
    equations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Equal blocks of equations in a row, which a Python loop of the user's made: same primitives, shapes and lines."""

    line: str  # file:line, the first of the loop's body that made an equation
    blocks: int  # of its longest row
    equations: int  # of one block; with those of the jits within, each call counted
    share: float  # of the program's equations, so counted, that a single block in place of all would leave out
    traced_share: float  # as that, with the equations of each jit within counted once: what is traced and lowered
    products: int = 0  # matrix products and convolutions in one block of each of its rows, forward and backward say
    scan_saves_seconds: float = 0.0  # predicted, of this miss's own seconds; 0 where none is to be expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A function of the user's that was called several times without a jit, and became the same equations each time."""

    function: str
    definition: str  # file:line
    calls: int  # those alike, in one jaxpr; without what is in unrolled loops
    equations: int  # of one call
    share: float  # of the program's equations that a single one in place of all would leave out


@dataclass(frozen=True, slots=True, kw_only=True)
class Donatable:
    """An argument that is not donated, of which each array has an output of its own of the same shape and dtype."""

    argument: str
    bytes: int  # of its arrays, without those that are returned as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What was lowered; of several programs of one call, the largest."""

    equations: int
    constant_bytes: int  # of arrays that are part of the program: closed over, global, or made while it was traced
    constants: tuple[str, ...] = ()  # the largest, as ``float32[300,300]``
    inner: tuple[Inner, ...] = ()  # those with the most variants
    partial: bool = False  # there is more than was looked at
    distinct: int = 0  # equations that differ in primitive, shapes or parameters; 0: not known
    primitives: tuple[Part, ...] = ()  # most equations first, then "other"
    lines: tuple[Part, ...] = ()  # of the user's source, as above
    loops: tuple[Loop, ...] = ()  # unrolled; those with the largest share first
    touched: int | None = None  # numbers that one run reads and writes at most; None: many, or not known
    bodies: tuple[Body, ...] = ()  # the function that leaves out most; at most one
    donatable: tuple[Donatable, ...] = ()  # largest first; none below 1 MiB in all
    advice: tuple[str, ...] = ()  # the texts among the miss's advice that are on this and not on its changes


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskEntry:
    """What became of the look-up in JAX's persistent cache; of several of one call, the last."""

    key: str | None
    read_seconds: float | None = None  # of a hit
    saved_seconds: float | None = None  # of a hit, as JAX tells it: compiling then, less reading now
    not_stored: str | None = None  # why JAX did not store what was compiled


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheMiss(Event):
    """A call of a watched function that did not run straight from the cache.

    Published once the call has returned, on the calling thread.
    """

    kind: ClassVar[str] = "cache_miss"
    id: int  # from 1, per process
    origin: Origin
    function: str
    definition: str  # file:line of the innermost user function
    site: str  # file:line of the user's call
    via: str | None = None  # file:line of the library's frame that made it for the user
    call: int  # from 1, per watched object
    layer: Layer  # the deepest one that had to work
    traces: int
    lowerings: int
    compiles: int
    persistent_cache: DiskResult | None  # None: JAX's persistent cache is off
    seconds: PhaseSeconds
    reasons: tuple[Reason, ...]  # most telling first, never empty
    changes: tuple[Change, ...]
    compared_with: int | None  # id of the earlier miss with the nearest key
    fingerprint: str | None
    signature: str  # "s" + hex digest of the key, stable from run to run
    abstract: str  # the key, readable
    advice: tuple[Advice, ...]
    program: Program | None = None
    disk: DiskEntry | None = None
    compiled_within: int = 0  # compiles that happened while the function was traced; each has an event of its own
    compiled_within_seconds: float = 0.0  # not part of `seconds`
    seconds_per_call: float | None = (
        None  # of layer `dispatch`: median of the calls that were seen to leave the fast path
    )
    keys: tuple[dict[str, Any], ...] = ()  # of reason `unknown`: the nearest earlier key and this one, in full
    steady: bool = False  # it came after the warm-up that ``steady_after`` grants, and nothing else allowed it

    @property
    def is_recompile(self) -> bool:
        """Whether this was avoidable in principle: not a function's first call, and not mere dispatch."""
        return self.layer != "dispatch" and self.reasons[0] != "first_call"


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerCompile(Event):
    """A compile outside any watched call: an eager op, or a jit that is not watched."""

    kind: ClassVar[str] = "eager_compile"
    origin: Origin
    function: str
    site: str
    via: str | None = None  # as of a miss
    seconds: float
    persistent_cache: DiskResult | None
    count: int  # how often this site has now compiled, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceError(Event):
    """A watched call that raised while it was traced, lowered or compiled; no key entered a cache."""

    kind: ClassVar[str] = "trace_error"
    origin: Origin
    function: str
    definition: str
    site: str
    call: int
    error: str  # the exception's type
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AheadOfTime(Event):
    """``trace``, ``lower``, ``compile`` or ``eval_shape`` of a watched function: never a miss."""

    kind: ClassVar[str] = "ahead_of_time"
    origin: Origin
    function: str
    definition: str
    site: str
    seconds: float
    signature: str | None  # None where the arguments are not at hand (``Lowered.compile``)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation(Event):
    """A guard was broken: ``no_retraces``, a stance, a limit, ``steady_after``, or the pytest plugin."""

    kind: ClassVar[str] = "violation"
    origin: Origin
    function: str
    action: str  # raise, warn or record
    limit: int | None
    miss: int | None  # id of the cache_miss; None where the call was refused
    by: str = ""  # what forbade it, as the program wrote it, and where
    site: str = ""  # file:line of the user's call


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(Event):
    """Start and end of a process that writes a log."""

    kind: ClassVar[str] = "run"
    origin: Origin
    phase: Literal["start", "end"]
    argv: tuple[str, ...]
    program: str
    wall_seconds: float
    exit_code: int | None
    jax_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionStatsEvent(Event):
    """Cumulative figures of one function; the last one in a log counts."""

    kind: ClassVar[str] = "function_stats"
    origin: Origin
    function: str
    definition: str
    calls: int
    misses: int
    signatures: int
    dispatch: dict[str, int] = field(default_factory=dict)  # upper bound in seconds → calls that hit the cache
    inlined: dict[str, int] = field(default_factory=dict)  # outer function → calls while that one was traced
    inlined_read: int = 0  # of these calls, those whose key was looked at
    inlined_keys: int = 0  # different keys among those
    touched: int | None = None  # the most of its programs' ``touched``; None where one of them is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatsEvent(Event):
    """Cumulative figures of the process itself, and what runs in it; the last one in a log counts."""

    kind: ClassVar[str] = "process_stats"
    origin: Origin
    version: str  # jaxwatch's
    jax_version: str  # "" before jax is loaded, as the next two
    jaxlib_version: str
    backend: str  # "" before one is up
    core: str  # native or python
    dropped: dict[str, int]  # what a bound or a failing exporter made us drop
    label_overflows: dict[str, int]
    exporter_errors: dict[str, int]
    overhead_seconds: dict[str, float]  # what jaxwatch itself took


def to_record(event: Event) -> dict[str, Any]:
    """Return ``event`` as the JSON object that the log holds: ``schema``, ``event``, then its fields."""
    values = _fields(event)
    record: dict[str, Any] = {"schema": SCHEMA, "event": event.kind}
    if (number := values.pop("id", None)) is not None:
        record["id"] = number
    origin = values.pop("origin")
    del origin["unix_seconds"]
    record |= {"time": event.origin.time, **origin, **values}
    if isinstance(event, CacheMiss):
        record["seconds"] = {**record["seconds"], "total": event.seconds.total}
    return record


def _fields(value: Any) -> dict[str, Any]:
    """Return a dataclass as a dictionary, and its fields that are one too; ``asdict`` would copy all else."""
    return {name: _plain(getattr(value, name)) for name in value.__slots__}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return _fields(value) if is_dataclass(value) else value
