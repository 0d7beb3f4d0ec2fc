"""A virtual environment for each package: this checkout's jaxwatch, the package, what its tests need, its sources."""

import json
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.suites.packages import Package

CHECKOUT = Path(__file__).parents[2]
_BUILT_OF = ("jaxwatch", "grafana", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
_VERSIONS = """
import json, platform
from importlib.metadata import version
print(json.dumps({"python": platform.python_version(), **{name: version(name) for name in %r}}))
"""


class NotPreparedError(Exception):
    """A package cannot be tested: it cannot be installed, or its sources, as its index has them, hold no tests."""


class Base(NamedTuple):
    """What all environments have in common.

    Attributes:
        python: Makes them.
        jax: Its version.
        jaxwatch: The wheel.
    """

    python: str
    jax: str
    jaxwatch: Path


class Prepared(NamedTuple):
    """A package, ready to be tested."""

    package: Package
    python: Path
    tree: Path
    versions: dict[str, str]  # of python, jax, jaxwatch and the package itself


def wheel(folder: Path, python: str) -> Path:
    """Build this checkout's wheel, from a copy, so that nothing is left in the checkout."""
    copy, built = folder / "jaxwatch_sources", folder / "wheel"
    for old in (copy, built):
        shutil.rmtree(old, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in _BUILT_OF:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "node_modules"))
        else:
            shutil.copy(source, copy / name)
    _call([python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(built), str(copy)])
    return next(built.glob("jaxwatch-*.whl"))


def prepare(package: Package, folder: Path, base: Base, *, tree: Path | None = None) -> Prepared:
    """Make the environment in ``folder``, or take the one that is there already; jaxwatch is installed anew.

    Args:
        package: Which one.
        folder: Of this package alone.
        base: What it has beside the package.
        tree: A checkout of the package, with its tests; None: its sdist, of the version that was installed.

    Raises:
        NotPreparedError: The sdist has no tests, or something cannot be installed.
    """
    own = folder / "venv" / "bin" / "python"
    wanted = [f"jax=={base.jax}", package.name, "pytest", *package.requires]
    ready = folder / "venv" / "ready.json"
    if not ready.exists() or json.loads(ready.read_text()) != [base.python, wanted]:
        shutil.rmtree(folder / "venv", ignore_errors=True)
        _call([base.python, "-m", "venv", str(folder / "venv")])
        _call([str(own), "-m", "pip", "install", "-q", *wanted, str(base.jaxwatch)])
        ready.write_text(json.dumps([base.python, wanted]))
    _call([str(own), "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(base.jaxwatch)])
    told = _call([str(own), "-c", _VERSIONS % (("jax", "jaxlib", "jaxwatch", package.name),)])
    versions: dict[str, str] = json.loads(told)
    found = tree or _sdist(package.name, versions[package.name], folder / "sdist", own)
    if not package.files(found):
        problem = f"the sdist of {package.name} {versions[package.name]} has no tests in {package.tests}/."
        raise NotPreparedError(f"{problem} Give a checkout of that version: --tree {package.name}=DIR.")
    return Prepared(package, own, found, versions)


def _sdist(name: str, version: str, folder: Path, python: Path) -> Path:
    archive = next(iter(folder.glob(f"*-{version}.tar.gz")), None)
    if archive is None:
        wanted = ["--no-deps", "--no-binary", name, "-d", str(folder), f"{name}=={version}"]
        _call([str(python), "-m", "pip", "download", "-q", *wanted])
        archive = next(folder.glob(f"*-{version}.tar.gz"))
    tree = folder / archive.name.removesuffix(".tar.gz")
    if not tree.exists():
        with tarfile.open(archive) as file:
            file.extractall(folder, filter="data")
    return tree


def _call(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 -- ours
    if done.returncode:
        raise NotPreparedError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout
