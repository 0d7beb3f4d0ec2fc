"""A report for people: in colour on a terminal, plain at 80 columns elsewhere."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from jaxwatch._findings import Finding
from jaxwatch._report_data import Report
from jaxwatch._rows import FunctionRow
from jaxwatch.renderers import divergence, notes, phrases, slow, worth
from jaxwatch.renderers.cells import ascii_only, clean, cut, left, right, width, wrapped
from jaxwatch.renderers.headline import folder_of, parts
from jaxwatch.renderers.page import Line, Page, Span

COLUMNS = 80
WIDEST = 120
_LINES = 4  # of a finding
_FINDINGS = 10
_FEWEST = 3  # where each is minor
_ROWS = 12
_NOTES = 5
_DIVERGENCES = 3
_MINOR_SHARE = 0.01
HEADER = ("function", "calls", "misses", "keys", "compiling", "dispatch p50", "p99")


def write(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:
    """Write ``report`` to ``stream``.

    Args:
        report: What to tell.
        stream: Colour is used where it is a terminal, unless ``NO_COLOR`` is set or rich is missing.
        everything: Findings below 1 % of the time lost too, and nothing cut short.
        more: The command that shows everything; None where there is none.
    """
    show(lambda columns: lines(report, columns=columns, everything=everything, more=more), stream)


def show(made: Callable[[int], Iterable[Line]], stream: TextIO) -> None:
    """Write lines that are made for a number of columns: 80, or those of a terminal, there in colour."""
    on_terminal = stream.isatty()
    columns = COLUMNS
    if on_terminal:
        try:
            columns = min(max(os.get_terminal_size(stream.fileno()).columns, 40), WIDEST)
        except (OSError, ValueError):
            on_terminal = False
    found = list(made(columns))
    if on_terminal and not _plain(os.environ) and _write_in_colour(found, stream):
        return
    put("\n".join("".join(span.text for span in line) for line in found), stream)


def put(text: str, stream: TextIO) -> None:
    """Write ``text`` and a line's end, in ASCII where the stream's encoding has no more."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = ascii_only(text)
    stream.write(text + "\n")
    stream.flush()


def render(report: Report, *, columns: int = COLUMNS, everything: bool = False, more: str | None = None) -> str:
    """Return ``report`` as plain text; see ``write``."""
    found = lines(report, columns=columns, everything=everything, more=more)
    return "\n".join("".join(span.text for span in line) for line in found)


def _plain(environ: Mapping[str, str]) -> bool:
    return bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"


def _write_in_colour(found: Sequence[Line], stream: TextIO) -> bool:
    try:
        from rich.console import Console  # noqa: PLC0415 -- slow to load, and needed on a terminal alone
        from rich.text import Text  # noqa: PLC0415
    except ImportError:
        return False
    console = Console(file=stream, soft_wrap=True, highlight=False, emoji=False, markup=False)
    for line in found:
        console.print(Text.assemble(*line))  # Text: what looks like markup in a name stays what it is
    return True


# ------------------------------------------------------------------ lines


def lines(report: Report, *, columns: int, everything: bool = False, more: str | None = None) -> Iterator[Line]:
    """Yield the lines of ``report``, without line ends."""
    page = page_of(report, columns, everything=everything)
    yield from _head(report, columns)
    if not report.healthy:
        yield from _table(report, page)
        yield from _divergences(report, page)
        yield from _findings(report, page, more)
    yield from beside(report, page)


def beside(report: Report, page: Page) -> Iterator[Line]:
    """Yield the lines of all but the headline, the table, divergences and findings."""
    yield from worth.lines(report.worth, page)
    if not report.healthy:
        yield from _notes(report, page)
    if page.everything or not report.healthy:
        found = slow.lines(report, page.columns, everything=page.everything)
        yield from ([Span(text, style)] for text, style in found)
    foot = list(notes.foot(report))
    if foot and not report.healthy:
        yield []
    for line in foot:
        yield from ([Span(text, "dim")] for text in wrapped(line, page.columns))


