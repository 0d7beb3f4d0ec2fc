"""A comparison as plain data: frozen and versioned; ``jaxwatch diff --json`` writes it."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from jaxwatch._findings import Finding

SCHEMA = "jaxwatch.diff/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one side came to.

    Attributes:
        programs: What was run.
        processes: How many wrote events.
        unfinished: How many of them have no end in the log.
        exit_codes: ``(exit code, processes)`` of those that did not end with 0.
        wall_seconds: How long they ran, summed.
        calls: Of watched functions; at least so many where not ``calls_exact``.
        calls_exact: Whether each process told how often it called each function.
        misses: Of watched functions.
        compile_seconds: All tracing, lowering and compiling, also outside of watched functions.
        eager_count: Compiles outside of watched functions.
        eager_seconds: What they cost.
        unlogged: Misses that were counted, and whose events are not in the log.
        faults: Records that could not be read.
        folded: ``(what, how many)`` that a bound left out or put together.
    """

    programs: tuple[str, ...]
    processes: int
    unfinished: int
    exit_codes: tuple[tuple[int, int], ...]
    wall_seconds: float
    calls: int
    calls_exact: bool
    misses: int
    compile_seconds: float
    eager_count: int
    eager_seconds: float
    unlogged: int
    faults: int
    folded: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two numbers of one thing, before and after."""

    before: float
    after: float

    @property
    def gained(self) -> float:
        """How much more it is."""
        return self.after - self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class MissChange:
    """Misses of one function for one cause, or compiles outside of watched functions in one file, more or fewer.

    Attributes:
        function: Whose; of compiles outside, the operations that changed most.
        reason: Why, from the closed list of events; ``eager`` outside of watched functions.
        misses: How many.
        seconds: What they cost.
        calls: Of the function; 0 outside.
        counted: How many of the further ones count as new misses: none of first calls, and of a longer run none that
            come as often as before.
        finding: What is known of them, on the side that has more.
    """

    function: str
    reason: str
    misses: Pair
    seconds: Pair
    calls: Pair
    counted: int
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChange:
    """A phase of one function that takes longer, or less long, beyond noise.

    Attributes:
        function: Whose.
        definition: Its file.
        phase: ``trace``, ``lower`` or ``backend_compile``.
        seconds: Of one miss, on average; summed over the programs, where several were compiled on both sides.
        programs: How many were compiled on both sides; 0: none, and all misses were taken together.
    """

    function: str
    definition: str
    phase: str
    seconds: Pair
    programs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChange:
    """Programs of one function that are others for the same arguments.

    Attributes:
        function: Whose.
        definition: Its file.
        programs: Signatures that were compiled on both sides.
        fingerprints: Of these, how many are lowered to another text.
        disk_keys: Of these, how many have another key in JAX's persistent cache.
    """

    function: str
    definition: str
    programs: int
    fingerprints: int
    disk_keys: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionChange:
    """The figures of one watched function on both sides; 0 where it is on one side alone."""

    function: str
    definition: str
    calls: Pair
    misses: Pair
    seconds: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange:
    """Traces that raised, or guards that were broken, more or fewer times; ``kind`` and ``what`` as of ``Note``."""

    kind: str
    function: str
    what: str
    times: Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """What ran: ``jax`` say, and its versions on both sides."""

    what: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between two runs; each list dearest first."""

    schema: ClassVar[str] = SCHEMA
    before: Totals
    after: Totals
    versions: tuple[VersionChange, ...]
    misses: tuple[MissChange, ...]
    phases: tuple[PhaseChange, ...]
    programs: tuple[ProgramChange, ...]
    functions: tuple[FunctionChange, ...]
    notes: tuple[NoteChange, ...]

    @property
    def new_misses(self) -> int:
        """Misses that the first side did not have."""
        return sum(change.counted for change in self.misses)

    @property
    def equal(self) -> bool:
        """Whether there is no difference beyond noise."""
        return not (self.versions or self.misses or self.phases or self.programs or self.notes)


def to_json(comparison: Comparison, exceeded: tuple[str, ...]) -> dict[str, Any]:
    """Return a comparison, and the limits that were exceeded, as an object of JSON."""
    return {
        "schema": SCHEMA,
        **asdict(comparison),
        "new_misses": comparison.new_misses,
        "equal": comparison.equal,
        "exceeded": list(exceeded),
    }
