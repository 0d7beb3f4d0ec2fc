"""A comparison for people, in lines of at most 80 columns."""

import math
from collections.abc import Iterator, Sequence

from jaxwatch._advise.comparison import MORE_CALLS, Comparison, ScopeFigures
from jaxwatch._advise.outcome import Steady
from jaxwatch._advise.plot import drawn
from jaxwatch.renderers.cells import clean, cut, left, right, width, wrapped
from jaxwatch.renderers.phrases import counted, duration, precise

COLUMNS = 80
_NAME = 16
_NOTHING = "–"  # noqa: RUF001 -- a dash between numbers


def lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of a comparison, without line ends."""
    scopes = counted(len(comparison.scopes), "scope")
    head = (
        f"jaxwatch advise · {clean(comparison.workload)} · {counted(comparison.calls, 'call')} of watched functions, "
    )
    head += f"{scopes} in {counted(comparison.runs, 'run')}, {duration(comparison.seconds)}"
    yield from wrapped(head, COLUMNS)
    yield ""
    yield from _aligned(_HEADS, [_cells(figures) for figures in comparison.scopes])
    yield ""
    yield from _aligned(_totals_head(comparison), list(_totals(comparison)))
    yield "  * as it is written"
    yield ""
    yield from _indented("→ ", comparison.reason)
    for figures in comparison.scopes:
        yield from _remarks(figures)
    if comparison.kept:
        yield from _indented("  ", f"Jitted in all of them: {', '.join(comparison.kept)}.")
    for note in comparison.notes:
        yield from _indented("  ", note)
    picture = drawn([(figures.name, figures.curve) for figures in comparison.scopes if figures.curve])
    if picture:
        yield ""
        yield from picture


_HEADS = ("jit", "first call", "compiling", "misses", "per call", "dispatch", "memory")


def _cells(figures: ScopeFigures) -> list[str]:
    steady = figures.steady
    return [
        cut(clean(figures.name), _NAME),
        _precise(figures.first_call_seconds or None),
        precise(figures.compile_seconds),
        f"{figures.misses:,}",
        _NOTHING if steady is None else f"{precise(steady.median)} ±{_spread(steady)} %",
        _NOTHING if steady is None else f"{100 * steady.dispatch_share:.0f} %",
        f"{figures.peak_bytes / 1e6:,.0f} MB",
    ]


def _spread(steady: Steady) -> str:
    """Return half the distance between the quartiles in percent of the median."""
    return f"{min(50 * (steady.high - steady.low) / steady.median, 999):.0f}"


def _totals_head(comparison: Comparison) -> tuple[str, ...]:
    return (
        "  jit",
        f"{comparison.calls:,} calls",
        *(f"{times * comparison.calls:,}" for times in MORE_CALLS),
        "against the best",
        "runs",
    )


def _totals(comparison: Comparison) -> Iterator[list[str]]:
    for number, (figures, ratio) in enumerate(zip(comparison.scopes, comparison.ratios, strict=True)):
        mark = "→ " if number == comparison.recommended else "  "
        if figures.error:
            against = "failed"
        elif figures.stopped:
            against = "stopped"
        elif ratio is None:
            against = "not compared" if comparison.recommended != number else ""
        else:
            against = f"{ratio[0]:.2f}" + (
                "" if ratio[1] == ratio[2] or math.isinf(ratio[2]) else f" ({ratio[1]:.2f} to {ratio[2]:.2f})"
            )
        total = _precise(figures.total_seconds or None)
        more = [_precise(figures.total_for(times * comparison.calls)) for times in MORE_CALLS]
        yield [mark + _name(figures), f"> {total}" if figures.stopped else total, *more, against, str(figures.runs)]


def _precise(seconds: float | None) -> str:
    return _NOTHING if seconds is None else precise(seconds)


def _name(figures: ScopeFigures) -> str:
    name = clean(figures.name)
    return f"{cut(name, _NAME)} *" if figures.as_written else cut(name, _NAME)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    every = [head, *rows]
    widths = [max(width(row[place]) for row in every) for place in range(len(head))]
    for row in every:
        cells = "".join("  " + right(cell, size) for cell, size in zip(row[1:], widths[1:], strict=True))
        yield (left(row[0], widths[0]) + cells).rstrip()


def _indented(mark: str, text: str) -> Iterator[str]:
    for number, line in enumerate(wrapped(clean(text), COLUMNS - 2)):
        yield (mark if number == 0 else "  ") + line


def _named(figures: ScopeFigures) -> str:
    return f"jit {figures.name}" if figures.jit else "no jit"


def _remarks(figures: ScopeFigures) -> Iterator[str]:
    if figures.error:
        yield from _indented("  ", f"{_named(figures)} fails: {figures.error}")
    elif (found := figures.difference) is not None:
        where = f"result{found.path} of call {found.call:,}"
        text = f"{_named(figures)}: {where} differs, {found.what}"
        text += ", so it is not recommended." if found.early else "; the first calls' results are the same."
        yield from _indented("  ", text)
