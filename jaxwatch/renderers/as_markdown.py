"""A report for a comment on a pull request: GitHub's Markdown, short.

Names of a program come into it: as code, where nothing is obeyed, or as prose in which all that could be is escaped.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TextIO

from jaxwatch._findings import Finding
from jaxwatch._report_data import Report
from jaxwatch.renderers import divergence, notes, phrases, summary, worth
from jaxwatch.renderers.cells import clean, cut
from jaxwatch.renderers.headline import folder_of

# What a comment has of each, and how long a text may be: GitHub takes 65,536 characters.
_ROWS, _ROWS_OF_ALL = 10, 60
_LINES = 5
_CHARACTERS = 200

_OBEYED = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$^=-])")
# Mentions, references and emoji are made of the finished text: a comment, which is not shown, stands in their way.
_REFERENCES = re.compile(r"(@|\\#|gh\\-|:(?=[\w+\\-]+:))", re.IGNORECASE)
_BAR = re.compile(r"(\\*)\|")
_LINKS = re.compile(r"(www)\.|://", re.IGNORECASE)


def write(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:
    """Write ``report`` to ``stream``; see ``Renderer``. ``everything``: more rows."""
    stream.write("\n".join(lines(report, everything=everything, more=more)) + "\n")
    stream.flush()


def lines(report: Report, *, everything: bool = False, more: str | None = None) -> Iterator[str]:
    """Yield the lines."""
    folder, rows = folder_of(report), _ROWS_OF_ALL if everything else _ROWS
    first, *further = summary.sentences(report)
    yield f"### jaxwatch: {prose(summary.program_names(report))}"
    yield ""
    yield f"**{prose(first)}**"
    if further:
        yield ""
        yield from (f"- {prose(sentence)}" for sentence in further)
    for found in report.divergences[:_LINES]:
        yield ""
        yield f"**{prose(divergence.title(found))}**: {prose(divergence.advice(found))}"
    yield from _findings(report, folder, rows)
    yield from _others(report, folder)
    yield from _functions(report, folder, rows)
    if more is not None and not report.healthy:
        yield ""
        yield f"All of it: {code(more)}"


def code(text: str) -> str:
    """Return text as code that fits a table's cell; nothing in it is obeyed."""
    # a bar ends the cell unless an odd number of backslashes stands before it
    shown = _BAR.sub(lambda run: run[1] + "\\" * (len(run[1]) % 2) + r"\|", cut(clean(text), _CHARACTERS)) or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    space = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{space}{shown}{space}{fence}"


def prose(text: str) -> str:
    """Return text with all escaped that GitHub would obey: markup, HTML, links, mentions, references, emoji."""
    shown = _OBEYED.sub(r"\\\1", cut(" ".join(clean(text).split()), _CHARACTERS))
    shown = _LINKS.sub(lambda found: f"{found[1]}\\." if found[1] else r"\://", shown)
    return _REFERENCES.sub(r"\1<!-- -->", shown)


def _table(heads: Sequence[str], aligned: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield a table; ``aligned`` has a letter for each column, ``l`` or ``r``."""
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join('---' if side == 'l' else '--:' for side in aligned)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _findings(report: Report, folder: str, most: int) -> Iterator[str]:
    if not report.findings:
        return
    shown = report.findings[:most]
    yield ""
    yield from _table(
        ("what", "times", "cost", "where", "what to do"), "lrrll", [_finding(one, folder) for one in shown]
    )
    if left_out := report.findings[most:]:
        yield ""
        yield f"and {len(left_out):,} more, {phrases.duration(sum(one.seconds for one in left_out))} together"


def _finding(found: Finding, folder: str) -> tuple[str, ...]:
    wordings = phrases.titles(found, folder)
    title = next((wording for wording in wordings if len(wording) <= _CHARACTERS), wordings[-1])
    is_free = found.cause.kind == "dispatch"
    return (
        code(title),
        "" if is_free else f"{found.count:,}",
        phrases.duration(found.seconds) if found.seconds else "",
        code(phrases.place(found.sites[0][0], folder)) if found.sites else "",
        prose(found.advice[1]) if found.advice else "",
    )


def _others(report: Report, folder: str) -> Iterator[str]:
    told = [f"{worth.title(one)}. {worth.advice(one)}" for one in report.worth if one.notable]
    told += [notes.note(note, folder) for note in report.notes]
    if told:
        yield ""
        yield from (f"- {prose(line)}" for line in told[:_LINES])
        if len(told) > _LINES:
            yield f"- and {len(told) - _LINES:,} more"


def _functions(report: Report, folder: str, most: int) -> Iterator[str]:
    every = [row for row in report.functions if row.misses or row.seconds]
    if not every:
        return
    rows = [
        (
            code(row.function),
            code(phrases.place(row.definition, folder)) if row.definition else "",
            f"{row.calls:,}" if row.calls_exact else f"≥{row.calls:,}",
            f"{row.misses:,}",
            f"{row.signatures:,}",
            phrases.duration(row.seconds),
        )
        for row in every[:most]
    ]
    yield ""
    yield f"<details><summary>{phrases.counted(len(every), 'function')} compiled</summary>"
    yield ""
    yield from _table(("function", "where", "calls", "misses", "keys", "compiling"), "llrrrr", rows)
    if left_out := every[most:]:
        yield ""
        yield f"and {len(left_out):,} more, {phrases.duration(sum(row.seconds for row in left_out))} together"
    yield ""
    yield "</details>"
