"""The columns of each kind of event, read off the events' own annotations: there is no second list of them."""

import datetime as dt
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from jaxwatch import events
from jaxwatch._records import LONGEST_LIST, TEXT_CHARACTERS, Record

Structure = str | list[Any] | dict[str, Any]
"""A type as DuckDB's ``from_json`` takes it: a name, a list of one, or names of fields → types."""

SIGNED = frozenset({"exit_code", "saved_seconds"})
"""Numbers that may be below 0."""

_SCALARS = {str: "VARCHAR", int: "BIGINT", float: "DOUBLE", bool: "BOOLEAN"}


_INTEGERS = range(-(2**63), 2**63)
_LARGEST_FLOAT = 1e300


class Column(NamedTuple):
    """A field of an event."""

    annotation: Any
    needed: bool  # no line of this kind is without it


def kinds() -> dict[str, dict[str, Column]]:
    """Return kind of event → its columns, in the log's order."""
    return {kind.kind: dict(_columns(kind)) for kind in events.Event.__subclasses__()}


def _columns(kind: type) -> Iterator[tuple[str, Column]]:
    hints = get_type_hints(kind)
    for one in fields(kind):  # each event is a dataclass
        if one.name != "origin":
            yield one.name, Column(hints[one.name], _needed(one))
            continue
        yield "time", Column(dt.datetime, needed=True)
        for part in fields(events.Origin):
            if part.name != "unix_seconds":
                yield part.name, Column(get_type_hints(events.Origin)[part.name], _needed(part))


def _needed(field: "Field[Any]") -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def structure(annotation: Any) -> Structure:
    """Return the type of a field in DuckDB; a time is a text here, as in the log."""
    annotation = _without_none(annotation)
    if get_origin(annotation) is Literal or annotation is dt.datetime:
        return "VARCHAR"
    if get_origin(annotation) is tuple:
        return [structure(get_args(annotation)[0])]
    if is_dataclass(annotation):
        return {name: structure(part) for name, part in members(annotation).items()}
    if get_origin(annotation) is dict and (value := get_args(annotation)[1]) in _SCALARS:
        return f"MAP(VARCHAR, {_SCALARS[value]})"
    return _SCALARS.get(annotation, "JSON")


def members(annotation: Any) -> dict[str, Any]:
    """Return the fields of a dataclass within an event, as the log has them."""
    hints = get_type_hints(annotation)
    found = {one.name: hints[one.name] for one in fields(annotation)}
    return {**found, "total": float} if annotation is events.PhaseSeconds else found


def never_null(annotation: Any) -> Iterator[str]:
    """Yield the names of the fields within that hold a value wherever they are."""
    annotation = _without_none(annotation)
    if get_origin(annotation) is tuple:
        yield from never_null(get_args(annotation)[0])
    elif is_dataclass(annotation):
        for name, part in members(annotation).items():
            if not optional(part):
                yield name
            yield from never_null(part)


def optional(annotation: Any) -> bool:
    """Return whether a field may be null."""
    return type(None) in get_args(annotation)


def _without_none(annotation: Any) -> Any:
    if get_origin(annotation) in (Union, types.UnionType):
        return next(part for part in get_args(annotation) if part is not type(None))
    return annotation


def fitted(record: Record, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Return the record as the columns can hold it: what is not of a field's type is null, what is too long is cut."""
    return {name: fit(record.get(name), column.annotation) for name, column in columns.items()}


def fit(value: Any, annotation: Any) -> Any:  # noqa: PLR0911 -- one for each kind of type
    """Return a value of a field, None where it is not of its type."""
    kind = _without_none(annotation)
    if kind is dt.datetime:
        return _time(value)
    if kind is str or get_origin(kind) is Literal:
        return plain(value)[:TEXT_CHARACTERS] if isinstance(value, str) else None
    if kind is bool:
        return value if isinstance(value, bool) else None
    if kind in (int, float):
        return _number(value, kind)
    if get_origin(kind) is tuple:
        return _items(value, get_args(kind)[0]) if isinstance(value, list | tuple) else None
    if not isinstance(value, Mapping):
        return None if is_dataclass(kind) or get_origin(kind) is dict else _json(value)
    if is_dataclass(kind):
        return {name: fit(value.get(name), part) for name, part in members(kind).items()}
    part = get_args(kind)[1]
    if part not in _SCALARS:
        return _json(value)
    found = {plain(str(name)): fit(one, part) for name, one in value.items()}
    return {name: one for name, one in found.items() if one is not None}


def plain(text: str) -> str:
    r"""Return a text that UTF-8 can hold: half a surrogate pair becomes its escape, as ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode()


def _json(value: Any) -> Any:
    """Return a value of JSON as DuckDB reads it too: no NaN, and only texts that UTF-8 can hold."""
    if isinstance(value, Mapping):
        return {plain(name): _json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json(part) for part in value]
    if isinstance(value, float):
        return _number(value, float)
    return plain(value) if isinstance(value, str) else value


def _number(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind is int:
        return value if isinstance(value, int) and value in _INTEGERS else None
    return float(value) if abs(value) < _LARGEST_FLOAT else None


def _items(value: list[Any] | tuple[Any, ...], part: Any) -> list[Any]:
    found = (fit(one, part) for one in value[:LONGEST_LIST])
    return [one for one in found if one is not None]


def _time(value: Any) -> str | None:
    try:
        moment = dt.datetime.fromisoformat(value)
        return moment.replace(tzinfo=moment.tzinfo or dt.UTC).astimezone(dt.UTC).isoformat(timespec="microseconds")
    except (TypeError, ValueError, OverflowError):
        return None
