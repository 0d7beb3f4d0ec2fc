"""The report of a folder that an export made: DuckDB sums, and the sums go to the code that reports on logs.

Each query gives rows that are bounded by functions, places and processes, in the order of their first line, which is
the order in which logs would have told them: so bounds fall on the same things.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

from jaxwatch import _limits, _processes
from jaxwatch._columnar.duck import MEMORY, opened, rows
from jaxwatch._columnar.findings import add_findings
from jaxwatch._columnar.ranks import add_divergences, give_ranks
from jaxwatch._eager import Compiles
from jaxwatch._processes import SIGNATURES_KEPT, SIGNATURES_KEPT_IN_ALL, Process, Processes
from jaxwatch._records import Record, function_stats
from jaxwatch._report import Report, ReportBuilder
from jaxwatch._slow import SlowProgram
from jaxwatch._stored import ENTRIES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FUNCTION = "process, function, definition"
_STATS = ("calls", "misses", "signatures", "dispatch", "inlined", "inlined_read", "inlined_keys", "touched")


class FolderReport(NamedTuple):
    """A report, and what the export passed over."""

    report: Report
    faults: int
    named: tuple[str, ...]


def report_on(folder: str | os.PathLike[str], *, memory: str = MEMORY) -> FolderReport:
    """Return the report of a folder.

    Args:
        folder: As ``export`` made it.
        memory: What DuckDB may use, as ``1GB``.

    Raises:
        MissingExtraError: duckdb is not installed.
        ParquetError: The folder is no export, or is damaged.
    """
    with opened(folder, memory) as found:
        builder = ReportBuilder(_Numbered())
        _add_processes(found, builder)
        give_ranks(found, builder)
        _add_functions(found, builder)
        _add_eager(found, builder)
        _add_stored(found, builder)
        _add_notes(found, builder)
        _add_slow(found, builder)
        add_findings(found, builder)
        add_divergences(found, builder)
        first, faults, builder.faults = found.execute(
            "SELECT arg_min(path, log), sum(faults)::BIGINT, sum(malformed)::BIGINT FROM logs"
        ).fetchall()[0]
        named = found.execute("SELECT unnest(named) FROM (FROM logs ORDER BY log) LIMIT 3").fetchall()
        return FolderReport(builder.build(program=os.path.basename(first)), faults, tuple(one for (one,) in named))


class _Numbered(Processes):
    """Processes that the export numbered."""

    def find(self, record: Record) -> Process:
        return self.all[record["process"]]


def _add_processes(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add when each process lived, and what it said of itself; tables ``<kind>_`` have no number beyond the bound."""
    most = _processes.PROCESSES
    for kind in builder.kinds:
        number = f"least(process, {most - 1}) AS process"
        found.execute(f"CREATE VIEW {kind}_ AS SELECT * REPLACE ({number}) FROM {kind}")
    every = " UNION ALL ".join(f"SELECT process, time FROM {kind}" for kind in builder.kinds)
    lives = f"SELECT least(process, {most - 1}) AS n, min(epoch_us(time)), max(epoch_us(time)), "
    for number, first, last, beyond in rows(
        found, f"{lives} count(*) FILTER (process >= {most}) FROM ({every}) GROUP BY n ORDER BY n"
    ):
        process = Process(number)
        process.saw(first / 1e6)
        process.saw(last / 1e6)
        builder.processes.all.append(process)
        if beyond:
            builder.processes.fold("process", beyond)
    said = "SELECT process, phase, program, wall_seconds, exit_code FROM run_ ORDER BY position"
    for process, phase, program, wall_seconds, exit_code in rows(found, said):
        run = {"phase": phase, "program": program, "wall_seconds": wall_seconds, "exit_code": exit_code}
        builder.add({"event": "run", "process": process, **run})
    last = "SELECT max(position) FROM process_stats_ GROUP BY process"
    took = f"SELECT process, overhead_seconds FROM process_stats_ WHERE position IN ({last}) ORDER BY process"
    for process, overhead in rows(found, took):
        builder.processes.all[process].overhead = overhead


