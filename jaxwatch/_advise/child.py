"""One run of the workload, in a process of its own: ``python -m jaxwatch._advise.child ORDER``, a file."""

import contextlib
import functools
import importlib
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

from jaxwatch import _importhook, _install, _session
from jaxwatch._advise.outcome import Ended, Order, Outcome, Workload
from jaxwatch._advise.watching import Watching
from jaxwatch._hub import HUB
from jaxwatch._program import Program
from jaxwatch._scope import Measuring


def main(path: str) -> None:
    """Do what the order in a file says, and write the outcome to where it says; what the program raises is there."""
    with open(path, encoding="utf-8") as file:
        order = Order.from_json(file.read())
    run = _runner_of(order.workload)
    answer = _Answer(order)
    HUB.add("advise", answer.watching.export)
    _session.configure(console=False)
    Measuring.on = True
    _install.install()
    _importhook.when_imported("jax", answer.watching.start)
    answer.limit(order.limit_seconds)
    ended, error = _ended(run)
    answer.write(ended, error)


def _runner_of(workload: Workload) -> Callable[[], object]:
    """Return what runs it, with everything made ready."""
    if workload.function:
        sys.path[:] = workload.path
        return functools.partial(_call, *workload.function.split(":"))
    program = Program(workload.argv[0], list(workload.argv[1:]), is_module=workload.is_module)
    program.check()
    program.prepare()
    return program.execute


def _call(module: str, function: str) -> None:
    found: Any = importlib.import_module(module)
    for name in function.split("."):
        found = getattr(found, name)
    found()


class Enough(BaseException):
    """The program has made as many calls as were asked for; no ``Exception``, which it may catch."""


def _ended(run: Callable[[], object]) -> tuple[Ended, str]:
    """Run it, and return how it ended."""
    try:
        run()
    except Enough:
        return "calls", ""
    except SystemExit as error:
        return ("end", "") if error.code in (None, 0) else ("error", f"SystemExit: {error.code}")
    except BaseException as error:  # noqa: BLE001 -- whatever it is, the other side is to know
        traceback.print_exc()
        return "error", traceback.format_exception_only(error)[-1].strip()
    return "end", ""


class _Answer:
    """What is written in the end, once: by the program's own end or by the clock, whichever comes first."""

    def __init__(self, order: Order) -> None:
        self.watching = Watching(look=order.look, calls=order.calls, enough=Enough)
        self._path = order.answer
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def limit(self, seconds: float) -> None:
        """End the process after so long."""
        timer = threading.Timer(seconds, self._out_of_time)
        timer.daemon = True
        timer.start()

    def _out_of_time(self) -> None:
        self.write("time", "")
        os._exit(0)

    def write(self, ended: Ended, error: str) -> None:
        """Write the outcome; nothing in a forked child."""
        if os.getpid() != self._pid or not self._lock.acquire(blocking=ended != "time"):
            return
        outcome = self.watching.outcome(ended, error)
        self._put(outcome)

    def _put(self, outcome: Outcome) -> None:
        beside = f"{self._path}.part"
        with contextlib.suppress(FileNotFoundError), open(beside, "w", encoding="utf-8") as file:
            file.write(outcome.to_json())
            file.close()
            os.replace(beside, self._path)


if __name__ == "__main__":
    main(sys.argv[1])
