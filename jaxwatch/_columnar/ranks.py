"""Ranks of jobs in a folder of Parquet files: who is which, and what each compiled as its how-manieth miss."""

from typing import TYPE_CHECKING, Any

from jaxwatch import _divergence
from jaxwatch._columnar.duck import rows
from jaxwatch._columnar.misses import seen_misses
from jaxwatch._report import ReportBuilder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def give_ranks(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Note the rank of each process that has one, and make the table ``ranks`` of them."""
    every = " UNION ALL ".join(
        f"SELECT process, process_index, position FROM {kind}_ WHERE process_index IS NOT NULL"
        for kind in builder.kinds
    )
    first = f"SELECT process, arg_min(process_index, position), min(position) AS since FROM ({every}) GROUP BY process"
    found.execute("CREATE TABLE ranks (process INTEGER, job INTEGER, rank BIGINT, since BIGINT)")
    ranks: list[tuple[Any, ...]] = []
    for number, rank, since in rows(found, f"{first} ORDER BY since"):
        process = builder.processes.all[number]
        builder.processes.give_rank(process, rank)
        ranks.append((number, process.job, rank, since))
    if ranks:
        found.executemany("INSERT INTO ranks VALUES (?, ?, ?, ?)", ranks)


def add_divergences(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add what each rank compiled, as groups of ranks that compiled the same program as the same miss of a function."""
    found.execute(
        "CREATE TABLE alike AS WITH numbered AS (SELECT position, job, rank, function, definition, signature, "
        "fingerprint, epoch_us(time) AS time, row_number() OVER (PARTITION BY process, function, definition ORDER BY "
        "position) AS place FROM cache_miss_ JOIN ranks USING (process) "
        f"WHERE layer <> 'dispatch' AND rank < {_divergence.RANKS} AND position >= since) "
        "SELECT job, place, list(rank) AS ranks, min(time) AS began, min(position) AS first, "
        f"arg_min(position, rank) AS position FROM numbered WHERE place <= {_divergence.PLACES} "
        "GROUP BY job, function, definition, place, signature, fingerprint"
    )
    if not found.execute("SELECT count(*) FROM alike").fetchall()[0][0]:
        return
    groups = seen_misses(found, "alike", "job, place, ranks, began")
    for miss, (job, place, ranks, began) in groups:
        builder.divergences.add_all(place, miss, job, ranks, began / 1e6)
