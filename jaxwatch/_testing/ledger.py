"""Who compiled what: each event of the process is counted for what pytest is at just then."""

import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from jaxwatch import _limits
from jaxwatch._hub import HUB
from jaxwatch._testing.counts import OTHER, Counts, Misses, causes_of, function_text
from jaxwatch._words import changes_text
from jaxwatch.events import CacheMiss, EagerCompile, Event
from jaxwatch.renderers.cells import clean

Kind = Literal["setup", "call", "teardown", "fixture", "collection", "rest"]
_numbers = itertools.count(1)


class Owner(NamedTuple):
    """What pytest is at: a phase of a test, a fixture of wider scope, the import of a file, or nothing of these."""

    kind: Kind
    name: str  # nodeid, or ``conftest.py::model`` of a fixture


REST = Owner("rest", "")


class Seen(NamedTuple):
    """One miss, as a failing test tells it."""

    function: str
    definition: str
    causes: tuple[str, ...]
    text: str
    site: str
    call: int
    seconds: float


@dataclass(slots=True)
class Tally:
    """What one owner compiled."""

    misses: int = 0
    seconds: float = 0.0
    eager: int = 0
    eager_seconds: float = 0.0
    by_cause: Misses = field(default_factory=dict)  # without what jax.clear_caches() made compile again
    by_definition: Counter[tuple[str, str]] = field(default_factory=Counter)
    seen: list[Seen] = field(default_factory=list)

    def add(self, miss: CacheMiss) -> None:
        """Count a miss."""
        function, causes = function_text(miss.function), causes_of(miss)
        self.misses += 1
        self.seconds += miss.seconds.total
        key = function, miss.definition
        full = key not in self.by_definition and len(self.by_definition) >= _limits.FUNCTIONS_PER_TEST
        self.by_definition[(OTHER, "") if full else key] += 1
        if not _cleared(miss):
            full = function not in self.by_cause and len(self.by_cause) >= _limits.FUNCTIONS_PER_TEST
            self.by_cause.setdefault(OTHER if full else function, Counts()).add(causes)
        if len(self.seen) < _limits.MISSES_PER_TEST:
            told = clean(changes_text(miss.changes)) or ", ".join(causes)
            seen = Seen(function, miss.definition, causes, told, miss.site, miss.call, miss.seconds.total)
            self.seen.append(seen)

    def plain(self) -> dict[str, Any]:
        """Return the figures as plain data, for the way from a worker to the process that reports."""
        return {
            "misses": self.misses,
            "seconds": self.seconds,
            "eager": self.eager,
            "eager_seconds": self.eager_seconds,
        }


def _cleared(miss: CacheMiss) -> bool:
    """Whether the miss is due to ``jax.clear_caches()``: whichever test comes after it pays, so it is no test's own."""
    return "cache_lost" in miss.reasons and any("clear_caches" in (change.note or "") for change in miss.changes)


class Ledger:
    """Counts events by owner, from all threads: a data loader's compiles are those of the test that is running."""

    def __init__(self) -> None:
        self.name = f"pytest-{next(_numbers)}"  # of its own: pytest.main may run within a test
        self._lock = threading.RLock()  # what is allocated under it may run a finalizer that compiles
        self._at: tuple[Owner, ...] = (REST,)
        self._tallies: dict[Owner, Tally] = {}

    def __call__(self, event: Event, /) -> None:
        """Take an event."""
        if isinstance(event, CacheMiss) and event.layer != "dispatch":  # which the native core alone sees
            with self._lock:
                self._tallies.setdefault(self._at[-1], Tally()).add(event)
        elif isinstance(event, EagerCompile):
            with self._lock:
                tally = self._tallies.setdefault(self._at[-1], Tally())
                tally.eager += 1
                tally.eager_seconds += event.seconds

    @contextlib.contextmanager
    def within(self, owner: Owner) -> Iterator[None]:
        """Within the block, what is compiled is ``owner``'s."""
        before = self._at
        self._at = (*before, owner)
        try:
            yield
        finally:
            self._at = before

    def take(self) -> dict[Owner, Tally]:
        """Return what was compiled since this was last called; none of it is changed any more."""
        with self._lock:
            found, self._tallies = self._tallies, {}
        return found

    def begin(self) -> None:
        """Listen; again, where it was taken out."""
        if self.name not in HUB.names:
            HUB.add(self.name, self)

    def end(self) -> None:
        """Listen no more."""
        HUB.remove(self.name)
