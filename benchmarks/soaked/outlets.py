"""What reads and disturbs jaxwatch while the program calls: on threads of their own, in the watched process alone."""

import contextlib
import random
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

import jaxwatch
from benchmarks.soaked.logs import Logs
from jaxwatch import _session, events

_SLOW_SECONDS = 0.01
_SLOW_WAITING = 20
_OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


class Callbacks:
    """Three subscriptions for the whole run: a quick one, a slow one, one that raises."""

    def __init__(self) -> None:
        self.called: Counter[str] = Counter()  # each counted on its own thread alone
        self.subscriptions = [
            jaxwatch.subscribe(self._quick, name="quick", waiting=100_000),
            jaxwatch.subscribe(self._slow, name="slow", waiting=_SLOW_WAITING),
            jaxwatch.subscribe(self._raising, name="raising", waiting=100_000),
        ]

    def _quick(self, _: events.Event) -> None:
        self.called["quick"] += 1

    def _slow(self, _: events.Event) -> None:
        self.called["slow"] += 1
        time.sleep(_SLOW_SECONDS)

    def _raising(self, _: events.Event) -> None:
        self.called["raising"] += 1
        raise RuntimeError

    def close(self) -> None:
        """End them, after all that waits."""
        for subscription in self.subscriptions:
            subscription.close(60.0)


class Outlets:
    """The server, the log and the callbacks, and a thread that reads and disturbs them at random."""

    def __init__(self, seed: int, folder: Path, functions: list[Any]) -> None:
        self.logs = Logs(folder)
        self.path = self.logs.new()
        jaxwatch.configure(log=self.path, console=False)
        self.callbacks = Callbacks()
        self.server = jaxwatch.serve(port=0)
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.fell = 0  # counters that were less than at the scrape before
        self._functions = functions
        self._rng = random.Random(f"{seed} outlets")  # noqa: S311 -- no secret
        self._last: dict[Any, float] = {}
        self._seen = 0
        self._moment: list[Any] = []
        self._stop = threading.Event()
        self._doing: dict[str, Callable[[], object]] = {
            "scrapes": self.scrape,
            "live frames": self._live,
            "pages": self._page,
            "stats() of all": self._stats,
            "snapshots in the log": _session.write_stats,
            "logs chosen anew": self._configure,
            "logs deleted": self._delete,
            "logs moved": self._move,
            "subscriptions for a moment": self._subscribe,
        }
        self._thread = threading.Thread(target=self._disturb, name="soak outlets", daemon=True)
        self._thread.start()

    def settle(self) -> None:
        """Count the logs that were left behind before, and end subscriptions; called between two rounds.

        An event that is under way to one that ends is counted as dropped, and then nobody could tell of which.
        """
        self.logs.count()
        while self._moment:
            self._moment.pop().close(60.0)

    def close(self) -> None:
        """Stop disturbing, and deliver what waits; the server goes on for a last scrape."""
        self._stop.set()
        self._thread.join()
        self.settle()
        self.callbacks.close()

    def _disturb(self) -> None:
        names = list(self._doing)
        weights = [6, 6, 1, 3, 1, 1, 1, 1, 2]
        while not self._stop.wait(self._rng.uniform(0.0, 0.2)):
            (name,) = self._rng.choices(names, weights)
            try:
                self._doing[name]()
                self.done[name] += 1
            except Exception as error:  # noqa: BLE001 -- told in the end
                self.failures.append(f"{name}: {type(error).__name__}: {error}"[:200])

    def _read(self, path: str, fields: dict[str, str] | None = None) -> str:
        request = urllib.request.Request(self.server.page + path, headers=fields or {})  # noqa: S310 -- our own server
        with contextlib.closing(urllib.request.urlopen(request, timeout=60)) as answer:  # noqa: S310 -- as above
            return str(answer.read().decode())

    def scrape(self) -> dict[Any, float]:
        """Return all samples of a scrape by name and labels, and count what has become less."""
        found: dict[Any, float] = {}
        for family in text_string_to_metric_families(self._read("metrics", _OPENMETRICS)):  # type: ignore[no-untyped-call]  # its own
            for sample in family.samples:
                if not sample.name.startswith("jaxwatch_"):
                    continue
                key = sample.name, tuple(sorted(sample.labels.items()))
                found[key] = sample.value
                if family.type in {"counter", "histogram"}:
                    self.fell += sample.value < self._last.get(key, 0.0)
        self._last = found
        return found

    def _live(self) -> None:
        self._read(f"live.json?since={self._seen}" if self._rng.random() < 0.8 else "live.json")  # noqa: PLR2004 -- mostly
        self._seen += 1

    def _page(self) -> None:
        for path in ("", "page.css", "page.js"):
            self._read(path)

    def _stats(self) -> None:
        for function in self._functions:
            jaxwatch.stats(function)

    def _configure(self) -> None:
        old, self.path = self.path, self.logs.new()
        jaxwatch.configure(log=self.path)
        self.logs.leave(old)

    def _delete(self) -> None:
        """Take its name away; by another name its lines can still be counted."""
        if not self.path.exists():  # deleted before, and nothing was written since
            return
        aside = self.logs.new()
        aside.hardlink_to(self.path)
        self.path.unlink()
        self.logs.leave(aside)

    def _move(self) -> None:
        if not self.path.exists():
            return
        aside = self.logs.new()
        self.path.rename(aside)
        self.logs.leave(aside)

    def _subscribe(self) -> None:
        self._moment.append(jaxwatch.subscribe(lambda event: None, name="for a moment", waiting=100_000))
