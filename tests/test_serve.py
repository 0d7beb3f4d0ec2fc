"""The server of the metrics, over real sockets of this machine."""

import errno
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.request
import warnings
from typing import NoReturn

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from jaxwatch import metrics
from jaxwatch._hub import HUB
from jaxwatch._live_process import EXPORTER
from jaxwatch._metrics import FAMILIES
from jaxwatch._serve import MetricsServer, serve
from jaxwatch.errors import BadOptionError, JaxwatchWarning, PortTakenError


def read(server: MetricsServer) -> str:
    with urllib.request.urlopen(server.url, timeout=20) as answer:  # noqa: S310 -- our own server
        return str(answer.read(), "utf-8")


def refuses(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_the_metrics_can_be_read_from_a_free_port() -> None:
    with serve(port=0, registry=CollectorRegistry()) as server:
        found = list(text_string_to_metric_families(read(server)))

    assert server.port > 0
    assert server.url == f"http://127.0.0.1:{server.port}/metrics"
    assert [family.name for family in found] == [family.name.removesuffix("_total") for family in FAMILIES]


def test_by_default_it_serves_what_else_the_program_counts() -> None:
    with serve(port=0) as server:
        text = read(server)
    metrics.unregister()

    assert "jaxwatch_calls_total" in text
    assert "python_info" in text


def test_two_servers_share_a_registrys_collector() -> None:
    registry = CollectorRegistry()

    with serve(port=0, registry=registry) as one, serve(port=0, registry=registry) as two:
        assert one.port != two.port
        assert read(two).count("# TYPE jaxwatch_calls_total ") == 1


def test_closing_frees_the_port_and_the_thread_and_may_be_done_twice() -> None:
    server = serve(port=0, registry=CollectorRegistry())
    names = {thread.name for thread in threading.enumerate()}
    server.close()
    server.close()

    assert "jaxwatch http" in names
    assert "jaxwatch http" not in {thread.name for thread in threading.enumerate()}
    assert refuses(server.port)
    assert repr(server) == "<MetricsServer closed>"
    with serve(port=server.port, registry=CollectorRegistry()) as again:
        assert again.port == server.port


def test_a_taken_port_is_told_of() -> None:
    with serve(port=0, registry=CollectorRegistry()) as server, pytest.raises(PortTakenError) as caught:
        serve(port=server.port, registry=CollectorRegistry())

    assert str(caught.value) == (
        f"port {server.port} on 127.0.0.1 is taken. Give --port another one, or 0 for any free one. [port-taken]"
    )


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "port 80 on 127.0.0.1 may not be used: permission denied."),
        (errno.EMFILE, "port 80 on 127.0.0.1 cannot be used: Too many open files."),
    ],
)
def test_a_port_that_may_not_be_had_is_told_of(monkeypatch: pytest.MonkeyPatch, number: int, words: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, "a text that socket.create_server makes longer")

    monkeypatch.setattr(socket, "create_server", refuse)

    with pytest.raises(PortTakenError) as caught:
        serve(port=80, registry=CollectorRegistry())
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("port", [-1, 65_536, "9464", 1.5, None, True])
def test_what_is_no_port_is_told_of(port: object) -> None:
    with pytest.raises(BadOptionError) as caught:
        serve(port=port)  # type: ignore[arg-type]  # on purpose

    assert f"port={port!r} is no port." in str(caught.value)


@pytest.mark.parametrize("addr", ["", "no such host", "256.1.1.1", None, 7, "a" * 300])
def test_what_is_no_address_is_told_of(addr: object) -> None:
    with pytest.raises(BadOptionError) as caught:
        serve(port=0, addr=addr)  # type: ignore[arg-type]  # on purpose

    assert f"addr={addr!r} is no address" in str(caught.value)


def test_an_address_of_another_machine_is_told_of() -> None:
    with (
        pytest.warns(JaxwatchWarning),
        pytest.raises(BadOptionError, match="this machine does not have it"),
    ):
        serve(port=0, addr="192.0.2.1", registry=CollectorRegistry())  # of RFC 5737, which nobody has


def test_an_address_that_others_can_reach_is_warned_of() -> None:
    with pytest.warns(JaxwatchWarning, match=r"0\.0\.0\.0 can be read from other machines") as caught:
        server = serve(port=0, addr="0.0.0.0", registry=CollectorRegistry())  # noqa: S104 -- on purpose
    server.close()

    assert [warning.filename for warning in caught] == [__file__]


def test_where_that_warning_is_an_error_nothing_is_served() -> None:
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(JaxwatchWarning):
            serve(port=0, addr="0.0.0.0", registry=CollectorRegistry())  # noqa: S104 -- on purpose

    assert threading.active_count() == before


