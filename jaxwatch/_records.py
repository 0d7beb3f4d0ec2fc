"""What a report needs of each record, checked: a log may have been cut, edited, or written by something else."""

import datetime as dt
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeGuard, TypeVar

Record = Mapping[str, Any]
T = TypeVar("T")

TEXT_CHARACTERS = 2_000  # ten times the longest text that jaxwatch writes
_LARGEST_NUMBER = 2**63
MOST_SECONDS = 1e10  # three hundred years; a sum of many stays finite
LONGEST_LIST = 100
MOST_BUCKETS = 2_000  # four times what a histogram of ours has


class MalformedError(ValueError):
    """A field of a record is missing, or is not of its kind."""


def text(record: Record, key: str) -> str:
    """Return a text field, cut where it is absurdly long."""
    value = record.get(key)
    if not isinstance(value, str):
        raise MalformedError(key)
    return value if len(value) <= TEXT_CHARACTERS else value[:TEXT_CHARACTERS]


def text_or_none(record: Record, key: str) -> str | None:
    """Return a text field that may be null or missing."""
    value = record.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise MalformedError(key)
    return value if len(value) <= TEXT_CHARACTERS else value[:TEXT_CHARACTERS]


def whole(record: Record, key: str) -> int:
    """Return a whole number from 0."""
    value = record.get(key)
    if type(value) is not int or not 0 <= value < _LARGEST_NUMBER:  # a bool is none
        raise MalformedError(key)
    return value


def whole_or_none(record: Record, key: str) -> int | None:
    """Return a whole number from 0 that may be null or missing."""
    return None if record.get(key) is None else whole(record, key)


def exit_code(record: Record) -> int | None:
    """Return the exit code, which may be negative, null or missing."""
    value = record.get("exit_code")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST_NUMBER <= value < _LARGEST_NUMBER:
        raise MalformedError("exit_code")
    return value


def seconds(record: Record, key: str) -> float:
    """Return a duration in seconds, from 0 and finite."""
    value = record.get(key)
    if type(value) is not float and type(value) is not int:  # a bool is none
        raise MalformedError(key)
    if not 0 <= value < MOST_SECONDS:  # false for NaN too
        raise MalformedError(key)
    return float(value)


def unix_seconds(record: Record) -> float:
    """Return the event's ``time`` in seconds since 1970."""
    try:
        moment = dt.datetime.fromisoformat(text(record, "time"))
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedError("time") from error


def dispatch(record: Record) -> dict[float, int]:
    """Return the latency histogram: upper bound in seconds → calls."""
    value = record.get("dispatch", {})
    if not isinstance(value, Mapping) or len(value) > MOST_BUCKETS:
        raise MalformedError("dispatch")
    bounds, numbers = _bounds(tuple(value)), value.values()
    if numbers and (set(map(type, numbers)) != {int} or min(numbers) < 0 or max(numbers) >= _LARGEST_NUMBER):
        raise MalformedError("dispatch")
    return {bound: count for bound, count in zip(bounds, numbers, strict=True) if count}


@functools.lru_cache(maxsize=64)  # histograms have mostly the same bounds
def _bounds(texts: tuple[Any, ...]) -> tuple[float, ...]:
    try:
        bounds = tuple(map(float, texts))
    except (ValueError, TypeError) as error:
        raise MalformedError("dispatch") from error
    if not all(math.isfinite(bound) and bound >= 0 for bound in bounds):
        raise MalformedError("dispatch")
    return bounds


class SeenStats(NamedTuple):
    """A ``function_stats``, as far as a report needs it; what an earlier version did not write is nothing."""

    calls: int
    misses: int
    signatures: int
    dispatch: dict[float, int]  # upper bound in seconds → calls
    inlined: dict[str, int]  # outer function → calls
    inlined_read: int
    inlined_keys: int
    touched: int | None


def function_stats(record: Record) -> SeenStats:
    """Return the record of a ``function_stats``."""
    return SeenStats(
        calls=whole(record, "calls"),
        misses=whole(record, "misses"),
        signatures=whole(record, "signatures"),
        dispatch=dispatch(record),
        inlined={} if record.get("inlined") is None else counts(record, "inlined", whole),
        inlined_read=whole_or_none(record, "inlined_read") or 0,
        inlined_keys=whole_or_none(record, "inlined_keys") or 0,
        touched=whole_or_none(record, "touched"),
    )


class SeenChange(NamedTuple):
    """One difference between two keys, as the log tells it."""

    reason: str
    path: str | None
    before: str | None
    after: str | None
    note: str | None


class SeenDisk(NamedTuple):
    """What became of a look-up in JAX's persistent cache, as the log tells it."""

    key: str | None
    saved_seconds: float
    not_stored: str | None


class SeenMiss(NamedTuple):
    """A ``cache_miss``, as far as a report needs it."""

    number: int  # its id in its process
    function: str
    definition: str
    site: str
    via: str | None
    call: int
    layer: str
    reasons: tuple[str, ...]
    changes: tuple[SeenChange, ...]
    compared_with: int | None
    seconds: float
    before_xla: tuple[float, float]  # the part of them that went into tracing and lowering
    from_disk: bool
    disk_result: str | None  # hit, miss; None where the persistent cache is off
    signature: str
    abstract: str
    fingerprint: str | None
    advice: tuple[tuple[str, str], ...]  # code and text, on what changed
    on_program: tuple[str, ...]  # advice on what was compiled
    disk: SeenDisk | None
    made_of: tuple[int, str, int] | None  # equations; the line that most come from, and how many; None: not known

    @property
    def is_recompile(self) -> bool:
        """As ``CacheMiss.is_recompile``."""
        return self.layer != "dispatch" and self.reasons[0] != "first_call"


