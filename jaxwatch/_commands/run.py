"""``jaxwatch run``."""

import os
from collections.abc import Callable

import click

from jaxwatch._commands.programs import REST, checked


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
    if html is not None and log is not None and os.path.abspath(html) == os.path.abspath(log):
        raise click.UsageError(f"--html {html} would overwrite the log: give another FILE.")
    from jaxwatch._runner import start  # noqa: PLC0415 -- `report` needs none of it

    return start([program, *args], module=module, log=log, html=html, quiet=quiet, port=port, push=push, job=job)
