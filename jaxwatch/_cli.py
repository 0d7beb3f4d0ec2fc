"""The command ``jaxwatch``: parses, and hands on. Imports no jax, and nothing that a subcommand does not need."""

import sys

_CLICK_WAS_THERE = "click" in sys.modules

from collections.abc import Sequence  # noqa: E402 -- the line above must come first

import click  # noqa: E402

from jaxwatch._commands import advise, diff, doctor, files, lint, live, report, run, scaling  # noqa: E402
from jaxwatch._commands.output import FAILED  # noqa: E402
from jaxwatch.errors import JaxwatchError  # noqa: E402

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; what a program under ``run`` raises comes out as it is."""
    try:
        done = command.main(None if argv is None else list(argv), prog_name="jaxwatch", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return FAILED
    except click.Abort:  # Ctrl-C, while a log was read
        return _INTERRUPTED
    except JaxwatchError as error:
        sys.stderr.write(f"jaxwatch: {error}\n")
        return FAILED
    if not callable(done):
        return int(done or 0)
    if not _CLICK_WAS_THERE:  # the program may have a click.py of its own beside it
        for name in [name for name in sys.modules if name.partition(".")[0] == "click"]:
            del sys.modules[name]
    result: int = done()  # outside click, which would turn Ctrl-C into its own Abort; and outside of all `except`
    return result


def _print_version(context: click.Context, _option: click.Parameter, value: bool) -> None:  # noqa: FBT001 -- click's
    if value:
        from importlib import metadata  # noqa: PLC0415 -- slow, and needed here alone

        try:
            version = metadata.version("jaxwatch")
        except metadata.PackageNotFoundError:
            version = "of a checkout that is not installed"
        click.echo(f"jaxwatch {version}")
        context.exit()


@click.group(name="jaxwatch", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Show it.")
def command() -> None:
    """See what JAX recompiles, why, what it costs, and what to change."""


for _one in (
    run.run,
    report.report,
    diff.diff,
    live.top,
    advise.advise,
    scaling.scaling,
    lint.lint,
    live.exporter,
    files.export_logs,
    files.dashboards,
    doctor.doctor,
):
    command.add_command(_one)
