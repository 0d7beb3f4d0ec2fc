"""The log: one JSON object a line, one ``write`` a line, so that several processes may share the file."""

import contextlib
import json
import os
import sys
import threading
import warnings

from jaxwatch import _limits
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import JaxwatchWarning, LogUnwritableError
from jaxwatch.events import Event, to_record


class LogFile:
    """Appends events to a file; opened anew where it was moved or removed.

    What cannot be written is counted as dropped ``log_line`` and warned of once; the program goes on.

    Raises:
        LogUnwritableError: The file cannot be opened, at the start.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._lock = threading.RLock()
        self._pid, self._written, self._warned, self._torn = os.getpid(), 0, False, False
        try:
            self._fd = self._open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            way_out = "Give --log or JAXWATCH_LOG a file in a folder that you may write to."
            raise LogUnwritableError(f"cannot write the log to {self.path}: {reason}.", way_out) from None

    def __call__(self, event: Event, /) -> None:
        """Append ``event``."""
        line = json.dumps(to_record(event), separators=(",", ":")).encode() + b"\n"
        if self._pid != os.getpid():  # forked: another thread of the parent may have held the lock
            self._lock, self._pid, self._written = threading.RLock(), os.getpid(), 0
        with self._lock:
            if self._written + len(line) > _limits.LOG_BYTES:
                self._lose(f"this process has written {self._written} bytes, the most that is allowed")
                return
            try:
                self._reopen_if_moved()
                self._write(line)
            except OSError as error:
                self._lose((error.strerror or str(error)).lower())

    def close(self) -> None:
        """Close the file; further events are lost and counted."""
        with self._lock, contextlib.suppress(OSError):
            descriptor, self._fd = self._fd, -1  # a late event must not land in a file that gets the number next
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0), 0o666)

    def _reopen_if_moved(self) -> None:
        mine = os.fstat(self._fd)
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            moved = True
        else:
            moved = (there.st_ino, there.st_dev) != (mine.st_ino, mine.st_dev)
        if moved:
            new = self._open()  # before the old one is closed: where this fails, that one stays
            os.close(self._fd)
            self._fd = new

    def _write(self, line: bytes) -> None:
        if self._torn:  # the last line was cut by a full disk: keep this one apart from it
            line = b"\n" + line
        done = os.write(self._fd, line)
        self._written += done
        self._torn = done < len(line)
        if self._torn:
            raise OSError(0, "only a part of a line could be written")

    def _lose(self, why: str) -> None:
        REGISTRY.count_dropped("log_line")
        if not self._warned:
            self._warned = True
            text = f"the log {self.path} loses lines: {why}. The program goes on; what is lost is counted. [log-lost]"
            try:
                warnings.warn(text, JaxwatchWarning, stacklevel=2)
            except JaxwatchWarning:  # warnings are errors: it would end the thread that writes the figures, and be lost
                if sys.stderr is not None:
                    sys.stderr.write(f"jaxwatch: {text}\n")
