"""Pushing to a real Pushgateway: groups of their own, deletion, and a gateway that is down, slow or refuses."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
import servers

import jaxwatch
from jaxwatch import push
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, JaxwatchWarning

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def gateway(require_program: Callable[[str], str]) -> Iterator[str]:
    with servers.pushgateway(require_program("prometheus-pushgateway")) as where:
        yield f"http://{where}"


def groups(gateway: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return job and instance → the group that the gateway has."""
    with urllib.request.urlopen(f"{gateway}/api/v1/metrics", timeout=20) as answer:  # noqa: S310 -- our own server
        found = json.load(answer)["data"]
    return {(one["labels"]["job"], one["labels"].get("instance", "")): one for one in found}


def pushed(group: Mapping[str, Any], name: str) -> float:
    return sum(float(sample["value"]) for sample in group[name]["metrics"])


def called(times: int) -> None:
    step = jaxwatch.jit(lambda x: x * 2)
    for _ in range(times):
        step(np.ones(3, np.float32))


def test_the_last_figures_are_there_after_it_is_closed(gateway: str) -> None:
    pusher = push(gateway, "train", every_seconds=None, at_exit=None)
    called(3)
    assert pusher.close()
    (key,) = groups(gateway)
    group = groups(gateway)[key]

    assert key == ("train", f"{socket.gethostname()}:{os.getpid()}")
    assert pushed(group, "jaxwatch_calls_total") == 3
    assert "jaxwatch_overhead_seconds_total" in group


def test_it_pushes_now_and_then(gateway: str) -> None:
    called(2)
    with push(gateway, "train", every_seconds=0.05, at_exit=None):
        servers.wait_for(lambda: [one for one in groups(gateway).values() if pushed(one, "jaxwatch_calls_total") == 2])
        called(4)
        servers.wait_for(lambda: [one for one in groups(gateway).values() if pushed(one, "jaxwatch_calls_total") == 6])


def test_jobs_and_groups_stay_apart_and_each_deletes_its_own(gateway: str) -> None:
    one = push(gateway, "train", grouping_key={"shard": "1"}, every_seconds=None, at_exit=None)
    two = push(gateway, "evaluate", grouping_key={"instance": "host/a b"}, every_seconds=None, at_exit=None)
    assert one.close()
    assert two.close()
    assert {job for job, _ in groups(gateway)} == {"train", "evaluate"}
    assert ("evaluate", "host/a b") in groups(gateway)
    assert next(group for (job, _), group in groups(gateway).items() if job == "train")["labels"]["shard"] == "1"

    assert one.delete()
    assert {job for job, _ in groups(gateway)} == {"evaluate"}


PROGRAM = """
import sys
import numpy as np
import jaxwatch

jaxwatch.push(sys.argv[1], "batch", every_seconds=None, at_exit=sys.argv[2] if sys.argv[2] != "none" else None)
step = jaxwatch.jit(lambda x: x + 1)
step(np.ones(3)), step(np.ones(4))
print("done")
"""


@pytest.mark.parametrize("at_exit", ["push", "delete", "none"])
def test_at_exit_it_does_as_it_was_told(gateway: str, at_exit: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, gateway, at_exit], capture_output=True, text=True, check=False, timeout=240
    )

    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    assert [pushed(group, "jaxwatch_calls_total") for group in groups(gateway).values()] == (
        [2] if at_exit == "push" else []
    )


def test_a_program_under_run_pushes(gateway: str, tmp_path: Any) -> None:
    program = tmp_path / "train.py"
    program.write_text("import jax, numpy as np\njax.jit(lambda x: x + 1)(np.ones(3))\nprint('done')\n")
    command = [sys.executable, "-m", "jaxwatch", "run", "--push", gateway, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)

    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
    ((job, _),) = groups(gateway)
    assert job == "train.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_neither_pushes_nor_deletes(gateway: str) -> None:
    program = """
import os, sys, warnings
import jaxwatch
warnings.simplefilter("ignore")
pusher = jaxwatch.push(sys.argv[1], "batch", every_seconds=None, at_exit="delete")
other = jaxwatch.push(sys.argv[1], "other", every_seconds=None)
pusher.close()  # it has pushed, and is open again for nobody
if not os.fork():
    sys.exit(pusher.delete() or other.close() or other.delete())  # and what is to be done at exit
_, status = os.wait()
print(os.waitstatus_to_exitcode(status), flush=True)
os._exit(0)  # so that nothing is pushed here
"""
    done = subprocess.run(
        [sys.executable, "-c", program, gateway], capture_output=True, text=True, check=False, timeout=240
    )

    assert done.stdout == "0\n", done.stderr
    assert [job for job, _ in groups(gateway)] == ["batch"]


