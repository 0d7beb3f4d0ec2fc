"""``jaxwatch run``."""

import os
from collections.abc import Callable

import click

from jaxwatch._commands.programs import REST, checked
from jaxwatch._output_file import clash


def overwritten(program: str, *, log: str | None, html: str | None) -> str | None:
    """Return what is wrong where a file is to be written over the program or over the other; None: nothing."""
    return clash({"--log": log, "--html": html}, (program,) if os.path.isfile(program) else ())


@click.command(context_settings=REST, short_help="Run a program and report what it recompiled.")
@click.option("--log", metavar="FILE", help="Append the events to FILE, for `jaxwatch report`.")
@click.option("--html", metavar="FILE", help="Write the report at its end as a page, too.")
@click.option("--quiet", is_flag=True, help="Report in one line, and say nothing before.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="Serve the metrics at port N; 0: a free one.")
@click.option("--push", metavar="URL", help="Push the metrics to that Pushgateway, also at the end.")
@click.option("--job", metavar="NAME", help="The job that is pushed; by default the program's name.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.argument("program", callback=checked)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(  # noqa: PLR0913 -- one for each option
    *,
    log: str | None,
    html: str | None,
    quiet: bool,
    port: int | None,
    push: str | None,
    job: str | None,
    module: bool,
    program: str,
    args: tuple[str, ...],
) -> Callable[[], int]:
    """Run PROGRAM with ARGS as `python PROGRAM ARGS` would, and report on stderr at its end."""
    if job is not None and push is None:
        raise click.UsageError("--job names what is pushed: it needs --push URL.")
    if html == "-":
        raise click.UsageError("--html writes no page to stdout, which is the program's: give a FILE.")
    if (problem := overwritten(program, log=log, html=html)) is not None:
        raise click.UsageError(problem)
    from jaxwatch._runner import start  # noqa: PLC0415 -- `report` needs none of it

    return start([program, *args], module=module, log=log, html=html, quiet=quiet, port=port, push=push, job=job)
