"""Renderers of a report: each is a function ``(report, stream, *, everything, more)`` that writes to a text stream."""

from typing import Protocol, TextIO

from jaxwatch._report_data import Report
from jaxwatch.renderers import as_html, as_json, as_markdown, headline, terminal


class Renderer(Protocol):
    """Writes a report to a text stream."""

    def __call__(self, report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:
        """Write ``report``; ``everything`` leaves nothing out, ``more`` is the command that does so."""


def _one_line(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:  # noqa: ARG001 -- one line has no more
    terminal.put(headline.one_line(report), stream)


RENDERERS: dict[str, Renderer] = {
    "terminal": terminal.write,
    "line": _one_line,
    "html": as_html.write,
    "json": as_json.write,
    "markdown": as_markdown.write,
}
