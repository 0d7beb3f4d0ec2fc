"""The command ``jaxwatch``: parses, and hands on. Imports no jax, and nothing that a subcommand does not need."""

import os
import sys

_CLICK_WAS_THERE = "click" in sys.modules

import contextlib  # noqa: E402 -- the line above must come first
import shlex  # noqa: E402 -- the line above must come first
from collections.abc import Callable, Sequence  # noqa: E402

import click  # noqa: E402

from jaxwatch.errors import JaxwatchError  # noqa: E402

_FAILED = 2
_INTERRUPTED = 130
_REST = {"ignore_unknown_options": True, "allow_interspersed_args": False}  # what follows the program is its own


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code; what a program under ``run`` raises comes out as it is."""
    try:
        done = command.main(None if argv is None else list(argv), prog_name="jaxwatch", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return _FAILED
    except click.Abort:  # Ctrl-C, while a log was read
        return _INTERRUPTED
    except JaxwatchError as error:
        sys.stderr.write(f"jaxwatch: {error}\n")
        return _FAILED
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


@command.command(context_settings=_REST, short_help="Run a program and report what it recompiled.")
@click.option("--log", metavar="FILE", help="Append the events to FILE, for `jaxwatch report`.")
@click.option("--quiet", is_flag=True, help="Report in one line, and say nothing before.")
@click.option("--port", type=click.IntRange(0, 65_535), metavar="N", help="Serve the metrics at port N; 0: a free one.")
@click.option("--push", metavar="URL", help="Push the metrics to that Pushgateway, also at the end.")
@click.option("--job", metavar="NAME", help="The job that is pushed; by default the program's name.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.argument("program")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(  # noqa: PLR0913 -- one for each option
    *,
    log: str | None,
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
    from jaxwatch._runner import start  # noqa: PLC0415 -- `report` needs none of it

    return start([program, *args], module=module, log=log, quiet=quiet, port=port, push=push, job=job)


@command.command(context_settings=_REST, short_help="Measure which functions of a program to jit.")
@click.option("--functions", metavar="F,G", help="The jitted functions that may run without jit; all of the program's.")
@click.option("--budget", type=float, default=600.0, metavar="SECONDS", help="Begin no run that would end later; 600.")
@click.option("--calls", type=click.IntRange(1), metavar="N", help="End each run after N outermost calls.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "json_file", metavar="FILE", help="Write what was found as JSON.")
@click.option("--html", "html_file", metavar="FILE", help="Write a page with a plot.")
@click.option("--png", "png_file", metavar="FILE", help="Write the plot.")
@click.option("-m", "module", is_flag=True, help="PROGRAM is a module, as for python -m.")
@click.argument("program")
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


@command.command(short_help="Report on event logs.")
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
    passed_over = _passed_over(reading.faults, reading.named)
    if not reading.events:
        problem = f"no event in {', '.join(logs)}" + (
            f"; {passed_over}." if reading.faults else ": nothing was written."
        )
        raise LogUnreadableError(problem, "Give a log that --log or JAXWATCH_LOG wrote.")
    more = f"jaxwatch report {shlex.join(logs)} --all"
    found = builder.build(program=os.path.basename(logs[0]))
    code = _written(lambda: RENDERERS["terminal"](found, sys.stdout, everything=everything, more=more))
    if reading.faults:
        left_out = reading.faults - len(reading.named)
        sys.stderr.write(f"jaxwatch: {passed_over}{f'; and {left_out:,} more' if left_out else ''}\n")
    return code


def _report_folder(folder: str, *, everything: bool) -> int:
    from jaxwatch._columnar.report import report_on  # noqa: PLC0415 -- an extra, duckdb, is needed for it
    from jaxwatch.renderers import RENDERERS  # noqa: PLC0415 -- as above

    found, faults, named = report_on(folder)
    more = f"jaxwatch report {shlex.quote(folder)} --all"
    code = _written(lambda: RENDERERS["terminal"](found, sys.stdout, everything=everything, more=more))
    if faults:
        sys.stderr.write(f"jaxwatch: {_passed_over(faults, named)}\n")
    return code


def _passed_over(faults: int, named: Sequence[str]) -> str:
    return f"{faults:,} line{'' if faults == 1 else 's'} passed over: {'; '.join(named)}"


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
    return _written(lambda: put(text.encode("utf-8", "backslashreplace").decode(), sys.stdout))


@command.command(short_help="Show what is being recompiled now.")
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
    return _written(lambda: _top.show(source, sys.stdout, once=once, every=every))


@command.command("export", short_help="Write event logs as Parquet files, for logs too large for one reader.")
@click.argument("logs", nargs=-1, required=True, metavar="LOG...")
@click.option("--parquet", "folder", required=True, metavar="DIR", help="A new folder, for `jaxwatch report DIR`.")
@click.option("--memory", default="1GB", metavar="SIZE", help="What DuckDB may use; 1GB.")
def export_logs(*, logs: tuple[str, ...], folder: str, memory: str) -> int:
    """Write the events of LOGs (files, patterns, also .gz) to DIR as Parquet, a folder for each kind of event."""
    from jaxwatch._columnar.export import export  # noqa: PLC0415 -- an extra, duckdb, is needed for it

    done = export(logs, folder, memory=memory)
    click.echo(
        f"{done.events:,} events of {done.logs:,} logs written to {folder}: jaxwatch report {shlex.quote(folder)}"
    )
    if done.faults:
        sys.stderr.write(f"jaxwatch: {_passed_over(done.faults, done.named)}\n")
    return 0


@command.command(short_help="Serve the metrics of all processes of a host, out of their logs.")
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


@command.command(short_help="Measure how a function's compile time grows with its size.")
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
    return _written(lambda: put("\n".join(text.lines(found)), sys.stdout))


@command.group(short_help="Dashboards, rules and alerts for Grafana and Prometheus.")
def dashboards() -> None:
    """Dashboards, recording rules and alerts for Grafana and Prometheus."""


@dashboards.command("export", short_help="Write them to a folder.")
@click.argument("folder", metavar="DIR")
@click.option("--force", is_flag=True, help="Overwrite files of that name that differ.")
def export_dashboards(*, folder: str, force: bool) -> int:
    """Write dashboards, rules, alerts, a runbook and a provisioning example to DIR."""
    from pathlib import Path  # noqa: PLC0415 -- as above

    from jaxwatch import _bundle  # noqa: PLC0415

    written = _bundle.export(Path(folder), force=force)
    told = f"{len(written)} files written to {folder}" if written else f"{folder} has all of it already"
    click.echo(f"{told}.\n{_bundle.next_steps(Path(folder))}", nl=False)
    return 0


@command.command("lint", short_help="Find in source files what freezes or fails when JAX traces it.")
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
    return _written(lambda: _put(text)) or int(bool(found.findings))


def _put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


@command.command(short_help="Say whether jaxwatch works here, and what to mend.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
def doctor(*, as_json: bool) -> int:
    """Say whether jaxwatch works here, and what to mend.

    Jits and calls a tiny function, which starts JAX's default backend (JAX_PLATFORMS=cpu: the CPU's). The exit code is
    0 where all is well, 1 where something is to mend.
    """
    from jaxwatch import _doctor  # noqa: PLC0415 -- `run` and `report` need none of it

    checks = _doctor.examine()
    write = _doctor.write_json if as_json else _doctor.write
    return _written(lambda: write(checks, sys.stdout)) or int(bool(_doctor.to_mend(checks)))


def _written(write: Callable[[], None]) -> int:
    """Write to stdout, and return the exit code."""
    if sys.stdout is None:  # closed by who started us
        return 0
    try:
        write()
    except JaxwatchError:
        raise
    except OSError as error:
        # What is still buffered would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `| head` has seen enough
            return 0
        reason = (error.strerror or str(error)).lower()
        sys.stderr.write(f"jaxwatch: cannot write the report to stdout: {reason}.\n")
        return _FAILED
    return 0
