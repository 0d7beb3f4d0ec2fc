"""The server's thread, by raw sockets: slow, huge, malformed and many clients, and what is left after it."""

import contextlib
import errno
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from programs import environment

from jaxwatch._http import Answer, App, Request
from jaxwatch._registry import REGISTRY
from jaxwatch._server import EXPORTER, Bounds, HttpServer

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
LARGE = 8_000_000  # more than the buffers of a socket hold


def echo(request: Request) -> Answer:
    return Answer(200, f"path {request.path}".encode())


def large(_: Request) -> Answer:
    return Answer(200, b"x" * LARGE)


@contextlib.contextmanager
def serving(app: App = echo, *, on_wake: Callable[[], None] = lambda: None, **bounds: float) -> Iterator[int]:
    """Serve, and check that nothing is left: no thread and no open file."""
    before = open_files()
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listener, app, {"localhost"}, on_wake=on_wake, bounds=Bounds(**bounds))  # type: ignore[arg-type]  # by name
    server.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.close()
    assert "jaxwatch http" not in {thread.name for thread in threading.enumerate()}
    assert open_files() == before


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@contextlib.contextmanager
def client(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        yield sock


def rest(sock: socket.socket) -> bytes:
    """Return all that comes until the server closes."""
    found = b""
    while piece := sock.recv(65_536):
        found += piece
    return found


def talk(port: int, sent: bytes) -> bytes:
    with client(port) as sock:
        sock.sendall(sent)
        return rest(sock)


def one_answer(sock: socket.socket) -> bytes:
    """Return one answer of a connection that stays open."""
    found = b""
    while b"\r\n\r\n" not in found:
        found += sock.recv(1)
    size = int(found.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    while size:
        piece = sock.recv(size)
        size -= len(piece)
        found += piece
    return found


def test_a_request_is_answered() -> None:
    with serving() as port:
        answer = talk(port, LAST.replace(b"/ ", b"/a/b?c "))

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\npath /a/b")


def test_head_is_answered_without_the_body() -> None:
    with serving() as port:
        answer = talk(port, LAST.replace(b"GET", b"HEAD"))

    assert b"Content-Length: 6\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_one_connection_serves_many_requests() -> None:
    with serving() as port, client(port) as sock:
        for _ in range(3):
            sock.sendall(GET)
            assert one_answer(sock).endswith(b"path /")


def test_requests_may_come_before_their_answers() -> None:
    with serving() as port:
        answers = talk(port, GET * 50 + LAST)

    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 51


def test_many_clients_at_once_are_all_answered() -> None:
    with serving() as port, ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: talk(port, LAST), range(100)))

    assert all(answer.endswith(b"path /") for answer in answers)


def test_only_one_thread_serves_however_many_connect() -> None:
    before = threading.active_count()
    with serving() as port, contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(client(port))
        assert talk(port, LAST).endswith(b"path /")

        assert threading.active_count() == before + 1
        assert all(thread.daemon for thread in threading.enumerate() if thread.name == "jaxwatch http")


# ------------------------------------------------------------------ who is slow, or sends rubbish


def test_a_request_that_takes_too_long_is_told_so_and_closed() -> None:
    with serving(head_seconds=0.2) as port:
        answer = talk(port, GET[:20])

    assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"Connection: close\r\n" in answer


def test_bytes_one_by_one_do_not_win_time() -> None:
    with serving(head_seconds=0.3) as port, client(port) as sock:
        found = b""
        sock.settimeout(0.01)
        with contextlib.suppress(ConnectionError):
            while True:  # ends when the server closes; pytest's own limit else
                sock.sendall(b"a")
                with contextlib.suppress(TimeoutError):
                    piece = sock.recv(1_000)
                    found += piece
                    if not piece:
                        break

    assert found.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("sent", [b"", GET])
def test_who_says_nothing_is_closed(sent: bytes) -> None:
    with serving(head_seconds=0.2, idle_seconds=0.2) as port:
        answer = talk(port, sent)

    assert answer == b"" if not sent else answer.endswith(b"path /")