def page_of(report: Report, columns: int, *, everything: bool) -> Page:
    """Return what the parts of ``report`` are laid out by."""
    calls = {(row.function, row.definition): row.calls for row in report.functions if row.calls_exact}
    return Page(columns, everything, folder_of(report), calls)


def _head(report: Report, columns: int) -> Iterator[Line]:
    pieces = parts(report)
    if report.healthy:
        yield [Span(", ".join(pieces), "green")]
        return
    line = pieces[0]
    told: list[str] = []
    for piece in pieces[1:]:
        if width(f"{line}, {piece}") > columns:
            told.append(line + ",")
            line = piece
        else:
            line = f"{line}, {piece}"
    for number, text in enumerate([*told, line]):
        indent = "  " if number else ""
        for further, part in enumerate(wrapped(text, columns - 2)):
            yield [Span(("  " if further else indent) + part, "bold")]


def table(report: Report, page: Page) -> tuple[list[tuple[str, ...]], str]:
    """Return the rows of the table of functions, and what is said of those that are left out."""
    rows = [row for row in report.functions if row.misses or row.seconds or row.dispatch]  # else only ever inlined
    shown = rows if page.everything else rows[:_ROWS]
    cells = [_cells(row, rows, page.folder) for row in shown]
    if report.eager_count:
        cells.append(("eager ops", "–", f"{report.eager_count:,}", "–", phrases.duration(report.eager_seconds), "", ""))  # noqa: RUF001
    left_out = rows[len(shown) :]
    seconds = phrases.duration(sum(row.seconds for row in left_out))
    return cells, f"and {phrases.counted(len(left_out), 'more function')}, {seconds}" if left_out else ""


def _table(report: Report, page: Page) -> Iterator[Line]:
    cells, left_out = table(report, page)
    if not cells:
        return
    header, gaps = HEADER, (2, 3, 2, 3, 3, 2)
    widths = [max(width(row[i]) for row in [header, *cells]) for i in range(1, len(header))]
    room = max(page.columns - 2 - sum(widths) - sum(gaps), 8)
    first = min(max(width(row[0]) for row in [header, *cells]), room)
    yield []
    for number, row in enumerate([header, *cells]):
        text = "  " + left(cut(row[0], first), first)
        text += "".join(" " * gap + right(cell, size) for gap, cell, size in zip(gaps, row[1:], widths, strict=True))
        yield [Span(text.rstrip(), "dim" if number == 0 else "")]
    if left_out:
        yield [Span(f"  {left_out}", "dim")]


def _cells(row: FunctionRow, rows: Sequence[FunctionRow], folder: str) -> tuple[str, ...]:
    name = clean(row.function)
    if sum(other.function == row.function for other in rows) > 1 and row.definition:
        name += f" ({phrases.place(row.definition, folder)})"
    latencies = [row.dispatch_quantile(q) for q in (0.5, 0.99)]
    return (
        name,
        f"{row.calls:,}" if row.calls_exact else f"≥{row.calls:,}",
        f"{row.misses:,}",
        f"{row.signatures:,}",
        phrases.duration(row.seconds),
        *("–" if latency is None else phrases.duration(latency) for latency in latencies),  # noqa: RUF001
    )


def _divergences(report: Report, page: Page) -> Iterator[Line]:
    shown = report.divergences if page.everything else report.divergences[:_DIVERGENCES]
    for found in shown:
        yield []
        for text in wrapped(divergence.title(found), page.columns - 3, None if page.everything else 1):
            yield [Span("!  ", "red"), Span(text, "bold")]
        sides = divergence.evidence(found, page.folder)
        for side in sides if page.everything else sides[: _LINES - 2]:
            yield from (
                [Span(f"   {text}")] for text in wrapped(side, page.columns - 3, None if page.everything else 1)
            )
        yield from ([Span(f"   {text}", "cyan")] for text in wrapped(f"→ {divergence.advice(found)}", page.columns - 3))
    if hidden := len(report.divergences) - len(shown):
        yield [Span(f"and {phrases.counted(hidden, 'more function')} that ranks did not compile alike", "dim")]


