"""A report as one page that needs nothing else: no network, no server, and of JavaScript only what is comfort.

All that it tells is text in the page, escaped (``markup``); its policy forbids every script and style but its own two.
"""

import base64
import functools
import hashlib
from collections.abc import Iterator
from typing import TextIO

from jaxwatch._pages import page_file
from jaxwatch._report_data import Report
from jaxwatch.renderers import html_findings, html_functions, html_timeline, phrases, summary
from jaxwatch.renderers.headline import folder_of
from jaxwatch.renderers.markup import Html, tag


def write(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:  # noqa: ARG001 -- it has all
    """Write ``report`` to ``stream``; see ``Renderer``."""
    for piece in document(report):
        stream.write(piece)
        stream.write("\n")
    stream.flush()


def document(report: Report) -> Iterator[str]:
    """Yield the page in pieces."""
    yield f'<!doctype html>\n<html lang="en">\n{_head(report)}\n<body>'
    sections = list(_sections(report))
    yield _header(report, [name for name, _, _ in sections])
    yield "<main>"
    for name, title, pieces in sections:
        yield f'<section id="{name}" aria-labelledby="h-{name}">'
        yield tag("h2", title, id=f"h-{name}")
        yield from pieces
        yield "</section>"
    yield "</main>"
    yield tag("footer", tag("p", "Made by jaxwatch report.", class_="note"))
    yield "</body>\n</html>"


@functools.cache
def _assets() -> tuple[str, str]:
    """Return the page's style and script."""
    style = page_file("page.css") + page_file("report.css")
    return style.decode(), page_file("report.js").decode()


def _hash(content: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def _head(report: Report) -> Html:
    style, script = _assets()
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    equiv = tag("meta", http_equiv="Content-Security-Policy", content="@").replace("@", policy)  # quotes stay quotes
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        Html(equiv),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"jaxwatch · {summary.program_names(report)}"),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
        tag("script", Html(script), type="module"),  # runs once the page is there
    )


def _header(report: Report, sections: list[str]) -> Html:
    first, *further = summary.sentences(report)
    links = [tag("li", tag("a", _NAMES[name], href=f"#{name}")) for name in sections]
    controls = tag(
        "p",
        tag("label", "Show functions named ", tag("input", type="search", id="filter", autocomplete="off")),
        tag("button", "Open all keys", type="button", id="open-all", aria_pressed="false"),
        class_="controls",
        id="controls",
        hidden="",
    )
    return tag(
        "header",
        tag("h1", "jaxwatch ", tag("span", summary.program_names(report))),
        tag("p", first, class_="lead"),
        tag("ul", *(tag("li", sentence) for sentence in further), class_="summary") if further else None,
        _tiles(report),
        tag("nav", tag("ul", *links), aria_label="Parts of this page"),
        controls,
    )


def _tiles(report: Report) -> Html:
    recompiles = sum(one.count for one in report.findings if one.cause.kind == "recompile")
    misses = sum(row.misses for row in report.functions)
    wall, compiling, again = report.wall_seconds, report.compile_seconds, report.again_seconds
    share = f"{phrases.share(compiling, wall)} of the run" if wall >= compiling > 0 else None
    tiles = [
        ("compiling", phrases.duration(compiling), share),
        ("of that again", phrases.duration(again), f"{phrases.share(again, compiling)} of it" if compiling else None),
        ("recompiles", f"{recompiles:,}", f"of {misses:,} miss{'' if misses == 1 else 'es'}"),
        ("compiles outside jit", f"{report.eager_count:,}", phrases.duration(report.eager_seconds)),
    ]
    if wall:
        tiles.insert(0, ("ran", phrases.duration(wall), None))
    return tag("dl", *(_tile(*tile) for tile in tiles), class_="tiles")


def _tile(name: str, value: str, beside: str | None) -> Html:
    told = tag("dd", tag("span", value, class_="value"), beside and tag("span", beside, class_="beside"))
    return tag("div", tag("dt", name), told)


Section = tuple[str, str, Iterator[Html]]
_NAMES = {
    "ranks": "Ranks",
    "findings": "What to change",
    "time": "When",
    "functions": "Functions",
    "keys": "Keys",
    "eager": "Outside jit",
    "rest": "Further",
}


def _sections(report: Report) -> Iterator[Section]:
    folder = folder_of(report)
    if report.divergences:
        yield "ranks", "Ranks that did not compile alike", html_findings.divergences(report, folder)
    yield "findings", "What to change", html_findings.findings(report, folder)
    yield "time", "When, and in which phase", html_timeline.timeline(report)
    yield "functions", "Functions", html_functions.table(report, folder)
    if report.details is not None and report.details.functions:
        yield "keys", "Keys, and what each was compared with", html_functions.keys(report, folder)
    if report.eager_count:
        yield "eager", "Compiles outside jit, by line", html_functions.eager(report, folder)
    yield "rest", "Further", html_findings.rest(report, folder)
