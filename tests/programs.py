"""Programs that tests run in a process of their own."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
_NOT_HANDED_ON = ("JAX_", "XLA_", "JAXWATCH", "PYTHONPATH", "PYTHONHASHSEED", "COV_")


class Ended(NamedTuple):
    """How a program ended."""

    code: int
    out: str
    err: str

    def data(self) -> Any:
        """Return what its last line of output holds, as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out.splitlines()[-1])


def environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_HANDED_ON)}
    return {**kept, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **variables}


def run(program: str, *arguments: str, folder: Path | None = None, **variables: str) -> Ended:
    """Run a program text, in the folder, with these variables in its environment."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run_file(path: Path, *arguments: str, **variables: str) -> Ended:
    """Run a program that lies in a file, in its folder."""
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        cwd=path.parent,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def records(log: Path, event: str | None = None) -> list[dict[str, Any]]:
    """Return the records of a log, of one kind or all."""
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [record for record in found if event in (None, record["event"])]


HEARS_CTRL_C = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from jaxwatch._cli import main; sys.exit(main(sys.argv[1:]))"
)
"""The command ``jaxwatch``; it hears SIGINT also where a shell started the tests in the background."""