def test_who_does_not_read_is_closed() -> None:
    with serving(large, answer_seconds=0.3) as port, client(port) as sock:
        sock.sendall(GET)
        other = talk(port, LAST)  # meanwhile others are answered
        assert len(other) > LARGE

        waiting = select.poll()
        waiting.register(sock, select.POLLHUP)
        assert waiting.poll(20_000)
        assert len(rest_or_reset(sock)) < LARGE


def rest_or_reset(sock: socket.socket) -> bytes:
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65_536):
            found += piece
    return found


def test_slow_clients_do_not_keep_others_out() -> None:
    """The one that has been without a whole request for the longest goes."""
    with serving(connections=4) as port, contextlib.ExitStack() as stack:
        slow = [stack.enter_context(client(port)) for _ in range(40)]
        for sock in slow:
            with contextlib.suppress(ConnectionError):
                sock.sendall(b"GET / HT")

        assert talk(port, LAST).endswith(b"path /")
        assert rest_or_reset(slow[0]) == b""


def test_a_connection_in_use_outlives_newer_idle_ones() -> None:
    with serving(connections=4) as port, contextlib.ExitStack() as stack, client(port) as sock:
        for _ in range(20):
            stack.enter_context(client(port))
            sock.sendall(GET)
            assert one_answer(sock).endswith(b"path /")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /" + b"a" * 100_000, 414),
        (GET[:-2] + b"A: " + b"a" * 100_000, 431),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000\r\n\r\n" + b"a" * 5_000_000, 405),
        (b"\x16\x03\x01" + b"\r\n" * 1_000, 400),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    ],
)
def test_a_refusal_arrives_though_more_is_sent_and_the_connection_ends(sent: bytes, status: int) -> None:
    with serving() as port, client(port) as sock:
        with contextlib.suppress(ConnectionError):
            sock.sendall(sent)
        sock.shutdown(socket.SHUT_WR)
        assert rest(sock).startswith(f"HTTP/1.1 {status} ".encode())


def test_who_goes_on_sending_after_a_refusal_is_closed() -> None:
    def go_on(sock: socket.socket) -> None:
        while True:
            sock.sendall(b"a" * 1_000)

    with serving(linger_seconds=0.2) as port, client(port) as sock, pytest.raises(ConnectionError):
        go_on(sock)


def test_a_client_that_goes_away_in_the_midst_of_its_answer_harms_nobody() -> None:
    with serving(large) as port:
        for _ in range(5):
            with client(port) as sock:
                sock.sendall(GET)
                sock.recv(10)
        assert len(talk(port, LAST)) > LARGE


# ------------------------------------------------------------------ what fails


@pytest.mark.parametrize("error", [ValueError("a secret"), SystemExit(3), KeyboardInterrupt()])
def test_what_raises_is_answered_without_its_words_and_counted(error: BaseException, fresh: None) -> None:
    del fresh

    def failing(_: Request) -> Answer:
        raise error

    with serving(failing) as port:
        answers = [talk(port, LAST), talk(port, LAST)]

    assert all(answer.startswith(b"HTTP/1.1 500 ") for answer in answers)
    assert all(b"secret" not in answer for answer in answers)
    assert REGISTRY.snapshot().exporter_errors == {EXPORTER: 2}


def test_a_waking_is_done_on_the_servers_thread_and_may_fail(fresh: None) -> None:
    del fresh
    woken = threading.Semaphore(0)
    names = []

    def on_wake() -> None:
        names.append(threading.current_thread().name)
        woken.release()
        raise ValueError

    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listener, echo, on_wake=on_wake)
    server.start()
    server.wake()
    assert woken.acquire(timeout=20)
    assert talk(listener.getsockname()[1], LAST).endswith(b"path /")
    server.close()
    for _ in range(100_000):
        server.wake()  # of a closed one: nothing

    assert set(names) == {"jaxwatch http"}
    assert REGISTRY.snapshot().exporter_errors[EXPORTER] == len(names)


