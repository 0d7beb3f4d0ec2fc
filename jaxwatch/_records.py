"""What a report needs of each record, checked: a log may have been cut, edited, or written by something else."""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

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
    return value[:TEXT_CHARACTERS]


def text_or_none(record: Record, key: str) -> str | None:
    """Return a text field that may be null or missing."""
    return None if record.get(key) is None else text(record, key)


def whole(record: Record, key: str) -> int:
    """Return a whole number from 0."""
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST_NUMBER:
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
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedError(key)
    if not 0 <= value < MOST_SECONDS:  # false for NaN too
        raise MalformedError(key)
    return float(value)


def unix_seconds(record: Record) -> float:
    """Return the event's ``time`` in seconds since 1970."""
    try:
        moment = dt.datetime.fromisoformat(text(record, "time"))
        return moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise MalformedError("time") from error


def dispatch(record: Record) -> dict[float, int]:
    """Return the latency histogram: upper bound in seconds → calls."""
    value = record.get("dispatch", {})
    if not isinstance(value, Mapping) or len(value) > MOST_BUCKETS:
        raise MalformedError("dispatch")
    try:
        counts = {float(bound): whole(value, bound) for bound in value}
    except (ValueError, TypeError) as error:
        raise MalformedError("dispatch") from error
    if not all(math.isfinite(bound) and bound >= 0 for bound in counts):
        raise MalformedError("dispatch")
    return {bound: count for bound, count in counts.items() if count}


@dataclass(frozen=True, slots=True)
class SeenStats:
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


@dataclass(frozen=True, slots=True)
class SeenChange:
    """One difference between two keys, as the log tells it."""

    reason: str
    path: str | None
    before: str | None
    after: str | None
    note: str | None


@dataclass(frozen=True, slots=True)
class SeenDisk:
    """What became of a look-up in JAX's persistent cache, as the log tells it."""

    key: str | None
    saved_seconds: float
    not_stored: str | None


@dataclass(frozen=True, slots=True)
class SeenMiss:
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


def miss(record: Record) -> SeenMiss:
    """Return the record of a ``cache_miss``."""
    phases = record.get("seconds")
    if not isinstance(phases, Mapping):
        raise MalformedError("seconds")
    reasons = record.get("reasons")
    if not isinstance(reasons, list | tuple) or not reasons or not all(isinstance(reason, str) for reason in reasons):
        raise MalformedError("reasons")
    advice = [(text(item, "code"), text(item, "text")) for item in _mappings(record, "advice")]
    program = record.get("program")
    on_program = program.get("advice") if isinstance(program, Mapping) else None
    if not isinstance(on_program, list | tuple):
        on_program = ()
    return SeenMiss(
        number=whole(record, "id"),
        function=text(record, "function"),
        definition=text(record, "definition"),
        site=text(record, "site"),
        via=text_or_none(record, "via"),
        call=whole(record, "call"),
        layer=text(record, "layer"),
        reasons=tuple(reason[:TEXT_CHARACTERS] for reason in reasons[:LONGEST_LIST]),
        changes=tuple(_change(item) for item in _mappings(record, "changes")),
        compared_with=whole_or_none(record, "compared_with"),
        seconds=seconds(phases, "total"),
        before_xla=(seconds(phases, "trace"), seconds(phases, "lower")),
        from_disk=record.get("persistent_cache") == "hit",
        disk_result=text_or_none(record, "persistent_cache"),
        signature=text(record, "signature"),
        abstract=text(record, "abstract"),
        fingerprint=text_or_none(record, "fingerprint"),
        advice=tuple((code, told) for code, told in advice if told not in on_program),
        on_program=tuple(told for _, told in advice if told in on_program),
        disk=_disk(record.get("disk")),
        made_of=_made_of(program),
    )


def _made_of(program: Any) -> tuple[int, str, int] | None:
    lines = program.get("lines") if isinstance(program, Mapping) else None
    if not isinstance(lines, list | tuple) or not lines or not isinstance(lines[0], Mapping):
        return None  # of an earlier version, or by a JAX that does not show it
    line = text(lines[0], "name")
    return (whole(program, "equations"), line, whole(lines[0], "equations")) if line else None


def _disk(value: Any) -> SeenDisk | None:
    if not isinstance(value, Mapping):
        return None  # the cache was off, or the log is of an earlier version
    saved = value.get("saved_seconds")
    # it may be below 0: where reading took longer than compiling had
    if isinstance(saved, bool) or not isinstance(saved, int | float) or not abs(saved) < MOST_SECONDS:
        saved = 0.0
    return SeenDisk(text_or_none(value, "key"), float(saved), text_or_none(value, "not_stored"))


def _change(item: Record) -> SeenChange:
    before, after = text_or_none(item, "before"), text_or_none(item, "after")
    return SeenChange(text(item, "reason"), text_or_none(item, "path"), before, after, text_or_none(item, "note"))


def _mappings(record: Record, key: str) -> list[Record]:
    value = record.get(key)
    if not isinstance(value, list | tuple) or not all(isinstance(item, Mapping) for item in value):
        raise MalformedError(key)
    return list(value[:LONGEST_LIST])