def _add_functions(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add the figures of each function in each process: of its misses, and what it said last."""
    others = " UNION ALL ".join(
        f"SELECT {_FUNCTION}, position, 0 AS miss, 0 AS call, {seconds} AS seconds, false AS hit, NULL AS signature "
        f"FROM {kind}_"
        for kind, seconds in {"trace_error": "seconds", "ahead_of_time": "seconds", "function_stats": "0"}.items()
    )
    figures = (
        f"SELECT {_FUNCTION}, count(*) AS records, sum(miss)::BIGINT, max(call), sum(seconds)::DOUBLE, "
        "count_if(hit), count(DISTINCT signature) "
        f"FROM (SELECT {_FUNCTION}, position, 1 AS miss, call, seconds.total AS seconds, "
        f"coalesce(persistent_cache = 'hit', false) AS hit, signature FROM cache_miss_ UNION ALL {others}) "
        f"GROUP BY {_FUNCTION} ORDER BY min(position)"
    )
    room = SIGNATURES_KEPT_IN_ALL
    for number, function, definition, records, misses, call, seconds, hits, signatures in rows(found, figures):
        one = builder.processes.figures(builder.processes.all[number], function, definition, records)
        one.events += misses
        one.largest_call = max(one.largest_call, call)
        one.seconds += seconds
        one.from_disk += hits
        kept = min(signatures, room, SIGNATURES_KEPT - one.distinct)
        one.distinct, room = one.distinct + kept, room - kept
    last = f"SELECT max(position) FROM function_stats_ GROUP BY {_FUNCTION}"
    told = f"SELECT {_FUNCTION}, {', '.join(_STATS)} FROM function_stats_ WHERE position IN ({last}) ORDER BY position"
    for number, function, definition, *values in rows(found, told):
        one = builder.processes.figures(builder.processes.all[number], function, definition, 0)
        stats = {name: value for name, value in zip(_STATS, values, strict=True) if value is not None}
        one.stats = function_stats(stats)


def _add_eager(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    places = (
        "SELECT function, site, process, arg_min_null(via, position), count(*), sum(seconds), "
        "arg_min(seconds, position), count_if(coalesce(persistent_cache = 'hit', false)) "
        "FROM eager_compile_ GROUP BY function, site, process ORDER BY min(position)"
    )
    for function, site, process, via, count, seconds, first, hits in rows(found, places):
        builder.eager.add_all(function, site, process, via, Compiles(count, seconds, first, hits))


def _add_stored(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add the look-ups in JAX's persistent cache; of keys only those of signatures that had several."""
    done = (
        "SELECT hit, why, count(*), sum(seconds) FROM ("
        "SELECT position, coalesce(persistent_cache = 'hit', false) AS hit, "
        "CASE WHEN NOT hit THEN disk.not_stored END AS why, "
        "CASE WHEN hit THEN coalesce(disk.saved_seconds, 0) ELSE seconds.total END AS seconds "
        "FROM cache_miss_ WHERE disk IS NOT NULL) GROUP BY hit, why ORDER BY min(position)"
    )
    for hit, why, count, seconds in rows(found, done):
        builder.stored.count(from_disk=hit, not_stored=why, programs=count, seconds=seconds)
    entry = "function, definition, signature"
    keys = (
        f"WITH last AS (SELECT {entry}, process, arg_max(disk.key, position) AS key, min(position) AS first "
        f"FROM cache_miss_ WHERE disk.key IS NOT NULL GROUP BY {entry}, process), "
        f"entries AS (SELECT {entry}, count(DISTINCT key) AS keys, min(first) AS first FROM last GROUP BY {entry} "
        f"ORDER BY first LIMIT {ENTRIES}) "
        f"SELECT {entry}, min(process), key FROM last JOIN entries USING ({entry}) WHERE keys > 1 "
        f"GROUP BY {entry}, key, entries.first ORDER BY entries.first"
    )
    for function, definition, signature, process, key in rows(found, keys):
        builder.stored.keep((function, definition, signature), process, key)


def _add_slow(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add the slowest program of each function."""
    each = "function, definition"
    slowest = (
        f"SELECT {each}, seconds.total, program.equations, program.lines[1].name, program.lines[1].equations "
        "FROM cache_miss_ WHERE program.lines[1].name <> '' "
        f"QUALIFY row_number() OVER (PARTITION BY {each} ORDER BY seconds.total DESC, position) = 1 "
        f"ORDER BY seconds.total DESC, {each} LIMIT {_limits.SLOW_PROGRAMS}"
    )
    for function, definition, seconds, equations, line, of_line in rows(found, slowest):
        builder.slow.add(
            SlowProgram(
                function=function,
                definition=definition,
                seconds=seconds,
                equations=equations,
                line=line,
                of_line=of_line,
            )
        )


def _add_notes(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add failed traces, broken guards, and advice on programs."""
    told = "SELECT function, definition, position, seconds.total AS seconds, program.advice AS own, advice"
    notes = (
        "SELECT 'trace_error' AS kind, function, site AS place, error AS what, NULL AS most, seconds, position, "
        "0 AS part FROM trace_error_ UNION ALL "
        "SELECT 'violation', function, '', action, \"limit\", 0, position, 0 FROM violation_ UNION ALL "
        "SELECT 'advice', function, definition, one.text, NULL, seconds, position, part FROM "
        f"(SELECT *, unnest(advice) AS one, generate_subscripts(advice, 1) AS part FROM ({told} FROM cache_miss_)) "
        "WHERE list_contains(own, one.text)"
    )
    grouped = (
        f"SELECT kind, function, place, what, most, count(*), sum(seconds) FROM ({notes}) "
        "GROUP BY kind, function, place, what, most ORDER BY min((position, part))"
    )
    for kind, function, place, what, most, count, seconds in rows(found, grouped):
        told_what = what if most is None else f"{what}, limit {most}"
        builder.note(kind, function, place, told_what, count=count, seconds=seconds)
