"""A trace as a file, written while the log is read: it takes its name once it is whole, so that it is always valid."""

import contextlib
import gzip
import json
import os
from types import TracebackType
from typing import IO, Any, Self

from jaxwatch._output_file import is_special
from jaxwatch._records import Record
from jaxwatch._trace_events import TraceEvents
from jaxwatch.errors import ReportUnwritableError

_ENCODED = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode
_PART = ".part"
_HEAD = '{"displayTimeUnit":"ms","otherData":{"by":"jaxwatch","clock":"unix, microseconds"},"traceEvents":[\n'


class TraceFile:
    """Writes ``path``, packed by gzip where it ends in ``.gz``; a context manager, to be given each record.

    Attributes:
        count: Events of the trace that were written so far.

    Raises:
        ReportUnwritableError: It cannot be written; on entry, on each record, and on leaving.
    """

    def __init__(self, path: str) -> None:
        self.count = 0
        self._path = path
        self._target = os.path.realpath(path) if os.path.islink(path) else path  # a link stays one
        self._part = path if is_special(path) else self._target + _PART
        self._events = TraceEvents()
        self._file: IO[bytes] | gzip.GzipFile | None = None

    def __enter__(self) -> Self:
        """Begin the file, under another name."""
        try:
            packed = self._path.endswith(".gz")
            self._file = gzip.open(self._part, "wb", compresslevel=5) if packed else open(self._part, "wb")
            self._file.write(_HEAD.encode())
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise self._unwritable(error) from error
        return self

    def add(self, record: Record) -> None:
        """Write what a record is in a trace."""
        for event in self._events.add(record):
            self._write(event)

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End the file and give it its name; where something was raised, leave what was there before."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            if kind is None:
                self._file = file
                for event in self._events.end():
                    self._write(event)
                file.write(b"\n]}\n")
            file.close()
            if kind is None:
                self._rename()
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            self._file = None
            with contextlib.suppress(OSError):
                file.close()
            if self._part != self._path:
                with contextlib.suppress(OSError):
                    os.unlink(self._part)

    def _rename(self) -> None:
        if self._part != self._path:
            os.replace(self._part, self._target)

    def _write(self, event: dict[str, Any]) -> None:
        if self._file is None:
            return
        text = f"{',' if self.count else ''}{_ENCODED(event)}\n"
        try:
            self._file.write(text.encode("ascii"))
        except OSError as error:
            raise self._unwritable(error) from error
        self.count += 1

    def _unwritable(self, error: Exception) -> ReportUnwritableError:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        way_out = "Give --perfetto a file in a folder that you may write to."
        return ReportUnwritableError(f"cannot write {self._path}: {reason}.", way_out)
