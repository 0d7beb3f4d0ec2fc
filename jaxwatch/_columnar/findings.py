"""What was compiled again, and why, out of a folder of Parquet files: a finding for each cause."""

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jaxwatch import _findings
from jaxwatch._columnar.duck import rows
from jaxwatch._columnar.misses import seen_misses
from jaxwatch._findings import OTHER, Cause, Finding, Values, cause_of, most_first
from jaxwatch._report import ReportBuilder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# What makes two misses one finding, as ``_findings.cause_of`` has it.
_CAUSE = (
    "(off, function, definition, reason, list_sort(list_distinct(list_transform(changes, lambda one: "
    "{'reason': one.reason, 'what': coalesce(nullif(one.path, ''), nullif(one.note, ''), '')}))), "
    "CASE WHEN reason = 'static' THEN advised.code END)"
)


def add_findings(found: "DuckDBPyConnection", builder: ReportBuilder) -> None:
    """Add the findings, and the seconds that went into what was compiled before under another key."""
    _make_again(found)
    ((seconds,),) = found.execute("SELECT coalesce(sum(total), 0)::DOUBLE FROM again WHERE NOT off").fetchall()
    builder.again_seconds += seconds
    most = _findings.FINDINGS
    ((builder.findings.folded,),) = found.execute(f"SELECT count(*) FROM again WHERE cause > {most}").fetchall()
    calls, compared = _kept(found, "call", _findings.CALLS_KEPT), _kept(found, "compared_call", _findings.CALLS_KEPT)
    sites, values = _kept(found, "site", _findings.SITES_KEPT), _values(found)
    found.execute(
        "CREATE TABLE causes AS SELECT cause, min(position) AS first, first AS position, count(*) AS count, "
        "sum(total) AS total, sum(trace) AS trace, sum(lower) AS lower, count_if(hit) AS hits, "
        "count(DISTINCT process) AS processes, arg_min(nullif(via, ''), position) AS through, "
        "arg_max(advised, position) AS last FROM again GROUP BY cause"
    )
    beside = "cause, count, total, trace, lower, hits, processes, through, last"
    for miss, (cause, count, total, trace, lower, hits, processes, via, last) in seen_misses(found, "causes", beside):
        is_other = cause > most
        named = cause_of(miss)
        if is_other:
            named = Cause(named.kind, OTHER, "", OTHER, ())
        builder.findings.add_gathered(
            Finding(
                cause=named,
                values=() if named.function == OTHER and not named.definition else tuple(values[cause]),
                count=count,
                seconds=total,
                from_disk=hits,
                calls=tuple(sorted(calls[cause])),
                calls_left_out=count - sum(calls[cause].values()),
                compared_with=tuple(sorted(compared[cause])),
                sites=most_first(sites[cause].items()),
                sites_left_out=count - sum(sites[cause].values()),
                processes=min(processes, _findings.PROCESSES_KEPT),
                advice=None if last is None else (last["code"], last["text"]),
                before_xla=(trace, lower),
                via=via,
            )
        )


def _make_again(found: "DuckDBPyConnection") -> None:
    """Make the table ``again``: the misses that are of a finding, each with the number of its cause.

    Causes have the numbers 1, 2, … in the order in which they came. Beyond the bound all have the same number, one for
    recompiles and one for calls off the fast path.
    """
    found.execute(
        "CREATE TABLE misses AS SELECT position, process, id, call, compared_with, site, via, function, definition, "
        "layer = 'dispatch' AS off, reasons[1] AS reason, changes, seconds.total AS total, seconds.trace AS trace, "
        "seconds.lower AS lower, coalesce(persistent_cache = 'hit', false) AS hit, list_filter(advice, lambda one: "
        "NOT coalesce(list_contains(program.advice, one.text), false))[1] AS advised "
        "FROM cache_miss_ WHERE layer = 'dispatch' OR reasons[1] <> 'first_call'"
    )
    # the call that a miss was compared with: known where its process told it before, and has not ended since
    found.execute(
        "CREATE TABLE calls AS SELECT misses.position, arg_max(earlier.call, earlier.position) AS call FROM misses "
        "JOIN cache_miss_ AS earlier ON earlier.process = misses.process AND earlier.id = misses.compared_with "
        "AND earlier.position < misses.position WHERE NOT EXISTS (SELECT 1 FROM run_ AS ends WHERE ends.phase = 'end' "
        "AND ends.process = misses.process AND ends.position > earlier.position AND ends.position < misses.position) "
        "GROUP BY misses.position"
    )
    most = _findings.FINDINGS
    found.execute(
        f"CREATE TABLE again AS WITH caused AS (SELECT *, {_CAUSE} AS what FROM misses), "
        "numbers AS (SELECT what, row_number() OVER (ORDER BY min(position)) AS number FROM caused GROUP BY what) "
        f"SELECT caused.* EXCLUDE (what), CASE WHEN number <= {most} THEN number WHEN off THEN {most + 2} "
        f"ELSE {most + 1} END AS cause, calls.call AS compared_call "
        "FROM caused JOIN numbers USING (what) LEFT JOIN calls USING (position)"
    )