def test_more_wakings_than_a_socket_holds_do_not_block() -> None:
    keep = threading.Event()

    def waiting(_: Request) -> Answer:
        keep.wait(20)
        return Answer(200, b"")

    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listener, waiting)
    server.start()
    with client(listener.getsockname()[1]) as sock:
        sock.sendall(LAST)
        for _ in range(100_000):
            server.wake()
        keep.set()
        assert rest(sock)
    server.close()


def test_closing_does_not_wait_for_ever_for_an_app_that_hangs() -> None:
    keep = threading.Event()
    entered = threading.Event()

    def hanging(_: Request) -> Answer:
        entered.set()
        keep.wait(20)
        return Answer(200, b"")

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = HttpServer(listener, hanging, bounds=Bounds(join_seconds=0.1))
    server.start()
    with client(port) as sock:
        sock.sendall(GET)
        assert entered.wait(20)
        server.close()

        with socket.socket() as late:
            assert late.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
        keep.set()
        assert rest_or_reset(sock) == b""
    server._thread.join(20)
    assert not server._thread.is_alive()


def test_the_app_may_close_its_own_server() -> None:
    def closing(_: Request) -> Answer:
        server.close()
        return Answer(200, b"")

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = HttpServer(listener, closing)
    server.start()
    with client(port) as sock:
        sock.sendall(GET)
        assert rest_or_reset(sock) == b""
    server._thread.join(20)
    assert not server._thread.is_alive()


def test_where_no_thread_can_be_had_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_files()
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer(listener, echo)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(RuntimeError):
        server.start()

    assert open_files() == before


# ------------------------------------------------------------------ in a process of its own

PRELUDE = """
import os, resource, signal, socket, sys, threading, time
from jaxwatch._http import Answer
from jaxwatch._server import HttpServer
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
server = HttpServer(listener, lambda request: Answer(200, b"x" * 8_000_000))
server.start()
def get(read=True):
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
        size = 0
        while read and (piece := sock.recv(1 << 20)):
            size += len(piece)
        return size > 8_000_000
"""


def run(program: str) -> tuple[str, str]:
    command = [sys.executable, "-c", PRELUDE + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment())
    return done.stdout, done.stderr


def test_no_client_makes_the_program_write_anything() -> None:
    program = """
for sent in (b"", b"GET", b"\\0" * 100_000, b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"):
    for _ in range(20):
        sock = socket.create_connection(("127.0.0.1", port))
        try: sock.sendall(sent)
        except ConnectionError: pass
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\\1\\0\\0\\0\\0\\0\\0\\0")  # close by a reset
        sock.close()
print(get())
"""
    assert run(program) == ("True\n", "")


def test_without_file_descriptors_it_waits_and_does_not_burn_time() -> None:
    program = """
keep = []
while len(os.listdir("/proc/self/fd")) < 60: keep.append(os.open(os.devnull, 0))
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
client = socket.socket()
resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))
client.connect(("127.0.0.1", port))
before = time.process_time()
time.sleep(0.5)
print(time.process_time() - before < 0.25)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
client.sendall(b"HEAD / HTTP/1.0\\r\\n\\r\\n")
client.settimeout(20)
print(client.recv(15))
"""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    assert run(program) == ("True\nb'HTTP/1.1 200 OK'\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_leaves_the_parents_connections_alone() -> None:
    program = """
import warnings; warnings.simplefilter("ignore")
idle = socket.create_connection(("127.0.0.1", port))
idle.sendall(b"HEAD / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
idle.recv(10_000)
before = len(os.listdir("/proc/self/fd"))
if (pid := os.fork()) == 0:
    server.let_go()
    server.close()
    print(before - len(os.listdir("/proc/self/fd")), flush=True)  # listener, two to wake, one connection
    os._exit(0)
os.waitpid(pid, 0)
idle.sendall(b"HEAD / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
print(idle.recv(15), get())
"""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs /proc")
    assert run(program) == ("4\nb'HTTP/1.1 200 OK' True\n", "")
