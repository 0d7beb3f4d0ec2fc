"""Where the progress line is shown: a terminal's screen, as it looks afterwards, and a notebook's outputs."""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from programs import environment

from jaxwatch import _cells, _options, _progress_line
from jaxwatch._progress import PROGRESS
from jaxwatch._progress_line import NotebookLine, TerminalLine, follow, sink

TERMINAL = {"TERM": "xterm"}
TEXT = "jaxwatch · compiling f · 3 s (backend compile)"
_SEQUENCE = re.compile(r"\x1b(?:\[([\d;]*)([A-Za-z])|([78DE]))")


class Screen:
    """As much of a terminal as is needed: 24 lines, and what we and a program send to it."""

    def __init__(self, rows: int = 24) -> None:
        self.rows, self.lines = rows, [""]
        self.row = self.column = 0
        self.saved = (0, 0)

    def feed(self, text: str) -> None:
        while text:
            found = _SEQUENCE.match(text)
            if found is None:
                self._put(text[0])
                text = text[1:]
            else:
                self._obey(found[3] or found[2], found[1])
                text = text[found.end() :]

    def _put(self, character: str) -> None:
        if character == "\n":
            self._down()
        elif character == "\r":
            self.column = 0
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        if self.row == self.rows - 1:
            del self.lines[0]
        else:
            self.row += 1
        while len(self.lines) <= self.row:
            self.lines.append("")

    def _obey(self, name: str, given: str | None) -> None:
        match name:
            case "J":
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :]
            case "A":
                self.row = max(0, self.row - 1)
            case "D":
                self._down()
            case "E":
                self._down()
                self.column = 0
            case "7":
                self.saved = self.row, self.column
            case "8":
                self.row, self.column = self.saved
            case "m":
                assert given in {"2", "22"}
            case _:
                raise AssertionError(name)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)


