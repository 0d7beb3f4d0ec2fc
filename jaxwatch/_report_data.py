"""A report as plain data: frozen, versioned, and to be added up with those of other processes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from jaxwatch._details import Details
from jaxwatch._divergence import Divergence
from jaxwatch._findings import Cause, Finding, in_order
from jaxwatch._findings import merged as merged_findings
from jaxwatch._rows import FunctionRow, merged_rows, summed
from jaxwatch._slow import SlowProgram, slowest
from jaxwatch._stored import Row
from jaxwatch._stored import in_order as rows_in_order
from jaxwatch._worth import Worth, worth_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Something that happened and is no finding: a trace that raised, a guard that was broken; or what to change.

    Attributes:
        kind: ``trace_error``, ``violation``, ``advice`` on a program that was compiled for the first time, or ``moved``
            of an entry in the persistent cache.
        function: Where.
        place: ``file:line`` of the call, or of the function; empty for a violation.
        what: The exception's type; the action, and the limit if there was one; the advice.
        count: How often; of ``moved``, how many keys.
        seconds: What it cost.
    """

    kind: str
    function: str
    place: str
    what: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What happened in one process or in many.

    Attributes:
        schema: Version of this very form.
        programs: Distinct programs, first seen first.
        processes: How many wrote events.
        unfinished: How many of them have no end in the log.
        wall_seconds: How long they ran, summed.
        exit_codes: ``(exit code, processes)`` of those that did not end with 0.
        compile_seconds: Tracing, lowering and compiling, eager ops and all.
        again_seconds: The part of it that went into what was compiled before under another key.
        functions: Dearest first.
        eager_count: Compiles outside watched functions.
        eager_seconds: What they cost.
        findings: Dearest first; those off the fast path, which compiled nothing, last.
        notes: Failed traces and broken guards, most first.
        disk: What JAX's persistent cache did: ``(what, programs, seconds)``, seconds saved where it was read.
        folded: ``(what, how many)`` that were counted as "other" at a bound.
        divergences: Where ranks of one job did not compile the same, first in time first.
        worth: Whether jits are worth their price, as far as figures tell; what is ``notable`` first.
        overhead: ``(part, seconds)`` that jaxwatch itself took, as far as the processes told it: of ``call``, ``miss``,
            ``export`` and ``scrape``.
        faults: Records whose fields were missing or not of their kind.
        slow: The slowest program of each of the functions that are slowest to compile, with the line it comes from.
        folder: Paths are to be told relative to it; empty: as they are.
        details: Each function's keys, and when was compiled; None where that was not asked for, or reports were merged.
    """

    schema: ClassVar[str] = "jaxwatch.report/1"
    programs: tuple[str, ...]
    processes: int
    unfinished: int
    wall_seconds: float
    exit_codes: tuple[tuple[int, int], ...]
    compile_seconds: float
    again_seconds: float
    functions: tuple[FunctionRow, ...]
    eager_count: int
    eager_seconds: float
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    disk: tuple[Row, ...]
    folded: tuple[tuple[str, int], ...]
    faults: int
    divergences: tuple[Divergence, ...] = ()
    worth: tuple[Worth, ...] = ()
    overhead: tuple[tuple[str, float], ...] = ()
    slow: tuple[SlowProgram, ...] = ()
    folder: str = field(default="", compare=False)
    details: Details | None = field(default=None, compare=False)

    @property
    def healthy(self) -> bool:
        """Whether there is nothing to improve that was seen."""
        found = self.findings or self.notes or self.unlogged or self.divergences
        return not (found or any(one.notable for one in self.worth))

    @property
    def unlogged(self) -> int:
        """Misses that were counted, and whose events are missing."""
        return sum(row.unlogged for row in self.functions)


def merged_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return one note for each thing that happened, most first."""
    found: dict[tuple[str, str, str, str], Note] = {}
    for note in notes:
        key = note.kind, note.function, note.place, note.what
        if (earlier := found.get(key)) is not None:
            found[key] = replace(note, count=earlier.count + note.count, seconds=earlier.seconds + note.seconds)
        else:
            found[key] = note
    return tuple(sorted(found.values(), key=lambda note: (-note.seconds, -note.count, note.kind, note.function)))


def merged(reports: Iterable[Report]) -> Report:
    """Return the sum of reports of different processes; of none, an empty one. The first folder counts.

    As one report on all of them; only that eager compiles which are no finding in one report are none in the sum.
    """
    every = list(reports)
    rows = merged_rows(row for report in every for row in report.functions)
    wall_seconds = sum(report.wall_seconds for report in every)
    findings: dict[Cause, Finding] = {}
    for finding in (finding for report in every for finding in report.findings):
        earlier = findings.get(finding.cause)
        findings[finding.cause] = finding if earlier is None else merged_findings(earlier, finding)
    return Report(
        programs=tuple(dict.fromkeys(program for report in every for program in report.programs)),
        processes=sum(report.processes for report in every),
        unfinished=sum(report.unfinished for report in every),
        wall_seconds=wall_seconds,
        exit_codes=tuple(sorted(summed(pair for report in every for pair in report.exit_codes))),
        compile_seconds=sum(report.compile_seconds for report in every),
        again_seconds=sum(report.again_seconds for report in every),
        functions=rows,
        eager_count=sum(report.eager_count for report in every),
        eager_seconds=sum(report.eager_seconds for report in every),
        findings=in_order(findings.values()),
        notes=merged_notes(note for report in every for note in report.notes),
        disk=rows_in_order(row for report in every for row in report.disk),
        folded=summed(pair for report in every for pair in report.folded),
        faults=sum(report.faults for report in every),
        divergences=tuple(found for report in every for found in report.divergences),
        worth=worth_of(rows, wall_seconds),
        overhead=summed(pair for report in every for pair in report.overhead),
        slow=slowest(program for report in every for program in report.slow),
        folder=next((report.folder for report in every if report.folder), ""),
    )
