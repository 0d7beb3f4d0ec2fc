"""A random program for hours, twice side by side: with jaxwatch, and with ``JAXWATCH=0``. Nothing may differ or grow.

Both do the same rounds, one as the other: the results of all calls must be the same to the last bit, and what the
watched one's memory grows beyond the other's is jaxwatch's. What is counted must be equal exactly wherever it is told.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import tables

MINUTES, QUICK_MINUTES = 60.0, 3.0
_ROOT = Path(__file__).parents[1]
_DEVICES = "--xla_force_host_platform_device_count=4"
_ANSWER_SECONDS = 600.0


class SoakError(Exception):
    """One of the two processes ended before its time."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """Resident memory at one moment, JAX's caches being empty."""

    round: int
    calls: int
    kib: int  # of the watched process
    plain_kib: int  # of the other one


@dataclass(frozen=True, slots=True)
class Soaked:
    """What was found."""

    seed: int
    minutes: float
    rounds: int
    same_results: int  # rounds after which the hashes of all results were the same
    alive: int  # objects of the program that lived on, beyond those of the plain one
    weighed: tuple[Weighed, ...]
    watched: dict[str, Any]  # as ``soaked.__main__.Process.end`` tells
    plain: dict[str, Any]

    @property
    def broken(self) -> list[dict[str, Any]]:
        """The equalities that do not hold."""
        return [one for one in self.watched["equalities"] if one["wrong"]]

    @property
    def compared(self) -> int:
        """How many things were counted in several places and compared."""
        return sum(int(one["compared"]) for one in self.watched["equalities"])

    @property
    def late(self) -> tuple[Weighed, ...]:
        """What was weighed in the last two thirds, by when all that is bounded has begun to fill."""
        return self.weighed[len(self.weighed) // 3 :]

    @property
    def growth_kib(self) -> float:
        """KiB by which the watched process grew in the last two thirds beyond the plain one, fitted."""
        return growth([one.calls for one in self.late], [one.kib - one.plain_kib for one in self.late])

    @property
    def plain_growth_kib(self) -> float:
        """KiB by which the plain process grew in the last two thirds: JAX's own, and the C library's."""
        return growth([one.calls for one in self.late], [one.plain_kib for one in self.late])

    @property
    def left_open(self) -> list[str]:
        """Descriptors and threads beyond those of the plain process, the log and its thread left out."""
        left = self.watched["left"]
        more = left["descriptors_more"] - self.plain["left"]["descriptors_more"] - 1
        threads = [name for name in left["threads"] if name != "jaxwatch-stats"]
        return [*threads, *(left["descriptors"] if more > 0 else [])]

    @property
    def other_warnings(self) -> list[str]:
        """Warnings that the plain process does not give; jaxwatch's own are among the equalities."""
        return sorted(set(self.watched["warnings"]) - set(self.plain["warnings"]))

    def table(self) -> str:
        """Return what was done and found as Markdown."""
        return _table(self)

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self) | {"growth_kib": self.growth_kib, "plain_growth_kib": self.plain_growth_kib}


def growth(places: Sequence[float], values: Sequence[float]) -> float:
    """Return what a line through the values, by least squares, rises from the first place to the last."""
    if len(places) < 2 or places[0] == places[-1]:  # noqa: PLR2004 -- a line
        return 0.0
    return statistics.linear_regression(places, values).slope * (places[-1] - places[0])


