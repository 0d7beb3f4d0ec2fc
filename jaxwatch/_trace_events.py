"""Records → events of a trace, as ui.perfetto.dev and chrome://tracing read them. Pure; streams; bounded.

The log has when an event was told, and how long each phase took. Durations are exact, to the microsecond, and so is the
order of phases. Where a slice *ends* is when the call returned: what lay between its phases and that (the first run's
dispatch, say) is not known, and is drawn as nothing. Slices never overlap on a track: what would, has one of its own.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from jaxwatch import _records
from jaxwatch._processes import Process, Processes
from jaxwatch._records import MalformedError, Record, SeenMiss
from jaxwatch._words import change_text
from jaxwatch.renderers.cells import clean

TraceEvent = dict[str, Any]

# Tracks of all processes. Beyond, what a process tells is on those of a thread named "other threads".
TRACKS = 20_000
# Tracks of one thread, for what overlaps. Beyond, a slice is cut short at its beginning.
TRACKS_OF_THREAD = 16
_TEXT_CHARACTERS = 400
_CHANGES = 5
_OTHER = "other threads"
_OUTSIDE = "outside watched calls"
_OWN_PIDS = 1 << 22  # above all of Linux


class _Tracks:
    """Where slices go: the tracks of each thread, and up to when each is taken."""

    def __init__(self) -> None:
        self._ends: dict[tuple[int, str], list[tuple[int, int]]] = {}  # process, thread → (tid, end) of each
        self._numbers: dict[int, int] = {}
        self._count = 0

    def place(self, process: int, thread: str, begin: int, end: int) -> tuple[int, int, str | None]:
        """Return the track for a slice, where it may begin, and the track's name where it is new."""
        if (process, thread) not in self._ends and self._count >= TRACKS:
            thread = _OTHER
        tracks = self._ends.setdefault((process, thread), [])
        for number, (tid, taken) in enumerate(tracks):
            if taken <= begin:
                tracks[number] = tid, end
                return tid, begin, None
        if tracks and (len(tracks) >= TRACKS_OF_THREAD or self._count >= TRACKS):
            number = min(range(len(tracks)), key=lambda one: tracks[one][1])
            tid, taken = tracks[number]
            tracks[number] = tid, max(taken, end)
            return tid, min(taken, end), None
        self._count += 1
        tid = self._numbers[process] = self._numbers.get(process, 0) + 1
        tracks.append((tid, end))
        return tid, begin, thread if len(tracks) == 1 else f"{thread} ({len(tracks)})"