# ------------------------------------------------------------------ failures


def test_a_gateway_that_is_down_is_told_of_once_and_counted() -> None:
    with pytest.warns(JaxwatchWarning, match="cannot push to http://127.0.0.1:.*push-failed") as told:  # noqa: SIM117
        with push(f"http://127.0.0.1:{servers.free_port()}", "train", every_seconds=0.02, at_exit=None):
            servers.wait_for(lambda: REGISTRY.snapshot().exporter_errors.get("push", 0) > 2)
    assert len(told) == 1


@pytest.fixture
def hanging() -> Iterator[str]:
    """Yield the address of what accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_gateway_that_hangs_delays_the_exit_by_its_timeout_at_most(hanging: str) -> None:
    program = """
import sys, time, warnings
import jaxwatch
warnings.simplefilter("ignore")
jaxwatch.push(sys.argv[1], "train", every_seconds=None, timeout_seconds=float(sys.argv[2]))
print("done")
"""

    def seconds(gateway: str, timeout: float) -> float:
        started = time.monotonic()
        command = [sys.executable, "-c", program, gateway, str(timeout)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
        assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
        return time.monotonic() - started

    # nothing answers for a minute, and the program does not wait for it
    assert seconds(hanging, 0.3) < seconds(hanging, 8)


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_gateway_that_refuses_is_told_of_without_user_and_password(status: int) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(f"we were sent {self.headers['Authorization']}\nand more".encode())  # as a proxy may

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        address = f"http://user:se%20cret@127.0.0.1:{server.server_port}"
        pusher = push(address, "train", every_seconds=None, at_exit=None)
        with pytest.warns(JaxwatchWarning, match=f"it answers {status}") as told:
            assert not pusher.close()
        server.shutdown()
        thread.join()
    for text in (str(told[0].message), repr(pusher), pusher.gateway):
        assert "cret" not in text
        assert "user" not in text
        assert "Basic" not in text


def test_what_the_gateway_says_is_told_but_no_terminal_obeys_it() -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.send_response(400, "\x1b[31mno")
            self.end_headers()
            self.wfile.write(b"pushed metrics are \x1b[1minvalid\x07\nand more")

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        pusher = push(f"127.0.0.1:{server.server_port}", "train", every_seconds=None, at_exit=None)
        with pytest.warns(JaxwatchWarning) as told:
            assert not pusher.close()
        server.shutdown()
        thread.join()
    assert "it answers 400, pushed metrics are ?[1minvalid?. The program" in str(told[0].message)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"gateway": 3}, "gateway=3"),
        ({"gateway": "http://"}, "none"),
        ({"gateway": "ftp://host"}, "none"),
        ({"gateway": "http://user:secret@ho st"}, "none"),
        ({"gateway": "http://host:port"}, "none"),
        ({"gateway": "http://host/?a=secret"}, "in it"),
        ({"job": ""}, "job=''"),
        ({"job": 3}, "job=3"),
        ({"grouping_key": ["a"]}, "no mapping"),
        ({"grouping_key": {"job": "a"}}, "'job'"),
        ({"grouping_key": {"function": "a"}}, "'function'"),
        ({"grouping_key": {"a-b": "a"}}, "'a-b'"),
        ({"grouping_key": {"a": 3}}, "is 3"),
        ({"every_seconds": 0}, "every_seconds=0"),
        ({"every_seconds": float("nan")}, "every_seconds=nan"),
        ({"timeout_seconds": None}, "timeout_seconds=None"),
        ({"at_exit": "run"}, "at_exit='run'"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_and_no_secret_shown(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(BadOptionError) as error:
        push(**{"gateway": "http://127.0.0.1:1", "job": "train", **arguments})

    assert named in str(error.value)
    assert "secret" not in str(error.value)
