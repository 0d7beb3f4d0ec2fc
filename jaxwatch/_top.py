"""``jaxwatch top``: what is being recompiled now, of a process that serves or of logs that grow. Imports no jax."""

import contextlib
import http.client
import io
import json
import os
import re
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO, Protocol, Self, TextIO
from urllib.parse import urlsplit

from jaxwatch._follow import LogFollower
from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame, from_json
from jaxwatch._records import MalformedError, Record
from jaxwatch._top_view import View
from jaxwatch.errors import BadOptionError, LogUnreadableError, NoServerError
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.terminal import put

DEFAULT_URL = "http://127.0.0.1:9464"
# Seconds that a process may take to answer, and bytes of its answer.
PATIENCE_SECONDS = 5.0
ANSWER_BYTES = 16 * 1024 * 1024
# Records that are taken in between two frames: a large log shows itself while it is read.
RECORDS_AT_ONCE = 20_000
# Happenings that are asked for again and again: more than a screen has rows.
HAPPENINGS = 100
_TERMINATED = 143  # what a shell makes of a death by SIGTERM

_ADDRESS = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}/?")
_PORT = re.compile(r"[0-9]{1,5}")


class Source(Protocol):
    """Where frames come from."""

    def poll(self) -> tuple[Frame, str]:
        """Return what is to be seen now, and a note, which may be empty."""


class ServerSource:
    """A process that serves.

    Args:
        url: Of its page, its metrics, or of nothing but its host and port.

    Raises:
        BadOptionError: It is no URL of HTTP.
    """

    def __init__(self, url: str) -> None:
        try:
            found = urlsplit(url)
            self._host, self._port = found.hostname or "", 80 if found.port is None else found.port
        except ValueError:
            found, self._host, self._port = urlsplit(""), "", 0
        if found.scheme != "http" or not (self._host and self._port) or found.username is not None:
            raise BadOptionError(f"{clean(url)} is no address of a process.", f"Give one like {DEFAULT_URL}.")
        self.url = url
        folder = found.path.removesuffix("metrics").removesuffix("live.json")
        self._path = folder.rstrip("/") + "/live.json"
        self._last: Frame | None = None

    def poll(self) -> tuple[Frame, str]:
        """Return the process's frame; where it answered once and does not any more, the last one with a note."""
        try:
            frame = self._ask(self._newest())
            if self._last is not None and frame.state != self._last.state:  # it was started anew
                frame = self._ask(0)
        except NoServerError:
            if self._last is None:
                raise
            return self._last, f"{clean(self.url)} does not answer any more; trying again"
        self._last = frame
        return frame, ""

    def _newest(self) -> int:
        numbers = [one.number for one in self._last.happened] if self._last is not None else []
        return max(max(numbers, default=0) - HAPPENINGS, 0)

    def _ask(self, since: int) -> Frame:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE_SECONDS)
        try:
            connection.request("GET", f"{self._path}?since={since}")
            answer = connection.getresponse()
            body = _read(answer, time.monotonic() + PATIENCE_SECONDS)
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
            problem = f"nothing answers at {clean(self.url)}: {clean(reason)}."
            raise NoServerError(problem, _HOW) from error
        finally:
            connection.close()
        if answer.status in _REFUSED:
            problem = f"what answers at {clean(self.url)} {_REFUSED[answer.status]}"
            raise NoServerError(problem, "Try again, or by http://127.0.0.1 on its own machine.")
        try:
            if answer.status != http.client.OK:
                raise MalformedError(str(answer.status))
            return from_json(json.loads(body))
        except (ValueError, RecursionError) as error:
            problem = f"what answers at {clean(self.url)} is no jaxwatch, or one without a live page."
            raise NoServerError(problem, _HOW) from error


def _read(answer: http.client.HTTPResponse, until: float) -> bytes:
    """Return the body, as far as it comes in time: the socket's patience is for each piece alone.

    Raises:
        TimeoutError: It does not.
    """
    pieces, size = [], 0
    while size < ANSWER_BYTES and (piece := answer.read1(ANSWER_BYTES - size)):
        pieces.append(piece)
        size += len(piece)
        if time.monotonic() > until:
            raise TimeoutError("the answer takes too long")
    return b"".join(pieces)


_REFUSED = {
    http.client.SERVICE_UNAVAILABLE: "is not ready yet: it still reads its logs.",
    http.client.FORBIDDEN: "does not answer by that name: on loopback it does by a loopback name alone.",
}
_HOW = "Start the program with jaxwatch run --port N, or have it call jaxwatch.serve(); or give its log."


