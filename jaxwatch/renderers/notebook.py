"""A report below a cell of a notebook: HTML without scripts or addresses, that reads on light and on dark ground."""

import html
from collections.abc import Iterable, Iterator

from jaxwatch._findings import Finding
from jaxwatch._report_data import Report
from jaxwatch.renderers import phrases, terminal
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.headline import one_line, parts
from jaxwatch.renderers.page import Line, Page

_UNBROKEN = 1_000_000  # columns: the browser breaks lines

# Text has the notebook's own colour, so that it reads on any ground; ours are for what is no text.
_STYLE = """
div.jaxwatch{font:13px/1.5 system-ui,sans-serif;max-width:60rem;margin:.3rem 0;padding:.1rem 0 .1rem .8rem;
border-left:3px solid #d98a1f}
div.jaxwatch.well{border-left-color:#3a9a5f}
div.jaxwatch p{margin:.2rem 0}
div.jaxwatch .head{font-weight:600}
div.jaxwatch .dim{opacity:.72}
div.jaxwatch table{border-collapse:collapse;table-layout:auto;margin:.5rem 0;font-size:12px;border:0;
font-variant-numeric:tabular-nums}
div.jaxwatch table th,div.jaxwatch table td{padding:.12rem .9rem .12rem 0;text-align:right;border:0;font-weight:400;
background:none;white-space:nowrap}
div.jaxwatch table th:first-child,div.jaxwatch table td:first-child{text-align:left;
font-family:ui-monospace,monospace;white-space:normal;overflow-wrap:anywhere}
div.jaxwatch table thead th{opacity:.72;border-bottom:1px solid #8886;font-family:inherit}
div.jaxwatch table tbody tr:nth-child(n){background:none}
div.jaxwatch ol{margin:.4rem 0;padding:0;list-style:none}
div.jaxwatch li{margin:.55rem 0;overflow-wrap:anywhere}
div.jaxwatch .what{display:flex;gap:1.2rem;justify-content:space-between;font-weight:600}
div.jaxwatch .price{white-space:nowrap;font-variant-numeric:tabular-nums}
div.jaxwatch .price span{display:inline-block;min-width:3.6rem;text-align:right;font-weight:400}
div.jaxwatch .price span+span{font-weight:600}
div.jaxwatch .do{padding-left:.7rem;border-left:2px solid #2f8fb5}
"""


def render(report: Report, *, everything: bool = False, quiet: bool = False, more: str | None = None) -> str:
    """Return ``report`` as a piece of HTML, complete in itself.

    Args:
        report: What to tell.
        everything: Nothing is cut short.
        quiet: The first line alone, with the dearest finding.
        more: What the user is to enter to see everything.
    """
    # the last two classes keep a notebook's MathJax from reading dollar signs as formulas
    kind = "jaxwatch well" if report.healthy else "jaxwatch"
    inner = [_p(one_line(report), "head")] if quiet else _body(report, everything=everything, more=more)
    style = "".join(_STYLE.splitlines())
    return f'<div class="{kind} tex2jax_ignore mathjax_ignore"><style>{style}</style>{"".join(inner)}</div>'


def _body(report: Report, *, everything: bool, more: str | None) -> Iterator[str]:
    page = terminal.page_of(report, _UNBROKEN, everything=everything)
    yield _p(", ".join(parts(report)), "head")
    if not report.healthy:
        yield from _table(report, page)
        shown, hidden = terminal.findings(report, page, more)
        if shown:
            yield f"<ol>{''.join(_finding(finding, page) for finding in shown)}</ol>"
        yield _p(hidden, "dim")
    yield from _paragraphs(terminal.beside(report, page))


def _table(report: Report, page: Page) -> Iterator[str]:
    rows, left_out = terminal.table(report, page)
    if rows:
        head = "".join(f"<th>{_text(name)}</th>" for name in terminal.HEADER)
        body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in rows)
        yield f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    yield _p(left_out, "dim")


def _finding(finding: Finding, page: Page) -> str:
    title = phrases.titles(finding, page.folder)[0]
    of_calls = page.calls.get((finding.cause.function, finding.cause.definition))
    times, price = (f"<span>{_text(text)}</span>" for text in (terminal.count(finding), terminal.price(finding)))
    what = f'<div class="what"><span>{_text(title)}</span><span class="price">{times}{price}</span></div>'
    shows = _p(phrases.evidence(finding, title, page.folder, of_calls), "dim")
    return f"<li>{what}{shows}{_p(clean(finding.advice[1]) if finding.advice else '', 'do')}</li>"


def _paragraphs(lines: Iterable[Line]) -> Iterator[str]:
    for line in lines:
        style = next((span.style for span in line if span.style), "")
        text = " ".join(span.text.strip() for span in line)
        do = text.startswith("→ ")
        yield _p(text.removeprefix("→ "), "do" if do else "dim" if style == "dim" and len(line) == 1 else "")


def _p(text: str, kind: str = "") -> str:
    """Return a paragraph; nothing for no text."""
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{_text(text)}</p>" if text.strip() else ""


def _text(text: str) -> str:
    return html.escape(text)