def counts(record: Record, key: str, number: Callable[[Record, str], T]) -> dict[str, T]:
    """Return a field of texts → numbers, each read by ``number``: ``whole`` or ``seconds``."""
    value = record.get(key)
    if not isinstance(value, Mapping) or len(value) > LONGEST_LIST:
        raise MalformedError(key)
    return {str(name)[:TEXT_CHARACTERS]: number(value, name) for name in value}


# Read all at once, where all are there and of their kind: a field at a time takes three times as long.
_TEXTS = ("function", "definition", "site", "layer", "signature", "abstract")
_SECONDS = ("total", "trace", "lower")
_CHANGE = ("reason", "path", "before", "after", "note")
_get_texts, _get_seconds, _get_change = itemgetter(*_TEXTS), itemgetter(*_SECONDS), itemgetter(*_CHANGE)


def miss(record: Record) -> SeenMiss:
    """Return the record of a ``cache_miss``."""
    phases = record.get("seconds")
    if not _is_mapping(phases):
        raise MalformedError("seconds")
    reasons = record.get("reasons")
    if not isinstance(reasons, list | tuple) or not reasons:
        raise MalformedError("reasons")
    for reason in reasons:
        if not isinstance(reason, str):
            raise MalformedError("reasons")
    advice = [(text(item, "code"), text(item, "text")) for item in _mappings(record, "advice")]
    program = record.get("program")
    on_program = program.get("advice") if _is_mapping(program) else None
    if not isinstance(on_program, list | tuple):
        on_program = ()
    result = text_or_none(record, "persistent_cache")
    function, definition, site, layer, signature, abstract = _texts(record)
    total, trace, lower = _phases(phases)
    return SeenMiss(
        number=whole(record, "id"),
        function=function,
        definition=definition,
        site=site,
        via=text_or_none(record, "via"),
        call=whole(record, "call"),
        layer=layer,
        reasons=tuple([reason[:TEXT_CHARACTERS] for reason in reasons[:LONGEST_LIST]]),
        changes=tuple([_change(item) for item in _mappings(record, "changes")]),
        compared_with=whole_or_none(record, "compared_with"),
        seconds=total,
        before_xla=(trace, lower),
        from_disk=result == "hit",
        disk_result=result,
        signature=signature,
        abstract=abstract,
        fingerprint=text_or_none(record, "fingerprint"),
        advice=tuple([one for one in advice if one[1] not in on_program]) if advice else (),
        on_program=tuple([told for _, told in advice if told in on_program]) if advice else (),
        disk=_disk(record.get("disk")),
        made_of=_made_of(program),
    )


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return type(value) is dict or isinstance(value, Mapping)  # the latter is slow


def _texts(record: Record) -> Sequence[str]:
    try:
        values: tuple[Any, ...] = _get_texts(record)
    except KeyError as error:
        raise MalformedError(*error.args) from error
    for value in values:
        if type(value) is not str or len(value) > TEXT_CHARACTERS:
            return [text(record, key) for key in _TEXTS]
    return values


def _phases(phases: Record) -> Sequence[float]:
    try:
        values: tuple[Any, ...] = _get_seconds(phases)
    except KeyError as error:
        raise MalformedError(*error.args) from error
    for value in values:
        if type(value) is not float or not 0 <= value < MOST_SECONDS:
            return [seconds(phases, key) for key in _SECONDS]
    return values


def _made_of(program: Any) -> tuple[int, str, int] | None:
    lines = program.get("lines") if _is_mapping(program) else None
    if not isinstance(lines, list | tuple) or not lines or not _is_mapping(lines[0]):
        return None  # of an earlier version, or by a JAX that does not show it
    line = text(lines[0], "name")
    return (whole(program, "equations"), line, whole(lines[0], "equations")) if line else None


def _disk(value: Any) -> SeenDisk | None:
    if not _is_mapping(value):
        return None  # the cache was off, or the log is of an earlier version
    saved = value.get("saved_seconds")
    # it may be below 0: where reading took longer than compiling had
    if isinstance(saved, bool) or not isinstance(saved, int | float) or not abs(saved) < MOST_SECONDS:
        saved = 0.0
    return SeenDisk(text_or_none(value, "key"), float(saved), text_or_none(value, "not_stored"))


def _change(item: Record) -> SeenChange:
    if len(item) == len(_CHANGE):
        try:
            values: tuple[Any, ...] = _get_change(item)
        except KeyError:
            values = (0,)
        for value in values:
            if value is not None and (type(value) is not str or len(value) > TEXT_CHARACTERS):
                break
        else:
            if values[0] is not None:
                return SeenChange(*values)
    before, after = text_or_none(item, "before"), text_or_none(item, "after")
    return SeenChange(text(item, "reason"), text_or_none(item, "path"), before, after, text_or_none(item, "note"))


def _mappings(record: Record, key: str) -> list[Record]:
    value = record.get(key)
    if not isinstance(value, list | tuple):
        raise MalformedError(key)
    for item in value:
        if not _is_mapping(item):
            raise MalformedError(key)
    return list(value[:LONGEST_LIST])
