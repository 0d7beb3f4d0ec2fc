"""Records → events of a trace, as ui.perfetto.dev and chrome://tracing read them. Pure; streams; bounded.

The log has when an event was told, and how long each phase took. Durations are exact, to the microsecond, and so is the
order of phases. Where a slice *ends* is when the call returned: what lay between its phases and that (the first run's
dispatch, say) is not known, and is drawn as nothing. Slices never overlap on a track: what would, has one of its own.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

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


class _Told(NamedTuple):
    """What a record is in a trace: a slice that ends when it was written, or an instant.

    Attributes:
        name: What is written on it.
        kind: Its category.
        args: What is told beside.
        seconds: How long it took; None: an instant.
        beside: Of which of its thread's tracks it is.
        phases: The slices within, one after the other, in seconds.
        cost: Seconds that count as compiling.
        misses: Misses that it counts as.
    """

    name: str
    kind: str
    args: Mapping[str, Any]
    seconds: float | None = None
    beside: str = ""
    phases: Mapping[str, float] = MappingProxyType({})
    cost: float = 0.0
    misses: int = 0


class TraceEvents:
    """Takes records one by one, and returns what each is in a trace. Not thread-safe."""

    def __init__(self) -> None:
        self._processes = Processes()
        self._pids: dict[int, int] = {}  # number of a process → the pid that it has in the trace
        self._taken: set[int] = set()
        self._tracks = _Tracks()
        self._sums: dict[int, tuple[int, float]] = {}  # by process: misses, seconds of compiling
        self._versions: dict[int, str] = {}

    def add(self, record: Record) -> list[TraceEvent]:
        """Return the events of a record; none of one that is malformed, or not known."""
        event = record.get("event")
        read = _READ.get(event) if isinstance(event, str) else None
        if read is None:
            return []
        try:
            told, thread = read(record), _records.text(record, "thread_name")
            process = self._processes.find(record)  # once: what begins a process is a new one each time
            pid, moment = self._pid(process, record), round(1e6 * _records.unix_seconds(record))
        except MalformedError:
            return []
        self._learn(process, record)
        if told is None:
            return []
        if told.seconds is None:
            return [_instant(told, pid, moment)]
        return [*self._slices(told, process, thread, pid, moment), *self._counters(told, process, pid, moment)]

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

    def _pid(self, process: Process, record: Record) -> int:
        if (pid := self._pids.get(process.number)) is None:
            pid = _records.whole(record, "pid")
            if pid in self._taken or pid >= _OWN_PIDS:  # as pid 1 of each container, or after a restart
                pid = _OWN_PIDS + process.number
            self._taken.add(pid)
            self._pids[process.number] = pid
        return pid

    def _learn(self, process: Process, record: Record) -> None:
        program = record.get("program")
        if record["event"] == "run" and isinstance(program, str):
            if process.program is None or os.path.isabs(program):
                process.program = program[: _records.TEXT_CHARACTERS]
        elif record["event"] == "process_stats":
            found = {name: record.get(f"{name}_version") for name in ("jax", "jaxlib")}
            told = (f"{name} {version}" for name, version in found.items() if isinstance(version, str) and version)
            self._versions[process.number] = ", ".join(told)

    def _slices(self, told: _Told, process: Process, thread: str, pid: int, end: int) -> Iterator[TraceEvent]:
        begin = max(end - round(1e6 * (told.seconds or 0.0)), 0)
        track = f"{thread}, {told.beside}" if told.beside else thread
        tid, begin, new = self._tracks.place(process.number, track, begin, end)
        if new is not None:
            yield _metadata("thread_name", pid, tid, name=_text(new))
            yield _metadata("thread_sort_index", pid, tid, sort_index=tid)
        where: TraceEvent = {"ph": "X", "ts": begin, "dur": max(end - begin, 0), "pid": pid, "tid": tid}
        yield {"name": _text(told.name), "cat": told.kind, **where, "args": _texts(told.args)}
        yield from _phases(where, told.phases)

    def _counters(self, told: _Told, process: Process, pid: int, end: int) -> Iterator[TraceEvent]:
        before = self._sums.get(process.number, (0, 0.0))
        now = self._sums[process.number] = before[0] + told.misses, before[1] + told.cost
        counters: dict[str, dict[str, float]] = {"compile seconds so far": {"seconds": round(now[1], 6)}}
        if told.misses:
            counters["misses so far"] = {"misses": now[0]}
        for name, value in counters.items():
            yield {"name": name, "ph": "C", "ts": end, "pid": pid, "args": value}


# ------------------------------------------------------------------ of each kind of record


def _miss(record: Record) -> _Told:
    miss, phases = _records.miss(record), record["seconds"]
    lengths = {name: _records.seconds(phases, name) for name in ("trace", "lower", "backend_compile")}
    if miss.layer == "dispatch":
        return _Told(f"{miss.function}: off the fast path", "dispatch", _miss_args(miss))
    if record.get("compiled_within_seconds") is not None:  # has an event of its own, and happened while it was traced
        lengths["trace"] += _records.seconds(record, "compiled_within_seconds")
    return _Told(
        miss.function,
        "recompile" if miss.is_recompile else "first_call",
        _miss_args(miss),
        seconds=sum(lengths.values()),
        phases=lengths,
        cost=miss.seconds,
        misses=1,
    )


def _outside(record: Record, name: str, args: Mapping[str, Any]) -> _Told:
    seconds = _records.seconds(record, "seconds")
    return _Told(name, str(record["event"]), args, seconds=seconds, beside="outside watched calls", cost=seconds)


def _eager(record: Record) -> _Told:
    args = {name: _records.text_or_none(record, name) for name in ("via", "persistent_cache")}
    args |= _named(record, "site")
    return _outside(record, f"{_records.text(record, 'function')}, outside jit", args)


def _ahead_of_time(record: Record) -> _Told:
    args = _named(record, "definition", "site")
    return _outside(record, f"{_records.text(record, 'function')}, ahead of time", args)


def _error(record: Record) -> _Told:
    args = _named(record, "definition", "site", "error")
    return _outside(record, f"{_records.text(record, 'function')} raised {args['error']}", args)


def _violation(record: Record) -> _Told:
    return _Told(f"guard broken: {_records.text(record, 'function')}", "violation", _named(record, "action"))


def _run(record: Record) -> _Told:
    phase, code = _records.text(record, "phase"), _records.exit_code(record)
    return _Told(f"run {phase}", "run", {**_named(record, "program"), "exit_code": code})


def _stats(_record: Record) -> None:
    """It is no event of the trace; of the process, it tells the versions."""


_READ: Mapping[str, Callable[[Record], _Told | None]] = {
    "cache_miss": _miss,
    "eager_compile": _eager,
    "ahead_of_time": _ahead_of_time,
    "trace_error": _error,
    "violation": _violation,
    "run": _run,
    "process_stats": _stats,
}


# ------------------------------------------------------------------ forms


def _instant(told: _Told, pid: int, moment: int) -> TraceEvent:
    where: TraceEvent = {"ph": "i", "s": "p", "ts": moment, "pid": pid, "tid": 0}
    return {"name": _text(told.name), "cat": told.kind, **where, "args": _texts(told.args)}


def _phases(where: TraceEvent, lengths: Mapping[str, float]) -> Iterator[TraceEvent]:
    """Yield the phases of a slice, one after the other, to its end."""
    first, last = where["ts"], where["ts"] + where["dur"]
    at = last - 1e6 * sum(lengths.values())
    for name, seconds in lengths.items():
        begin, at = at, at + 1e6 * seconds
        begins, ends = (min(max(round(edge), first), last) for edge in (begin, at))
        if seconds:
            told = {"name": name.replace("_", " "), "cat": "phase", **where, "ts": begins, "dur": ends - begins}
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
