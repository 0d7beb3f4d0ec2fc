"""The condition, in SQL, under which a line's columns hold it exactly and a report takes it as well formed.

``s`` is the line as DuckDB took it over, ``j`` its JSON written anew, ``text`` the line itself. What is not certain
here is read by Python; that costs time alone.
"""

from collections.abc import Iterator, Mapping

from jaxwatch._columnar import schema
from jaxwatch._columnar.duck import quoted
from jaxwatch._columnar.schema import SIGNED, Column, structure
from jaxwatch._records import LONGEST_LIST, MOST_BUCKETS, MOST_SECONDS, TEXT_CHARACTERS

_TIME = r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}\+00:00"


def exactly(columns: Mapping[str, Column]) -> str:
    """Return the condition under which a line is what its columns say, and what a report takes as well formed."""
    named = sorted({name for column in columns.values() for name in schema.never_null(column.annotation)})
    conditions = [
        "CAST(to_json(s) AS VARCHAR) = j",
        "NOT contains(j, ',null') AND NOT contains(j, '[null')",
        r"NOT regexp_matches(text, ',\s*[\]}]')",  # DuckDB reads a comma before the end, Python does not
        f"regexp_full_match(s.time, {quoted(_TIME)}) AND TRY_CAST(s.time AS TIMESTAMPTZ) IS NOT NULL",
    ]
    if named:
        conditions.append(f"NOT regexp_matches(j, '\"({'|'.join(named)})\":null')")
    for name, column in columns.items():
        field = f's."{name}"'
        if not schema.optional(column.annotation):
            conditions.append(f"{field} IS NOT NULL")
        conditions += _ranges(field, structure(column.annotation))
    if "reasons" in columns:
        conditions.append("len(s.reasons) > 0")
    if "dispatch" in columns:
        conditions.append(_dispatch("s.dispatch"))
    return " AND ".join(f"({condition})" for condition in conditions)


def _ranges(field: str, form: schema.Structure) -> Iterator[str]:
    name = field.rpartition(".")[2].strip('"')
    if form == "VARCHAR":
        yield f"coalesce(len({field}), 0) <= {TEXT_CHARACTERS}"
    elif form in ("BIGINT", "DOUBLE"):
        low = -MOST_SECONDS if form == "DOUBLE" else "-9223372036854775808"
        most = f"< {MOST_SECONDS}" if form == "DOUBLE" else "<= 9223372036854775807"
        yield f"coalesce({field}, 0) >= {low if name in SIGNED else 0} AND coalesce({field}, 0) {most}"
    elif isinstance(form, str) and form.startswith("MAP"):
        longest = MOST_BUCKETS if name == "dispatch" else LONGEST_LIST
        yield f"coalesce(cardinality({field}), 0) <= {longest}"
        within = f"coalesce(one >= 0 AND one < {MOST_SECONDS}, false)"
        yield f"len(list_filter(map_values({field}), lambda one: NOT {within})) = 0"
        yield f"len(list_filter(map_keys({field}), lambda one: len(one) > {TEXT_CHARACTERS})) = 0"
    elif isinstance(form, list):
        yield f"coalesce(len({field}), 0) <= {LONGEST_LIST}"
        yield f"length(CAST(to_json({field}) AS VARCHAR)) <= {TEXT_CHARACTERS} OR {_short_texts(field, form[0])}"
    elif isinstance(form, dict):
        for part, of in form.items():
            yield from _ranges(f'{field}."{part}"', of)


def _short_texts(field: str, item: schema.Structure) -> str:
    """Return the condition that no text of a list's items is too long; false where that is not easily said."""
    texts = {"VARCHAR": ["one"]}.get(item) if isinstance(item, str) else None
    if isinstance(item, dict) and all(of == "VARCHAR" for of in item.values()):
        texts = [f'one."{name}"' for name in item]
    if texts is None:
        return "false"
    longest = " AND ".join(f"coalesce(len({text}), 0) <= {TEXT_CHARACTERS}" for text in texts)
    return f"len(list_filter({field}, lambda one: NOT ({longest}))) = 0"


def _dispatch(field: str) -> str:
    bound = "coalesce(TRY_CAST(one AS DOUBLE) BETWEEN 0 AND 1e300, false) AND NOT regexp_matches(one, '[^0-9.e+-]')"
    return f"len(list_filter(map_keys({field}), lambda one: NOT ({bound}))) = 0"
