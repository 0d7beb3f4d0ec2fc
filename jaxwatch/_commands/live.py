"""``jaxwatch top`` and ``jaxwatch exporter``: what is being written now."""

import contextlib
import sys

import click

from jaxwatch._commands.output import written


@click.command(short_help="Show what is being recompiled now.")
@click.argument("targets", nargs=-1, metavar="[URL | LOG...]")
@click.option("--once", is_flag=True, help="Print one frame and end, as where stdout is no terminal.")
@click.option("--every", type=click.FloatRange(0.1, 3600), default=1.0, metavar="SECONDS", help="Between two frames.")
def top(*, targets: tuple[str, ...], once: bool, every: float) -> int:
    """Show what is being recompiled now, until q or Ctrl-C.

    URL is that of a process under `jaxwatch run --port` or `jaxwatch.serve`, or its port; by default
    http://127.0.0.1:9464. LOGs are followed while they grow; of a folder all of its *.jsonl.
    """
    from jaxwatch import _top  # noqa: PLC0415 -- `run` and `report` need none of it

    source = _top.source_of(targets)
    return written(lambda: _top.show(source, sys.stdout, once=once, every=every))


@click.command(short_help="Serve the metrics of all processes of a host, out of their logs.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--port", type=click.IntRange(0, 65_535), default=9464, metavar="N", help="9464; 0: a free one.")
@click.option("--addr", default="127.0.0.1", metavar="ADDRESS", help="127.0.0.1; another one can be reached by others.")
def exporter(*, logs: tuple[str, ...], port: int, addr: str) -> int:
    """Serve the metrics of all processes that write LOGs, summed, those that died included, until Ctrl-C.

    A LOG may be a file, a pattern or a folder (of *.jsonl), and need not be there yet.
    """
    from jaxwatch._exporter import LogExporter  # noqa: PLC0415 -- the other commands need none of it

    with LogExporter(logs, port, addr) as serving:
        click.echo(f"jaxwatch: metrics of {', '.join(logs)} on http://{addr}:{serving.port}/metrics", err=True)
        with contextlib.suppress(KeyboardInterrupt):
            serving.run()
    return 0
