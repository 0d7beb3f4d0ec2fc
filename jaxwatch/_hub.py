"""Hands each event to every exporter; what one raises is counted, and neither the program nor another one notices."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from jaxwatch._registry import REGISTRY
from jaxwatch.events import Event


class Exporter(Protocol):
    """Takes one event; called on the thread that made it, after the user's call."""

    def __call__(self, event: Event, /) -> None:
        """Take ``event``."""


class _Here(threading.local):
    busy = False  # an exporter runs on this thread: what it compiles itself is no event


class Hub:
    """The exporters of the process, by name; adding one of a name again replaces it."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._exporters: dict[str, Exporter] = {}
        self._here = _Here()
        self._clock = clock

    def add(self, name: str, export: Exporter) -> None:
        """Hand all further events to ``export`` too."""
        self._exporters[name] = export  # in place, and in one step: another thread may be adding one

    def remove(self, name: str) -> None:
        """Hand no further event to the exporter of that name; unknown names are passed over."""
        self._exporters.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """The exporters' names."""
        return tuple(self._exporters)

    @property
    def busy(self) -> bool:
        """Whether an exporter is running on this thread."""
        return self._here.busy

    @contextlib.contextmanager
    def exporting(self) -> Iterator[None]:
        """Within the block, what this thread compiles is an exporter's own doing, and no event."""
        before, self._here.busy = self._here.busy, True
        try:
            yield
        finally:
            self._here.busy = before

    def publish(self, event: Event) -> None:
        """Hand ``event`` to all exporters, one after the other; never raises an ``Exception``."""
        if self._here.busy:
            REGISTRY.count_dropped("event")
            return
        started = self._clock()
        try:
            with self.exporting():
                for name, export in tuple(self._exporters.items()):
                    try:
                        export(event)
                    except Exception:  # noqa: BLE001 -- whatever an exporter raises, the program must not see it
                        REGISTRY.count_exporter_error(name)
        finally:
            REGISTRY.add_overhead("export", self._clock() - started)


HUB = Hub()
