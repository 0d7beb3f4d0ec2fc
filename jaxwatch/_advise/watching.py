"""What a run keeps of itself while it goes on, and what it tells in the end."""

import contextlib
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from jaxwatch._advise import figures, samples
from jaxwatch._advise.outcome import Ended, Function, Outcome
from jaxwatch._registry import REGISTRY, Subject
from jaxwatch._scope import Measuring, Record
from jaxwatch.events import AheadOfTime, CacheMiss, EagerCompile, Event, TraceError

Place = tuple[str, str]  # a function's name and definition

_BYTES_OF_RSS = 1 if sys.platform == "darwin" else 1024
_NANO = 1e-9


class Watching:
    """Outermost calls, compiles and results of this process.

    Args:
        look: Wait for each outermost call's result, and sample some.
        calls: After so many outermost calls ``enough`` is raised; None: never.
        enough: An exception's type.
    """

    def __init__(self, *, look: bool, calls: int | None, enough: type[BaseException]) -> None:
        self._look, self._calls, self._enough = look, calls, enough
        self._lock = threading.RLock()
        self._compiled: list[tuple[int, float]] = []  # when, and for how long
        self._by_function: dict[Place, float] = {}
        self._misses = self._eager = self._disk_hits = 0
        self._nested: dict[Place, set[Place]] = {}
        self._samples: dict[str, Any] = {}
        self._sampling: dict[int, int] = {}  # a call's number → when its result was ready, sampling apart
        self._core: Any = None

    def start(self) -> None:
        """Begin to measure; jax is imported."""
        from jaxwatch import _core  # noqa: PLC0415 -- it imports jax, which the program is to import first

        self._core = _core.measurer()
        self._core.measure(
            self._after if self._look or self._calls else None, self._note_nested if self._look else None
        )

    # -------------------------------------------------------------- while it goes on

    def export(self, event: Event, /) -> None:
        """Take an event; an exporter of the hub."""
        now = time.monotonic_ns()
        with self._lock:
            if isinstance(event, CacheMiss):
                self._misses += event.layer != "dispatch"
                self._disk_hits += event.persistent_cache == "hit"
                self._took(event.seconds.total, now, (event.function, event.definition))
            elif isinstance(event, EagerCompile):
                self._eager += 1
                self._disk_hits += event.persistent_cache == "hit"
                self._took(event.seconds, now, None)
            elif isinstance(event, AheadOfTime | TraceError):
                self._took(event.seconds, now, (event.function, event.definition))

    def _took(self, seconds: float, now: int, place: Place | None) -> None:
        if seconds:
            self._compiled.append((now, seconds))
        if place is not None:
            self._by_function[place] = self._by_function.get(place, 0.0) + seconds

    def _note_nested(self, around: Subject, within: Subject) -> None:
        self._nested.setdefault(_place(around), set()).add(_place(within))

    def _after(self, result: Any, call: int) -> None:
        if self._look:
            jax: Any = sys.modules["jax"]
            with contextlib.suppress(Exception):  # what cannot be waited for is no array
                jax.block_until_ready(result)
            ready = time.monotonic_ns()
            self._sample(jax, result, call, ready)
        if self._calls is not None and call >= self._calls:
            raise self._enough

    def _sample(self, jax: Any, result: Any, call: int, ready: int) -> None:
        if not samples.is_sampled(call):
            return
        with contextlib.suppress(Exception):  # a tree that cannot be read has no sample
            leaves = [(jax.tree_util.keystr(path), leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(result)]
            self._samples[str(call)] = samples.sample(leaves)
        self._sampling[call - 1] = ready

    # -------------------------------------------------------------- in the end

    def outcome(self, ended: Ended, error: str) -> Outcome:
        """Return what the run came to: its end is now."""
        if ended != "time":
            _wait_for_all()
        end = time.monotonic_ns()
        with self._lock:
            count, records = (0, []) if self._core is None else self._core.measured()
            records = [
                record._replace(ready=self._sampling.get(place, record.ready)) for place, record in enumerate(records)
            ]
            compiled = sorted(when for when, _ in self._compiled)
            calm = figures.quiet(records, compiled)
            peak, on_device = _peak_bytes()
            first = min(records, key=lambda record: record.begun, default=None)
            begin = end if first is None else first.begun
            return Outcome(
                ended=ended,
                error=error,
                calls=count,
                total_seconds=_NANO * (end - begin),
                first_call_seconds=0.0 if first is None else _NANO * (first.ready - first.begun),
                compile_seconds=sum(seconds for when, seconds in self._compiled if when >= begin),
                misses=self._misses,
                eager_compiles=self._eager,
                disk_hits=self._disk_hits,
                peak_bytes=peak,
                on_device=on_device,
                later_seconds=figures.later_seconds(records, compiled, end),
                steady=figures.steady(calm) if self._look else None,
                curve=figures.curve(records, end),
                functions=tuple(self._functions(records)),
                samples=dict(self._samples),
            )

    def _functions(self, records: list[Record]) -> Iterator[Function]:
        outermost: Counter[Place] = Counter()
        seconds: dict[Place, float] = {}
        for record in records:
            place = _place(Measuring.subjects[record.function])
            outermost[place] += 1
            seconds[place] = seconds.get(place, 0.0) + _NANO * (record.returned - record.begun)
        for stats in REGISTRY.snapshot().functions:
            place = stats.function, stats.definition
            yield Function(
                name=stats.function,
                definition=stats.definition,
                in_library=stats.in_library,
                calls=stats.calls,
                outermost=outermost[place],
                compile_seconds=self._by_function.get(place, 0.0),
                seconds=seconds.get(place, 0.0),
                nested=tuple(sorted(self._nested.get(place, ()))),
            )


def _place(subject: Subject) -> Place:
    return subject.name, subject.definition


def _wait_for_all() -> None:
    """Wait until all that was dispatched is done."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return
    with contextlib.suppress(Exception):  # what failed on the device is the program's to tell
        jax.block_until_ready([array for array in jax.live_arrays() if not array.is_deleted()])
    with contextlib.suppress(Exception):
        jax.effects_barrier()


def _peak_bytes() -> tuple[int, bool]:
    """Return the most memory that was in use, and whether it is that of the devices."""
    jax: Any = sys.modules.get("jax")
    with contextlib.suppress(Exception):  # a backend that tells nothing, or that cannot be had
        told = [(device.memory_stats() or {}).get("peak_bytes_in_use") for device in jax.local_devices()]
        if told and all(told):
            return sum(int(size) for size in told if size), True
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_OF_RSS, False
