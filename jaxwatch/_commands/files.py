"""``jaxwatch export`` and ``jaxwatch dashboards``: files for other programs."""

import shlex
import sys

import click

from jaxwatch._commands.output import passed_over


@click.command("export", short_help="Write event logs as Parquet files, for logs too large for one reader.")
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
        sys.stderr.write(f"jaxwatch: {passed_over(done.faults, done.named)}\n")
    return 0


@click.group(short_help="Dashboards, rules and alerts for Grafana and Prometheus.")
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
