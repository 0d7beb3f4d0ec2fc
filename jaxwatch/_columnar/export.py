"""``jaxwatch export``: event logs → a folder of Parquet files, one folder in it for each kind of event."""

import glob
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from jaxwatch._columnar.duck import MEMORY, SCHEMA, connection, quoted
from jaxwatch._columnar.lines import Lines, LogCounts
from jaxwatch._columnar.numbers import number_processes
from jaxwatch._columnar.schema import kinds
from jaxwatch._reader import read_log
from jaxwatch.errors import LogUnreadableError, ParquetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

ROWS = 100_000
"""Rows of a row group: what a reader holds at once."""

FILE_BYTES = "256MB"
"""Size from which on a further file is begun."""


class Exported(NamedTuple):
    """What an export did."""

    logs: int
    events: int
    faults: int  # lines passed over
    named: tuple[str, ...]  # the first of them


def export(logs: Iterable[str], folder: str, *, memory: str = MEMORY) -> Exported:
    """Write the events of logs into ``folder``, which comes about at once, when all of it is there.

    Args:
        logs: Files, also packed by gzip (``.gz``); patterns as ``logs/*.jsonl`` where there is no such file.
        folder: A new one, or an empty one. Beside it, under a name that ends in ``.part``, is what is not yet whole.
        memory: What DuckDB may use, as ``1GB``; beyond, it goes to disk.

    Raises:
        LogUnreadableError: A log cannot be read, or there is no event in any.
        MissingExtraError: duckdb is not installed.
        ParquetError: The folder is there and not empty, cannot be written, or DuckDB failed.
    """
    folder = os.path.abspath(folder)
    part = _part(folder)
    try:
        with connection(os.path.join(part, "stage"), memory) as opened:
            stage = os.path.join(part, "stage", "events.duckdb")
            opened.execute(f"ATTACH {quoted(stage)} AS stage")
            reading = read_log(_paths(logs))
            lines = Lines(opened, reading)
            lines.take_all()
            done = _done(lines.logs, reading.faults, reading.named)
            number_processes(opened)
            _write(opened, part, lines.logs)
        shutil.rmtree(os.path.join(part, "stage"))
        os.chmod(part, 0o777 & ~_umask())
        os.rename(part, folder)
    except OSError as error:
        if isinstance(error, LogUnreadableError | ParquetError):
            raise
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return done


def _part(folder: str) -> str:
    """Return a new folder beside ``folder``, for what is not yet whole."""
    try:
        if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
            raise ParquetError(f"{folder} is there already, and is not empty.", "Give --parquet a new folder.")
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        part = tempfile.mkdtemp(prefix=f"{os.path.basename(folder)}.", suffix=".part", dir=os.path.dirname(folder))
        os.mkdir(os.path.join(part, "stage"))
    except OSError as error:
        if isinstance(error, ParquetError):
            raise
        raise _unwritable(folder, error) from error
    return part


def _unwritable(folder: str, error: OSError) -> ParquetError:
    reason = (error.strerror or str(error)).lower()
    return ParquetError(f"cannot write {folder}: {reason}.", "Give --parquet a folder that you may write, with room.")


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def _paths(logs: Iterable[str]) -> Iterator[str]:
    for log in logs:
        matching = [] if os.path.lexists(log) or not glob.has_magic(log) else sorted(glob.glob(log, recursive=True))
        yield from matching or [log]


def _done(logs: Sequence[LogCounts], faults: int, named: Sequence[str]) -> Exported:
    events = sum(log.events for log in logs)
    if not events:
        told = f"; {faults:,} lines passed over: {'; '.join(named)}" if faults else ""
        raise LogUnreadableError(f"no event in these logs{told}.", "Give logs that --log or JAXWATCH_LOG wrote.")
    return Exported(len(logs), events, faults, tuple(named))


def _write(opened: "DuckDBPyConnection", part: str, logs: Sequence[LogCounts]) -> None:
    opened.execute(
        "CREATE TABLE logs (log INTEGER, path VARCHAR, lines BIGINT, events BIGINT, faults BIGINT, malformed BIGINT, "
        "named VARCHAR[], schema VARCHAR)"
    )
    for number, log in enumerate(logs):
        path = log.path.encode("utf-8", "backslashreplace").decode()
        named = [one.encode("utf-8", "backslashreplace").decode() for one in log.named]
        values = [number, path, log.lines, log.events, log.faults, log.malformed, named, SCHEMA]
        opened.execute("INSERT INTO logs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    _copy(opened, "SELECT * FROM logs ORDER BY log", os.path.join(part, "logs"))
    for kind, columns in kinds().items():
        by = "function, process, log, line" if "function" in columns else "process, log, line"
        _copy(opened, f"{_numbered(kind)} ORDER BY {by}", os.path.join(part, kind))
        opened.execute(f"DROP TABLE stage.{kind}")
    _copy(opened, f"{_numbered('other')} ORDER BY event, process, log, line", os.path.join(part, "other"))


def _numbered(kind: str) -> str:
    return (
        f"SELECT one.log, one.line, numbers.process, one.* EXCLUDE (log, line) FROM stage.{kind} AS one "
        "LEFT JOIN numbers ON one.log = numbers.log AND one.pid = numbers.pid "
        "AND one.process_index IS NOT DISTINCT FROM numbers.process_index "
        "AND one.line >= numbers.first AND one.line < numbers.until"
    )


def _copy(opened: "DuckDBPyConnection", query: str, folder: str) -> None:
    form = f"FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {ROWS}, FILE_SIZE_BYTES '{FILE_BYTES}'"
    opened.execute(f"COPY ({query}) TO {quoted(folder)} ({form})")
    if not os.listdir(folder):  # a query of no rows: a file of none, so that readers find the columns
        opened.execute(f"COPY ({query}) TO {quoted(os.path.join(folder, 'data_0.parquet'))} (FORMAT parquet)")
