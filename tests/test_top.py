"""``jaxwatch top``: frames of a process that serves and of logs; ends as asked, with clear errors."""

import io
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import numpy as np
import pytest
from event_records import miss, other_length, run_end, run_start, training_run, write_log
from programs import HEARS_CTRL_C
from prometheus_client import CollectorRegistry

import jaxwatch
from jaxwatch import _cli, _top
from jaxwatch._top import LogSource, ServerSource, source_of
from jaxwatch.errors import BadOptionError, JaxwatchError, LogUnreadableError, NoServerError


def shown(*targets: str) -> str:
    stream = io.StringIO()
    _top.show(source_of(targets), stream, once=True)
    return stream.getvalue()


# ------------------------------------------------------------------ of a process


@pytest.mark.usefixtures("fresh")
def test_a_process_that_serves_is_shown() -> None:
    with jaxwatch.serve(port=0, registry=CollectorRegistry()) as server:
        step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
        for rows in (3, 4, 4):
            step(np.ones(rows, np.float32))
        for target in (server.url, server.page, f"127.0.0.1:{server.port}", f"{server.port}"):
            text = shown(target)
            assert re.search(r"^step +3 +2 +2 ", text, re.MULTILINE), text
            assert "x: float32[3] → float32[4]" in text


@pytest.mark.usefixtures("fresh")
def test_a_process_that_ends_leaves_its_last_frame_with_a_note() -> None:
    with jaxwatch.serve(port=0, registry=CollectorRegistry()) as server:
        source = ServerSource(server.url)
        before, note = source.poll()
        assert note == ""
    after, note = source.poll()

    assert after == before
    assert "does not answer any more" in note


def test_where_nothing_listens_the_way_out_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(NoServerError, match=f"nothing answers at http://127.0.0.1:{port}: .*jaxwatch run --port"):
        shown(str(port))


class Other(BaseHTTPRequestHandler):
    """Some other server."""

    answer = b"<html>"

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(
    params=[b"<html>", b"{}", b"[" * 100_000, b'{"schema": "jaxwatch.live/1"}', b"\xff", b""],
    ids=["html", "object", "brackets", "schema alone", "no text", "nothing"],
)
def other(request: pytest.FixtureRequest) -> Iterator[int]:
    handler = type("Handler", (Other,), {"answer": request.param})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_what_is_no_jaxwatch_is_told_so(other: int) -> None:
    with pytest.raises(NoServerError, match="is no jaxwatch"):
        shown(str(other))


@pytest.mark.parametrize(("status", "told"), [(503, "not ready yet"), (403, "by a loopback name alone")])
def test_one_that_refuses_is_not_taken_for_a_stranger(status: int, told: str) -> None:
    class Refusing(Other):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with pytest.raises(NoServerError, match=told):
            shown(str(server.server_port))
        server.shutdown()
        thread.join()


def test_one_that_answers_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_top, "PATIENCE_SECONDS", 0.3)
    stop = threading.Event()

    class Dripping(Other):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            while not stop.wait(0.05):
                self.wfile.write(b" ")

    with HTTPServer(("127.0.0.1", 0), Dripping) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with pytest.raises(NoServerError, match="takes too long"):
            shown(str(server.server_port))
        stop.set()
        server.shutdown()
        thread.join()


# ------------------------------------------------------------------ of logs


def test_logs_are_shown_and_what_comes_later_too(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", [run_start(), miss(1)])
    source = LogSource([str(log)])
    assert "No recompile" in shown(str(log))
    frame, _ = source.poll()
    assert len(frame.happened) == 1
    with log.open("a") as file:
        file.write(json.dumps(other_length(2, 57, 5)) + "\n")
    frame, _ = source.poll()
    assert [one.kind for one in frame.happened] == ["first", "recompile"]


def test_a_folder_of_many_processes_is_one_frame(tmp_path: Path) -> None:
    for pid in range(3):
        write_log(tmp_path / f"{pid}.jsonl", [run_start(pid=pid), miss(1, pid=pid), run_end(pid=pid)])

    assert "3 processes" in shown(str(tmp_path))


def test_a_large_log_is_read_whole_before_one_frame_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_top, "RECORDS_AT_ONCE", 3)
    log = write_log(tmp_path / "a.jsonl", [run_start(), *(miss(number) for number in range(1, 30))])
    text = shown(str(log))

    assert re.search(r"^step +≥29 +29 ", text, re.MULTILINE), text
    assert "still reading" not in text


# ------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("targets", "error"),
    [
        (["/no/such/log.jsonl"], LogUnreadableError),
        (["http://127.0.0.1:1", "http://127.0.0.1:2"], BadOptionError),
        (["ftp://127.0.0.1:1"], BadOptionError),
        (["http://user:secret@127.0.0.1:1"], BadOptionError),
        (["http://"], BadOptionError),
        (["http://127.0.0.1:0"], BadOptionError),
        (["http://127.0.0.1:99999999"], BadOptionError),
        (["http://[::1"], BadOptionError),
        (["a\0b"], LogUnreadableError),
    ],
)
def test_what_cannot_be_watched_is_told(targets: list[str], error: type[JaxwatchError]) -> None:
    with pytest.raises(error):
        source_of(targets)


def test_the_command_tells_errors_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["top", "/no/such/log.jsonl"]) == 2
    assert capsys.readouterr().err.startswith("jaxwatch: cannot read the log /no/such/log.jsonl")


def test_in_a_pipe_it_prints_one_frame_imports_no_jax_and_ends(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    program = "import sys; from jaxwatch._cli import main; sys.exit(main(['top', sys.argv[1]]) or 'jax' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, log], capture_output=True, text=True, check=False, timeout=120
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# ------------------------------------------------------------------ on a terminal


def on_a_terminal(log: Path, end: str) -> tuple[int, str]:
    """Run it on a terminal of its own until it has drawn, end it so, and return its exit code and what it wrote."""
    mine, its = pty.openpty()
    command = [sys.executable, "-c", HEARS_CTRL_C, "top", str(log), "--every", "0.1"]
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environ, start_new_session=True) as running:
        os.close(its)
        late = threading.Timer(150, running.kill)  # else a test that failed would wait for it for ever
        late.daemon = True
        late.start()
        text, until, asked = "", time.monotonic() + 120, False
        while time.monotonic() < until:
            if not select.select([mine], [], [], 0.2)[0]:
                continue
            try:
                piece = os.read(mine, 65536)
            except OSError:  # it has ended
                break
            text += piece.decode()
            if "q ends it" in text and not asked:
                asked = True
                os.write(mine, end.encode()) if end != "INT" else running.send_signal(signal.SIGINT)
        code = running.wait(200)
        late.cancel()
    os.close(mine)
    return code, text


@pytest.mark.parametrize("end", ["q", "Q", "INT"])
def test_on_a_terminal_it_goes_on_until_it_is_ended_and_leaves_a_clean_one(tmp_path: Path, end: str) -> None:
    log = write_log(tmp_path / "a.jsonl", training_run())
    code, text = on_a_terminal(log, end)

    assert code == 0, text
    assert "batch['x']: float32[32,64]" in text
    assert text.count("\x1b[?1049h") == text.count("\x1b[?1049l") == 1, "the screen is given back"
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h"), "and the cursor"
    assert "Traceback" not in text
