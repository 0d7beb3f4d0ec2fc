"""The watched functions and their counters: written by the engine, read by ``stats`` and at each scrape.

Watched objects are held weakly; the counts of those that died are folded into their definition's, so that no counter
ever goes down.
"""

import os
import threading
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

from jaxwatch import _limits
from jaxwatch._counters import OTHER, Counters
from jaxwatch._histogram import as_seconds
from jaxwatch._options import Watch
from jaxwatch._stats import FunctionStats, ProcessStats, SiteStats
from jaxwatch.events import CacheMiss, DiskResult

_OVERFLOW = (OTHER, "<other>")


class Subject:
    """What the engine knows of one watched object: plain data, its counters, and how its arguments are to be read."""

    __slots__ = (
        "__weakref__",
        "by_install",
        "called_before",
        "counters",
        "definition",
        "departures",
        "event_name",
        "failed",
        "in_library",
        "jitted",
        "name",
        "plan",
        "watch",
    )

    def __init__(  # noqa: PLR0913 -- by keyword, each a field
        self,
        *,
        name: str,
        definition: str,
        event_name: str,
        in_library: bool,
        watch: Watch,
        plan: Any,
        cell: Any = None,
    ) -> None:
        self.name = name
        self.definition = definition
        self.event_name = event_name
        self.in_library = in_library
        self.watch = watch
        self.plan = plan  # a _plan.Plan; the registry only keeps it
        self.counters = Counters(cell)
        # durations of calls that left the fast path, in nanoseconds, by key; None: told, or not looked at any more
        self.departures: dict[Any, list[int]] | None = {}
        self.failed: set[str] = set()  # signatures of which a call raised while it was traced; bounded
        self.jitted: Callable[[], Any] = _nothing  # the jitted function, while it lives
        self.called_before = False  # it was watched: its first miss may be no first call
        self.by_install = False  # the program does not name jaxwatch, so its pickles must not either


def _nothing() -> None:
    return None


class _Definition:
    """All watched objects of one name and definition."""

    def __init__(self, subject: Subject) -> None:
        self.name, self.definition, self.in_library = subject.name, subject.definition, subject.in_library
        self.live: dict[int, Counters] = {}
        self.dead = Counters()
        self.buried = False  # whether any of its objects died

    def totals(self) -> Counters:
        if len(self.live) == 1 and not self.buried:
            return next(iter(self.live.values()))  # the usual case, at a fraction of the price
        total = Counters()
        for counters in (self.dead, *self.live.values()):
            total.fold(counters)
        return total