def _kept(found: "DuckDBPyConnection", column: str, most: int) -> defaultdict[int, dict[Any, int]]:
    """Return cause → the first few distinct values of a column, and how often each came."""
    query = (
        f"SELECT cause, {column}, count(*) FROM again WHERE {column} IS NOT NULL GROUP BY cause, {column} "
        f"QUALIFY row_number() OVER (PARTITION BY cause ORDER BY min(position)) <= {most} ORDER BY min(position)"
    )
    kept: defaultdict[int, dict[Any, int]] = defaultdict(dict)
    for cause, value, count in rows(found, query):
        kept[cause][value] = count
    return kept


def _values(found: "DuckDBPyConnection") -> defaultdict[int, list[Values]]:
    """Return cause → what differed, by path, in the order in which the misses tell it."""
    # what a miss tells as its how-manieth change stands at 128 * position + number; there are 100 at most
    found.execute(
        "CREATE TABLE parts AS SELECT cause, (position << 7) + part AS spot, one.* FROM (SELECT cause, position, "
        "unnest(changes) AS one, generate_subscripts(changes, 1) AS part FROM again "
        f"WHERE cause <= {_findings.FINDINGS})"
    )
    reasons: defaultdict[tuple[int, str | None], list[str]] = defaultdict(list)
    told = "SELECT cause, path, reason FROM parts GROUP BY cause, path, reason ORDER BY min(spot)"
    for cause, path, reason in rows(found, told):
        reasons[cause, path].append(reason)
    pairs, left_out = _pairs(found)
    values: defaultdict[int, list[Values]] = defaultdict(list)
    told = "SELECT cause, path, arg_min_null(note, spot) FROM parts GROUP BY cause, path ORDER BY min(spot)"
    for cause, path, note in rows(found, told):
        key = cause, path
        values[cause].append(
            Values(
                path=path,
                reasons=tuple(reasons[key]),
                pairs=tuple(pairs[key]),
                left_out=left_out.get(key, 0),
                note=note,
            )
        )
    return values


Pairs = defaultdict[tuple[int, str | None], list[tuple[str | None, str | None]]]


def _pairs(found: "DuckDBPyConnection") -> tuple[Pairs, dict[tuple[int, str | None], int]]:
    """Return cause and path → the first few distinct pairs of before and after; and how many misses had others."""
    found.execute(
        "CREATE TABLE pairs AS WITH every AS (SELECT cause, path, before, after, count(*) AS count, min(spot) AS first "
        "FROM parts WHERE before IS NOT NULL OR after IS NOT NULL GROUP BY cause, path, before, after), "
        "ranked AS (SELECT *, row_number() OVER (PARTITION BY cause, path ORDER BY first) AS rank FROM every) "
        f"SELECT *, rank <= {_findings.PAIRS_KEPT} AND row_number() OVER ("
        f"PARTITION BY rank <= {_findings.PAIRS_KEPT} ORDER BY first) <= {_findings.PAIRS_KEPT_IN_ALL} AS kept "
        "FROM ranked"
    )
    pairs: Pairs = defaultdict(list)
    for cause, path, before, after in rows(
        found, "SELECT cause, path, before, after FROM pairs WHERE kept ORDER BY first"
    ):
        pairs[cause, path].append((before, after))
    others = "SELECT cause, path, sum(count)::BIGINT FROM pairs WHERE NOT kept GROUP BY cause, path"
    return pairs, {(cause, path): count for cause, path, count in rows(found, others)}
