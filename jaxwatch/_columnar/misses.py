"""Single misses out of a folder of Parquet files, as a report sees them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxwatch import _records
from jaxwatch._columnar.duck import rows
from jaxwatch._records import SeenMiss

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_FIELDS = (
    "id", "function", "definition", "site", "via", "call", "layer", "reasons", "changes", "compared_with", "seconds",
    "persistent_cache", "signature", "abstract", "fingerprint", "advice", "program", "disk",
)  # fmt: skip


def seen_misses(found: "DuckDBPyConnection", table: str, beside: str) -> Iterator[tuple[SeenMiss, tuple[Any, ...]]]:
    """Yield the misses at the ``position`` of each row of a table, with columns of the row, in the order of ``first``.

    Args:
        found: An opened folder.
        table: Its name.
        beside: Names of further columns of it.
    """
    fields = ", ".join(f"cache_miss_.{name}" for name in _FIELDS)
    query = f"SELECT {beside}, {fields} FROM {table} JOIN cache_miss_ USING (position) ORDER BY first"
    columns = beside.count(",") + 1
    for row in rows(found, query):
        yield _records.miss(dict(zip(_FIELDS, row[columns:], strict=True))), row[:columns]