class LogSource:
    """Logs, of one process or many, that may grow and be moved away.

    Raises:
        LogUnreadableError: A log is not there, or may not be read.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        for path in paths:
            _check(path)
        self._follower = LogFollower(paths)
        self._state = LiveState("log")
        self._coming: Iterator[Record] | None = None

    def poll(self) -> tuple[Frame, str]:
        """Take in what was written since, up to a bound, and return what is to be seen."""
        self._coming = self._coming or self._follower.poll()
        records = list(islice(self._coming, RECORDS_AT_ONCE))
        for record in records:
            self._state.add(record)
        reading = len(records) == RECORDS_AT_ONCE
        if not reading:
            self._coming = None
        self._state.faults, self._state.lost = self._follower.faults, 0
        left_out = len(self._follower.left_out)
        notes = ["still reading"] if reading else []
        notes += [f"{left_out:,} logs are too many to follow, and left out"] if left_out else []
        return self._state.frame(time.time()), "; ".join(notes)

    @property
    def reading(self) -> bool:
        """Whether more was written than the polls so far took in."""
        return self._coming is not None


def _check(path: str) -> None:
    try:
        with open(path, "rb"):
            pass
    except (OSError, ValueError) as error:
        if isinstance(error, IsADirectoryError):
            return
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        problem = f"cannot read the log {clean(path)}: {reason}."
        raise LogUnreadableError(problem, "Give the file that --log or JAXWATCH_LOG named, or a port.") from error


def source_of(targets: Sequence[str]) -> Source:
    """Return where the frames come from: a URL, ``host:port`` or port; or else logs; by default ``DEFAULT_URL``.

    Raises:
        BadOptionError: There is more than one process, or a process and a log.
        LogUnreadableError: A log cannot be read.
    """
    urls = [url for target in targets if (url := _url(target)) is not None]
    if not targets:
        return ServerSource(DEFAULT_URL)
    if not urls:
        return LogSource(targets)
    if len(targets) > 1:
        problem = "one process can be watched at a time."
        raise BadOptionError(problem, "For several, give the logs that --log or JAXWATCH_LOG wrote.")
    return ServerSource(urls[0])


def _url(target: str) -> str | None:
    if "://" in target:
        return target
    if os.path.exists(target):
        return None
    if _PORT.fullmatch(target):
        return f"http://127.0.0.1:{target}"
    return f"http://{target}" if _ADDRESS.fullmatch(target) else None


# ------------------------------------------------------------------ showing


def show(source: Source, stream: TextIO, *, once: bool = False, every: float = 1.0) -> None:
    """Show what is to be seen, until ``q`` or Ctrl-C; on no terminal, or ``once``, one frame.

    Args:
        source: Where the frames come from.
        stream: Where they go.
        once: Whether to print one frame and be done.
        every: Seconds between two frames.
    """
    if once or not stream.isatty():
        _print(source, stream)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))  # so that the terminal is left as it was
    with contextlib.suppress(KeyboardInterrupt), _Keys(sys.stdin) as keys:
        _watch(source, stream, keys, every)


def _print(source: Source, stream: TextIO) -> None:
    from rich.console import Console  # noqa: PLC0415 -- slow to load, and needed here alone

    frame, note = source.poll()
    while isinstance(source, LogSource) and source.reading:
        frame, note = source.poll()
    on_terminal = stream.isatty() and not os.environ.get("NO_COLOR")
    text = io.StringIO()
    width = None if on_terminal else 80
    console = Console(file=text, width=width, force_terminal=on_terminal, highlight=False, emoji=False, markup=False)
    console.print(View().draw(frame, note))
    put("\n".join(line.rstrip() for line in text.getvalue().splitlines()), stream)


def _watch(source: Source, stream: TextIO, keys: "_Keys", every: float) -> None:
    from rich.console import Console  # noqa: PLC0415 -- as above
    from rich.live import Live  # noqa: PLC0415

    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    ascii_signs = "utf" not in (console.encoding or "").lower()
    frame, note = source.poll()  # before the screen is cleared: an error is then told on a clean one
    with Live(console=console, screen=True, auto_refresh=False, transient=True) as live:
        while True:
            view = View(console.size.height, ascii_signs=ascii_signs)
            live.update(view.draw(frame, note or "q ends it"), refresh=True)
            if keys.ended(0.0 if isinstance(source, LogSource) and source.reading else every):
                return
            frame, note = source.poll()


class _Keys:
    """The keyboard, one key at a time, where there is a terminal that can; left as it was found."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._fd = stream.fileno() if stream is not None and stream.isatty() else None
        self._before: list[object] | None = None

    def __enter__(self) -> Self:
        if self._fd is not None:
            try:
                import termios  # noqa: PLC0415 -- not on every system
                import tty  # noqa: PLC0415

            except ImportError:
                self._fd = None
                return self
            with contextlib.suppress(termios.error):  # a terminal that has gone
                self._before = termios.tcgetattr(self._fd)
                tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None and self._before is not None:
            import termios  # noqa: PLC0415 -- as above

            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]  # as it came

    def ended(self, seconds: float) -> bool:
        """Wait so long; return whether ``q`` was typed."""
        if self._fd is None:
            time.sleep(seconds)
            return False
        import select  # noqa: PLC0415 -- of keyboards alone

        until = time.monotonic() + seconds
        while select.select([self._fd], [], [], max(until - time.monotonic(), 0.0))[0]:
            typed = os.read(self._fd, 100)
            if not typed or b"q" in typed.lower():  # nothing: the terminal has gone
                return True
        return False
