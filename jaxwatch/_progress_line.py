"""Where the line of ``_progress`` is shown: below the cursor of a terminal, or as an output of a notebook's cell."""

import contextlib
import html
import os
import sys
from collections.abc import Mapping
from typing import Any

from jaxwatch import _cells, _options
from jaxwatch._progress import PROGRESS, Sink

# Erase what is right of and below the cursor; make room for a line below; remember the cursor; go there.
_BEGIN = "\x1b[J\x1bD\x1b[A\x1b7\x1bE"
_END = "\x1b8"  # back to where the program left the cursor
_ERASE = b"\x1b[J"


class TerminalLine:
    """The line below the cursor on stderr, where that is a terminal; the cursor stays where the program left it.

    So a line that the program has begun is not lost, and what it writes meanwhile begins where it would have.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        self._shown_at: int | None = None

    def show(self, text: str, job: int) -> None:
        """Show ``text``; nowhere where stderr is no terminal, or this process is in its background."""
        del job
        stream = sys.stderr
        descriptor = _terminal(stream, self._environ)
        if descriptor is None:
            return
        from jaxwatch.renderers.cells import ascii_only, cut  # noqa: PLC0415 -- as in `_progress`

        try:
            text.encode(stream.encoding or "utf-8")
        except UnicodeEncodeError:
            text = ascii_only(text)
        columns = os.get_terminal_size(descriptor).columns or 80
        line = f"{_BEGIN}\x1b[2m{cut(text, columns - 1)}\x1b[22m{_END}"
        os.write(descriptor, line.encode(stream.encoding or "utf-8", "replace"))  # no lock that a fork could inherit
        self._shown_at = descriptor

    def hide(self, text: str) -> None:
        """Erase it."""
        del text
        descriptor, self._shown_at = self._shown_at, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.write(descriptor, _ERASE)


def _terminal(stream: Any, environ: Mapping[str, str]) -> int | None:
    """Return the descriptor of a terminal that may be written to; None where it is none."""
    if environ.get("TERM", "dumb") == "dumb":
        return None
    try:
        if stream is None or not stream.isatty():
            return None
        descriptor = int(stream.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    try:
        return descriptor if os.tcgetpgrp(descriptor) == os.getpgrp() else None  # else writing may stop the process
    except OSError:  # it is not the one that controls this process
        return descriptor


class NotebookLine:
    """The line as an output of the cell that runs, updated; an output cannot be taken away, so its last word stays."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._job = 0

    def show(self, text: str, job: int) -> None:
        """Show ``text``, below the output so far for a new job."""
        from IPython import display  # noqa: PLC0415 -- not there but in notebooks

        show: Any = display.display  # which has no types
        if self._handle is None or job != self._job:
            self._job = job
            self._handle = show(_bundle(text), raw=True, display_id=True)
        else:
            self._handle.update(_bundle(text), raw=True)

    def hide(self, text: str) -> None:
        """Leave ``text``."""
        if self._handle is not None:
            self._handle.update(_bundle(text), raw=True)


def _bundle(text: str) -> dict[str, str]:
    style = "font:12px/1.4 system-ui,sans-serif;opacity:.72"
    return {"text/plain": text, "text/html": f'<div class="mathjax_ignore" style="{style}">{html.escape(text)}</div>'}


def sink() -> Sink | None:
    """Return what fits this process: for a notebook's kernel, or a terminal; None where there is neither."""
    if getattr(_cells.shell(), "kernel", None) is not None:
        return NotebookLine()
    return TerminalLine() if sys.stderr is not None and sys.stderr.isatty() else None


def follow(*, by_default: bool = False) -> None:
    """Switch the line on or off as the program or the environment chose, or else as is the default here."""
    chosen = _options.progress()
    PROGRESS.switch(sink() if (by_default if chosen is None else chosen) else None)
