"""Renderers of a report: each is a function ``(report, stream, *, everything, more)`` that writes to a text stream."""

from typing import Protocol, TextIO

from jaxwatch._report_data import Report
from jaxwatch.renderers import as_json, headline, terminal


class Renderer(Protocol):
    """Writes a report to a text stream."""

    def __call__(self, report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:
        """Write ``report``; ``everything`` leaves nothing out, ``more`` is the command that does so."""


def _one_line(report: Report, stream: TextIO, *, everything: bool = False, more: str | None = None) -> None:  # noqa: ARG001 -- one line has no more
    terminal.put(headline.one_line(report), stream)


RENDERERS: dict[str, Renderer] = {
    "terminal": terminal.write,
    "line": _one_line,
    "json": as_json.write,
}
