"""``jaxwatch report``."""

import os
import shlex
import sys

import click

from jaxwatch._commands.output import passed_over, written


@click.command(short_help="Report on event logs.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--all", "everything", is_flag=True, help="Small findings too, and nothing cut short.")
@click.option("--unknown", is_flag=True, help="A bug report on the misses without a known reason, ready to send.")
def report(*, logs: tuple[str, ...], everything: bool, unknown: bool) -> int:
    """Report on the event logs of one run or several, which --log or JAXWATCH_LOG wrote.

    LOG may also be a folder of them (*.jsonl, *.jsonl.gz), or the one that `jaxwatch export` made.
    """
    if unknown:
        return _report_unknown(logs)
    if len(logs) == 1 and os.path.isdir(os.path.join(logs[0], "cache_miss")):
        return _report_folder(logs[0], everything=everything)
    from jaxwatch._reader import read_log  # noqa: PLC0415 -- `run` needs none of it
    from jaxwatch._report import ReportBuilder  # noqa: PLC0415
    from jaxwatch.errors import LogUnreadableError  # noqa: PLC0415
    from jaxwatch.renderers import RENDERERS  # noqa: PLC0415

    reading, builder = read_log(logs), ReportBuilder()
    for record in reading:
        faults = builder.faults
        builder.add(record)
        if builder.faults > faults:
            reading.fault(f"is a malformed {record['event']}")
    faulty = passed_over(reading.faults, reading.named)
    if not reading.events:
        problem = f"no event in {', '.join(logs)}" + (f"; {faulty}." if reading.faults else ": nothing was written.")
        raise LogUnreadableError(problem, "Give a log that --log or JAXWATCH_LOG wrote.")
    more = f"jaxwatch report {shlex.join(logs)} --all"
    found = builder.build(program=os.path.basename(logs[0]))
    code = written(lambda: RENDERERS["terminal"](found, sys.stdout, everything=everything, more=more))
    if reading.faults:
        left_out = reading.faults - len(reading.named)
        sys.stderr.write(f"jaxwatch: {faulty}{f'; and {left_out:,} more' if left_out else ''}\n")
    return code


def _report_folder(folder: str, *, everything: bool) -> int:
    from jaxwatch._columnar.report import report_on  # noqa: PLC0415 -- an extra, duckdb, is needed for it
    from jaxwatch.renderers import RENDERERS  # noqa: PLC0415 -- as above

    found, faults, named = report_on(folder)
    more = f"jaxwatch report {shlex.quote(folder)} --all"
    code = written(lambda: RENDERERS["terminal"](found, sys.stdout, everything=everything, more=more))
    if faults:
        sys.stderr.write(f"jaxwatch: {passed_over(faults, named)}\n")
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
