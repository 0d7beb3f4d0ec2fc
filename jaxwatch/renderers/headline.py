"""The first line of a report, which of a healthy program is the only one; and ``--quiet``'s."""

import os
from collections.abc import Sequence

from jaxwatch._report_data import Report
from jaxwatch.renderers import phrases, worth
from jaxwatch.renderers.cells import clean

_PROGRAMS_NAMED = 2
# Ops outside jit are named in the healthy line from this share of the compile time on.
_EAGER_SHARE = 0.1


def folder_of(report: Report) -> str:
    """Return the folder that paths are told relative to: the report's, or else the program's."""
    return report.folder or folder_of_programs(report.programs)


def folder_of_programs(programs: Sequence[str]) -> str:
    """Return the folder of the first program, or "" where it is not known."""
    program = programs[0] if programs else ""
    return os.path.dirname(program) if os.path.isabs(program) else ""


def parts(report: Report) -> list[str]:
    """Return the headline in the pieces at which a line may end."""
    wall, compiling = report.wall_seconds, report.compile_seconds
    told = phrases.duration(compiling)
    ended = " to its last event" if report.unfinished and report.processes == 1 else ""
    head = [*_who(report), phrases.duration(wall) + ended] if wall else _who(report)
    if report.healthy:
        pieces = [healthy(report)]
    else:
        # Where several threads compiled at once, or the time is not known, there is no share to tell.
        pieces = [
            f"{told} ({phrases.share(compiling, wall)}) of it compiling"
            if wall >= compiling > 0
            else f"{told} compiling"
        ]
        if report.again_seconds:
            pieces.append(f"{phrases.duration(report.again_seconds)} of that again and again")
    if wall:
        return [" · ".join(head), *pieces]
    return [" · ".join([*head, pieces[0]]), *pieces[1:]]


def one_line(report: Report) -> str:
    """Return the whole report in one line: the headline, and the dearest finding, or what a jit is worth."""
    line = ", ".join(parts(report))
    if not report.findings:
        notable = next((one for one in report.worth if one.notable), None)
        return line if notable is None else f"{line}. {worth.title(notable)}"
    folder = folder_of(report)
    first = report.findings[0]
    title = phrases.titles(first, folder)[-1]
    price = f" ({phrases.duration(first.seconds)})" if first.seconds else ""
    number = len(report.findings)
    return f"{line}. {'1 finding' if number == 1 else f'{number:,} findings, the first'}: {title}{price}"


def _who(report: Report) -> list[str]:
    folder = folder_of(report)
    names = [phrases.place(program, folder) for program in report.programs] or ["unnamed program"]
    more = len(names) - _PROGRAMS_NAMED
    told = ["jaxwatch", ", ".join(names[:_PROGRAMS_NAMED]) + (f" and {more:,} more" if more > 0 else "")]
    if report.processes > 1:
        told.append(f"{report.processes:,} processes together")
        if report.unfinished:
            told.append(f"{report.unfinished:,} without an end in the log")
    elif report.unfinished:
        told.append("no end in the log")
    if report.exit_codes:
        codes = ", ".join(str(code) for code, _ in report.exit_codes[:_PROGRAMS_NAMED])
        told.append(f"exit code {codes}")
    return [clean(piece) for piece in told]


def healthy(report: Report) -> str:
    """Return what a program with nothing to improve is told, without its name and how long it ran."""
    told = phrases.duration(report.compile_seconds)
    wall, compiling = report.wall_seconds, report.compile_seconds
    compiled = [row for row in report.functions if row.misses]
    if not compiled and not report.eager_count:
        nothing = "nothing compiled in it."  # children that were spawned are not seen
        return f"{told} compiling, all of it ahead of time. Nothing to improve." if compiling else nothing
    of_it = f" ({phrases.share(compiling, wall)})" if wall and compiling <= wall else ""
    number = phrases.counted(len(compiled), "function")
    if not compiled:
        what = f"{phrases.counted(report.eager_count, 'op')} outside jit, no watched function"
    elif all(row.most_misses == 1 for row in compiled):
        what = f"each of {number} once" if len(compiled) > 1 else f"{number} once"
        what += " in each process" if report.processes > 1 else ""
    else:
        what = f"{phrases.counted(sum(row.misses for row in compiled), 'first call')} of {number}"
    if compiled and report.eager_seconds >= _EAGER_SHARE * compiling:
        what += f", {phrases.counted(report.eager_count, 'op')} outside jit {phrases.duration(report.eager_seconds)}"
    return f"{told}{of_it} compiling, {what}. Nothing to improve."
