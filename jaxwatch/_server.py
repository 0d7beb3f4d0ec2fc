"""The HTTP server's thread: one, a daemon, for all connections; bounded in connections, bytes and time.

It never writes to stderr and never raises into the program: what fails is counted as the exporter "http".
"""

import contextlib
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import NamedTuple

from jaxwatch._descriptors import close, is_own, remember
from jaxwatch._http import Answer, App, RefusedError, Request, refusal, take_request, to_bytes
from jaxwatch._registry import REGISTRY

EXPORTER = "http"
"""What the server is called in ``jaxwatch_exporter_errors_total``."""

# The poll of a forked child must not touch its parent's, as it would with epoll, whose state both share.
_Selector: type[selectors.BaseSelector] = getattr(selectors, "PollSelector", selectors.SelectSelector)
_PIECE = 64 * 1024
_AT_ONCE = struct.pack("ii", 1, 0)


class Bounds(NamedTuple):
    """What one server allows.

    Attributes:
        connections: At a time; the one that has been without a whole request for the longest makes room for a new one.
        head_seconds: From the first byte of a request, or from the connecting, to the request's end.
        idle_seconds: Between two requests of one connection.
        answer_seconds: From the first byte of an answer to the last one.
        linger_seconds: For what a client still sends after it was refused; closing at once could lose it the answer.
        join_seconds: That ``close`` waits for the thread, which a collector of the program's may be keeping.
    """

    connections: int = 32
    head_seconds: float = 10.0
    idle_seconds: float = 75.0
    answer_seconds: float = 30.0
    linger_seconds: float = 1.0
    join_seconds: float = 5.0


_BOUNDS = Bounds()


class _Connection:
    """One client. It reads a request, or writes an answer, or waits for the client to close."""

    def __init__(self, sock: socket.socket, until: float, now: float) -> None:
        self.sock = sock
        self.until = until  # when it is closed, whatever it waits for
        self.last_request = now  # or when it connected
        self.received = bytearray()
        self.to_send = memoryview(b"")
        self.keep = True
        self.lingers = False
        self.in_head = True  # a request has begun, or the first one is awaited


