"""Lines of logs → typed tables, a chunk at a time.

DuckDB parses a line and writes what it took over as JSON again: where that is the same JSON, and all values are in
their ranges, the columns hold the line exactly. All other lines are read by Python, by the code that reads logs
everywhere else, which knows what is a fault, and what to make of the rest.
"""

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

from jaxwatch._columnar import schema
from jaxwatch._columnar.duck import quoted
from jaxwatch._columnar.exact import exactly
from jaxwatch._columnar.schema import Column, structure
from jaxwatch._reader import LogReading, what_is
from jaxwatch._records import Record
from jaxwatch._report import ReportBuilder
from jaxwatch.events import SCHEMA

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

LINES = 100_000
"""Lines of one chunk, at most."""

BYTES = 32 * 1024 * 1024
"""Bytes of one chunk from which on it is taken."""

WORKERS = 4
"""Chunks that DuckDB works on at once, at most; and as many threads."""

_BEGIN = f'{{"schema":"{SCHEMA}","event":"'
_NOTHING = "(SELECT NULL::INTEGER AS log, NULL::BIGINT AS line)"
_OTHER = "other"
_Flags = bytearray  # 0 or 1 for each line


Line = tuple[int, int, bytes | None]
"""Number of its log, its own, and what it holds; None of one that is too long."""


