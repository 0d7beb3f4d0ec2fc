"""Whether jits are worth their price, in words."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jaxwatch._rows import FunctionRow
from jaxwatch._worth import Kind, Worth, dispatch_seconds, hits
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean, left, width, wrapped
from jaxwatch.renderers.page import Line, Page, Span

_LINES = 4  # of one thing that is told
_NAMED = 3
_OUTERS_NAMED = 2


def lines(found: Sequence[Worth], page: Page) -> Iterator[Line]:
    """Yield the lines of what is notable, or of all: what and its price; the evidence; what to do."""
    for one in found:
        if one.notable or page.everything:
            yield []
            yield from _entry(one, page)


def title(found: Worth) -> str:
    """Return what was seen, in one line."""
    return _WORDS[found.kind].title(found)


def evidence(found: Worth, folder: str) -> str:
    """Return what shows that it is so."""
    return _WORDS[found.kind].evidence(found, folder)


def advice(found: Worth) -> str:
    """Return what to do."""
    return _WORDS[found.kind].advice(found)


def price(found: Worth) -> str:
    """Return what it took, as a duration; empty where nothing of it was measured."""
    return "" if found.kind.startswith("inner") else phrases.duration(found.seconds)


def _entry(found: Worth, page: Page) -> Iterator[Line]:
    room = page.columns - 3
    cost = f"  {price(found)}".rstrip()
    first, *further = wrapped(title(found), room - width(cost), None if page.everything else 2)
    yield [Span("·  ", "dim"), Span(left(first, room - width(cost)) if cost else first, "bold"), Span(cost, "yellow")]
    yield from ([Span(f"   {text}", "bold")] for text in further)
    left_over = None if page.everything else _LINES - 1 - len(further)
    to_do = wrapped(f"→ {advice(found)}", room - 2, left_over and left_over - 1)
    most = left_over and left_over - len(to_do)
    yield from ([Span(f"   {text}")] for text in wrapped(evidence(found, page.folder), room, most))
    for number, text in enumerate(to_do):
        yield [Span(f"   {'  ' if number else ''}{text}", "cyan")]


def _names(rows: Sequence[FunctionRow]) -> str:
    named = ", ".join(clean(row.function) for row in rows[:_NAMED])
    more = len(rows) - _NAMED
    return named + (f" and {more:,} more" if more > 0 else "")


def _each(rows: Sequence[FunctionRow], told: Callable[[FunctionRow], str]) -> str:
    named = ", ".join(f"{clean(row.function)} {told(row)}" for row in rows[:_NAMED])
    more = len(rows) - _NAMED
    return named + (f" and {more:,} more" if more > 0 else "")


# ------------------------------------------------------------------ many functions, few calls of each


def _few_title(found: Worth) -> str:
    most = max(row.most_own_calls for row in found.rows)
    times = {1: "once", 2: "at most twice"}.get(most, f"at most {most} times")
    share = f" is {100 * found.share:.0f} % of the run" if found.share else ""
    each = "a process" if any(row.own_calls > row.most_own_calls for row in found.rows) else "each"
    return f"{len(found.rows):,} functions called {times} {each}: compiling{share}"


def _few_evidence(found: Worth, _folder: str) -> str:
    def told(row: FunctionRow) -> str:
        return f"{phrases.counted(row.own_calls, 'call')} {phrases.duration(row.seconds)}"

    calls = sum(row.own_calls for row in found.rows)
    return f"{_each(found.rows, told)}; {phrases.duration(found.seconds / calls)} of compiling for each call"


def _few_advice(_found: Worth) -> str:
    return "`jaxwatch advise` measures whether they are cheaper without jit."


# ------------------------------------------------------------------ nothing but dispatch


def _dispatch_title(found: Worth) -> str:
    latency = phrases.duration(dispatch_seconds(found.rows[0]) / hits(found.rows[0]))
    calls = f"{sum(map(hits, found.rows)):,} calls"
    each = f" of {latency} each" if len(found.rows) == 1 else ""
    return f"{_names(found.rows)}: dispatch of {calls}{each}, {100 * found.share:.0f} % of the run"


def _dispatch_evidence(found: Worth, folder: str) -> str:
    touched = f"a run touches at most {max(row.touched or 0 for row in found.rows):,} numbers"
    if len(found.rows) == 1:
        return f"{phrases.place(found.rows[0].definition, folder)}; median latency; {touched}"

    def told(row: FunctionRow) -> str:
        return f"{hits(row):,} × {phrases.duration(row.dispatch_quantile(0.5) or 0.0)}"  # noqa: RUF001

    return f"{_each(found.rows, told)}; {touched}"


def _dispatch_advice(_found: Worth) -> str:
    return "Do more in one call, and measure: many steps by jax.lax.scan, or jit what calls it."


# ------------------------------------------------------------------ jits within jits


def _outers(row: FunctionRow) -> str:
    named = [clean(outer) for outer, _ in sorted(row.inlined, key=lambda pair: (-pair[1], pair[0]))]
    more = len(named) - _OUTERS_NAMED
    return " and ".join(named[:_OUTERS_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _alone_title(found: Worth) -> str:
    (row,) = found.rows
    return f"{clean(row.function)}: {phrases.counted(row.calls, 'call')}, only within traces of {_outers(row)}"


def _alone_evidence(found: Worth, folder: str) -> str:
    (row,) = found.rows
    each = ", nor twice with one key" if row.calls > 1 else ""
    return f"{phrases.place(row.definition, folder)}; never called alone{each}"


def _alone_advice(found: Worth) -> str:
    about = f"about {phrases.duration(found.seconds)} of tracing and lowering (estimated)"
    return f"Its jit may go: no call is faster for it, and it costs {about}."


def _shared_title(found: Worth) -> str:
    (row,) = found.rows
    inlined = sum(count for _, count in row.inlined)
    return f"{clean(row.function)}: {phrases.counted(inlined, 'call')} within traces of {_outers(row)}"


def _shared_evidence(found: Worth, folder: str) -> str:
    (row,) = found.rows
    shared = row.inlined_read - row.inlined_keys
    return f"{phrases.place(row.definition, folder)}; {shared:,} of them with the key of an earlier one"


def _shared_advice(_found: Worth) -> str:
    return "Keep its jit: calls with one key share a trace, and within a program a lowering."


class _Words(NamedTuple):
    title: Callable[[Worth], str]
    evidence: Callable[[Worth, str], str]
    advice: Callable[[Worth], str]


_WORDS: Mapping[Kind, _Words] = {
    "few_calls": _Words(_few_title, _few_evidence, _few_advice),
    "dispatch": _Words(_dispatch_title, _dispatch_evidence, _dispatch_advice),
    "inner_alone": _Words(_alone_title, _alone_evidence, _alone_advice),
    "inner_shared": _Words(_shared_title, _shared_evidence, _shared_advice),
}
