"""Event logs: lines → records. What is no event of ours is counted and named, and the rest is read all the same."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from jaxwatch._records import Record
from jaxwatch.errors import LogUnreadableError
from jaxwatch.events import SCHEMA

Bytes = IO[bytes] | gzip.GzipFile

# Bytes of one line. Our longest are some ten thousand; what is longer is passed over piece by piece, as one fault.
LINE_BYTES = 4 * 1024 * 1024
# Pieces after which a line is taken for endless, and its file is left.
PIECES = 256
_CUT_OFF = b"?"
_DECODER = json.JSONDecoder()
# Faults that are named; the others are only counted.
FAULTS_NAMED = 3


class LogReading:
    """The records of some logs, read line by line as they are asked for; iterate once.

    Attributes:
        faults: Lines passed over so far.
        named: The first few of them, as ``run.jsonl:17 is no JSON``.
        events: Records handed out so far.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._paths = [os.fspath(path) for path in paths]
        self._number = 0  # of the line that was read last
        self.log = ""  # the one that is read
        self._file: IO[bytes] | None = None  # of that one
        self._bytes_before = 0  # in those before it
        self.faults = 0
        self.named: list[str] = []
        self.events = 0

    def __iter__(self) -> Iterator[Record]:
        """Yield each record; a file that is named twice is read once.

        Raises:
            LogUnreadableError: A file is missing or cannot be read.
        """
        for number, line in self.lines():
            self._number = number
            if (found := what_is(line)) is None:
                continue
            if isinstance(found, str):
                self.fault(found)
            else:
                self.events += 1
                yield found

    def lines(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield each line with its number in its file, ``log``; None for one that is too long to be held.

        Raises:
            LogUnreadableError: A file is missing or cannot be read.
        """
        seen: set[tuple[int, int]] = set()
        for path in (log for given in self._paths for log in _logs_of(given)):
            try:
                with Path(path).open("rb") as file:
                    status = os.fstat(file.fileno())
                    if (status.st_dev, status.st_ino) not in seen:
                        seen.add((status.st_dev, status.st_ino))
                        self.log, self._file = path, file
                        yield from enumerate(_all_lines(_unpacked(path, file)), start=1)
                        self._file, self._bytes_before = None, self._bytes_before + status.st_size
            except (OSError, ValueError) as error:  # ValueError: a NUL in the path
                raise _unreadable(path, error) from error

    @property
    def bytes_done(self) -> int:
        """Bytes of the files that were read so far."""
        try:
            return self._bytes_before + (self._file.tell() if self._file is not None else 0)
        except OSError:  # a pipe
            return self._bytes_before

    @property
    def bytes_in_all(self) -> int | None:
        """Bytes of all files; None where that is not known, as of a pipe."""
        try:
            sizes = [os.path.getsize(log) for given in self._paths for log in _logs_of(given)]
        except OSError:
            return None
        return sum(sizes) if all(sizes) else None

    def fault(self, what: str, place: str | None = None) -> None:
        """Count a line as a fault, by default the one that was read last; ``what`` follows its place in a sentence."""
        self.faults += 1
        if len(self.named) < FAULTS_NAMED:
            self.named.append(f"{place or f'{self.log}:{self._number}'} {what}")


def read_log(paths: Iterable[str | os.PathLike[str]]) -> LogReading:
    """Return the records of ``paths``, one file after the other, with a count of what was passed over.

    Args:
        paths: Logs, as ``JAXWATCH_LOG`` and ``--log`` write them, or packed by gzip, with a name that ends in ``.gz``;
            of a folder all of its ``*.jsonl`` and ``*.jsonl.gz``. Opened when their first record is asked for.
    """
    return LogReading(paths)


def _logs_of(path: str) -> list[str]:
    """Return the logs of a folder, sorted; a file as it is."""
    if not os.path.isdir(path):
        return [path]
    found = sorted(str(log) for pattern in ("*.jsonl", "*.jsonl.gz") for log in Path(path).glob(pattern))
    if not found:
        problem = f"cannot read the log {path}: a folder that holds no *.jsonl and no *.jsonl.gz."
        raise LogUnreadableError(problem, "Give the file that --log or JAXWATCH_LOG named.")
    return found


def _unpacked(path: str, file: IO[bytes]) -> Bytes:
    return gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file


def _all_lines(file: Bytes) -> Iterator[bytes | None]:
    """Yield the lines, as ``_lines``; where a gzip ends too early, a last one that is cut off."""
    try:
        yield from _lines(file)
    except (EOFError, zlib.error):
        yield _CUT_OFF


def _lines(file: Bytes) -> Iterator[bytes | None]:
    """Yield the lines; None for one that is too long to be held."""
    while line := file.readline(LINE_BYTES):
        if len(line) < LINE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        for _ in range(PIECES):
            line = file.readline(LINE_BYTES)
            if not line or line.endswith(b"\n"):
                break
        else:
            yield None
            return  # no log at all: a device without an end, say
        yield None


def what_is(line: bytes | None) -> Record | str | None:
    """Return the record on a line of a file, what is wrong with the line, or None where it is empty."""
    if line is None:
        return f"is longer than {LINE_BYTES:,} bytes"
    if line[:1] != b"{" and not line.strip():
        return None
    found = record_of(line)
    return f"{found}: cut off at the end of the file" if isinstance(found, str) and not line.endswith(b"\n") else found


def record_of(line: bytes) -> Record | str:
    """Return the record on a line, or what is wrong with the line."""
    try:
        if line[:1] == b"{":  # as nearly always: the rest of JSONDecoder.decode takes as long as a short event
            told = line.decode()
            found, end = _DECODER.raw_decode(told)
            if told[end:].strip(" \t\r\n"):
                return "is no JSON"
        else:
            found = _DECODER.decode(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return "is no JSON"  # no UTF-8, no JSON, a number of ten thousand digits, a thousand brackets
    if not isinstance(found, dict):
        return "is no object"
    if found.get("schema") != SCHEMA:
        return f"is not of schema {SCHEMA}"
    return found if isinstance(found.get("event"), str) else "names no event"


def _unreadable(path: str, error: Exception) -> LogUnreadableError:
    missing = isinstance(error, FileNotFoundError)
    reason = (getattr(error, "strerror", None) or str(error)).lower()
    problem = f"cannot read the log {path}: {reason}."
    way_out = "Give the file that --log or JAXWATCH_LOG named." if missing else "Give a file that you may read."
    return LogUnreadableError(problem, way_out)
