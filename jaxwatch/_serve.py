"""The server that ``jaxwatch run --port`` and ``jaxwatch.serve`` start: a live page, and the metrics."""

import errno
import ipaddress
import os
import socket
import threading
import warnings
from types import TracebackType
from typing import TYPE_CHECKING, Self

from jaxwatch import metrics
from jaxwatch._live_process import LiveProcess
from jaxwatch._server import HttpServer
from jaxwatch._site import site
from jaxwatch.errors import BadOptionError, JaxwatchWarning, PortTakenError

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

DEFAULT_PORT = 9464
DEFAULT_ADDR = "127.0.0.1"
LAST_PORT = 65_535


class MetricsServer:
    """A running server; ``with`` closes it at the end of the block.

    It answers on a daemon thread of its own, so it never keeps a program from ending. A forked child does not serve:
    it lets go of the port.

    Attributes:
        port: The port that it listens on: a free one where 0 was asked for.
        addr: The address that it listens on.
    """

    def __init__(self, server: HttpServer, port: int, addr: str) -> None:
        self.addr = addr
        self.port = port
        self._server: HttpServer | None = server

    @property
    def page(self) -> str:
        """Where the live page can be seen."""
        host = f"[{self.addr}]" if ":" in self.addr else self.addr
        return f"http://{host}:{self.port}/"

    @property
    def url(self) -> str:
        """Where the metrics can be read."""
        return f"{self.page}metrics"

    def close(self) -> None:
        """Stop answering and free the port; once more does nothing. The collector stays registered."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            _OPEN.remove(server)

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


class _Open:
    """The servers of this process, and the live state that all of them show, which lives as long as one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._servers: list[HttpServer] = []
        self._live: LiveProcess | None = None

    def add(self, listener: socket.socket, registry: "CollectorRegistry", hosts: set[str] | None) -> HttpServer:
        with self._lock:
            live = self._live or LiveProcess(self._wake)
            server = HttpServer(listener, site(live.frame, registry), hosts, on_wake=live.take_in)
            try:
                server.start()
            except BaseException:
                if self._live is None:
                    live.close()
                raise
            self._live, self._servers = live, [*self._servers, server]
        return server

    def remove(self, server: HttpServer) -> None:
        with self._lock:
            self._servers = [one for one in self._servers if one is not server]
            if not self._servers and self._live is not None:
                self._live.close()
                self._live = None

    def _wake(self) -> None:
        for server in self._servers[:1]:
            server.wake()

    def let_go(self) -> None:
        """Close the sockets that a forked child inherited: else the port stays taken after its parent has ended."""
        servers, live = self._servers, self._live
        self.__init__()  # type: ignore[misc]  # the lock may be held by a thread that the child does not have
        for server in servers:
            server.let_go()
        if live is not None:
            live.close()


_OPEN = _Open()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.let_go)


def serve(
    port: int = DEFAULT_PORT, addr: str = DEFAULT_ADDR, registry: "CollectorRegistry | None" = None
) -> MetricsServer:
    """Serve over HTTP, from a thread of its own: a live page at ``/``, the metrics at ``/metrics``.

    On a loopback address only requests that call it by one are answered, so that no page of another site can read it.

    Args:
        port: 0 to 65535; 0 takes any free one, which the result tells.
        addr: Address to listen on. All but this machine's own loopback addresses can be reached by others: a warning
            says so, for there is no password.
        registry: Whose metrics are served, of prometheus_client; by default ``prometheus_client.REGISTRY``, which holds
            the program's other metrics too. jaxwatch's are registered in it.

    Returns:
        The running server, with its ``port`` and ``close()``.

    Raises:
        BadOptionError: Port, address or registry is none.
        PortTakenError: Another program has the port, or it may not be had.
        MissingExtraError: prometheus_client is not installed.

    Warns:
        JaxwatchWarning: The address is not a loopback one.
    """
    family, hosts = _checked(port, addr)
    metrics.register(registry)
    import prometheus_client  # noqa: PLC0415 -- importing jaxwatch must stay light, and work without it

    served = prometheus_client.REGISTRY if registry is None else registry
    listener = _listener(port, addr, family)
    bound = int(listener.getsockname()[1])
    server = _OPEN.add(listener, served, hosts)
    return MetricsServer(server, bound, addr)


def listen(port: int, addr: str) -> tuple[socket.socket, set[str] | None]:
    """Return a listening socket, and the names by which the server may be called; None for any. As ``serve``."""
    family, hosts = _checked(port, addr)
    return _listener(port, addr, family), hosts


def _checked(port: int, addr: str) -> tuple[int, set[str] | None]:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= LAST_PORT:
        problem = f"port={port!r} is no port."
        raise BadOptionError(problem, f"Give a whole number from 0 to {LAST_PORT}; 0 takes any free one.")
    family, is_loopback = _family(addr, port)
    if not is_loopback:
        message = f"The metrics on {addr} can be read from other machines, without a password. [open-address]"
        warnings.warn(message, JaxwatchWarning, stacklevel=3)
    return family, {"localhost", addr.lower()} if is_loopback else None


def _listener(port: int, addr: str, family: int) -> socket.socket:
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # so that "::" is every address
    try:
        return socket.create_server((addr, port), family=family, backlog=64, dualstack_ipv6=both)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _bad_address(addr, "this machine does not have it") from error
        why = {errno.EADDRINUSE: "is taken", errno.EACCES: "may not be used: permission denied"}
        reason = os.strerror(error.errno) if error.errno else str(error)
        problem = f"port {port} on {addr} {why.get(error.errno or 0, f'cannot be used: {reason}')}."
        raise PortTakenError(problem, "Give --port another one, or 0 for any free one.") from error


def _family(addr: str, port: int) -> tuple[int, bool]:
    """Return the address family, and whether nobody else can reach the address."""
    if not (isinstance(addr, str) and addr):
        raise _bad_address(addr, "it is no text, or an empty one")
    try:
        found = socket.getaddrinfo(addr, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise _bad_address(addr, "no such address is known") from error
    return found[0][0], all(ipaddress.ip_address(place[4][0]).is_loopback for place in found)


def _bad_address(addr: object, why: str) -> BadOptionError:
    problem = f"addr={addr!r} is no address to listen on: {why}."
    return BadOptionError(problem, f"Give {DEFAULT_ADDR!r}, or another address of this machine.")