class LogCounts:
    """What was read of one log."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines = self.events = self.faults = self.malformed = 0
        self.named: list[str] = []


class Lines:
    """Takes the lines of logs into tables ``stage.<kind>`` of a connection, and counts them."""

    def __init__(self, connection: "DuckDBPyConnection", reading: LogReading) -> None:
        self._connection = connection
        self._reading = reading
        self._kinds = schema.kinds()
        self.logs: list[LogCounts] = []
        for kind, columns in {**self._kinds, _OTHER: _other()}.items():
            connection.execute(f"CREATE TABLE stage.{kind} AS {_typed(columns, quoted('{}'), _NOTHING)} LIMIT 0")

    def take_all(self) -> None:
        """Take all lines of the logs; DuckDB works on some chunks while Python reads the next one."""
        waiting: deque[tuple[list[Line], Future[_Flags]]] = deque()
        workers = min(WORKERS, os.cpu_count() or 1)
        with ThreadPoolExecutor(workers) as pool:
            for chunk in self._chunks():
                waiting.append((chunk, pool.submit(self._taken, chunk)))
                if len(waiting) > workers:
                    self._finish(*waiting.popleft())
            while waiting:
                self._finish(*waiting.popleft())

    def _chunks(self) -> Iterator[list[Line]]:
        chunk: list[Line] = []
        path, log, size = None, -1, 0
        for number, raw in self._reading.lines():
            if path is not self._reading.log:
                path, log = self._reading.log, log + 1
                self.logs.append(LogCounts(path))
            chunk.append((log, number, raw))
            size += len(raw or b"")
            if len(chunk) >= LINES or size >= BYTES:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _finish(self, chunk: list[Line], taken: Future[_Flags]) -> None:
        flags = taken.result()
        for (number, _, _), done in zip(chunk, flags, strict=True):
            log = self.logs[number]
            log.lines += 1
            log.events += done
        self._take_by_python([line for line, done in zip(chunk, flags, strict=True) if not done])

    def _taken(self, chunk: list[Line]) -> _Flags:
        """Take the lines that are as jaxwatch writes them; return of each whether it was taken. On any thread."""
        flags = bytearray(len(chunk))
        with self._connection.cursor() as cursor:
            _fill(cursor, ((log, line, _decoded(raw)) for log, line, raw in chunk))
            cursor.execute(
                "CREATE OR REPLACE TEMP TABLE whole AS SELECT *, json_keys(text) AS keys, "
                f"split_part(substr(text, {len(_BEGIN) + 1}, 64), '\"', 1) AS kind FROM chunk "
                f"WHERE starts_with(text, {quoted(_BEGIN)}) AND json_valid(text)"
            )
            groups = cursor.execute("SELECT kind, keys, count(*) FROM whole GROUP BY ALL").fetchall()
            for kind, keys, count in groups:
                columns = self._kinds.get(kind)
                if columns is None or not all(name in keys for name, column in columns.items() if column.needed):
                    continue
                for place in _insert(cursor, kind, columns, keys, count):
                    flags[place] = 1
        return flags

    def _take_by_python(self, lines: list[Line]) -> None:
        found: dict[str, list[tuple[int, int, str]]] = {}
        for log, number, raw in lines:
            if (record := self._judged(self.logs[log], number, raw)) is None:
                continue
            kind = str(record["event"])
            if kind in self._kinds:
                text = json.dumps(schema.fitted(record, self._kinds[kind]))
            else:
                kind, text = _OTHER, _as_other(record)
            found.setdefault(kind, []).append((log, number, text))
        for kind, some in found.items():
            with self._connection.cursor() as cursor:
                _fill(cursor, some)
                columns = self._kinds.get(kind) or _other()
                cursor.execute(f"INSERT INTO stage.{kind} BY NAME {_typed(columns, 'text', 'chunk')}")

    def _judged(self, log: LogCounts, number: int, raw: bytes | None) -> Record | None:
        """Return the record on a line; None where a report would pass it over, and count that as it does."""
        found = what_is(raw)
        if found is None:
            return None
        if not isinstance(found, str):
            log.events += 1
            judge = ReportBuilder()
            judge.add(found)
            if not judge.faults:
                return found
            log.malformed += 1
            found = f"is a malformed {found['event']}"
        log.faults += 1
        named = len(self._reading.named)
        self._reading.fault(found, f"{log.path}:{number}")
        log.named += self._reading.named[named:]
        return None


def _fill(cursor: "DuckDBPyConnection", lines: Iterable[tuple[int, int, str]]) -> None:
    """Make the table ``chunk`` of lines: their place, log, number and text."""
    import numpy as np  # noqa: PLC0415 -- jax has it; what loads this module does not need it

    logs, numbers, texts = zip(*lines, strict=True)
    columns = {
        "place": np.arange(len(logs)),
        "log": np.array(logs, dtype=np.int32),
        "line": np.array(numbers, dtype=np.int64),
        "text": np.array(texts, dtype=object),
    }
    cursor.register("lines", columns)
    cursor.execute("CREATE OR REPLACE TEMP TABLE chunk AS SELECT * FROM lines")
    cursor.unregister("lines")


def _insert(
    cursor: "DuckDBPyConnection", kind: str, columns: Mapping[str, Column], keys: list[str], count: int
) -> Iterable[int]:
    """Take of the ``count`` lines of a kind that have these keys those that are certain; return their places."""
    form = {name: structure(columns[name].annotation) if name in columns else "JSON" for name in keys}
    form |= {"schema": "VARCHAR", "event": "VARCHAR"}
    present = {name: column for name, column in columns.items() if name in form}
    some = {"kind": kind, "keys": keys}
    good = (
        "(WITH typed AS MATERIALIZED (SELECT place, log, line, text, "
        f"from_json(text, {quoted(json.dumps(form))}) AS s, "
        "CAST(json(text) AS VARCHAR) AS j FROM whole WHERE kind = $kind AND keys = $keys) "
        f"SELECT * FROM typed WHERE {exactly(present)})"
    )
    names = ", ".join(_column(name) for name in present)
    ((taken,),) = cursor.execute(
        f"INSERT INTO stage.{kind} BY NAME SELECT log, line, {names} FROM {good}", some
    ).fetchall()
    which = good if taken < count else "whole WHERE kind = $kind AND keys = $keys"
    places = cursor.execute(f"SELECT place FROM {which}", some).fetchnumpy()["place"]
    return cast("list[int]", places.tolist())


def _decoded(raw: bytes | None) -> str:
    try:
        return "" if raw is None else raw.decode()
    except UnicodeDecodeError:
        return ""


def _other() -> dict[str, Column]:
    """Return the columns of events that this version does not know."""
    origin = ("time", "pid", "process_index")
    run = schema.kinds()["run"]
    text = Column(str, needed=True)
    return {"event": text, **{name: run[name] for name in origin}, "record": text}


def _as_other(record: Record) -> str:
    columns = {name: column for name, column in _other().items() if name != "record"}
    return json.dumps(
        {**schema.fitted(record, columns), "record": schema.plain(json.dumps(record, ensure_ascii=False))}
    )


def _typed(columns: Mapping[str, Column], text: str, source: str) -> str:
    """Return the SELECT of the columns from the JSON ``text`` in ``source``."""
    form = quoted(json.dumps({name: structure(column.annotation) for name, column in columns.items()}))
    names = ", ".join(map(_column, columns))
    return f"SELECT log, line, {names} FROM (SELECT log, line, from_json({text}, {form}) AS s FROM {source})"


def _column(name: str) -> str:
    return "CAST(s.time AS TIMESTAMPTZ) AS time" if name == "time" else f's."{name}" AS "{name}"'
