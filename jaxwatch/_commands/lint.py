"""``jaxwatch lint``."""

import sys

import click

from jaxwatch._commands.output import written


@click.command("lint", short_help="Find in source files what freezes or fails when JAX traces it.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--pedantic", is_flag=True, help="Also what may be right.")
@click.option("--select", default="", metavar="CODES", help="These alone, as JW101,JW3 (all that begin so).")
@click.option("--ignore", default="", metavar="CODES", help="All but these.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Leave out such files and folders; may be repeated.")
@click.option("--output-format", type=click.Choice(["text", "json", "sarif"]), default="text", help="text")
def lint(  # noqa: PLR0913 -- one for each option
    *, paths: tuple[str, ...], pedantic: bool, select: str, ignore: str, exclude: tuple[str, ...], output_format: str
) -> int:
    """Find in PATHs (files, folders, notebooks) what freezes or fails when JAX traces it; nothing is run or imported.

    The exit code is 0 where nothing is found, 1 where something is, 2 where a path or an option is wrong.
    """
    from jaxwatch._lint import output  # noqa: PLC0415 -- the other commands need none of it
    from jaxwatch._lint.run import lint as look  # noqa: PLC0415 -- as above

    found = look(paths, pedantic=pedantic, select=select, ignore=ignore, exclude=exclude)
    text = output.rendered(found, output_format).encode("utf-8", "backslashreplace").decode()
    return written(lambda: _put(text)) or int(bool(found.findings))


def _put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
