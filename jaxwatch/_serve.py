"""A small HTTP server for the metrics: what ``jaxwatch run --port`` and ``jaxwatch.serve`` start."""

import errno
import ipaddress
import os
import socket
import threading
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jaxwatch import metrics
from jaxwatch.errors import BadOptionError, JaxwatchWarning, PortTakenError

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer

    from prometheus_client.registry import CollectorRegistry

DEFAULT_PORT = 9464
DEFAULT_ADDR = "127.0.0.1"
LAST_PORT = 65_535


class MetricsServer:
    """A running server of metrics; ``with`` closes it at the end of the block.

    It answers on a daemon thread of its own, so it never keeps a program from ending. A forked child does not serve:
    it lets go of the port.

    Attributes:
        port: The port that it listens on: a free one where 0 was asked for.
        addr: The address that it listens on.
    """

    def __init__(self, server: "WSGIServer", thread: threading.Thread, addr: str) -> None:
        self.addr = addr
        self.port = int(server.server_port)
        self._server: WSGIServer | None = server
        self._thread = thread
        _open.add(self)

    @property
    def url(self) -> str:
        """Where the metrics can be read."""
        host = f"[{self.addr}]" if ":" in self.addr else self.addr
        return f"http://{host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop answering and free the port; once more does nothing. The collector stays registered."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            self._thread.join()

    def _let_go(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.socket.close()  # not shutdown: that waits for a thread which the child does not have

    def __enter__(self) -> Self:
        """Return the server itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Return where it listens, or that it is closed."""
        return f"<MetricsServer {self.url if self._server is not None else 'closed'}>"


def serve(
    port: int = DEFAULT_PORT, addr: str = DEFAULT_ADDR, registry: "CollectorRegistry | None" = None
) -> MetricsServer:
    """Serve the metrics over HTTP at ``/metrics``, from a thread of its own.

    Args:
        port: 0 to 65535; 0 takes any free one, which the result tells.
        addr: Address to listen on. All but this machine's own loopback addresses can be reached by others: a warning
            says so, for there is no password.
        registry: What is served, of prometheus_client; by default ``prometheus_client.REGISTRY``, which holds the
            program's other metrics too. jaxwatch's are registered in it.

    Returns:
        The running server, with its ``port`` and ``close()``.

    Raises:
        BadOptionError: Port, address or registry is none.
        PortTakenError: Another program has the port, or it may not be had.
        MissingExtraError: prometheus_client is not installed.

    Warns:
        JaxwatchWarning: The address is not a loopback one.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= LAST_PORT:
        problem = f"port={port!r} is no port."
        raise BadOptionError(problem, f"Give a whole number from 0 to {LAST_PORT}; 0 takes any free one.")
    if not _is_loopback(addr, port):
        message = f"The metrics on {addr} can be read from other machines, without a password. [open-address]"
        warnings.warn(message, JaxwatchWarning, stacklevel=2)
    metrics.register(registry)
    import prometheus_client  # noqa: PLC0415 -- importing jaxwatch must stay light, and work without it

    served = prometheus_client.REGISTRY if registry is None else registry
    try:
        server, thread = prometheus_client.start_http_server(port, addr, served)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _bad_address(addr, "this machine does not have it") from error
        why = {errno.EADDRINUSE: "is taken", errno.EACCES: "may not be used: permission denied"}
        problem = f"port {port} on {addr} {why.get(error.errno or 0, f'cannot be used: {error.strerror or error}')}."
        raise PortTakenError(problem, "Give --port another one, or 0 for any free one.") from error
    thread.name = "jaxwatch metrics"
    return MetricsServer(server, thread, addr)


def _is_loopback(addr: str, port: int) -> bool:
    if not (isinstance(addr, str) and addr):
        raise _bad_address(addr, "it is no text, or an empty one")
    try:
        found = socket.getaddrinfo(addr, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _bad_address(addr, "no such address is known") from error
    return all(ipaddress.ip_address(place[4][0]).is_loopback for place in found)


def _bad_address(addr: object, why: str) -> BadOptionError:
    problem = f"addr={addr!r} is no address to listen on: {why}."
    return BadOptionError(problem, f"Give {DEFAULT_ADDR!r}, or another address of this machine.")


_open: "weakref.WeakSet[MetricsServer]" = weakref.WeakSet()


def _let_all_go() -> None:
    """Close the sockets that a forked child inherited: else the port stays taken after its parent has ended."""
    for server in list(_open):
        server._let_go()  # noqa: SLF001 -- this module's own class


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_all_go)
