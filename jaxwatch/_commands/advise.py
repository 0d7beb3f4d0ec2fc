"""``jaxwatch advise``."""

import click

from jaxwatch._commands.programs import REST, checked


@click.command(context_settings=REST, short_help="Measure which functions of a program to jit.")
@click.option("--functions", metavar="F,G", help="The jitted functions that may run without jit; all of the program's.")
@click.option("--budget", type=float, default=600.0, metavar="SECONDS", help="Begin no run that would end later; 600.")
@click.option("--calls", type=click.IntRange(1), metavar="N", help="End each run after N outermost calls.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON.")
@click.option("--html", "html_file", metavar="FILE", help="Write a page with a plot.")
@click.option("--png", "png_file", metavar="FILE", help="Write the plot.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.argument("program", callback=checked)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def advise(  # noqa: PLR0913 -- one for each option
    *,
    functions: str | None,
    budget: float,
    calls: int | None,
    yes: bool,
    json_file: str | None,
    html_file: str | None,
    png_file: str | None,
    module: bool,
    program: str,
    args: tuple[str, ...],
) -> int:
    """Run PROGRAM with ARGS (or module:function) many times, with other functions of it jitted, and say what is best.

    Each run is a process of its own with a cold compile cache. The program's side effects happen each time.
    """
    from jaxwatch._advise import command as advise_command  # noqa: PLC0415 -- the other commands need none of it

    chosen = None if functions is None else [name.strip() for name in functions.split(",") if name.strip()]
    return advise_command.start(
        [program, *args],
        module=module,
        functions=chosen,
        budget_seconds=budget,
        calls=calls,
        yes=yes,
        json_file=json_file,
        html_file=html_file,
        png_file=png_file,
    )