class HttpServer:
    """Answers requests on a listening socket, on a thread of its own, until it is closed.

    Args:
        listener: A bound, listening socket; the server closes it.
        app: Request → answer; called on the server's thread. What it raises is answered with 500 and counted.
        hosts: By which names the server may be called; None for any.
        on_wake: Called on the server's thread after ``wake``.
    """

    def __init__(
        self,
        listener: socket.socket,
        app: App,
        hosts: Collection[str] | None = None,
        *,
        on_wake: Callable[[], None] = lambda: None,
        bounds: Bounds = _BOUNDS,
    ) -> None:
        listener.settimeout(0)
        self._listener = remember(listener)
        self._app, self._hosts, self._on_wake, self._bounds = app, hosts, on_wake, bounds
        self._connections: dict[int, _Connection] = {}
        self._selector = _Selector()
        self._waker, self._woken = socket.socketpair()
        self._waker.settimeout(0)
        self._woken.settimeout(0)
        for sock in (self._waker, self._woken):
            remember(sock)
        self._stopping = False
        self._deaf_until = 0.0  # no connection is taken while the process has no more file descriptors
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="jaxwatch http", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        try:
            self._thread.start()
        except RuntimeError:  # no more threads may be had
            self.let_go()
            raise

    def wake(self) -> None:
        """Have the server's thread call ``on_wake`` soon; from any thread, in microseconds."""
        with contextlib.suppress(OSError):  # so many wait that one more says nothing new
            if is_own(self._waker):
                self._waker.send(b"w")

    def close(self) -> None:
        """Stop answering, and free the port and the thread; once more does nothing."""
        self._stopping = True
        self.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(self._bounds.join_seconds)
        close(self._listener)  # where the thread is kept by a collector: the port is free all the same

    def let_go(self) -> None:
        """Close what a forked child inherited, without a word to the clients, who are its parent's."""
        self._stopping = True
        for sock in (self._listener, self._waker, self._woken, *(one.sock for one in self._connections.values())):
            close(sock)

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                ready = self._selector.select(self._patience())
                if not is_own(self._woken):  # the program has closed all descriptors: their numbers are its own now
                    break
                for key, what in ready:
                    self._turn(key.fd, what)
                self._expire()
        except Exception:  # noqa: BLE001 -- nothing of the server may show in the program's output
            REGISTRY.count_exporter_error(EXPORTER)
        finally:
            for connection in list(self._connections.values()):
                self._drop(connection)
            for sock in (self._listener, self._waker, self._woken):
                close(sock)
            self._selector.close()

    def _turn(self, fd: int, ready: int) -> None:
        if fd == self._listener.fileno():
            self._accept()
        elif fd == self._woken.fileno():
            with contextlib.suppress(BlockingIOError):
                self._woken.recv(_PIECE)
            self._guarded(self._on_wake)
        elif (connection := self._connections.get(fd)) is not None:
            try:
                self._write(connection) if ready & selectors.EVENT_WRITE else self._read(connection)
            except BlockingIOError:
                pass
            except OSError:  # the client has gone, as clients do
                self._drop(connection)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception:  # noqa: BLE001 -- as in _run
            REGISTRY.count_exporter_error(EXPORTER)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:  # most likely no more file descriptors: asking again at once would only burn time
            self._deaf_until = time.monotonic() + 1.0
            self._selector.unregister(self._listener)
            self._make_room(len(self._connections))
            return
        self._make_room(self._bounds.connections)
        remember(sock).settimeout(0)
        now = time.monotonic()
        connection = _Connection(sock, now + self._bounds.head_seconds, now)
        self._connections[sock.fileno()] = connection
        self._selector.register(sock, selectors.EVENT_READ)

    def _make_room(self, most: int) -> None:
        if self._connections and len(self._connections) >= most:
            self._drop(min(self._connections.values(), key=lambda one: (len(one.to_send) > 0, one.last_request)))

    def _read(self, connection: _Connection) -> None:
        piece = connection.sock.recv(_PIECE)
        if not piece:
            self._drop(connection)
        elif not connection.lingers:
            if not connection.in_head:
                connection.in_head = True
                connection.until = time.monotonic() + self._bounds.head_seconds
            connection.received += piece
            self._answer_next(connection)

    def _answer_next(self, connection: _Connection) -> None:
        try:
            request = take_request(connection.received, self._hosts)
        except RefusedError as error:
            self._send(connection, error.answer)
            return
        if request is None:
            return
        connection.last_request = time.monotonic()
        self._send(connection, self._made(request), head_only=request.method == "HEAD", keep=request.keep)

    def _made(self, request: Request) -> Answer:
        try:
            return self._app(request)
        except BaseException:  # noqa: BLE001 -- a collector of the program's may raise what it likes, SystemExit too
            REGISTRY.count_exporter_error(EXPORTER)
            return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "the figures cannot be read.")

    def _send(self, connection: _Connection, answer: Answer, *, head_only: bool = False, keep: bool = False) -> None:
        connection.keep = keep
        connection.to_send = memoryview(to_bytes(answer, head_only=head_only, keep=keep))
        connection.until = time.monotonic() + self._bounds.answer_seconds
        self._selector.modify(connection.sock, selectors.EVENT_WRITE)

    def _write(self, connection: _Connection) -> None:
        connection.to_send = connection.to_send[connection.sock.send(connection.to_send) :]
        if connection.to_send:
            return
        connection.to_send = memoryview(b"")  # an empty view still holds all of the answer
        self._selector.modify(connection.sock, selectors.EVENT_READ)
        now = time.monotonic()
        if not connection.keep:
            connection.sock.shutdown(socket.SHUT_WR)
            connection.lingers, connection.received = True, bytearray()
            connection.until = now + self._bounds.linger_seconds
            return
        connection.in_head = bool(connection.received)
        connection.until = now + (self._bounds.head_seconds if connection.in_head else self._bounds.idle_seconds)
        self._answer_next(connection)  # the next request may be here already

    # ------------------------------------------------------------------ time

    def _patience(self) -> float | None:
        """Return how long to wait for something to happen, in seconds; None: for ever."""
        times = [connection.until for connection in self._connections.values()]
        if self._deaf_until:
            times.append(self._deaf_until)
        return max(min(times) - time.monotonic(), 0.0) if times else None

    def _expire(self) -> None:
        now = time.monotonic()
        for connection in [one for one in self._connections.values() if one.until <= now]:
            if connection.in_head and connection.received and not connection.lingers and not connection.to_send:
                self._send(connection, refusal(HTTPStatus.REQUEST_TIMEOUT, "the request took too long."))
            else:
                self._drop(connection)
        if self._deaf_until and self._deaf_until <= now:
            self._deaf_until = 0.0
            self._selector.register(self._listener, selectors.EVENT_READ)

    def _drop(self, connection: _Connection) -> None:
        fd = connection.sock.fileno()
        if self._connections.pop(fd, None) is not None:
            self._selector.unregister(connection.sock)
            if connection.to_send and is_own(
                connection.sock
            ):  # else the kernel would keep what is left for a client that does not read
                with contextlib.suppress(OSError):
                    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            close(connection.sock)
