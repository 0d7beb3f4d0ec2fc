"""Event logs that are still being written: at each poll, what came since the last one.

Lines are read when their end is there. A log that was moved away (logrotate) is read to its end, then the new one from
its start; a log that became shorter is read from its start. A folder is looked through at each poll for new logs.
"""

import contextlib
import glob
import os
import time
from collections.abc import Callable, Iterable, Iterator

from jaxwatch._reader import FAULTS_NAMED, LINE_BYTES, record_of
from jaxwatch._records import Record

# Logs that are followed at once; beyond, they are named as left out.
FILES = 1_000
# Seconds for which a log that was moved away is still read: a writer may be in the midst of a line to it.
MOVED_SECONDS = 5.0
_CHUNK = 1024 * 1024


class LogFollower:
    """The records of logs as they come; not thread-safe.

    Attributes:
        faults: Lines passed over so far.
        named: The first few of them, with what is wrong.
        left_out: Logs that are not followed, as there are too many.
    """

    def __init__(self, places: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._places = list(places)
        self._clock = clock
        self._logs: dict[str, _Log] = {}
        self._moved: list[tuple[float, _Log]] = []
        self.faults = 0
        self.named: list[str] = []
        self.left_out: set[str] = set()

    def poll(self) -> Iterator[Record]:
        """Yield the records that came since the last poll, log by log."""
        for until, log in self._moved:
            yield from self._records(log)
            if self._clock() >= until:
                log.close()
        self._moved = [(until, log) for until, log in self._moved if self._clock() < until]
        for path in self._paths():
            yield from self._poll(path)

    def _poll(self, path: str) -> Iterator[Record]:
        log = self._logs.get(path)
        if log is not None:
            yield from self._records(log)
            if not log.moved():
                return
            self._moved.append((self._clock() + MOVED_SECONDS, self._logs.pop(path)))
        if len(self._logs) >= FILES:
            self.left_out.add(path)
            return
        with contextlib.suppress(OSError):  # gone again, or not ours to read: it may be there at the next poll
            new = self._logs[path] = _Log(path)
            yield from self._records(new)

    def close(self) -> None:
        """Close the logs."""
        for log in (*self._logs.values(), *(log for _, log in self._moved)):
            log.close()
        self._logs, self._moved = {}, []

    def _paths(self) -> Iterator[str]:
        """Yield the logs that are there now, or were: each once, in the order in which they were asked for."""
        found: dict[str, None] = dict.fromkeys(self._logs)
        for place in self._places:
            if os.path.isdir(place):
                found |= dict.fromkeys(sorted(glob.glob(os.path.join(glob.escape(place), "*.jsonl"))))
            else:
                found |= dict.fromkeys(sorted(glob.glob(place)) or [place])
        yield from {os.path.realpath(path): path for path in reversed(found)}.values()

    def _records(self, log: "_Log") -> Iterator[Record]:
        for line in log.lines():
            found = "is too long" if line is None else record_of(line) if line.strip() else None
            if isinstance(found, str):
                self.faults += 1
                if len(self.named) < FAULTS_NAMED:
                    self.named.append(f"{log.path}:{log.number} {found}")
            elif found is not None:
                yield found


class _Log:
    """One open log, and how far it has been read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.number = 0  # of the line that was read last
        self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
        self._offset, self._rest, self._skipping = 0, b"", False

    def lines(self) -> Iterator[bytes | None]:
        """Yield the lines that are complete by now; None for one that is too long to be held."""
        with contextlib.suppress(OSError):  # a network file system may fail for a while
            if os.fstat(self._fd).st_size < self._offset:  # cut: its lines are new
                self._offset, self._rest, self._skipping, self.number = 0, b"", False, 0
            while chunk := os.pread(self._fd, _CHUNK, self._offset):
                self._offset += len(chunk)
                yield from self._complete(self._rest + chunk)

    def _complete(self, text: bytes) -> Iterator[bytes | None]:
        *lines, self._rest = text.split(b"\n")
        for line in lines:
            self.number += 1
            yield None if self._skipping or len(line) > LINE_BYTES else line
            self._skipping = False
        if len(self._rest) > LINE_BYTES:
            self._rest, self._skipping = b"", True

    def moved(self) -> bool:
        """Whether another file has its name by now; a name without a file may get one."""
        mine = os.fstat(self._fd)
        with contextlib.suppress(OSError):
            there = os.stat(self.path)
            return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)
        return False

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            os.close(self._fd)
