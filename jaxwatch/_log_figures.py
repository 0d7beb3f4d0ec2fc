"""The figures of the processes that wrote some logs, as the registry has them of its own: what an exporter shows.

Plain data in and out. A process that died goes on to count, to the last thing that it wrote.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast, get_args

from jaxwatch import _limits, _records
from jaxwatch._build import Build
from jaxwatch._histogram import SIZE, upper_seconds
from jaxwatch._options import ACTIONS, Watch
from jaxwatch._records import MalformedError, Record, SeenMiss
from jaxwatch._registry import Registry, Subject
from jaxwatch._stats import FunctionStats, ProcessStats
from jaxwatch.events import REASONS, CacheMiss, DiskResult, Layer, Origin, PhaseSeconds

Place = tuple[str, str]  # name and definition of a function
Number = TypeVar("Number", int, float)

# Processes whose cumulative figures are kept, to tell what is new in the next. Beyond, the oldest goes.
PROCESSES = 10_000
# Seconds after its last event from which a process that said no end counts as gone: it writes every minute.
GONE_SECONDS = 180.0
_BOUNDS = [upper_seconds(index) * (1 - 1e-5) for index in range(SIZE)]  # the log tells six digits


class _Process:
    """What one process said last of its cumulative figures."""

    def __init__(self) -> None:
        self.build = Build("")
        self.last_seconds = 0.0
        self.calls: Counter[Place] = Counter()
        self.misses: Counter[Place] = Counter()  # those whose events came; each was a call
        self.dispatch: dict[Place, Mapping[float, int]] = {}
        self.own: dict[str, Mapping[str, float]] = {}


class LogFigures:
    """Takes records one by one; not thread-safe.

    Attributes:
        faults: Records so far whose fields are missing or not of their kind.
    """

    def __init__(self) -> None:
        self.faults = 0
        self._registry = Registry()
        self._functions: dict[Place, tuple[_Thing, Subject]] = {}
        self._fingerprints: dict[tuple[Place, str], dict[str, None]] = {}
        self._processes: dict[tuple[int, int | None], _Process] = {}
        self._latest: dict[int, _Process] = {}  # by pid
        self._own: dict[str, dict[str, Any]] = {name: {} for name in _OWN}
        self._handlers: Mapping[str, Callable[[Record], None]] = {
            "run": self._run,
            "cache_miss": self._miss,
            "eager_compile": self._eager,
            "trace_error": self._error,
            "violation": self._violation,
            "function_stats": self._function_stats,
            "process_stats": self._process_stats,
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

    def add_overhead(self, part: str, seconds: float) -> None:
        """Add seconds that showing the figures itself took."""
        _add(self._own["overhead_seconds"], part, seconds)

    def count_exporter_error(self, name: str) -> None:
        """Count an exception of what shows the figures."""
        _add(self._own["exporter_errors"], name, 1)

    def snapshot(self) -> ProcessStats:
        """Return the figures as they are now, summed over all processes, the dead ones included."""
        found = self._registry.snapshot()
        overflows = Counter(found.label_overflows) + Counter(self._own["label_overflows"])
        return replace(
            found,
            functions=tuple(self._with_fingerprints(stats) for stats in found.functions),
            dropped=dict(self._own["dropped"]),
            label_overflows=overflows,
            exporter_errors=dict(self._own["exporter_errors"]),
            overhead_seconds=dict(self._own["overhead_seconds"]),
        )

    def builds(self, now: float) -> list[Build]:
        """Return what runs in the processes that are alive at ``now`` (seconds since 1970), equal ones once."""
        alive = (one for one in self._processes.values() if now - one.last_seconds < GONE_SECONDS)
        return list(dict.fromkeys(process.build for process in alive))

    def _with_fingerprints(self, stats: FunctionStats) -> FunctionStats:
        place = stats.function, stats.definition
        found = {signature: tuple(self._fingerprints.get((place, signature), ())) for signature in stats.fingerprints}
        return replace(stats, fingerprints=found)

    # -------------------------------------------------------------- processes

    def _process(self, record: Record) -> _Process:
        """Return the process that wrote the record: by its pid, and by its rank while jax.distributed runs."""
        pid, rank = _records.whole(record, "pid"), _records.whole_or_none(record, "process_index")
        time = _records.unix_seconds(record)
        found = self._processes.get((pid, rank))
        if rank is None:  # noqa: SIM108 -- each way has its reason: before jax.distributed runs, or after it was shut down
            found = found or self._latest.get(pid)
        else:  # one that has just begun has its rank now, also where an earlier one had the same
            found = self._processes.pop((pid, None), None) or found
        if found is None:
            found = _Process()
        if rank is not None or pid not in self._latest:
            self._keep((pid, rank), found)
        found.last_seconds = max(found.last_seconds, time)
        return found

    def _keep(self, key: tuple[int, int | None], process: _Process) -> None:
        if key not in self._processes and len(self._processes) >= PROCESSES:
            del self._processes[next(iter(self._processes))]
        self._processes[key] = self._latest[key[0]] = process
        if len(self._latest) > PROCESSES:
            del self._latest[next(iter(self._latest))]

    def _run(self, record: Record) -> None:
        phase, pid = _records.text(record, "phase"), _records.whole(record, "pid")
        if phase == "start":  # of a pid that was another process's before
            self._latest.pop(pid, None)
            self._processes.pop((pid, None), None)
            self._process(record)
            return
        ended = self._process(record)
        self._latest.pop(pid, None)
        self._processes = {key: process for key, process in self._processes.items() if process is not ended}

    # -------------------------------------------------------------- events

    def _subject(self, place: Place) -> Subject:
        if place not in self._functions:
            if len(self._functions) >= _limits.DEFINITIONS:
                place = _REST
            if place not in self._functions:
                name, definition = place
                subject = Subject(
                    name=name, definition=definition, event_name=name, in_library=False, watch=Watch(), plan=None
                )
                self._functions[place] = thing, _ = _Thing(), subject
                self._registry.add(thing, subject)
        return self._functions[place][1]

    def _miss(self, record: Record) -> None:
        seen = _records.miss(record)
        made, process = _event(record, seen), self._process(record)
        place = seen.function, seen.definition
        subject = self._subject(place)
        self._registry.count_miss(subject, made, made.origin.unix_seconds)
        if seen.fingerprint is not None and seen.signature in subject.counters.fingerprints:
            kept = self._fingerprints.setdefault((place, seen.signature), {})
            if len(kept) < _limits.LABEL_FINGERPRINTS:
                kept[seen.fingerprint] = None
        process.misses[place] += 1
        self._count_calls(process, place, process.misses[place])

    def _eager(self, record: Record) -> None:
        site, took = _records.text(record, "site"), _records.seconds(record, "seconds")
        result = _disk_result(_records.text_or_none(record, "persistent_cache"))
        self._process(record)
        self._registry.count_eager(site, took, result)

    def _error(self, record: Record) -> None:
        place = _records.text(record, "function"), _records.text(record, "definition")
        self._process(record)
        self._registry.count_error(self._subject(place))

    def _violation(self, record: Record) -> None:
        name, action = _records.text(record, "function"), _records.text(record, "action")
        self._process(record)
        if action not in ACTIONS:
            raise MalformedError("action")
        place = next(
            (place for place in self._functions if place[0] == name), (name, "")
        )  # the event has the name alone
        self._registry.count_violation(self._subject(place), action)

    # -------------------------------------------------------------- cumulative figures

    def _function_stats(self, record: Record) -> None:
        place = _records.text(record, "function"), _records.text(record, "definition")
        calls, dispatch = _records.whole(record, "calls"), _records.dispatch(record)
        process = self._process(record)
        self._count_calls(process, place, calls)
        before, cell = process.dispatch.get(place, {}), self._subject(place).counters.cell
        for bound, count in dispatch.items():
            index = min(bisect_right(_BOUNDS, bound) - 1, SIZE - 1)
            cell.dispatch[max(0, index)] += max(0, count - before.get(bound, 0))
        process.dispatch[place] = dispatch

    def _count_calls(self, process: _Process, place: Place, calls: int) -> None:
        more = max(0, calls - process.calls[place])
        process.calls[place] += more
        self._subject(place).counters.cell.calls += more

    def _process_stats(self, record: Record) -> None:
        versions = [_records.text(record, name) for name in Build._fields[:-1]]
        figures = {name: _records.counts(record, name, number) for name, number in _OWN.items()}
        process, rank = self._process(record), _records.whole_or_none(record, "process_index")
        version, jax, jaxlib, backend, core = versions
        told = process.build.process_index if rank is None else str(rank)
        process.build = Build(version, jax, jaxlib, backend, core, told)
        for name, values in figures.items():
            before, sums = process.own.get(name, {}), self._own[name]
            for what, value in values.items():
                if what in sums or len(sums) < _WHATS:
                    _add(sums, what, max(0, value - before.get(what, 0)))
            process.own[name] = values


def _add(sums: dict[str, Any], name: str, value: float) -> None:
    sums[name] = sums.get(name, 0) + value


_REST = ("other", "<other>")  # as the registry folds
_OWN: Mapping[str, Callable[[Record, str], Any]] = {
    "dropped": _records.whole,
    "label_overflows": _records.whole,
    "exporter_errors": _records.whole,
    "overhead_seconds": _records.seconds,
}
_WHATS = 100  # kinds of what was dropped, exporters, … that are told apart


class _Thing:
    """Stands for the watched object: the registry refers to it weakly."""


def _event(record: Record, seen: SeenMiss) -> CacheMiss:
    """Return the miss as the registry counts it: what that does not read is left empty."""
    if seen.layer not in get_args(Layer) or seen.reasons[0] not in REASONS:
        raise MalformedError("layer")
    return CacheMiss(
        id=seen.number,
        origin=Origin(unix_seconds=_records.unix_seconds(record), pid=0, process_index=None, thread_name=""),
        function=seen.function,
        definition=seen.definition,
        site=seen.site,
        call=seen.call,
        layer=cast("Layer", seen.layer),
        traces=0,
        lowerings=0,
        compiles=0,
        persistent_cache=_disk_result(seen.disk_result),
        seconds=PhaseSeconds(
            trace=seen.before_xla[0],
            lower=seen.before_xla[1],
            backend_compile=max(0.0, seen.seconds - sum(seen.before_xla)),
        ),
        reasons=(cast("Any", seen.reasons[0]),),
        changes=(),
        compared_with=None,
        fingerprint=seen.fingerprint,
        signature=seen.signature,
        abstract=seen.abstract,
        advice=(),
    )


def _disk_result(value: str | None) -> DiskResult | None:
    return cast("DiskResult", value) if value in get_args(DiskResult) else None