class TraceEvents:
    """Takes records one by one, and returns what each is in a trace. Not thread-safe."""

    def __init__(self) -> None:
        self._processes = Processes()
        self._pids: dict[int, int] = {}  # number of a process → the pid that it has in the trace
        self._taken: set[int] = set()
        self._tracks = _Tracks()
        self._sums: dict[int, tuple[int, float]] = {}  # by process: misses, seconds of compiling
        self._versions: dict[int, str] = {}
        self._handlers = {
            "cache_miss": self._miss,
            "eager_compile": self._eager,
            "ahead_of_time": self._ahead_of_time,
            "trace_error": self._error,
            "violation": self._violation,
            "run": self._run,
            "process_stats": self._stats,
        }

    def add(self, record: Record) -> list[TraceEvent]:
        """Return the events of a record; none of one that is malformed, or not known."""
        event = record.get("event")
        handler = self._handlers.get(event) if isinstance(event, str) else None
        if handler is None:
            return []
        try:
            return list(handler(record))
        except MalformedError:
            return []

    def end(self) -> Iterator[TraceEvent]:
        """Yield the names of the processes, once all records were added."""
        for process in self._processes.all:
            if (pid := self._pids.get(process.number)) is None:
                continue
            name = os.path.basename(process.program or "") or "unnamed program"
            if process.rank is not None:
                name += f", rank {process.rank}"
                yield _metadata("process_sort_index", pid, sort_index=process.rank)
            yield _metadata("process_name", pid, name=_text(name))
            if version := self._versions.get(process.number):
                yield _metadata("process_labels", pid, labels=_text(version))

    # ------------------------------------------------------------------ of each kind of record

    def _miss(self, record: Record) -> Iterator[TraceEvent]:
        miss = _records.miss(record)
        phases = record["seconds"]
        within = _records.seconds(record, "compiled_within_seconds") if "compiled_within_seconds" in record else 0.0
        lengths = {name: _records.seconds(phases, name) for name in ("trace", "lower", "backend_compile")}
        process, pid, end = self._origin(record)
        if miss.layer == "dispatch":
            yield from self._instant(record, f"{miss.function}: off the fast path", _miss_args(miss))
            return
        lengths["trace"] += within  # what has an event of its own happened while it was traced
        kind = "recompile" if miss.is_recompile else "first_call"
        slices = self._slice(record, miss.function, kind, sum(lengths.values()), _miss_args(miss))
        for event in slices:
            yield event
            if event["ph"] == "X":
                yield from _phases(event, lengths)
        yield from self._count(process, pid, end, miss.seconds, misses=1)

    def _eager(self, record: Record) -> Iterator[TraceEvent]:
        function, site = _records.text(record, "function"), _records.text(record, "site")
        seconds, via = _records.seconds(record, "seconds"), _records.text_or_none(record, "via")
        args = {"site": site, "via": via, "persistent_cache": _records.text_or_none(record, "persistent_cache")}
        yield from self._slice(record, f"{function}, outside jit", "eager_compile", seconds, args, _OUTSIDE)
        yield from self._count(*self._origin(record), seconds)

    def _ahead_of_time(self, record: Record) -> Iterator[TraceEvent]:
        function, args = _records.text(record, "function"), _named(record, "definition", "site")
        seconds = _records.seconds(record, "seconds")
        yield from self._slice(record, f"{function}, ahead of time", "ahead_of_time", seconds, args, _OUTSIDE)
        yield from self._count(*self._origin(record), seconds)

    def _error(self, record: Record) -> Iterator[TraceEvent]:
        function, args = _records.text(record, "function"), _named(record, "definition", "site", "error")
        seconds = _records.seconds(record, "seconds")
        yield from self._slice(record, f"{function} raised {args['error']}", "trace_error", seconds, args, _OUTSIDE)
        yield from self._count(*self._origin(record), seconds)

    def _violation(self, record: Record) -> Iterator[TraceEvent]:
        function, args = _records.text(record, "function"), _named(record, "action")
        yield from self._instant(record, f"guard broken: {function}", args)

    def _run(self, record: Record) -> Iterator[TraceEvent]:
        phase, program = _records.text(record, "phase"), _records.text(record, "program")
        code = _records.exit_code(record)
        process, _, _ = self._origin(record)
        if process.program is None or os.path.isabs(program):
            process.program = program
        args = {} if code is None else {"exit_code": str(code)}
        yield from self._instant(record, f"run {phase}", args)

    def _stats(self, record: Record) -> Iterator[TraceEvent]:
        found = {name: _records.text_or_none(record, f"{name}_version") for name in ("jax", "jaxlib")}
        process, _, _ = self._origin(record)
        self._versions[process.number] = ", ".join(f"{name} {version}" for name, version in found.items() if version)
        yield from ()

    # ------------------------------------------------------------------ forms

    def _origin(self, record: Record) -> tuple[Process, int, int]:
        """Return the process that a record is of, its pid in the trace, and when the record was written, in µs."""
        process = self._processes.find(record)
        if (pid := self._pids.get(process.number)) is None:
            pid = _records.whole(record, "pid")
            if pid in self._taken or pid >= _OWN_PIDS:  # as pid 1 of each container, or after a restart
                pid = _OWN_PIDS + process.number
            self._taken.add(pid)
            self._pids[process.number] = pid
        return process, pid, round(1e6 * _records.unix_seconds(record))

    def _slice(  # noqa: PLR0913, PLR0917 -- what a slice has
        self, record: Record, name: str, kind: str, seconds: float, args: Mapping[str, Any], beside: str = ""
    ) -> Iterator[TraceEvent]:
        thread = _records.text(record, "thread_name") + (f", {beside}" if beside else "")
        process, pid, end = self._origin(record)
        begin = max(end - round(1e6 * seconds), 0)
        tid, begin, new = self._tracks.place(process.number, thread, begin, end)
        if new is not None:
            yield _metadata("thread_name", pid, tid, name=_text(new))
            yield _metadata("thread_sort_index", pid, tid, sort_index=tid)
        yield {
            "name": _text(name),
            "cat": kind,
            "ph": "X",
            "ts": begin,
            "dur": end - begin,
            "pid": pid,
            "tid": tid,
            "args": _texts(args),
        }

    def _instant(self, record: Record, name: str, args: Mapping[str, Any]) -> Iterator[TraceEvent]:
        _, pid, moment = self._origin(record)
        yield {
            "name": _text(name),
            "cat": _records.text(record, "event"),
            "ph": "i",
            "s": "p",
            "ts": moment,
            "pid": pid,
            "tid": 0,
            "args": _texts(args),
        }

    def _count(self, process: Process, pid: int, end: int, seconds: float, *, misses: int = 0) -> Iterator[TraceEvent]:
        before = self._sums.get(process.number, (0, 0.0))
        now = self._sums[process.number] = before[0] + misses, before[1] + seconds
        counters = {"compile seconds so far": {"seconds": round(now[1], 6)}}
        if misses:
            counters["misses so far"] = {"misses": now[0]}
        for name, value in counters.items():
            yield {"name": name, "ph": "C", "ts": end, "pid": pid, "args": value}


