"""``jaxwatch exporter``: one scrape for all processes of a host, out of the logs that they write. Imports no jax.

The logs are the record: what a process wrote before it was killed goes on to count.
"""

import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from itertools import islice
from typing import Self

from jaxwatch import metrics
from jaxwatch._follow import LogFollower
from jaxwatch._http import Answer, Request, refusal
from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame
from jaxwatch._log_figures import LogFigures
from jaxwatch._serve import DEFAULT_ADDR, listen
from jaxwatch._server import HttpServer
from jaxwatch._site import site

EVERY_SECONDS = 1.0
# Records between two moments at which a scrape may come in.
_AT_ONCE = 1_000


class LogExporter:
    """Follows logs, and serves their figures, summed over all processes, as ``jaxwatch.serve`` serves a process's own.

    Before all that was there at the start is read, a scrape is refused: figures that grow while they are read would
    look to Prometheus as if all of it happened just now.

    Args:
        places: Logs, patterns, or folders of ``*.jsonl``; they need not be there yet.
        port: As for ``jaxwatch.serve``.
        addr: As for ``jaxwatch.serve``.

    Raises:
        BadOptionError: Port or address is none.
        PortTakenError: Another program has the port, or it may not be had.

    Warns:
        JaxwatchWarning: The address is not a loopback one.

    Attributes:
        port: The port that it listens on.
    """

    def __init__(self, places: Sequence[str], port: int, addr: str = DEFAULT_ADDR) -> None:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 -- the command alone needs it

        self._follower = LogFollower(places)
        self._figures = LogFigures()
        self._live = LiveState("exporter")
        self._lock = threading.Lock()
        self._ready = False
        registry = CollectorRegistry()
        registry.register(
            metrics.Collector(
                self._figures.snapshot,
                builds=lambda: self._figures.builds(time.time()),
                count_error=self._figures.count_exporter_error,
                add_overhead=self._figures.add_overhead,
            )
        )
        self._site = site(self._frame, registry)
        listener, hosts = listen(port, addr)
        self.port = int(listener.getsockname()[1])
        self._server = HttpServer(listener, self._answer, hosts)
        self._server.start()

    def poll(self) -> None:
        """Take in what was written since the last time."""
        records = self._follower.poll()
        while batch := list(islice(records, _AT_ONCE)):
            with self._lock:
                for record in batch:
                    self._figures.add(record)
                    self._live.add(record)
        self._ready = True

    def run(self) -> None:
        """Poll until the process is told to end."""
        while True:
            self.poll()
            time.sleep(EVERY_SECONDS)

    def close(self) -> None:
        """Stop answering, and let go of the logs."""
        self._server.close()
        self._follower.close()

    def __enter__(self) -> Self:
        """Return the exporter itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _answer(self, request: Request) -> Answer:
        if not self._ready:
            return refusal(HTTPStatus.SERVICE_UNAVAILABLE, "the logs are still being read.")
        with self._lock:
            return self._site(request)

    def _frame(self) -> Frame:
        self._live.faults = self._follower.faults
        return self._live.frame(time.time())