class _Process:
    """One of the two."""

    def __init__(self, seed: int, folder: Path, **variables: str) -> None:
        self._errors = (folder / "stderr").open("w+", encoding="utf-8", errors="replace")
        kept = {
            name: value for name, value in os.environ.items() if name not in {"JAXWATCH", "JAXWATCH_LOG", "XLA_FLAGS"}
        }
        self._process = subprocess.Popen(  # noqa: S603 -- this very program
            [sys.executable, "-m", "benchmarks.soaked", str(seed), str(folder)],
            cwd=_ROOT,
            env={**kept, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": _DEVICES, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def begin(self) -> None:
        """Have it run one round."""
        assert self._process.stdin is not None  # noqa: S101 -- for the type checker
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Return what it says next."""
        assert self._process.stdout is not None  # noqa: S101 -- as above
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            text = f"a process of the soak ended with {self._process.wait()}: {self._errors.read()[-4000:]}"
            raise SoakError(text)
        found: dict[str, Any] = json.loads(line)
        return found

    def end(self) -> dict[str, Any]:
        """Have it compare; return what it found."""
        assert self._process.stdin is not None  # noqa: S101 -- as above
        self._process.stdin.close()
        found = self.answer()
        code = self._process.wait()
        self._errors.seek(0)
        if code:
            text = f"a process of the soak ended with {code}: {self._errors.read()[-4000:]}"
            raise SoakError(text)
        return found

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                stream.close()


def measure(*, quick: bool, minutes: float | None = None, seed: int = 1) -> Soaked:
    """Run both for so many minutes, an hour by default."""
    limit = minutes if minutes is not None else QUICK_MINUTES if quick else MINUTES
    return soak(seed, seconds=60 * limit)


def soak(seed: int, *, seconds: float = float("inf"), rounds: int | None = None) -> Soaked:
    """Run both for so many seconds, or rounds."""
    with tempfile.TemporaryDirectory(prefix="jaxwatch-soak-") as folder:
        (Path(folder) / "watched").mkdir()
        (Path(folder) / "plain").mkdir()
        both: list[_Process] = []
        try:
            both.append(_Process(seed, Path(folder) / "watched"))
            both.append(_Process(seed, Path(folder) / "plain", JAXWATCH="0"))
            return _run(seed, both[0], both[1], seconds, rounds)
        finally:
            for process in both:
                process.kill()


def _run(seed: int, watched: _Process, plain: _Process, seconds: float, rounds: int | None) -> Soaked:
    started = time.monotonic()
    number = same = alive = 0
    weighed: list[Weighed] = []
    while (rounds is None or number < rounds) and (number == 0 or time.monotonic() - started < seconds):
        for process in (watched, plain):
            process.begin()
        ours, theirs = watched.answer(), plain.answer()
        number += 1
        same += ours["hash"] == theirs["hash"]
        alive = max(alive, ours["alive"] - theirs["alive"])
        if "kib" in ours:
            weighed.append(Weighed(number, ours["calls"], ours["kib"], theirs["kib"]))
        if number % 10 == 0:
            print(f"round {number}, {time.monotonic() - started:.0f} s, {ours['calls']:,} calls", file=sys.stderr)
    ends = watched.end(), plain.end()
    took = (time.monotonic() - started) / 60
    return Soaked(seed, took, number, same, alive, tuple(weighed), *ends)


# ------------------------------------------------------------------ told


def _table(found: Soaked) -> str:
    watched = found.watched
    done = watched["done"]
    first = [
        ["minutes, rounds, seed", f"{found.minutes:.1f}, {found.rounds}, {found.seed}"],
        ["core, devices", f"{watched['core']}, {watched['devices']}"],
        ["calls", f"{watched['calls']:,}"],
        ["misses", f"{watched['misses']:,}"],
        ["traces, lowerings, compiles that JAX told", ", ".join(f"{n:,}" for n in watched["phases"].values())],
        ["exceptions: in a trace, otherwise", f"{watched['raised']:,}, {watched['rejected']:,}"],
        ["misses that a guard forbade", ", ".join(f"{name} {n:,}" for name, n in sorted(watched["forbidden"].items()))],
        ["forked children", ", ".join(f"{name} {n}" for name, n in watched["children"].items())],
        ["lines and files of the log", f"{watched['lines']:,}, {watched['files']:,}"],
        *([name, f"{number:,}"] for name, number in sorted(done.items())),
        ["what the program did", ", ".join(f"{name} {n:,}" for name, n in sorted(watched["operations"].items()))],
    ]
    equalities = ([one["what"], f"{one['compared']:,}", one["wrong"] or "yes"] for one in watched["equalities"])
    return (
        f"{tables.table(['run', ''], first)}\n\n"
        f"{tables.table(['equal, exactly', 'compared', 'holds'], equalities)}\n\n{_memory(found)}"
    )


def _memory(found: Soaked) -> str:
    if not found.weighed:
        return "Too short to be weighed."
    thirds = [found.weighed[0], *(found.weighed[len(found.weighed) * n // 3] for n in (1, 2)), found.weighed[-1]]
    rows = [
        [f"{one.round}", f"{one.calls:,}", f"{one.kib / 1024:,.1f} MiB", f"{one.plain_kib / 1024:,.1f} MiB"]
        for one in thirds
    ]
    told = (
        f"Growth over the last two thirds, fitted to {len(found.late)} weighings: jax.jit alone "
        f"{found.plain_growth_kib:+,.0f} KiB, jaxwatch beyond it {found.growth_kib:+,.0f} KiB."
    )
    return f"{tables.table(['after round', 'calls', 'resident, watched', 'resident, plain'], rows)}\n\n{told}"
