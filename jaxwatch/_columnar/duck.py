"""DuckDB, opened with bounds; and the folder of Parquet files that an export makes."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxwatch._columnar.schema import kinds
from jaxwatch.errors import MissingExtraError, ParquetError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SCHEMA = "jaxwatch.columns/1"
"""Version of the folder's form; stands in ``logs``."""

MEMORY = "1GB"
"""What DuckDB may use; beyond, it goes to disk."""

# A position says where a line stands among all that were read: log << 32 | line.
LINE_BITS = 32


_SIZE = re.compile(r"[0-9]+(\.[0-9]+)? ?([KMGT]i?)?B", re.IGNORECASE)


@contextlib.contextmanager
def connection(folder: str, memory: str = MEMORY) -> Iterator["DuckDBPyConnection"]:
    """Yield a connection to a database in memory that puts what does not fit into ``folder``.

    Raises:
        MissingExtraError: duckdb is not installed.
        ParquetError: DuckDB cannot do what it is asked for; ``memory`` is no size.
    """
    try:
        import duckdb  # noqa: PLC0415 -- an extra
    except ImportError as error:
        problem = "Parquet files are written and read by duckdb, which is not installed."
        raise MissingExtraError(problem, "Run pip install 'jaxwatch[duckdb]'.") from error
    if not _SIZE.fullmatch(memory):
        raise ParquetError(f"--memory {memory} is no size.", "Give one like 1GB or 500MB.")
    try:
        settings = {"memory_limit": memory, "temp_directory": folder, "preserve_insertion_order": "false"}
        with duckdb.connect(":memory:", config={**settings, "autoinstall_known_extensions": "false"}) as opened:
            opened.execute("SET TimeZone = 'UTC'")
            opened.execute("SET enable_progress_bar = false")  # it would be drawn into the program's output
            yield opened
    except duckdb.Error as error:
        raise ParquetError(f"DuckDB failed: {str(error).strip().splitlines()[0]}.", _way_out(error)) from error


def _way_out(error: Exception) -> str:
    name = type(error).__name__
    if name == "OutOfMemoryException":
        return "Give it more memory: --memory 4GB."
    return "See whether the folder is whole, may be written, and has room." if name == "IOException" else ""


@contextlib.contextmanager
def opened(folder: str | os.PathLike[str], memory: str = MEMORY) -> Iterator["DuckDBPyConnection"]:
    """Yield a connection with a view for each kind of event in a folder that an export made, and ``logs``.

    Raises:
        MissingExtraError: duckdb is not installed.
        ParquetError: The folder is no export, or is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="jaxwatch-") as beside, connection(beside, memory) as found:
        for name in ("logs", *kinds(), "other"):
            _view(found, os.fspath(folder), name)
        versions = [row[0] for row in found.execute("SELECT DISTINCT schema FROM logs").fetchall()]
        if versions not in ([SCHEMA], []):
            problem = f"{os.fspath(folder)} is of {', '.join(map(str, versions))}, and this jaxwatch reads {SCHEMA}."
            raise ParquetError(problem, "Export the logs again.")
        yield found


def _view(found: "DuckDBPyConnection", folder: str, name: str) -> None:
    if not os.path.isdir(os.path.join(folder, name)):
        problem = f"{folder} is no folder that an export made: it has no {name}."
        raise ParquetError(problem, "Make one: jaxwatch export --parquet DIR LOG…")
    files = quoted(os.path.join(escaped(folder), name, "*.parquet"))
    position = "" if name == "logs" else f", (CAST(log AS BIGINT) << {LINE_BITS}) + line AS position"
    found.execute(f"CREATE VIEW {name} AS SELECT *{position} FROM read_parquet({files})")


def rows(found: "DuckDBPyConnection", query: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query, some at a time."""
    cursor = found.cursor().execute(query)
    while some := cursor.fetchmany(1_000):
        yield from some


def quoted(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def escaped(path: str) -> str:
    """Return a path as a pattern that matches it alone."""
    return "".join(f"[{one}]" if one in "*?[" else one for one in path)
