"""Whether jits are worth their price, as far as the figures of one run tell: no run is made for it. Pure.

What a call would take without jit is not known here, so no gain is claimed; ``jaxwatch advise`` measures it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from jaxwatch._eager import LIBRARIES
from jaxwatch._rows import FunctionRow
from jaxwatch.events import AdviceCode

Kind = Literal["few_calls", "dispatch", "inner_alone", "inner_shared"]

# Functions that are called at most so often in each process, and cost so many seconds, are seldom called. All programs
# have one or two, to set up and as their main function: told are so many that took so much of the run together.
FEW_CALLS = 3
FEW_CALLS_SECONDS = 0.1
SELDOM_FUNCTIONS = 3
SELDOM_SECONDS = 2.0
SELDOM_SHARE = 1 / 3

# Calls that touch so few numbers that there is little but dispatch: told where so many of them take so much of the run.
# Up to 1,000 numbers, calls were seen to take as long as those of a program that does nothing.
TINY = 1_000
DISPATCH_CALLS = 1_000
DISPATCH_SECONDS = 1.0
DISPATCH_SHARE = 0.3
# A function with less of the run than this is not named with them.
DISPATCH_OWN_SHARE = 0.05

# What an inner jit costs its outer function's tracing and lowering at each call that shares nothing: some 0.5 ms by
# ``python -m benchmarks "inner jit"``, jax 0.10 and 0.12. It is told without being asked for where that adds up.
INNER_SECONDS = 0.0005
INNER_TOLD_SECONDS = 1.0
INNER_TOLD_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """One thing that figures tell about what a jit is worth.

    Attributes:
        kind: ``few_calls``: many functions, each called a few times, took much of the run to compile; ``dispatch``: so
            many calls of so tiny programs that their dispatch is much of the run; ``inner_alone``: only ever called in
            the traces of others, each time with another key; ``inner_shared``: such calls shared a trace.
        rows: The functions, dearest first.
        seconds: Spent on compiling or on dispatch; of ``inner_alone`` an estimate of what its jit costs.
        share: Of the run; 0 where that is not known, or not meant.
        notable: Whether it is told without being asked for.
        code: Of what to change; None where that is not known without measuring, or there is nothing to change.
    """

    kind: Kind
    rows: tuple[FunctionRow, ...]
    seconds: float
    share: float
    notable: bool
    code: AdviceCode | None


def worth_of(rows: Sequence[FunctionRow], wall_seconds: float) -> tuple[Worth, ...]:
    """Return what the figures tell, what is notable first, then dearest first.

    Args:
        rows: The functions, dearest first.
        wall_seconds: How long the processes ran, summed; 0 where it is not known.
    """
    found = [*_seldom_called(rows, wall_seconds), *_dispatch(rows, wall_seconds), *_inner(rows)]
    return tuple(sorted(found, key=lambda one: (not one.notable, -one.seconds, one.kind, one.rows[0].function)))


def _seldom_called(rows: Sequence[FunctionRow], wall_seconds: float) -> Iterator[Worth]:
    seldom = tuple(row for row in rows if _is_seldom(row))
    seconds = sum(row.seconds for row in seldom)
    if len(seldom) >= SELDOM_FUNCTIONS and seconds >= max(SELDOM_SECONDS, SELDOM_SHARE * wall_seconds):
        share = seconds / wall_seconds if wall_seconds else 0.0
        yield Worth(kind="few_calls", rows=seldom, seconds=seconds, share=share, notable=True, code=None)


def _is_seldom(row: FunctionRow) -> bool:
    few = row.calls_exact and 0 < row.most_own_calls <= FEW_CALLS
    return few and row.misses > 0 and row.seconds >= FEW_CALLS_SECONDS and not _in_library(row)


def dispatch_seconds(row: FunctionRow) -> float:
    """Return the calls from the cache times their median latency, in seconds."""
    return (row.dispatch_quantile(0.5) or 0.0) * hits(row)


def hits(row: FunctionRow) -> int:
    """Return the calls from the cache."""
    return sum(count for _, count in row.dispatch)


def _dispatch(rows: Sequence[FunctionRow], wall_seconds: float) -> Iterator[Worth]:
    tiny = [
        row
        for row in rows
        if row.touched is not None
        and row.touched <= TINY
        and hits(row) >= DISPATCH_CALLS
        and dispatch_seconds(row) >= DISPATCH_OWN_SHARE * wall_seconds
    ]
    seconds = sum(map(dispatch_seconds, tiny))
    # above the whole run, several threads called at once: of which no share can be told
    if tiny and max(DISPATCH_SECONDS, DISPATCH_SHARE * wall_seconds) <= seconds <= wall_seconds:
        yield Worth(
            kind="dispatch",
            rows=tuple(sorted(tiny, key=lambda row: (-dispatch_seconds(row), row.function, row.definition))),
            seconds=seconds,
            share=seconds / wall_seconds,
            notable=True,
            code="use_scan" if len(tiny) == 1 else "jit_the_block",
        )


def _inner(rows: Sequence[FunctionRow]) -> Iterator[Worth]:
    compiling = sum(row.seconds for row in rows)
    for row in rows:
        if not row.inlined or _in_library(row):
            continue
        if row.inlined_read > row.inlined_keys:
            yield Worth(kind="inner_shared", rows=(row,), seconds=0.0, share=0.0, notable=False, code=None)
        elif _is_alone(row):
            seconds = row.calls * INNER_SECONDS
            notable = seconds >= max(INNER_TOLD_SECONDS, INNER_TOLD_SHARE * compiling)
            yield Worth(
                kind="inner_alone", rows=(row,), seconds=seconds, share=0.0, notable=notable, code="drop_inner_jit"
            )


def _is_alone(row: FunctionRow) -> bool:
    """Whether the function was never called but in the traces of others, nor compiled ahead, and shared no trace."""
    nothing_else = row.calls_exact and not row.own_calls and not row.misses and not row.seconds
    return nothing_else and row.inlined_read == row.calls == row.inlined_keys


def _in_library(row: FunctionRow) -> bool:
    return any(folder in row.definition for folder in LIBRARIES)
