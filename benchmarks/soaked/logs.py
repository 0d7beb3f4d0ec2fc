"""The log's lines, counted file by file, so that no file is kept."""

import json
import os
from collections import Counter, deque
from pathlib import Path
from typing import Any

_SCHEMA = "jaxwatch.event/1"


class Logs:
    """The logs of a run. A file that was left behind is counted and removed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = 0
        self._left: deque[Path] = deque()
        self.pid = os.getpid()
        self.lines = self.malformed = self.files = 0
        self.of_children: Counter[str] = Counter()
        self.by_event: Counter[str] = Counter()
        self.misses: Counter[str] = Counter()  # by function
        self.errors: Counter[str] = Counter()  # by function
        self.violations: Counter[str] = Counter()  # by action
        self.ids = [0, 0, 0]  # how many, their sum, the sum of their squares
        self.last_id = 0
        self.stats: dict[str, dict[str, Any]] = {}  # function → the last function_stats
        self.process: dict[str, Any] = {}

    def new(self) -> Path:
        """Return the path of a log that is not there yet."""
        self._number += 1
        return self.folder / f"run.{self._number}.jsonl"

    def leave(self, path: Path) -> None:
        """Count a file later, when nobody writes to it any more."""
        self._left.append(path)

    def count(self) -> None:
        """Count the files that were left, and remove them."""
        while self._left:
            path = self._left.popleft()
            if not path.exists():  # it was deleted, and nothing was written since
                continue
            self.files += 1
            with path.open(encoding="utf-8") as file:
                for line in file:
                    self._line(line)
            path.unlink()

    def _line(self, line: str) -> None:
        self.lines += 1
        try:
            record = json.loads(line)
            whole = line.endswith("\n") and record["schema"] == _SCHEMA
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            self.malformed += 1
        elif record["pid"] == self.pid:
            self._own(record)
        else:
            self.of_children[record["event"]] += 1

    def _own(self, record: dict[str, Any]) -> None:
        event = record["event"]
        self.by_event[event] += 1
        if event == "cache_miss":
            self.misses[record["function"]] += 1
            number = record["id"]
            self.ids = [self.ids[0] + 1, self.ids[1] + number, self.ids[2] + number * number]
            self.last_id = max(self.last_id, number)
        elif event == "trace_error":
            self.errors[record["function"]] += 1
        elif event == "violation":
            self.violations[record["action"]] += 1
        elif event == "function_stats":
            self.stats[record["function"]] = record
        elif event == "process_stats":
            self.process = record

    @property
    def ids_are_whole(self) -> bool:
        """Whether each id from 1 to the last was there once."""
        n = self.last_id
        return self.ids == [n, n * (n + 1) // 2, n * (n + 1) * (2 * n + 1) // 6]
