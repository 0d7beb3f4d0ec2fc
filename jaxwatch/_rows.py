"""The figures of watched functions in a report, and their sums over processes. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from jaxwatch._histogram import quantile

T = TypeVar("T")
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionRow:
    """Figures of one watched function, over all processes.

    Attributes:
        function: Its name.
        definition: ``file:line``; empty for what was folded into "other".
        calls: Calls; at least so many where not ``calls_exact``.
        calls_exact: Whether each process told how often it called the function.
        misses: Calls that did not run straight from the cache.
        signatures: Distinct keys in each process, summed.
        seconds: Tracing, lowering and compiling it.
        from_disk: Misses that JAX's persistent cache served.
        dispatch: ``(upper bound in seconds, calls)`` of the calls from the cache.
        most_misses: The most misses in one process.
        unlogged: Misses that were counted, and whose events are not in the log.
        most_own_calls: The most calls in one process that were not inlined in the trace of another function.
        inlined: ``(outer function, calls)`` that were made while that one was traced.
        inlined_read: Of these calls, those whose key was looked at.
        inlined_keys: Different keys among those, in each process, summed.
        touched: Numbers that one run of its largest program reads and writes at most; None: many, or not known.
    """

    function: str
    definition: str
    calls: int
    calls_exact: bool
    misses: int
    signatures: int
    seconds: float
    from_disk: int
    dispatch: tuple[tuple[float, int], ...]
    most_misses: int
    unlogged: int
    most_own_calls: int = 0
    inlined: tuple[tuple[str, int], ...] = ()
    inlined_read: int = 0
    inlined_keys: int = 0
    touched: int | None = None

    @property
    def own_calls(self) -> int:
        """Calls that were not inlined in the trace of another function."""
        return self.calls - sum(count for _, count in self.inlined)

    def dispatch_quantile(self, q: float) -> float | None:
        """Return the latency in seconds that a share ``q`` of the calls from the cache did not exceed; None of none."""
        return quantile(dict(self.dispatch), q)


def merged_rows(rows: Iterable[FunctionRow]) -> tuple[FunctionRow, ...]:
    """Return one row for each function, dearest first, from rows of different processes."""
    found: dict[tuple[str, str], FunctionRow] = {}
    for row in rows:
        key = row.function, row.definition
        found[key] = _sum(found[key], row) if key in found else row
    return tuple(sorted(found.values(), key=lambda row: (-row.seconds, -row.misses, row.function, row.definition)))


def _sum(first: FunctionRow, second: FunctionRow) -> FunctionRow:
    known = first.touched is not None and second.touched is not None
    return FunctionRow(
        function=first.function,
        definition=first.definition,
        calls=first.calls + second.calls,
        calls_exact=first.calls_exact and second.calls_exact,
        misses=first.misses + second.misses,
        signatures=first.signatures + second.signatures,
        seconds=first.seconds + second.seconds,
        from_disk=first.from_disk + second.from_disk,
        dispatch=tuple(sorted(summed([*first.dispatch, *second.dispatch]))),
        most_misses=max(first.most_misses, second.most_misses),
        unlogged=first.unlogged + second.unlogged,
        most_own_calls=max(first.most_own_calls, second.most_own_calls),
        inlined=tuple(sorted(summed([*first.inlined, *second.inlined]))),
        inlined_read=first.inlined_read + second.inlined_read,
        inlined_keys=first.inlined_keys + second.inlined_keys,
        touched=max(first.touched or 0, second.touched or 0) if known else None,
    )


def summed(pairs: Iterable[tuple[T, Number]]) -> tuple[tuple[T, Number], ...]:
    """Return each key with the sum of its numbers, in the order of the keys' first appearance."""
    found: dict[T, Number] = {}
    for key, count in pairs:
        found[key] = found[key] + count if key in found else count
    return tuple(found.items())
