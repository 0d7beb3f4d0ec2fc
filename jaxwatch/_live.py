"""A run as it goes: records in, frames out. Pure; bounded; the same for a live process and for logs that grow."""

import os
from collections import deque
from collections.abc import Callable

from jaxwatch import _records
from jaxwatch._live_data import (
    EAGER_SHOWN,
    FUNCTIONS_SHOWN,
    HAPPENINGS_KEPT,
    EagerLine,
    Frame,
    FunctionLine,
    Happening,
)
from jaxwatch._metrics import VALUES
from jaxwatch._processes import PROCESSES
from jaxwatch._records import MalformedError, Record, SeenMiss
from jaxwatch._report import FunctionRow, ReportBuilder
from jaxwatch._timeline import Slots
from jaxwatch._words import changes_text
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.headline import folder_of

_NAME_CHARACTERS = 200
_TEXT_CHARACTERS = 400
_PROGRAMS_NAMED = 3
_OPS_NAMED = 5
OVERHEAD_PARTS = VALUES["part"]


class LiveState:
    """What is known so far of a process, or of the processes of some logs. Not thread-safe.

    Attributes:
        name: Of this state; another one begins anew.
        folder: Sites of further records are told relative to it; "" until a record names the program with its path.
        lost: Events that never came here, at a bound.
        faults: Lines that were no records.
    """

    def __init__(self, name: str, folder: str = "") -> None:
        self.name = name
        self.folder = folder
        self.lost = self.faults = 0
        self._report = ReportBuilder()
        self._slots = Slots()
        self._happened: deque[Happening] = deque(maxlen=HAPPENINGS_KEPT)
        self._number = 0
        self._latest = 0.0  # time of the latest event, in seconds since 1970
        self._overhead: dict[tuple[int, int | None], dict[str, float]] = {}  # pid and rank → seconds by part
        self._handlers: dict[str, Callable[[Record], None]] = {
            "cache_miss": self._add_miss,
            "eager_compile": self._add_eager,
            "trace_error": self._add_error,
            "ahead_of_time": self._add_ahead_of_time,
            "violation": self._add_violation,
            "process_stats": self._add_process_stats,
            "run": self._add_run,
        }

    def add(self, record: Record) -> None:
        """Take one record; unknown events are passed over, malformed ones counted."""
        faults = self._report.faults
        self._report.add(record)
        event = record.get("event")
        handler = self._handlers.get(event) if isinstance(event, str) else None
        if handler is None or self._report.faults > faults:
            return
        try:
            self._latest = max(self._latest, _records.unix_seconds(record))
            handler(record)
        except MalformedError:  # a field that the report does not need
            self.faults += 1

    def frame(self, now: float, *, calls_exact: bool = False, wall_seconds: float | None = None) -> Frame:
        """Return what is to be seen.

        Args:
            now: Seconds since 1970.
            calls_exact: Whether the figures of the functions were added just now.
            wall_seconds: How long it ran so far; None: as the records tell.
        """
        report = self._report.build(folder=self.folder)
        rows = [row for row in report.functions if row.calls or row.misses or row.seconds]
        lines = self._report.eager.lines()
        return Frame(
            state=self.name,
            time=max(now, 0.0),
            program=_program(report.programs, folder_of(report)),
            processes=report.processes,
            running=report.unfinished,
            wall_seconds=report.wall_seconds if wall_seconds is None else wall_seconds,
            compile_seconds=report.compile_seconds,
            again_seconds=report.again_seconds,
            unlogged=report.unlogged,
            faults=report.faults + self.faults,
            functions=tuple(self._function(row, calls_exact=calls_exact) for row in rows[:FUNCTIONS_SHOWN]),
            functions_left_out=len(rows[FUNCTIONS_SHOWN:]),
            happened=tuple(self._happened),
            dropped=self._number - len(self._happened) + self.lost,
            eager=tuple(self._eager_line(*line) for line in lines[:EAGER_SHOWN]),
            eager_left_out=len(lines[EAGER_SHOWN:]),
            eager_count=report.eager_count,
            eager_seconds=report.eager_seconds,
            timeline=self._slots.timeline(now if report.unfinished else self._latest),
            overhead=self._overhead_of_all(),
        )

    def _function(self, row: FunctionRow, *, calls_exact: bool) -> FunctionLine:
        return FunctionLine(
            function=_shown(row.function, _NAME_CHARACTERS),
            definition=phrases.place(row.definition, self.folder),
            calls=row.calls,
            calls_exact=calls_exact or row.calls_exact,
            misses=row.misses,
            keys=row.signatures,
            seconds=row.seconds,
            p50=row.dispatch_quantile(0.5),
            p99=row.dispatch_quantile(0.99),
        )

    def _eager_line(self, site: str, names: list[str], count: int, seconds: float) -> EagerLine:
        more = f" and {len(names) - _OPS_NAMED} more" if len(names) > _OPS_NAMED else ""
        what = _shown(", ".join(names[:_OPS_NAMED]), _NAME_CHARACTERS) + more
        return EagerLine(site=phrases.place(site, self.folder), what=what, count=count, seconds=seconds)

    # ------------------------------------------------------------------ records

    def _add_miss(self, record: Record) -> None:
        miss = _records.miss(record)
        advice = miss.advice[0][1] if miss.advice else "".join(miss.on_program[:1])
        kind = "recompile" if miss.is_recompile else "dispatch" if miss.layer == "dispatch" else "first"
        what = (miss.abstract or "first call") if kind == "first" else changes_text(miss.changes) or _reason(miss)
        self._happen(record, kind, miss.function, what, seconds=miss.seconds, call=miss.call, advice=advice)
        self._slots.add("again" if miss.is_recompile else "once", _records.unix_seconds(record), miss.seconds)

    def _add_error(self, record: Record) -> None:
        seconds, what = _records.seconds(record, "seconds"), _records.text(record, "error")
        call = _records.whole(record, "call")
        self._happen(record, "error", _records.text(record, "function"), what, seconds=seconds, call=call)
        self._slots.add("once", _records.unix_seconds(record), seconds)

    def _add_violation(self, record: Record) -> None:
        limit = _records.whole_or_none(record, "limit")
        what = _records.text(record, "action") + ("" if limit is None else f", limit {limit}")
        self._happen(record, "violation", _records.text(record, "function"), what)

    def _add_eager(self, record: Record) -> None:
        self._slots.add("eager", _records.unix_seconds(record), _records.seconds(record, "seconds"))

    def _add_ahead_of_time(self, record: Record) -> None:
        self._slots.add("once", _records.unix_seconds(record), _records.seconds(record, "seconds"))

    def _add_process_stats(self, record: Record) -> None:
        key = _records.whole(record, "pid"), _records.whole_or_none(record, "process_index")
        if key in self._overhead or len(self._overhead) < PROCESSES:
            self._overhead[key] = _records.counts(record, "overhead_seconds", _records.seconds)

    def _overhead_of_all(self) -> dict[str, float]:
        sums: dict[str, float] = {}
        for parts in self._overhead.values():
            for part, seconds in parts.items():
                if part in OVERHEAD_PARTS:
                    sums[part] = sums.get(part, 0.0) + seconds
        return sums

    def _add_run(self, record: Record) -> None:
        program = _records.text(record, "program")
        if not self.folder and os.path.isabs(program):
            self.folder = os.path.dirname(program)

    def _happen(  # noqa: PLR0913 -- by keyword, each a field
        self,
        record: Record,
        kind: str,
        function: str,
        what: str,
        *,
        seconds: float = 0.0,
        call: int = 0,
        advice: str = "",
    ) -> None:
        rank = _records.whole_or_none(record, "process_index")
        pid = _records.whole(record, "pid")
        site = _records.text_or_none(record, "site") or ""
        happened = Happening(
            number=self._number + 1,
            time=max(_records.unix_seconds(record), 0.0),
            kind=kind,
            function=_shown(function, _NAME_CHARACTERS),
            call=call,
            what=_shown(what, _TEXT_CHARACTERS),
            seconds=seconds,
            site=phrases.place(site, self.folder) if site else "",
            advice=_shown(advice, _TEXT_CHARACTERS),
            process=f"{pid}" if rank is None else f"{pid}, rank {rank}",
        )
        self._number += 1
        self._happened.append(happened)


def _reason(miss: SeenMiss) -> str:
    return miss.reasons[0].replace("_", " ")


def _program(programs: tuple[str, ...], folder: str) -> str:
    more = len(programs) - _PROGRAMS_NAMED
    names = ", ".join(phrases.place(program, folder) for program in programs[:_PROGRAMS_NAMED])
    return names + (f" and {more:,} more" if more > 0 else "")


def _shown(text: str, characters: int) -> str:
    """Return ``text`` so that nothing in it is obeyed by what shows it, and cut where it is too long."""
    shown = clean(text[:characters])
    return shown if len(shown) <= characters and len(text) <= characters else shown[: characters - 1] + "…"
