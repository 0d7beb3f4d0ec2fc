"""The log: one JSON object a line, one ``write`` a line, so that several processes may share the file."""

import contextlib
import errno
import json
import os
import stat
import sys
import threading
import warnings

from jaxwatch import _limits
from jaxwatch._descriptors import File, file_of
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import JaxwatchWarning, LogUnwritableError
from jaxwatch.events import Event, to_record

_NO_FILE = "it is a pipe or a socket"
_STREAMS = 3  # stdin, stdout, stderr


class LogFile:
    """Appends events to a file; opened anew where it was moved or removed, or the program has closed its descriptor.

    What cannot be written is counted as dropped ``log_line`` and warned of once; the program goes on. Another file that
    has got the descriptor's number is neither written to nor closed.

    Raises:
        LogUnwritableError: The file cannot be opened, at the start, or is a pipe: one that nobody reads would hold up
            the program, or kill it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._lock = threading.RLock()
        self._pid, self._written, self._warned, self._torn = os.getpid(), 0, False, False
        self._closed = False
        try:
            self._fd, self._file = self._open()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            way_out = "Give --log or JAXWATCH_LOG a file in a folder that you may write to."
            raise LogUnwritableError(f"cannot write the log to {self.path}: {reason}.", way_out) from None

    def __call__(self, event: Event, /) -> bool:
        """Append ``event``; return False, and count nothing, where the log is closed."""
        line = json.dumps(to_record(event), separators=(",", ":")).encode() + b"\n"
        if self._pid != os.getpid():  # forked: another thread of the parent may have held the lock
            self._lock, self._pid, self._written = threading.RLock(), os.getpid(), 0
        with self._lock:
            if self._closed:
                return False
            if self._written + len(line) > _limits.LOG_BYTES:
                self._lose(f"this process has written {self._written} bytes, the most that is allowed")
                return True
            try:
                self._reopen_if_moved()
                self._write(line)
            except OSError as error:
                self._lose((error.strerror or str(error)).lower())
        return True

    def close(self) -> None:
        """Close the file; further events are not taken."""
        with self._lock:
            self._closed = True
            if self._is_ours():
                os.close(self._fd)
            self._fd = -1

    def _open(self) -> tuple[int, File]:
        """Open the file; return its descriptor, and which file it is."""
        flags = os.O_APPEND | os.O_CREAT | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)
        try:
            descriptor = os.open(self.path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)  # a pipe's open would wait
        except OSError as error:
            if error.errno != errno.ENXIO:  # nobody reads it
                raise
            raise OSError(errno.ESPIPE, _NO_FILE) from None
        if descriptor < _STREAMS:  # the program has closed its own: what it prints is not to land in the log
            import fcntl  # noqa: PLC0415 -- not on Windows, where this does not happen

            low, descriptor = descriptor, fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STREAMS)
            os.close(low)
        status = os.fstat(descriptor)
        if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            os.close(descriptor)
            raise OSError(errno.ESPIPE, _NO_FILE)
        return descriptor, (status.st_dev, status.st_ino)

    def _reopen_if_moved(self) -> None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            there = None
        else:
            there = status.st_dev, status.st_ino
        ours = self._is_ours()
        if there != self._file or not ours:
            old = self._fd
            self._fd, self._file = self._open()  # before the old one is closed: where this fails, that one stays
            if ours:
                os.close(old)

    def _is_ours(self) -> bool:
        """Whether the descriptor is still that of the log: a program that closes all may have given it another file."""
        return file_of(self._fd) == self._file

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
            with contextlib.suppress(OSError, ValueError):  # a stderr that is closed
                self._warn(text)

    def _warn(self, text: str) -> None:
        try:
            warnings.warn(text, JaxwatchWarning, stacklevel=3)
        except JaxwatchWarning:  # warnings are errors: it would end the thread that writes the figures, and be lost
            if sys.stderr is not None:
                sys.stderr.write(f"jaxwatch: {text}\n")
