"""Starts one run in a process of its own, with a cold compile cache, and returns what it came to."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jaxwatch import _scope
from jaxwatch._advise.outcome import Order, Outcome, Workload

NUMBER = "JAXWATCH_ADVISE"  # by which a program can tell, and which run it is
_GRACE_SECONDS = 20.0  # for a process to end by itself at its limit
_TAIL_CHARACTERS = 2_000
_TAIL_LINES = 6

# What must not be as in the process that asks: the log, the disk cache, the switch.
_LEFT_OUT = ("JAXWATCH", "JAXWATCH_LOG", "JAX_COMPILATION_CACHE_DIR", _scope.VARIABLE)
_COLD = {"JAX_ENABLE_COMPILATION_CACHE": "false"}


def environment(number: int, jitted: Sequence[str] | None, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a run.

    Args:
        number: Which run it is, from 1.
        jitted: The functions that are jitted, as ``JAXWATCH_JIT_SCOPE`` names them; None: as the program has it.
        environ: That of the process that asks.
    """
    kept = {name: value for name, value in environ.items() if name not in _LEFT_OUT}
    scope = {} if jitted is None else {_scope.VARIABLE: ",".join(jitted) or _scope.NOTHING}
    return {**kept, **_COLD, **scope, NUMBER: str(number)}


def run(  # noqa: PLR0913 -- by keyword, each told below
    workload: Workload,
    jitted: Sequence[str] | None,
    *,
    number: int,
    look: bool,
    calls: int | None,
    limit_seconds: float,
) -> Outcome:
    """Run the workload once and return the outcome; its output is shown nowhere.

    Args:
        workload: What to run.
        jitted: As for ``environment``.
        number: As for ``environment``.
        look: Whether to wait for each outermost call, and to sample results.
        calls: After how many outermost calls to end it; None: never.
        limit_seconds: After how long to end it.
    """
    with tempfile.TemporaryDirectory(prefix="jaxwatch-") as folder:
        answer, told = Path(folder, "outcome"), Path(folder, "stderr")
        order = Order(workload=workload, look=look, calls=calls, limit_seconds=limit_seconds, answer=str(answer))
        asked = Path(folder, "order")
        asked.write_text(order.to_json(), encoding="utf-8")
        with told.open("wb") as stderr:
            options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 -- as multiprocessing
            process = subprocess.Popen(  # noqa: S603 -- the interpreter that runs us
                [sys.executable, *options, "-m", "jaxwatch._advise.child", str(asked)],
                env=environment(number, jitted),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
            late = _wait(process, limit_seconds + _GRACE_SECONDS)
        tail = told.read_text(encoding="utf-8", errors="backslashreplace")[-_TAIL_CHARACTERS:].strip()
        if answer.exists():
            found = Outcome.from_json(answer.read_text(encoding="utf-8"))
            last_lines = "\n".join(tail.splitlines()[-_TAIL_LINES:]) if found.ended == "error" else ""
            return replace(found, stderr=last_lines)
        if late:
            return Outcome(ended="time", error="it did not end by itself")
        last = tail.splitlines()[-1] if tail else "nothing on stderr"
        return Outcome(ended="error", error=f"exit code {process.returncode}: {last}")


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process, and see to it that nothing of it is left; return whether it had to be killed."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return False