def _phases(miss: TraceEvent, lengths: Mapping[str, float]) -> Iterator[TraceEvent]:
    """Yield the phases of a miss, one after the other, to its end."""
    at = float(miss["ts"] + miss["dur"]) - 1e6 * sum(lengths.values())
    for name, seconds in lengths.items():
        begin, at = at, at + 1e6 * seconds
        first, last = (min(max(round(edge), miss["ts"]), miss["ts"] + miss["dur"]) for edge in (begin, at))
        if seconds:
            told = {**miss, "name": name.replace("_", " "), "cat": "phase", "ts": first, "dur": last - first}
            yield {**told, "args": {"seconds": seconds}}


def _metadata(what: str, pid: int, tid: int = 0, **args: Any) -> TraceEvent:
    return {"name": what, "ph": "M", "ts": 0, "pid": pid, "tid": tid, "args": args}


def _miss_args(miss: SeenMiss) -> dict[str, Any]:
    told = list(dict.fromkeys(map(change_text, miss.changes)))
    more = f"; and {len(told) - _CHANGES} more" if len(told) > _CHANGES else ""
    return {
        "reasons": ", ".join(miss.reasons),
        "changes": "; ".join(told[:_CHANGES]) + more,
        "advice": " ".join(text for _, text in miss.advice) or None,
        "on the program": " ".join(miss.on_program) or None,
        "site": miss.site,
        "via": miss.via,
        "definition": miss.definition,
        "call": miss.call,
        "layer": miss.layer,
        "seconds": miss.seconds,
        "persistent_cache": miss.disk_result,
        "fingerprint": miss.fingerprint,
        "abstract": miss.abstract,
    }


def _named(record: Record, *names: str) -> dict[str, Any]:
    return {name: _records.text(record, name) for name in names}


def _texts(args: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _text(value) if isinstance(value, str) else value
        for name, value in args.items()
        if value not in (None, "")
    }


def _text(told: str) -> str:
    """Return a text that is short, and of which a reader shows all: no lone surrogate, nothing that it obeys."""
    shown = clean(told)
    return shown if len(shown) <= _TEXT_CHARACTERS else shown[: _TEXT_CHARACTERS - 1] + "…"
