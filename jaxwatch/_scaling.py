"""``jaxwatch scaling``: how tracing, lowering and compiling a function grow with its size.

Each measurement is a fresh process, so nothing is cached; sizes are gone through in rounds, smallest first: when time
runs out, each size has been measured about as often.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from jaxwatch._growth import LEAST_SIZES, Growth, growth_exponent
from jaxwatch.errors import BadScalingError

PHASES = ("trace", "lower", "compile")
REPEATS = 3
_LEAST_SECONDS = 1e-9
_CLEAR = 0.5  # beyond so much either way, a growth is said to be uncertain


@dataclass(frozen=True, slots=True)
class Measured:
    """One size, as medians over fresh processes."""

    size: int
    equations: int
    seconds: dict[str, float]  # phase → seconds
    repeats: int


@dataclass(frozen=True, slots=True)
class Scaling:
    """What was measured of a function, and how it grows."""

    target: str
    measured: tuple[Measured, ...]  # smallest first
    growth: dict[str, Growth]  # phase; none where too few sizes were measured
    left_out: tuple[int, ...]  # sizes for which there was no time

    def record(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        growth = {phase: found._asdict() for phase, found in self.growth.items()}
        measured = [asdict(each) for each in self.measured]
        return {"schema": "jaxwatch.scaling/1", **asdict(self), "measured": measured, "growth": growth}


Sample = dict[str, float]
Probe = Callable[[str, int, float], Sample | None]


def sizes_of(text: str) -> tuple[int, ...]:
    """Return the sizes of ``8,16,32``.

    Raises:
        BadScalingError: They are no whole numbers from 1 on, or fewer than three.
    """
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if len(sizes) < LEAST_SIZES or sizes[0] < 1:
        problem = f"--sizes {text!r} is no list of at least {LEAST_SIZES} different whole numbers from 1 on."
        raise BadScalingError(problem, "Give for instance --sizes 8,16,32,64.")
    return tuple(sizes)


def measure(target: str, sizes: Sequence[int], budget_seconds: float, probe: Probe | None = None) -> Scaling:
    """Measure a function at each size, up to three times, until the time is used up.

    Args:
        target: ``module:function``.
        sizes: Distinct, ≥ 1.
        budget_seconds: No measurement is begun after these; one under way is stopped.
        probe: Measures one size in at most so many seconds, None: it took longer; by default in a fresh process.

    Raises:
        BadScalingError: The function cannot be found or measured, or time was up before anything was.
    """
    probe = in_a_process if probe is None else probe
    started = time.monotonic()
    found: dict[int, list[Sample]] = {}
    waiting = sorted(sizes)
    for _ in range(REPEATS):
        for size in list(waiting):
            left = budget_seconds - (time.monotonic() - started)
            sample = probe(target, size, left) if left > 0 else None
            if sample is None:  # a larger one takes no less
                waiting = [each for each in waiting if each < size]
                break
            found.setdefault(size, []).append(sample)
    if not found:
        problem = f"{target} at size {min(sizes)} was not compiled within --budget {budget_seconds:g} seconds."
        raise BadScalingError(problem, "Give more of them, or smaller sizes.")
    measured = tuple(_medians(size, samples) for size, samples in sorted(found.items()))
    return Scaling(target, measured, _fits(measured), tuple(size for size in sizes if size not in found))


def _medians(size: int, samples: Sequence[Sample]) -> Measured:
    seconds = {phase: statistics.median(sample[phase] for sample in samples) for phase in PHASES}
    return Measured(size, int(samples[0]["equations"]), seconds, len(samples))


def _fits(measured: Sequence[Measured]) -> dict[str, Growth]:
    equations = [each.equations for each in measured]
    if len(set(equations)) < LEAST_SIZES:
        return {}
    return {
        phase: growth_exponent(equations, [max(each.seconds[phase], _LEAST_SECONDS) for each in measured])
        for phase in PHASES
    }


def in_a_process(target: str, size: int, seconds: float) -> Sample | None:
    """Compile the function at a size in a fresh process; None: it took longer than ``seconds``.

    Raises:
        BadScalingError: It cannot be found, or raised.
    """
    command = [sys.executable, "-m", "jaxwatch._scaling_probe", target, str(size)]
    # what was compiled is kept nowhere, and nothing is read that was: a cold compile each time
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "JAXWATCH_LOG": ""}
    try:
        done = subprocess.run(  # noqa: S603 -- the user's own function, by this very Python
            command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        return None
    lines = done.stdout.splitlines()
    try:
        answer = json.loads(lines[-1])
    except (IndexError, ValueError):
        answer = {}
    if "equations" not in answer:
        last = done.stderr.strip().splitlines()[-1:] or [f"its process ended with {done.returncode}"]
        problem = answer.get("problem", f"{target} at size {size} failed: {last[0]}.")
        raise BadScalingError(problem, answer.get("way_out", ""))
    return {key: float(value) for key, value in answer.items()}


def write_json(found: Scaling, path: str) -> None:
    """Write all figures to a file.

    Raises:
        BadScalingError: It cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found.record(), file, indent=1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadScalingError(f"cannot write {path}: {reason}.", "Give --json another file.") from error


# ------------------------------------------------------------------ text


def growth_text(phase: str, growth: Growth) -> str:
    """Return a sentence on how a phase grows."""
    told = f"{phase} ∝ equations ** {growth.exponent:.2f} ({growth.low:.2f} to {growth.high:.2f})"
    if growth.floor_seconds > _LEAST_SECONDS:
        told += f", beside {growth.floor_seconds * 1e3:,.0f} ms that do not grow"
    if growth.high - growth.low > 2 * _CLEAR:
        return told + ": uncertain, larger sizes would tell"
    return told + (": it outgrows the program" if growth.low > 1 else "")
