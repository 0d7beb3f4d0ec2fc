"""``jaxwatch report``: a loop that reads, a builder, and a table of forms that the report is written in."""

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from jaxwatch._commands.output import passed_over, written
from jaxwatch._commands.progress import told
from jaxwatch._output_file import clash

if TYPE_CHECKING:
    from jaxwatch._records import Record
    from jaxwatch._report import Report

# Each takes a file: the option, which is also the renderer's name, and its help.
_FORMS: Mapping[str, str] = {
    "html": "One page for the browser, that needs nothing else.",
    "json": "All figures.",
    "markdown": "Short, for a comment on a pull request.",
}


def _forms(command: Callable[..., int]) -> Callable[..., int]:
    for form, described in reversed(list(_FORMS.items())):
        command = click.option(f"--{form}", metavar="FILE", help=f"{described} - for stdout.")(command)
    return command


@click.command(short_help="Report on event logs.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--all", "everything", is_flag=True, help="Small findings too, and nothing cut short.")
@_forms
@click.option("--perfetto", metavar="FILE", help="A trace for ui.perfetto.dev; packed where FILE ends in .gz.")
@click.option("--unknown", is_flag=True, help="A bug report on the misses without a known reason, ready to send.")
def report(*, logs: tuple[str, ...], everything: bool, perfetto: str | None, unknown: bool, **forms: str | None) -> int:
    """Report on the event logs of one run or several, which --log or JAXWATCH_LOG wrote.

    LOG may also be a folder of them (*.jsonl, *.jsonl.gz), or the one that `jaxwatch export` made.
    """
    files = {form: path for form, path in forms.items() if path is not None}
    if list(files.values()).count("-") > 1:
        raise click.UsageError("stdout has room for one form: give the others a FILE.")
    if unknown:
        if files or perfetto:
            raise click.UsageError(f"--unknown is a report of its own: it has no --{next(iter(files), 'perfetto')}.")
        return _report_unknown(logs)
    if perfetto == "-":
        raise click.UsageError("--perfetto writes no trace to stdout: give a FILE, as trace.json.gz.")
    outputs = {f"--{form}": path for form, path in files.items()} | {"--perfetto": perfetto}
    if (problem := clash(outputs, logs)) is not None:
        raise click.UsageError(problem)
    is_folder = len(logs) == 1 and os.path.isdir(os.path.join(logs[0], "cache_miss"))
    if is_folder and perfetto:
        raise click.UsageError("--perfetto needs logs: what `jaxwatch export` made has not all that it draws.")
    with _drawn(perfetto) as takers:
        found = _of_folder(logs[0]) if is_folder else _of_logs(logs, details=bool(files), takers=takers)
    return _write(found, files, everything=everything, more=f"jaxwatch report {shlex.join(logs)} --all")


@contextlib.contextmanager
def _drawn(path: str | None) -> "Iterator[Sequence[Callable[[Record], None]]]":
    """Yield what takes the records of a trace, if one is wanted."""
    if path is None:
        yield ()
        return
    from jaxwatch._trace_file import TraceFile  # noqa: PLC0415 -- as below

    with TraceFile(path) as file:
        yield (file.add,)
    sys.stderr.write(f"jaxwatch: {path} has a trace of {file.count:,} events: open it at https://ui.perfetto.dev\n")


class _Found(NamedTuple):
    """What the logs come to: the report, and what is to be said of the lines that were passed over."""

    report: "Report"
    passed_over: str


def _of_logs(logs: Sequence[str], *, details: bool, takers: Sequence[Callable[["Record"], None]] = ()) -> _Found:
    """Read the logs once: each record goes to the builder, and to each of ``takers``."""
    from jaxwatch._reader import read_log  # noqa: PLC0415 -- `run` needs none of it
    from jaxwatch._report import ReportBuilder  # noqa: PLC0415
    from jaxwatch.errors import LogUnreadableError  # noqa: PLC0415

    reading, builder = read_log(logs), ReportBuilder(details=details)
    for record in told(reading):
        faults = builder.faults
        builder.add(record)
        if builder.faults > faults:
            reading.fault(f"is a malformed {record['event']}")
        for take in takers:
            take(record)
    faulty = passed_over(reading.faults, reading.named)
    if not reading.events:
        problem = f"no event in {', '.join(logs)}" + (f"; {faulty}." if reading.faults else ": nothing was written.")
        raise LogUnreadableError(problem, "Give a log that --log or JAXWATCH_LOG wrote.")
    left_out = reading.faults - len(reading.named)
    passed = f"{faulty}{f'; and {left_out:,} more' if left_out else ''}" if reading.faults else ""
    return _Found(builder.build(program=os.path.basename(logs[0])), passed)


def _of_folder(folder: str) -> _Found:
    from jaxwatch._columnar.report import report_on  # noqa: PLC0415 -- an extra, duckdb, is needed for it

    found, faults, named = report_on(folder)
    return _Found(found, passed_over(faults, named) if faults else "")


def _write(found: _Found, files: Mapping[str, str], *, everything: bool, more: str) -> int:
    """Write each file, and what people read to stdout, unless one of the files is that."""
    from jaxwatch import _output_file  # noqa: PLC0415 -- as above
    from jaxwatch.renderers import RENDERERS  # noqa: PLC0415

    code = 0
    for form, path in {**files, **({} if "-" in files.values() else {"terminal": "-"})}.items():
        write = partial(RENDERERS[form], found.report, everything=everything, more=more)
        if path == "-":
            code = written(partial(write, sys.stdout)) or code
        else:
            _output_file.put(path, f"--{form}", write)
    if found.passed_over:
        sys.stderr.write(f"jaxwatch: {found.passed_over}\n")
    return code


def _report_unknown(logs: tuple[str, ...]) -> int:
    from jaxwatch._reader import read_log  # noqa: PLC0415 -- as above
    from jaxwatch._unknown import UnknownMisses  # noqa: PLC0415
    from jaxwatch.errors import LogUnreadableError  # noqa: PLC0415
    from jaxwatch.renderers.terminal import put  # noqa: PLC0415

    reading, found = read_log(logs), UnknownMisses()
    for record in reading:
        found.add(record)
    if not reading.events:
        raise LogUnreadableError(f"no event in {', '.join(logs)}.", "Give a log that --log or JAXWATCH_LOG wrote.")
    text = found.report() or "Every miss in the log has a reason: there is nothing to send."
    return written(lambda: put(text.encode("utf-8", "backslashreplace").decode(), sys.stdout))
