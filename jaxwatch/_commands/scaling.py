"""``jaxwatch scaling``."""

import sys

import click

from jaxwatch._commands.output import written


@click.command(short_help="Measure how a function's compile time grows with its size.")
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option("--sizes", required=True, metavar="N,N,N[,...]", help="At least three; 8,16,32,64 say.")
@click.option(
    "--budget", type=click.FloatRange(1, 86_400), default=60.0, metavar="SECONDS", help="Stop after these; 60."
)
@click.option("--json", "as_json", metavar="FILE", help="Write all figures there too.")
def scaling(*, target: str, sizes: str, budget: float, as_json: str | None) -> int:
    """Measure equations and seconds of tracing, lowering and compiling at each size, and how they grow.

    FUNCTION takes a size and returns a function to jit, and a tuple of its arguments; or it is itself to be jitted, for
    a static int. Each measurement is a fresh process.
    """
    from jaxwatch import _scaling  # noqa: PLC0415 -- the other commands need none of it
    from jaxwatch.renderers import scaling as text  # noqa: PLC0415
    from jaxwatch.renderers.terminal import put  # noqa: PLC0415

    found = _scaling.measure(target, _scaling.sizes_of(sizes), budget)
    if as_json is not None:
        _scaling.write_json(found, as_json)
    return written(lambda: put("\n".join(text.lines(found)), sys.stdout))