class Tty:
    """A terminal that is sys.stderr, and its screen."""

    def __init__(self, encoding: str = "utf-8", rows: int = 24) -> None:
        self.ours, theirs = pty.openpty()
        self.stream = open(theirs, "w", encoding=encoding, buffering=1)  # noqa: SIM115 -- closed below
        self.screen = Screen(rows)

    def be_stderr(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Be it for the module alone: pytest puts its own in sys between a fixture and its test."""
        monkeypatch.setattr(_progress_line, "sys", SimpleNamespace(stderr=self.stream))

    def print(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()

    def look(self) -> str:
        self.stream.flush()
        os.set_blocking(self.ours, False)
        try:
            while data := os.read(self.ours, 65_536):
                self.screen.feed(data.decode(self.stream.encoding))
        except BlockingIOError:
            pass
        return self.screen.text

    def close(self) -> None:
        self.stream.close()
        os.close(self.ours)


@pytest.fixture
def tty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tty]:
    made = Tty()
    made.be_stderr(monkeypatch)
    yield made
    made.close()


def test_the_line_stands_below_what_the_program_has_begun_and_leaves_nothing(tty: Tty) -> None:
    line = TerminalLine(TERMINAL)
    tty.print("epoch 1 ... ")

    line.show("a longer one " + TEXT, 1)
    line.show(TEXT, 1)
    assert tty.look() == f"epoch 1 ...\n{TEXT}"
    line.hide("")
    tty.print("done\nepoch 2\n")

    assert tty.look() == "epoch 1 ... done\nepoch 2\n"


def test_what_a_program_prints_meanwhile_stays(tty: Tty) -> None:
    line = TerminalLine(TERMINAL)
    tty.print("begun\n")

    line.show(TEXT, 1)
    tty.print("traced a line that is longer than the one which is shown, by far\n")
    line.show(TEXT, 1)
    line.hide("")
    tty.print("done\n")

    told = "begun\ntraced a line that is longer than the one which is shown, by far\ndone\n"
    assert tty.look() == told


def test_it_is_so_on_the_last_line_of_a_screen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Tty(rows=3)
    made.be_stderr(monkeypatch)
    line = TerminalLine(TERMINAL)
    made.print("1\n2\n3\n4 ")
    for _ in range(3):
        line.show(TEXT, 1)
    assert made.look() == f"3\n4\n{TEXT}"
    line.hide("")
    made.print("5\n6\n")

    assert made.look() == "4 5\n6\n"
    made.close()


def test_it_is_never_wider_than_the_terminal(tty: Tty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((20, 24)))

    TerminalLine(TERMINAL).show(TEXT, 1)

    assert tty.look().splitlines()[-1] == "jaxwatch · compili…"


def test_a_terminal_that_knows_ascii_alone_gets_that(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Tty("ascii")
    made.be_stderr(monkeypatch)

    TerminalLine(TERMINAL).show(TEXT, 1)

    assert made.look() == f"\n{TEXT.replace('·', '-')}"
    made.close()


class Fails(io.StringIO):
    def isatty(self) -> bool:
        return True  # and fileno raises


@pytest.mark.parametrize("stream", [None, io.StringIO(), Fails()], ids=["none", "a text", "no descriptor"])
def test_what_is_no_terminal_gets_nothing(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress_line, "sys", SimpleNamespace(stderr=stream))
    line = TerminalLine(TERMINAL)

    line.show(TEXT, 1)
    line.hide("")

    assert stream is None or stream.getvalue() == ""


@pytest.mark.parametrize("environ", [{}, {"TERM": "dumb"}])
def test_a_terminal_that_cannot_move_its_cursor_gets_nothing(tty: Tty, environ: dict[str, str]) -> None:
    TerminalLine(environ).show(TEXT, 1)

    assert tty.look() == ""


def test_a_process_in_the_background_of_its_terminal_writes_nothing(tty: Tty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)

    TerminalLine(TERMINAL).show(TEXT, 1)

    assert tty.look() == ""


# ------------------------------------------------------------------ on or off


@pytest.fixture(autouse=True)
def _off_afterwards() -> Iterator[None]:
    yield
    _options.choose_progress(None)
    PROGRESS.switch(None)


@pytest.mark.parametrize(
    ("chosen", "on"),
    [
        ((None, "", False), False),
        ((None, "", True), True),
        ((None, "1", False), True),
        ((None, "0", True), False),
        ((True, "0", False), True),
        ((False, "1", True), False),
    ],
)
def test_the_program_decides_then_the_environment_then_the_door(
    chosen: tuple[bool | None, str, bool], on: bool, tty: Tty, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_configure, variable, by_default = chosen
    monkeypatch.setenv("JAXWATCH_PROGRESS", variable)
    _options.choose_progress(by_configure)

    follow(by_default=by_default)

    assert PROGRESS.on is on
    assert tty.look() == ""


def test_without_a_terminal_or_a_kernel_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress_line, "sys", SimpleNamespace(stderr=io.StringIO()))

    follow(by_default=True)

    assert sink() is None
    assert not PROGRESS.on


def test_a_kernel_gets_an_output(monkeypatch: pytest.MonkeyPatch) -> None:
    class Kernel:
        kernel = object()

    monkeypatch.setattr(_cells, "shell", Kernel)

    assert isinstance(sink(), NotebookLine)


def test_an_output_is_updated_and_a_new_job_has_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[list[dict[str, str]]] = []

    class Handle:
        def __init__(self, bundle: dict[str, str]) -> None:
            self.told = [bundle]
            outputs.append(self.told)

        def update(self, bundle: dict[str, str], *, raw: bool) -> None:
            assert raw
            self.told.append(bundle)

    def display(bundle: dict[str, str], *, raw: bool, display_id: bool) -> Handle:
        assert raw
        assert display_id
        return Handle(bundle)

    display_module: Any = pytest.importorskip("IPython.display")
    monkeypatch.setattr(display_module, "display", display)
    line = NotebookLine()
    line.hide("nothing was shown")
    line.show("<f> 2 s", 1)
    line.show("<f> 3 s", 1)
    line.hide("took 3 s")
    line.show("g", 2)

    told = [[bundle["text/plain"] for bundle in output] for output in outputs]
    assert told == [["<f> 2 s", "<f> 3 s", "took 3 s"], ["g"]]
    assert "&lt;f&gt; 2 s" in outputs[0][0]["text/html"]


# ------------------------------------------------------------------ the real thing

PROGRAM = """
import sys
import jax, jax.numpy as jnp
from jaxwatch import _limits
_limits.PROGRESS_AFTER_SECONDS = _limits.PROGRESS_EVERY_SECONDS = 0.01  # seconds of a machine are no test

@jax.jit
def train_step(x):
    for i in range(25):
        x = jnp.sin(x @ x) + jnp.cos(x * i)
    return x

print("begun ... ", end="", flush=True)
train_step(jnp.ones((8, 8)))
print("done", flush=True)
"""


def on_a_terminal(program: str, folder: Path, *options: str) -> str:
    """Return what ``jaxwatch run`` of a program writes to a terminal that is all of its streams."""
    path = folder / "train.py"
    path.write_text(program)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "jaxwatch", "run", *options, str(path)]
    env = environment(TERM="xterm", NO_COLOR="1")
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as running:
        os.close(theirs)
        said = bytearray()
        with contextlib.suppress(OSError):  # raised when it has ended
            while data := os.read(ours, 65_536):
                said += data
    os.close(ours)
    assert running.returncode == 0, said.decode()
    return said.decode()


def test_a_run_on_a_terminal_shows_it_and_its_screen_is_as_without(tmp_path: Path) -> None:
    text = on_a_terminal(PROGRAM, tmp_path)
    screen = Screen()
    screen.feed(text)

    assert re.search(r"compiling train_step · \d s \((tracing|lowering|backend compile)\)", text)
    assert screen.text.startswith("begun ... done\njaxwatch · train.py")
    assert "compiling train_step" not in screen.text


def test_a_quiet_run_shows_none(tmp_path: Path) -> None:
    program = "from jaxwatch._progress import PROGRESS; print(PROGRESS.on)"

    assert on_a_terminal(program, tmp_path).startswith("True")
    assert on_a_terminal(program, tmp_path, "--quiet").startswith("False")
