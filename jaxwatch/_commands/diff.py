"""``jaxwatch diff``."""

import json
import math
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import click

from jaxwatch._commands.output import passed_over, written
from jaxwatch._commands.progress import told
from jaxwatch._output_file import clash

if TYPE_CHECKING:
    from jaxwatch._compare.data import Comparison
    from jaxwatch._compare.side import Side


class _Limit(click.FloatRange):
    """A number from 0; NaN, which nothing exceeds, is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is no limit: nothing is beyond it.", param, ctx)
        return number


@click.command("diff", short_help="Compare two runs: new misses, slower compiles, other versions.")
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@click.option("--all", "everything", is_flag=True, help="Each function, and nothing cut short.")
@click.option("--json", "as_json", metavar="FILE", help="All figures. - for stdout.")
@click.option("--markdown", metavar="FILE", help="For a comment on a pull request. - for stdout.")
@click.option("--max-new-misses", type=click.IntRange(0), default=0, metavar="N", help="B's that A did not have; 0.")
@click.option("--max-misses", type=click.IntRange(0), metavar="N", help="B's, in all.")
@click.option("--max-compile-seconds", type=_Limit(0), metavar="S", help="B's, in all.")
@click.option("--max-slowdown", type=_Limit(0), metavar="PERCENT", help="Seconds of compiling beyond A's.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 also beyond a limit.")
def diff(  # noqa: PLR0913 -- one for each option
    *,
    before: str,
    after: str,
    everything: bool,
    as_json: str | None,
    markdown: str | None,
    exit_zero: bool,
    **limits: float | None,
) -> int:
    """Compare run B with run A, each a log (also .gz), or a folder of the logs of one job.

    The exit code is 0 within the limits, 1 beyond one, 2 where something is wrong. By default no new miss is allowed:
    none but first calls, and of a longer run none that come as often as before.
    """
    if as_json == "-" == markdown:
        raise click.UsageError("stdout has room for one form: give --json or --markdown a FILE.")
    if (problem := clash({"--json": as_json, "--markdown": markdown}, (before, after))) is not None:
        raise click.UsageError(problem)
    from jaxwatch._compare.comparison import compare  # noqa: PLC0415 -- the other commands need none of it
    from jaxwatch._compare.limits import Limits, exceeded  # noqa: PLC0415

    found = compare(_side(before), _side(after))
    beyond = exceeded(found, Limits(**limits))  # type: ignore[arg-type]  # click has read them as their kinds
    code = _write(found, beyond, {"json": as_json, "markdown": markdown}, everything=everything)
    return code or (0 if exit_zero else int(bool(beyond)))


def _side(path: str) -> "Side":
    from jaxwatch._compare.side import SideBuilder  # noqa: PLC0415 -- as above
    from jaxwatch._reader import read_log  # noqa: PLC0415
    from jaxwatch.errors import LogUnreadableError  # noqa: PLC0415

    reading, builder = read_log([path]), SideBuilder()
    for record in told(reading):
        faults = builder.faults
        builder.add(record)
        if builder.faults > faults:
            reading.fault(f"is a malformed {record['event']}")
    faulty = passed_over(reading.faults, reading.named) if reading.faults else ""
    if not reading.events:
        problem = f"no event in {path}" + (f"; {faulty}." if faulty else ": nothing was written.")
        raise LogUnreadableError(problem, "Give a log that --log or JAXWATCH_LOG wrote.")
    if faulty:
        sys.stderr.write(f"jaxwatch: {faulty}\n")
    return builder.build(program=os.path.basename(path))


def _write(found: "Comparison", beyond: tuple[str, ...], files: Mapping[str, str | None], *, everything: bool) -> int:
    """Write each file, and what people read to stdout, unless one of the files is that."""
    from jaxwatch import _output_file  # noqa: PLC0415 -- as above

    writers: dict[str, Callable[[TextIO], None]] = {
        "json": partial(_write_json, found, beyond),
        "markdown": partial(_write_markdown, found, beyond),
        "text": partial(_write_text, found, beyond, everything),
    }
    code = 0
    for form, path in {**files, **({} if "-" in files.values() else {"text": "-"})}.items():
        if path == "-":
            code = written(partial(writers[form], sys.stdout)) or code
        elif path is not None:
            _output_file.put(path, f"--{form}", writers[form])
    return code


def _write_json(found: "Comparison", beyond: tuple[str, ...], stream: TextIO) -> None:
    from jaxwatch._compare.data import to_json  # noqa: PLC0415 -- as above

    json.dump(to_json(found, beyond), stream, indent=1, allow_nan=False)
    stream.write("\n")
    stream.flush()


def _write_markdown(found: "Comparison", beyond: tuple[str, ...], stream: TextIO) -> None:
    from jaxwatch.renderers import comparison_markdown  # noqa: PLC0415 -- as above
    from jaxwatch.renderers.terminal import put  # noqa: PLC0415

    put(comparison_markdown.text(found, beyond), stream)


def _write_text(found: "Comparison", beyond: tuple[str, ...], everything: bool, stream: TextIO) -> None:  # noqa: FBT001 -- an option
    from jaxwatch.renderers import comparison, terminal  # noqa: PLC0415 -- as above

    terminal.show(lambda columns: comparison.lines(found, beyond, columns=columns, everything=everything), stream)
