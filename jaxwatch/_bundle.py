"""What comes with jaxwatch for Grafana and Prometheus, and ``jaxwatch dashboards export``. Imports no jax."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from jaxwatch.errors import BundleError

_PATTERNS = ("dashboards/*.json", "rules/*.yml", "alerts/*.yml", "provisioning/*/*.yml", "runbook.md", "METRICS.md")


def bundle() -> Path:
    """Return the folder that holds it: within the package, or ``grafana/`` of a checkout.

    Raises:
        BundleError: It is in neither.
    """
    package = Path(__file__).parent
    for folder in (package / "_grafana", package.parent / "grafana"):
        if (folder / "dashboards").is_dir():
            return folder
    problem = f"the dashboards are not in {package}, where this jaxwatch is installed."
    raise BundleError(problem, "Install jaxwatch by pip, from a wheel or a checkout.")


def files(folder: Path) -> Iterator[Path]:
    """Yield the files of the bundle in ``folder``, relative to it, sorted."""
    yield from sorted(path.relative_to(folder) for pattern in _PATTERNS for path in folder.glob(pattern))


def export(target: Path, *, force: bool = False) -> list[Path]:
    """Write the bundle to a folder; return the files that were written, those that were the same left out.

    Args:
        target: The folder; made where it is missing.
        force: Whether to overwrite files that differ: of an earlier version, or changed by the user.

    Raises:
        BundleError: A file differs and ``force`` is not given, or the folder cannot be written. Nothing is half done in
            the former case.
    """
    source = bundle()
    try:
        new = [path for path in files(source) if not _same(source / path, target / path)]
        changed = [path for path in new if (target / path).exists()]
        if changed and not force:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            problem = f"{target / changed[0]}{more} differs from what comes with this version."
            raise BundleError(problem, "Give --force to overwrite what differs, or another folder.")
        for path in new:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes((source / path).read_bytes())
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise BundleError(f"cannot write to {target}: {reason}.", "Give a folder that you may write to.") from error
    return new


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def next_steps(target: Path) -> str:
    """Return what to do with an exported folder."""
    folder, here = target.absolute(), shlex.quote(str(target))
    return f"""\
Prometheus: add to prometheus.yml, and send it SIGHUP
  rule_files: ["{folder}/rules/*.yml", "{folder}/alerts/*.yml"]
Grafana: import {target}/dashboards/*.json by hand, or have it load them
  sudo mkdir -p /var/lib/grafana/dashboards && sudo cp -rT {here}/dashboards /var/lib/grafana/dashboards/jaxwatch
  sudo cp {here}/provisioning/dashboards/*.yml /etc/grafana/provisioning/dashboards/
  sudo systemctl restart grafana-server
"""