def findings(report: Report, page: Page, more: str | None) -> tuple[Sequence[Finding], str]:
    """Return the findings that are told, and what is said of the others."""
    lost = sum(finding.seconds for finding in report.findings)
    large = [
        finding
        for finding in report.findings
        if page.everything or finding.cause.kind == "dispatch" or finding.seconds >= _MINOR_SHARE * lost
    ] or report.findings[:_FEWEST]
    shown = large if page.everything else large[:_FINDINGS]
    under = " under 1 %" if len(shown) == len(large) else ""
    how = f": {more}" if more else " (--log FILE keeps them for `jaxwatch report FILE --all`)"
    hidden = len(report.findings) - len(shown)
    return shown, f"{hidden:,} more{under}{how}" if hidden else ""


def _findings(report: Report, page: Page, more: str | None) -> Iterator[Line]:
    shown, hidden = findings(report, page, more)
    sizes = (max(map(width, map(count, shown)), default=0), max(map(width, map(price, shown)), default=0))
    for number, finding in enumerate(shown, start=1):
        yield []
        yield from _finding(f"{number}  ", finding, sizes, page)
    if hidden:
        yield []
        yield [Span(hidden, "dim")]


def _finding(label: str, finding: Finding, sizes: tuple[int, int], page: Page) -> Iterator[Line]:
    """Yield the lines of one finding: what and its price; the evidence; what to do."""
    room = page.columns - len(label) - sum(sizes) - 5
    wordings = phrases.titles(finding, page.folder)
    title = next((wording for wording in wordings if width(wording) <= room), wordings[0 if page.everything else -1])
    first, *further = wrapped(title, room, None if page.everything else 2)
    cost = f"  {right(count(finding), sizes[0])}   {right(price(finding), sizes[1])}".rstrip()
    yield [Span(label, "dim"), Span(left(first, room) if cost else first, "bold"), Span(cost, "yellow")]
    indent = " " * len(label)
    yield from ([Span(indent + text, "bold")] for text in further)
    below = page.columns - len(indent)
    advice = wrapped(f"→ {clean(finding.advice[1])}", below - 2) if finding.advice else []
    of_calls = page.calls.get((finding.cause.function, finding.cause.definition))
    shows = phrases.evidence(finding, title, page.folder, of_calls)
    if page.everything:
        told = wrapped(shows, below)
    else:  # what to do is not cut for the sake of what it rests on
        left_over = _LINES - 1 - len(further)
        told = wrapped(shows, below, max(left_over - len(advice), 1))
        if finding.advice and len(advice) > left_over - len(told):
            advice = wrapped(f"→ {clean(finding.advice[1])}", below - 2, left_over - len(told))
    yield from ([Span(indent + text)] for text in told if text)
    for number, text in enumerate(advice):
        yield [Span(f"{indent}{'  ' if number else ''}{text}", "cyan")]


def count(finding: Finding) -> str:
    """Return how often a finding was seen, in words."""
    return "" if finding.cause.kind == "dispatch" else f"{finding.count:,} ×"  # noqa: RUF001


def price(finding: Finding) -> str:
    """Return what a finding cost, as a duration; empty where it compiled nothing."""
    return "" if finding.cause.kind == "dispatch" and not finding.seconds else phrases.duration(finding.seconds)


def _notes(report: Report, page: Page) -> Iterator[Line]:
    shown = report.notes if page.everything else report.notes[:_NOTES]
    if shown:
        yield []
    for note in shown:
        style = "cyan" if note.kind == "advice" else "red"
        yield from ([Span(text, style)] for text in wrapped(notes.note(note, page.folder), page.columns))
    if hidden := len(report.notes) - len(shown):
        yield [Span(f"and {hidden:,} more such lines", "dim")]
