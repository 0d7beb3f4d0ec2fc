"""``jaxwatch doctor``."""

import sys

import click

from jaxwatch._commands.output import written


@click.command(short_help="Say whether jaxwatch works here, and what to mend.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def doctor(*, as_json: bool) -> int:
    """Say whether jaxwatch works here, and what to mend.

    Jits and calls a tiny function, which starts JAX's default backend (JAX_PLATFORMS=cpu: the CPU's). The exit code is
    0 where all is well, 1 where something is to mend.
    """
    from jaxwatch import _doctor  # noqa: PLC0415 -- `run` and `report` need none of it

    checks = _doctor.examine()
    write = _doctor.write_json if as_json else _doctor.write
    return written(lambda: write(checks, sys.stdout)) or int(bool(_doctor.to_mend(checks)))
