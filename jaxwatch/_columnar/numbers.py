"""Which process wrote a line: pids come again, on other hosts and after a restart. The numbers are a report's."""

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jaxwatch._processes import Processes
from jaxwatch._report import ReportBuilder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Place = tuple[int, int, int, int | None, bool]
"""Log, line, pid, rank, and whether the line begins a process: a line at which a process may change."""

_ANY_TIME = "1970-01-01T00:00:00+00:00"


def number_processes(connection: "DuckDBPyConnection") -> None:
    """Make the table ``numbers``: in which lines of a log a pid and rank are which process.

    Only lines that may begin a process, or tell a rank for the first time, are gone through one by one.
    """
    every = " UNION ALL ".join(
        f"SELECT log, line, pid, process_index, {_begins(kind)} AS begins FROM stage.{kind}"
        for kind in ReportBuilder().kinds
    )
    connection.execute(
        "CREATE TABLE spans (log INTEGER, pid BIGINT, process_index BIGINT, first BIGINT, process INTEGER)"
    )
    places = connection.cursor().execute(
        f"WITH every AS ({every}), firsts AS (SELECT log, min(line) AS line, pid, process_index FROM every "
        "GROUP BY log, pid, process_index) "
        "SELECT log, line, pid, process_index, bool_or(begins) FROM (SELECT *, false AS begins FROM firsts "
        "UNION ALL SELECT * FROM every WHERE begins) GROUP BY ALL ORDER BY log, line"
    )
    spans = list(_spans(iter(places.fetchone, None)))
    for at in range(0, len(spans), 10_000):
        connection.executemany("INSERT INTO spans VALUES (?, ?, ?, ?, ?)", spans[at : at + 10_000])
    connection.execute(
        "CREATE TABLE numbers AS SELECT *, lead(first, 1, 9223372036854775807) OVER "
        "(PARTITION BY log, pid, process_index ORDER BY first) AS until FROM spans"
    )


def _begins(kind: str) -> str:
    return "phase = 'start'" if kind == "run" else "false"


def _spans(places: Iterable[Place]) -> Iterator[tuple[int, int, int | None, int, int]]:
    """Yield log, pid, rank, first line and the number of the process from there on."""
    processes = Processes(most=sys.maxsize)
    for log, line, pid, rank, begins in places:
        event = {"event": "run", "phase": "start" if begins else "end"}
        processes.find({**event, "pid": pid, "process_index": rank, "time": _ANY_TIME})
        for which in {rank, None}:
            if (process := processes.current(pid, which)) is not None:
                yield log, pid, which, line, process.number
