"""A report: what compiling cost, why, and what to change. Pure: records in, plain data out; no jax, no I/O.

``ReportBuilder`` takes records one by one, of a live run or of any number of logs, and keeps sums only.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from jaxwatch import _records
from jaxwatch._details import Compiled, DetailsBuilder
from jaxwatch._divergence import Divergences
from jaxwatch._eager import EagerCompiles
from jaxwatch._findings import OTHER, Findings, in_order
from jaxwatch._processes import Figures, Process, Processes
from jaxwatch._records import MalformedError, Record, SeenStats
from jaxwatch._report_data import Note, Report, merged, merged_notes
from jaxwatch._rows import FunctionRow, merged_rows, summed
from jaxwatch._slow import SlowProgram, SlowPrograms
from jaxwatch._stored import Stored
from jaxwatch._worth import worth_of

__all__ = ["FunctionRow", "Note", "Report", "ReportBuilder", "merged"]

# Kinds of failed traces and of broken guards told apart; beyond, they count as "other".
NOTES = 500


class ReportBuilder:
    """Takes the records of a run or of logs, and builds the report of them. Not thread-safe.

    What was summed elsewhere goes straight into its parts, each a gatherer of one thing.

    Args:
        processes: How processes are told apart; by default by what each record says.
        earlier: Of misses before the first record: the numbers of their calls, by id.
        details: Whether the report has ``details`` too, for which some ten megabytes are kept.
    """

    def __init__(
        self,
        processes: Processes | None = None,
        *,
        earlier: Mapping[int, int] | None = None,
        details: bool = False,
    ) -> None:
        self._earlier = {} if earlier is None else earlier
        self.faults = 0  # records so far whose fields are missing or not of their kind
        self.processes = Processes() if processes is None else processes
        self.findings = Findings()
        self.eager = EagerCompiles()
        self.stored = Stored()
        self.divergences = Divergences()
        self.slow = SlowPrograms()
        self.details = DetailsBuilder() if details else None
        self._notes: dict[tuple[str, str, str, str], tuple[int, float]] = {}
        self._notes_folded = 0
        self.again_seconds = 0.0
        self._handlers: dict[str, Callable[[Record], None]] = {
            "cache_miss": self._add_miss,
            "eager_compile": self._add_eager,
            "trace_error": self._add_error,
            "ahead_of_time": self._add_ahead_of_time,
            "violation": self._add_violation,
            "run": self._add_run,
            "function_stats": self._add_stats,
            "process_stats": self._add_process_stats,
        }

    def add(self, record: Record) -> None:
        """Take one record; unknown events are passed over, malformed ones are counted as ``faults``."""
        event = record.get("event")
        handler = self._handlers.get(event) if isinstance(event, str) else None
        if handler is not None:
            try:
                handler(record)
            except MalformedError:
                self.faults += 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """The events that a report takes."""
        return tuple(self._handlers)

    def build(self, *, program: str | None = None, folder: str = "") -> Report:
        """Return the report of all that was added so far.

        Args:
            program: What to call the program where no record names it.
            folder: Paths below it are told relative to it.
        """
        processes = self.processes.all
        programs = tuple(dict.fromkeys(process.program for process in processes if process.program))
        wall_seconds = sum(process.seconds for process in processes)
        rows = merged_rows(_row(*found) for found in self.processes.rows())
        watched = {row.function.rpartition(".")[2] for row in rows}
        folded = {**self.processes.folded, "finding": self.findings.folded, "eager compile": self.eager.folded}
        folded["note"] = self._notes_folded
        for process in processes:
            if process.rank is not None:
                ended = process.wall_seconds is not None
                self.divergences.saw(process.job, process.rank, process.last, ended=ended)
        return Report(
            programs=programs or ((program,) if program else ()),
            processes=len(processes),
            unfinished=sum(process.wall_seconds is None for process in processes),
            wall_seconds=wall_seconds,
            exit_codes=tuple(self.processes.exit_codes().items()),
            compile_seconds=sum(row.seconds for row in rows) + self.eager.seconds,
            again_seconds=self.again_seconds + self.eager.again_seconds(),
            functions=rows,
            eager_count=self.eager.count,
            eager_seconds=self.eager.seconds,
            findings=in_order([*self.findings.build(), *self.eager.findings(wall_seconds, watched)]),
            notes=merged_notes(self._all_notes()),
            disk=self.stored.rows(),
            folded=tuple((what, count) for what, count in folded.items() if count),
            faults=self.faults,
            divergences=self.divergences.found(),
            worth=worth_of(rows, wall_seconds),
            overhead=summed(pair for process in processes for pair in process.overhead.items()),
            folder=folder,
            slow=self.slow.rows(),
            details=None if self.details is None else self.details.build(_seconds(processes), self.eager.lines()),
        )

    # Each of these reads all that it needs before it changes anything, so that a malformed record leaves no trace.

    def _add_miss(self, record: Record) -> None:
        miss = _records.miss(record)
        process = self.processes.find(record)
        compared_call = process.call_of(miss.compared_with) or self._earlier.get(miss.compared_with or 0)
        self.processes.count(process, miss)
        self.stored.add(miss, process.number)
        if miss.made_of is not None and self.slow.is_told(miss.seconds):
            self.slow.add(_slow(miss))
        if miss.is_recompile:
            self.again_seconds += miss.seconds
        if miss.is_recompile or miss.layer == "dispatch":
            self.findings.add(miss, process.number, compared_call)
        if process.rank is not None:
            self.divergences.add(miss, process.job, process.rank, _records.unix_seconds(record))
        if self.details is not None and process.first is not None:
            self.details.add_miss(miss, process.number, process.first, process.now)
        for text in miss.on_program:
            self.note("advice", miss.function, miss.definition, text, seconds=miss.seconds)

    def _add_eager(self, record: Record) -> None:
        function, site = _records.text(record, "function"), _records.text(record, "site")
        seconds, from_disk = _records.seconds(record, "seconds"), record.get("persistent_cache") == "hit"
        via = _records.text_or_none(record, "via")
        process = self.processes.find(record)
        self.eager.add(function, site, seconds, process.number, from_disk=from_disk, via=via)
        self._draw(process, (function, site, "eager"), seconds)

    def _add_error(self, record: Record) -> None:
        function, site = _records.text(record, "function"), _records.text(record, "site")
        definition, what = _records.text(record, "definition"), _records.text(record, "error")
        seconds = _records.seconds(record, "seconds")
        process = self.processes.find(record)
        self.processes.figures(process, function, definition).seconds += seconds
        self.note("trace_error", function, site, what, seconds=seconds)
        self._draw(process, (function, definition, "once"), seconds)

    def _add_ahead_of_time(self, record: Record) -> None:
        function, definition = _records.text(record, "function"), _records.text(record, "definition")
        seconds = _records.seconds(record, "seconds")
        process = self.processes.find(record)
        self.processes.figures(process, function, definition).seconds += seconds
        self._draw(process, (function, definition, "once"), seconds)

    def _draw(self, process: Process, compiled: tuple[str, str, str], seconds: float) -> None:
        """Have the details show what was compiled: its function, its place, and the kind of a ``Point``."""
        if self.details is not None and process.first is not None:
            self.details.add_compile(Compiled(*compiled, process.number, process.first, process.now, seconds))

    def _add_violation(self, record: Record) -> None:
        function, action = _records.text(record, "function"), _records.text(record, "action")
        limit = _records.whole_or_none(record, "limit")
        self.processes.find(record)
        self.note("violation", function, "", action if limit is None else f"{action}, limit {limit}")

    def _add_run(self, record: Record) -> None:
        phase, program = _records.text(record, "phase"), _records.text(record, "program")
        wall_seconds, code = _records.seconds(record, "wall_seconds"), _records.exit_code(record)
        process = self.processes.find(record)
        if process.program is None or os.path.isabs(program):  # one of the two records may have the bare name only
            process.program = program
        if phase == "end":
            process.wall_seconds, process.exit_code = wall_seconds, code
            process.end()

    def _add_process_stats(self, record: Record) -> None:
        overhead = _records.counts(record, "overhead_seconds", _records.seconds)
        self.processes.find(record).overhead = overhead

    def _add_stats(self, record: Record) -> None:
        function, definition = _records.text(record, "function"), _records.text(record, "definition")
        stats = _records.function_stats(record)
        self.processes.figures(self.processes.find(record), function, definition).stats = stats

    def _all_notes(self) -> Iterator[Note]:
        for (kind, function, place, what), (count, seconds) in self._notes.items():
            yield Note(kind=kind, function=function, place=place, what=what, count=count, seconds=seconds)
        for function, definition, number in self.stored.moved():
            yield Note(kind="moved", function=function, place=definition, what="", count=number, seconds=0.0)

    def note(  # noqa: PLR0913 -- what a note holds
        self, kind: str, function: str, place: str, what: str, *, count: int = 1, seconds: float = 0.0
    ) -> None:
        """Take something that happened and is no finding, as ``Note`` has it, so many times."""
        key = kind, function, place, what
        if key not in self._notes and len(self._notes) >= NOTES:
            key = kind, OTHER, "", OTHER
            self._notes_folded += count
        count_so_far, so_far = self._notes.get(key, (0, 0.0))
        self._notes[key] = count_so_far + count, so_far + seconds


_NO_STATS = SeenStats(
    calls=0, misses=0, signatures=0, dispatch={}, inlined={}, inlined_read=0, inlined_keys=0, touched=None
)


def _seconds(processes: Iterable[Process]) -> dict[int, float]:
    return {process.number: process.seconds for process in processes}


def _slow(miss: _records.SeenMiss) -> SlowProgram | None:
    if miss.made_of is None:
        return None
    equations, line, of_line = miss.made_of
    return SlowProgram(
        function=miss.function,
        definition=miss.definition,
        seconds=miss.seconds,
        equations=equations,
        line=line,
        of_line=of_line,
    )


def _row(key: tuple[str, str], figures: Figures, process: Process) -> FunctionRow:
    told = figures.stats or _NO_STATS
    exact = figures.stats is not None and process.wall_seconds is not None
    calls = told.calls if exact else max(told.calls, figures.largest_call)
    return FunctionRow(
        function=key[0],
        definition=key[1],
        calls=calls,
        calls_exact=exact,
        misses=figures.misses,
        signatures=max(told.signatures, figures.distinct),
        seconds=figures.seconds,
        from_disk=figures.from_disk,
        dispatch=tuple(sorted(told.dispatch.items())),
        most_misses=figures.misses,
        unlogged=max(0, told.misses - figures.events),
        most_own_calls=calls - sum(told.inlined.values()),
        inlined=tuple(sorted(told.inlined.items())),
        inlined_read=told.inlined_read,
        inlined_keys=told.inlined_keys,
        touched=told.touched,
    )
