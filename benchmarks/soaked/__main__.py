"""One process of the soak: ``python -m benchmarks.soaked SEED FOLDER``; a round for each line that it reads.

It answers each with a line of JSON, and when its input ends with one of all that there is to compare.
"""

import ctypes
import gc
import json
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import jax

from benchmarks.soaked.calls import Calls
from benchmarks.soaked.counts import Digest, Own
from benchmarks.soaked.equalities import equalities
from benchmarks.soaked.functions import Functions
from benchmarks.soaked.outlets import Outlets
from benchmarks.soaked.serial import Serial
from jaxwatch import _core, _options

_THREADS = 3
_CALLS_EACH = 12
_WEIGHED_EVERY = 2  # rounds
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Process:
    """The program, and in the watched process what reads and disturbs."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed, self.watched = seed, not _options.switched_off()
        self.own = Own()
        warnings.simplefilter("always")
        warnings.showwarning = self.own.warned
        functions = Functions(self.own)
        self.calls = Calls(self.own, functions)
        self.serial = Serial(self.own, functions, attaches=_core.CORE.name == "native")
        self.throughout = {
            name: getattr(functions, name)
            for name in ("affine", "power", "tree", "total", "donated", "inner", "outer", "loss", "slope", "failing")
        }
        self.digest = Digest()
        self.before = _open()
        self.outlets = Outlets(seed, folder, list(self.throughout.values())) if self.watched else None

    def round(self, number: int) -> dict[str, Any]:
        """Run one round; return its figures."""
        if self.outlets is not None:
            self.outlets.settle()
        rng = self._random(number)
        self.digest.add(self.calls.run(rng, _CALLS_EACH))
        self.digest.add(self.serial.run(rng))
        self.digest.add(self._at_once(number, rng))
        told = {"hash": self.digest.text(), "alive": self.own.alive(), "calls": sum(self.own.calls.values())}
        if (
            number % _WEIGHED_EVERY == _WEIGHED_EVERY - 1
        ):  # without JAX's caches, which are filled and cleared at random
            self._clear()
            gc.collect()
            told["kib"] = _resident()
        return told

    def _random(self, *places: int) -> random.Random:
        return random.Random(" ".join(map(str, (self.seed, *places))))  # noqa: S311 -- no secret

    def _clear(self) -> None:
        jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's
        self.serial.cleared()

    def _at_once(self, number: int, rng: random.Random) -> list[Any]:
        """Call on several threads, now and then with all of JAX's caches cleared meanwhile; return the results."""
        found: list[Any] = [None] * _THREADS
        failures: list[BaseException] = []

        def work(thread: int) -> None:
            try:
                found[thread] = self.calls.run(self._random(number, thread), _CALLS_EACH)
            except BaseException as error:  # noqa: BLE001 -- raised on the main thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(_THREADS)]
        for thread in threads:
            thread.start()
        if rng.random() < 0.2:  # noqa: PLR2004 -- now and then
            time.sleep(rng.uniform(0, 0.3))
            self.own.operation("jax.clear_caches while others call")
            self._clear()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return found

    def end(self) -> dict[str, Any]:
        """Return what is to be compared."""
        told: dict[str, Any] = {
            "operations": dict(self.own.operations),
            "children": self.serial.children,
            "warnings": sorted(self.own.other_warnings),
            "phases": {
                phase: sum(n for (kind, _), n in self.own.phases.items() if kind == phase)
                for phase in ("trace", "lower", "compile")
            },
            "calls": sum(self.own.calls.values()),
            "raised": sum(self.own.raised.values()),
            "rejected": sum(self.own.rejected.values()),
            "forbidden": dict(self.own.forbidden),
            "devices": len(jax.devices()),
            "core": _core.CORE.name if self.watched else "off",
        }
        if self.outlets is not None:
            self.outlets.close()
            told["equalities"] = [
                one.record() for one in equalities(self.own, self.serial, self.outlets, self.throughout)
            ]
            told |= {
                "misses": sum(self.outlets.logs.misses.values()),
                "done": dict(self.outlets.done),
                "failures": self.outlets.failures[:10],
                "lines": self.outlets.logs.lines,
                "files": self.outlets.logs.files,
            }
            self.outlets.server.close()
        self._clear()
        told |= {"left": self._left()}
        return told

    def _left(self) -> dict[str, Any]:
        """Return what is open beyond what was at the start."""
        gc.collect()
        descriptors, threads = _open()
        return {
            "descriptors": sorted(set(descriptors.values()) - set(self.before[0].values())),
            "descriptors_more": len(descriptors) - len(self.before[0]),
            "threads": sorted((threads - self.before[1]).elements()),
        }


def _open() -> tuple[dict[str, str], Counter[str]]:
    """Return open descriptors, by number what they are, and the names of the threads."""
    descriptors = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            descriptors[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:  # that by which the folder was read
            continue
    return descriptors, Counter(thread.name for thread in threading.enumerate())


def _resident() -> int:
    """Return the resident memory in KiB, once the C library has given back what it holds for later."""
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_KIB


def main(arguments: list[str]) -> int:
    """Run a round for each line on stdin."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    process = Process(int(arguments[0]), Path(arguments[1]))

    def answer(told: dict[str, Any]) -> None:
        answers.write(json.dumps(told) + "\n")
        answers.flush()

    for number, _ in enumerate(sys.stdin):
        answer(process.round(number))
    answer(process.end())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
