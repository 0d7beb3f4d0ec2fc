"""Programs of the monitoring's own that tests start: on loopback, on free ports, stopped by their own pid."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SECONDS = 90.0
"""How long to wait for anything; on a busy machine jax alone may take 20 s to start."""


@contextlib.contextmanager
def running(*command: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Start a program, and stop it by its own pid whatever happens."""
    with subprocess.Popen(command, text=True, **options) as found:  # type: ignore[call-overload]
        try:
            yield found
        finally:
            found.terminate()
            try:
                found.wait(10)
            except subprocess.TimeoutExpired:
                found.kill()


_tried = itertools.count(os.getpid() * 101)


def free_port() -> int:
    """Return a port of loopback that nobody listens on: each test process looks at its own ones, below the kernel's."""
    while True:
        with contextlib.suppress(OSError):
            port = 12_000 + next(_tried) % 20_000
            with socket.create_server(("127.0.0.1", port)):
                return port


def answers(url: str) -> bool:
    """Tell whether something answers there, and well."""
    try:
        with urllib.request.urlopen(url, timeout=10):  # noqa: S310 -- our own server
            return True
    except OSError:
        return False


def wait_for(probe: Callable[[], object], seconds: float = SECONDS) -> None:
    """Wait until ``probe`` finds something."""
    end, pause = time.monotonic() + seconds, threading.Event()
    while not probe():
        assert time.monotonic() < end, "waited in vain"
        pause.wait(0.1)


@contextlib.contextmanager
def prometheus(path: str, config: str, folder: Path) -> Iterator[str]:
    """Run a Prometheus, this machine's alone, with storage of its own; yield its address once it is ready."""
    file, port = folder / "prometheus.yml", free_port()
    file.write_text(config)
    options = (
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    )
    with running(path, *options):
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/-/ready"))
        yield f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def alertmanager(path: str, config: str, folder: Path) -> Iterator[str]:
    """Run an Alertmanager that has no peers; yield its ``host:port`` once it is ready."""
    file, where = folder / "alertmanager.yml", f"127.0.0.1:{free_port()}"
    file.write_text(config)
    options = (
        f"--config.file={file}",
        f"--storage.path={folder / 'alerts'}",
        f"--web.listen-address={where}",
        "--cluster.listen-address=",
        "--log.level=warn",
    )
    with running(path, *options):
        wait_for(lambda: answers(f"http://{where}/-/ready"))
        yield where


@contextlib.contextmanager
def pushgateway(path: str) -> Iterator[str]:
    """Run a Pushgateway; yield its ``host:port`` once it is ready."""
    where = f"127.0.0.1:{free_port()}"
    # Debian's keeps what was pushed in a file of its own, unless told otherwise
    with running(path, f"--web.listen-address={where}", "--persistence.file=", "--log.level=warn"):
        wait_for(lambda: answers(f"http://{where}/-/ready"))
        yield where


@contextlib.contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Listen for Alertmanager's messages; yield the address, and the list that they are put into as they come."""
    heard: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            heard.append({**message, "path": self.path})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(address: str, path: str, **arguments: str) -> dict[str, Any]:
    """Return the data of an answer of Prometheus' API; of none, nothing."""
    url = f"{address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 -- our own server
            return dict(json.load(answer)["data"])
    except OSError:  # not up yet
        return {}


def values(address: str, query: str) -> dict[str, float]:
    """Return the values of an instant query by the label ``function``."""
    found = ask(address, "query", query=query).get("result", [])
    return {one["metric"].get("function", ""): float(one["value"][1]) for one in found}
