"""Where slow programs come from: the address of a slow compile."""

from collections.abc import Iterator

from jaxwatch import _limits
from jaxwatch._report_data import Report
from jaxwatch._slow import SlowProgram
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean, wrapped
from jaxwatch.renderers.headline import folder_of


def lines(report: Report, columns: int, *, everything: bool) -> Iterator[tuple[str, str]]:
    """Yield the lines and how each looks; without ``everything``, of programs that took a second or more."""
    folder = folder_of(report)
    least = 0.0 if everything else _limits.SLOW_PROGRAM_SECONDS
    shown = [program for program in report.slow if program.seconds >= least]
    if shown:
        yield "", ""
    for program in shown:
        yield from ((part, "dim") for part in wrapped(text(program, folder), columns))


def text(program: SlowProgram, folder: str) -> str:
    """Return what took long, and the line that most of it comes from; paths are told relative to the folder."""
    at, line = phrases.place(program.definition, folder), phrases.place(program.line, folder)
    told = f"{clean(program.function)} at {at}, {phrases.duration(program.seconds)} in one compile"
    return f"{told}: {_part(program)} from {line}"


def _part(program: SlowProgram) -> str:
    if program.equations == 1:
        return "its one equation comes"
    share = phrases.share(program.of_line, max(program.equations, program.of_line, 1))
    return f"{share} of its {phrases.counted(program.equations, 'equation')} come"