@pytest.mark.parametrize("addr", ["localhost", "127.0.0.2"])
def test_other_names_of_this_machine_are_not_warned_of(addr: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with serve(port=0, addr=addr, registry=CollectorRegistry()) as server:
            assert "jaxwatch_" in read(server)


def test_ipv6_works() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")

    with serve(port=0, addr="::1", registry=CollectorRegistry()) as server:
        assert server.url == f"http://[::1]:{server.port}/metrics"
        assert "jaxwatch_" in read(server)


# ------------------------------------------------------------------ the page, and who may read it


def ask(server: MetricsServer, path: str = "/", method: str = "GET", host: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.port}"})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_it_serves_the_page_and_its_figures() -> None:
    with serve(port=0, registry=CollectorRegistry()) as server:
        assert server.page == f"http://127.0.0.1:{server.port}/"
        assert b"<h1>jaxwatch" in ask(server)[1]
        assert json.loads(ask(server, "/live.json")[1])["schema"] == "jaxwatch.live/1"
        assert ask(server, "/nothing")[0] == 404
        assert ask(server, "/metrics", "POST")[0] == 405
        assert ask(server, "/metrics", "HEAD") == (200, b"")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9464", "localhost.evil.example", "10.0.0.1"])
@pytest.mark.parametrize("path", ["/", "/live.json", "/metrics"])
def test_a_page_of_another_site_cannot_read_through_a_name_that_points_here(host: str, path: str) -> None:
    with serve(port=0, registry=CollectorRegistry()) as server:
        status, body = ask(server, path, host=host)

    assert status == 403
    assert b"jaxwatch_" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:9464"])
def test_by_a_name_of_this_machine_anybody_here_may_read(host: str) -> None:
    with serve(port=0, registry=CollectorRegistry()) as server:
        assert ask(server, host=host)[0] == 200


@pytest.mark.filterwarnings("ignore::jaxwatch.JaxwatchWarning")
def test_where_others_may_read_any_name_will_do() -> None:
    with serve(port=0, addr="0.0.0.0", registry=CollectorRegistry()) as server:  # noqa: S104 -- on purpose
        assert ask(server, host="node7.cluster.example")[0] == 200


def test_the_exporter_is_there_as_long_as_one_server_is() -> None:
    one = serve(port=0, registry=CollectorRegistry())
    two = serve(port=0, registry=CollectorRegistry())
    one.close()
    assert EXPORTER in HUB.names
    two.close()
    assert EXPORTER not in HUB.names


def test_where_no_thread_can_be_had_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            serve(port=0, registry=CollectorRegistry())

    assert EXPORTER not in HUB.names


def test_a_collector_of_the_programs_that_raises_fails_its_scrape_alone() -> None:
    class Failing:
        def collect(self) -> NoReturn:
            raise ValueError("a secret")

    registry = CollectorRegistry(auto_describe=False)
    with serve(port=0, registry=registry) as server:
        registry.register(Failing())
        status, body = ask(server, "/metrics")
        assert (status, b"secret" in body) == (500, False)
        assert ask(server, "/live.json")[0] == 200


START = """
import os, socket
from jaxwatch._serve import serve
server = serve(port=0)
"""
FORK = """
read, write = os.pipe()
ready, tell = os.pipe()
if (pid := os.fork()) == 0:
    os.write(tell, b"x")
    os.read(read, 1)
    server.close()
    os._exit(0)
os.read(ready, 1)
server.close()
with socket.socket() as one:
    print(one.connect_ex(("127.0.0.1", server.port)))
os.write(write, b"x")
print(os.waitpid(pid, 0)[1])
"""


FORK_UNKNOWN = """
from jaxwatch._hub import HUB
port = server.port
del server  # nobody holds it, and it serves all the same
read, write = os.pipe()
ready, tell = os.pipe()
if (pid := os.fork()) == 0:
    print("live" in HUB.names, flush=True)
    with serve(port=0) as own:
        print(own.port != port, "live" in HUB.names, flush=True)
    os.write(tell, b"x")
    os.read(read, 1)
    os._exit(0)
os.read(ready, 1)
print("live" in HUB.names)
from jaxwatch import _serve
for one in list(_serve._OPEN._servers): one.close()
with socket.socket() as one:
    print(one.connect_ex(("127.0.0.1", port)))
os.write(write, b"x")
os.waitpid(pid, 0)
"""


def run(program: str) -> tuple[str, str]:
    command = [sys.executable, "-W", "ignore", "-c", START + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.stdout, done.stderr


def test_a_program_ends_though_nobody_closed_the_server() -> None:
    assert run("print(1)") == ("1\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_hold_the_port_nor_wait_for_a_thread() -> None:
    assert run(FORK) == (f"{errno.ECONNREFUSED}\n0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_lets_go_of_a_server_that_nobody_holds_and_may_serve_itself() -> None:
    assert run(FORK_UNKNOWN) == (f"False\nTrue True\nTrue\n{errno.ECONNREFUSED}\n", "")