class Registry:
    """All figures of the process. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._definitions: OrderedDict[tuple[str, str], _Definition] = OrderedDict()
        self._subjects: dict[int, tuple[weakref.ref[Any], Subject]] = {}
        self._eager: dict[str, SiteStats] = {}
        self._disk: Counter[str] = Counter()
        self._dropped: Counter[str] = Counter()
        self._overflows: Counter[str] = Counter()
        self._exporter_errors: Counter[str] = Counter()
        self._overhead: dict[str, float] = {}
        self.call_seconds = 0.0  # what a call pays for being watched, measured at start
        self._dead: deque[tuple[int, tuple[str, str], weakref.ref[Any]]] = deque()

    # -------------------------------------------------------------- watched objects

    def add(self, watched: object, subject: Subject) -> None:
        """Keep ``subject`` as long as ``watched`` lives, and its counts for good."""
        key, dead = id(watched), self._dead
        place = (subject.name, subject.definition)

        def died(ref: weakref.ref[Any], /) -> None:
            dead.append((key, place, ref))  # takes no lock: it may run anywhere, in the midst of a lock's owner too

        with self.lock:
            self._bury()
            self._subjects[key] = weakref.ref(watched, died), subject
            self._definition(place, subject).live[key] = subject.counters
            subject.counters.unseen |= subject.called_before
        subject.jitted = weakref.ref(watched)

    def _definition(self, place: tuple[str, str], subject: Subject) -> _Definition:
        if place not in self._definitions and len(self._definitions) >= _limits.DEFINITIONS:
            self._overflows["function"] += 1
            place = _OVERFLOW
        if place not in self._definitions:
            found = self._definitions[place] = _Definition(subject)
            found.name, found.definition = place
        return self._definitions[place]

    def _bury(self) -> None:
        """Fold the counts of watched objects that died into their definition's; the lock is held."""
        while self._dead:
            key, place, ref = self._dead.popleft()
            kept = self._subjects.get(key)
            if kept is None or kept[0] is not ref:
                continue
            del self._subjects[key]
            definition = self._definitions.get(place) or self._definitions[_OVERFLOW]
            definition.dead.fold(definition.live.pop(key))
            definition.buried = True

    def remove(self, watched: object) -> None:
        """Forget a watched object that lives on; its counts stay."""
        with self.lock:
            self._bury()
            kept = self._subjects.get(id(watched))
            if kept is not None and kept[0]() is watched:
                self._dead.append((id(watched), (kept[1].name, kept[1].definition), kept[0]))
                self._bury()

    def find(self, watched: object) -> Subject | None:
        """Return the subject of a watched object, also through bound methods; None for anything else."""
        kept = self._subjects.get(id(watched))
        if kept is not None and kept[0]() is watched:
            return kept[1]
        inner = getattr(watched, "__func__", None) if type(watched).__name__ == "method" else None
        return None if inner is None else self.find(inner)

    def named(self, event_name: str) -> Subject | None:
        """Return the watched function whose phases JAX reports under that name, if there is just one definition."""
        with self.lock:
            found = {
                (subject.name, subject.definition): subject
                for _, subject in self._subjects.values()
                if subject.event_name == event_name
            }
        return next(iter(found.values())) if len(found) == 1 else None

    def calls(self, subject: Subject) -> int:
        """Return how many calls there were of all watched objects of its definition."""
        with self.lock:
            self._bury()
            kept = self._definitions.get((subject.name, subject.definition))
            if kept is None:
                return int(subject.counters.cell.calls)
            return int(sum(counters.cell.calls for counters in (kept.dead, *kept.live.values())))

    def missed(self, subject: Subject) -> bool:
        """Whether any watched object of its definition missed before: a lambda jitted anew is no new function."""
        with self.lock:
            self._bury()
            kept = self._definitions.get((subject.name, subject.definition))
            return kept is not None and any(each.by_cause for each in (kept.dead, *kept.live.values()))

    # -------------------------------------------------------------- counting, on the slow path

    def count_miss(self, subject: Subject, miss: CacheMiss, unix_seconds: float) -> None:
        """Count a miss of a watched function."""
        with self.lock:
            if not subject.counters.add_miss(miss, unix_seconds):
                self._overflows["signature"] += 1
            if miss.persistent_cache is not None:
                self._disk[miss.persistent_cache] += 1

    def count_error(self, subject: Subject) -> None:
        """Count a call that raised while being traced, lowered or compiled."""
        with self.lock:
            subject.counters.errors += 1

    def count_inlined(self, subject: Subject, outer: str, signature: str | None) -> None:
        """Count a call within the trace of another function; ``signature`` is None where its key was not looked at."""
        with self.lock:
            subject.counters.inlined.add(outer, None if signature is None else f"{subject.plan.identity} {signature}")

    def count_unseen(self, subject: Subject) -> None:
        """Note that a function has a program of which it is not known what it is made of."""
        with self.lock:
            subject.counters.unseen = True

    def count_violation(self, subject: Subject, action: str) -> None:
        """Count a miss that a guard forbade."""
        with self.lock:
            subject.counters.violations[action] += 1

    def count_eager(self, site: str, seconds: float, disk: DiskResult | None) -> int:
        """Count a compile outside watched functions; return how many that site has now."""
        with self.lock:
            if site not in self._eager and len(self._eager) >= _limits.EAGER_SITES:
                self._overflows["site"] += 1
                site = OTHER
            before = self._eager.get(site, SiteStats(count=0, seconds=0.0))
            self._eager[site] = SiteStats(count=before.count + 1, seconds=before.seconds + seconds)
            if disk is not None:
                self._disk[disk] += 1
            return before.count + 1

    def count_dropped(self, what: str, number: int = 1) -> None:
        """Count what a bound or a failing exporter made us drop: event, key, log_line or hook_call."""
        with self.lock:
            self._dropped[what] += number

    def count_exporter_error(self, name: str) -> None:
        """Count an exception of an exporter, hook or collector."""
        with self.lock:
            self._exporter_errors[name] += 1

    def add_overhead(self, part: str, seconds: float) -> None:
        """Add seconds that jaxwatch itself took: miss, export or scrape."""
        with self.lock:
            self._overhead[part] = self._overhead.get(part, 0.0) + max(0.0, seconds)  # a clock may be set back

    # -------------------------------------------------------------- reading

    def stats(self, subject: Subject) -> FunctionStats:
        """Return the figures of one watched object."""
        with self.lock:
            return _frozen(subject.name, subject.definition, subject.counters, in_library=subject.in_library)

    def snapshot(self) -> ProcessStats:
        """Return all figures as they are now."""
        with self.lock:
            self._bury()
            functions = tuple(
                _frozen(kept.name, kept.definition, kept.totals(), in_library=kept.in_library)
                for kept in self._definitions.values()
            )
            calls = sum(stats.calls for stats in functions)
            return ProcessStats(
                functions=tuple(stats for stats in functions if stats.calls or stats.trace_errors),
                eager=dict(self._eager),
                disk=dict(self._disk),
                dropped=dict(self._dropped),
                label_overflows=dict(self._overflows),
                exporter_errors=dict(self._exporter_errors),
                overhead_seconds={**self._overhead, "call": calls * self.call_seconds},
            )

    def reset(self) -> None:
        """Forget all figures; watched objects that live go on with counters at 0."""
        with self.lock:
            kept = list(self._subjects.values())
            lock, price = self.lock, self.call_seconds
            self.__init__()  # type: ignore[misc]  # the one list of what there is to forget
            self.lock, self.call_seconds = lock, price
            for ref, subject in kept:
                if (watched := ref()) is not None:
                    subject.called_before |= bool(subject.counters.by_cause)
                    subject.counters.cell.reset()
                    subject.counters = Counters(subject.counters.cell)
                    self.add(watched, subject)


def _frozen(name: str, definition: str, counters: Counters, *, in_library: bool) -> FunctionStats:
    return FunctionStats(
        function=name,
        definition=definition,
        calls=counters.cell.calls,
        trace_errors=counters.errors,
        dispatch=as_seconds(counters.cell.counts()),
        violations=dict(counters.violations),
        in_library=in_library,
        inlined=dict(counters.inlined.calls),
        inlined_read=counters.inlined.read,
        inlined_keys=len(counters.inlined.keys),
        touched=None if counters.unseen else counters.touched,
        **counters.of_misses(),
    )


REGISTRY = Registry()


def _after_fork() -> None:
    """In a forked child: figures of its own, or its parent's would be counted twice where both are summed.

    Another thread may have held the lock, and lives on only in the parent.
    """
    REGISTRY.lock = threading.RLock()
    REGISTRY.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
