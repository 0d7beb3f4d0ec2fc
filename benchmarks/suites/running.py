"""A file of tests, run in a process of its own: plainly, or watched by one of jaxwatch's doors."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

from benchmarks.suites.environment import Prepared
from benchmarks.suites.outcomes import Outcome, read

FILE_SECONDS = 1800.0  # of one process; then it is killed
_PLUGINS = ("-p", "no:cacheprovider", "-p", "no:randomly", "--continue-on-collection-errors", "-p", "conditions")


class Door(StrEnum):
    """How jaxwatch comes into the process; in each case before jax is imported."""

    PLAIN = "plain"  # not at all: the plugin that pytest finds is switched off
    PYTEST = "pytest"  # pytest --jaxwatch
    RUN = "run"  # jaxwatch run -m pytest


class Run(NamedTuple):
    """One process.

    Attributes:
        outcomes: Test → outcome.
        seconds: From its start to its end, imports and all.
        log: jaxwatch's log; of a plain run no such file.
    """

    outcomes: dict[str, Outcome]
    seconds: float
    log: Path


class Runner:
    """Runs the tests of one package.

    Args:
        ready: The package, its environment and its sources, from which the tests import it.
        folder: For results; the plugin ``conditions`` lies in ``folder / "plugins"``.
        core: ``native`` or ``python``.
        resume: Whether what has ended before in this folder is taken as it came, and not run again.
    """

    def __init__(self, ready: Prepared, folder: Path, *, core: str, resume: bool = False) -> None:
        self._ready, self._folder, self._core, self._resume = ready, folder, core, resume

    def run(self, files: Sequence[str], door: Door, number: int = 0) -> Run:
        """Run these files in one process."""
        stem = f"{len(files)} files" if len(files) > 1 else files[0].replace("/", ".").removesuffix(".py")
        base = self._folder / f"{stem}.{door}.{number}"
        results, log, ended = (Path(f"{base}.{kind}") for kind in ("xml", "jsonl", "json"))
        if self._resume and ended.exists():
            how = json.loads(ended.read_text(encoding="utf-8"))
            return Run(_outcomes(results, how["code"], stem), how["seconds"], log)
        for old in (results, log, ended):
            old.unlink(missing_ok=True)
        started = time.perf_counter()
        with open(f"{base}.txt", "wb") as told:
            code = self._wait(self._command(files, door, results, log), self._environ(door, log), told.fileno())
        seconds = time.perf_counter() - started
        ended.write_text(json.dumps({"code": code, "seconds": seconds}), encoding="utf-8")
        return Run(_outcomes(results, code, stem), seconds, log)

    def _command(self, files: Sequence[str], door: Door, results: Path, log: Path) -> list[str]:
        jaxwatch = ("-m", "jaxwatch", "run", "--quiet", "--log", str(log)) if door is Door.RUN else ()
        plugin = ("--jaxwatch",) if door is Door.PYTEST else ("-p", "no:jaxwatch")
        kept = (f"--junitxml={results}", "-o", "junit_family=xunit1")
        return [
            str(self._ready.python),
            *jaxwatch,
            "-m",
            "pytest",
            *_PLUGINS,
            *plugin,
            *kept,
            *self._ready.package.options,
            *files,
        ]

    def _environ(self, door: Door, log: Path) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX", "PYTEST", "PYTHON"))}
        kept |= {"PYTHONPATH": str(self._folder / "plugins"), "PYTHONHASHSEED": "0", "JAX_PLATFORMS": "cpu"}
        if door is not Door.PLAIN:
            kept["JAXWATCH_CORE"] = self._core  # the native one is then an error where it cannot be had
        if door is Door.PYTEST:
            kept["JAXWATCH_LOG"] = str(log)
        return kept

    def _wait(self, command: list[str], environ: dict[str, str], told: int) -> int | None:
        """Return the exit code, or None where the process had to be killed, with all that it started."""
        process = subprocess.Popen(  # noqa: S603 -- ours
            command,
            cwd=self._ready.tree,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=told,
            start_new_session=True,
        )
        try:
            return process.wait(FILE_SECONDS)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _outcomes(results: Path, code: int | None, stem: str) -> dict[str, Outcome]:
    """Return what came of each test, and what came of the process where it did not end as pytest ends."""
    try:
        found = read(results.read_text(encoding="utf-8"))
    except (OSError, ET.ParseError):
        found = {}
    if code is None:
        found[f"{stem} (the process)"] = Outcome("stopped")
    elif code not in (0, 1, 5) or (not found and code != 5):  # noqa: PLR2004 -- passed, failed, none collected
        found[f"{stem} (the process)"] = Outcome("crashed", f"exit code {code}")
    return found
