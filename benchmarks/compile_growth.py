"""How XLA's compile grows with a program, and whether what ``use_scan`` promises comes true; in fresh processes."""

import json
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp

import jaxwatch
from benchmarks import unrolled
from jaxwatch._growth import Growth, growth_exponent
from jaxwatch._hub import HUB
from jaxwatch._program_advice import is_useful
from jaxwatch.events import CacheMiss, Event

PHASES = ("trace", "lower", "compile")
_SECONDS = 300.0  # that one process may take


def chain(size: int) -> tuple[Any, tuple[Any, ...]]:
    """Return a straight chain of elementwise operations; each other one is unlike."""

    def run(x: Any) -> Any:
        for step in range(size):
            x = jnp.sin(x) if step % 2 else x * (1 + step)
        return x

    return run, (jnp.ones(64),)


def tree(size: int) -> tuple[Any, tuple[Any, ...]]:
    """Return many short branches that are summed."""
    return (lambda x: sum(jnp.sin(x * (1 + branch)) for branch in range(size))), (jnp.ones(64),)


GROWING = {"straight chain": chain, "unrolled loop": unrolled.PAIRS["RNN"].loop, "wide tree": tree}
GROWING_SIZES = {"straight chain": (50, 100, 200, 400, 800), "unrolled loop": (5, 10, 20, 40, 80)}
_WIDE_SIZES = (50, 100, 200, 400, 800)


@dataclass(frozen=True, slots=True)
class Promise:
    """What was expected of a loop's twin, and what came."""

    unseen: bool  # its figures were not known when the rule was made
    equations: int
    seconds: float  # of the loop, all phases
    expected: float  # saved seconds
    saved: float

    @property
    def told(self) -> bool:
        """Whether it is enough to be advised."""
        return is_useful(self.expected, self.seconds)

    @property
    def kept(self) -> bool:
        """Whether what is advised comes true within a factor of 2."""
        return not self.told or self.expected / 2 <= self.saved <= self.expected * 2

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {**asdict(self), "told": self.told, "kept": self.kept}


@dataclass(frozen=True, slots=True)
class Grown:
    """Promises, and how each phase of each kind of program grows."""

    promises: dict[str, Promise]
    growth: dict[str, dict[str, Growth]]  # kind of program → phase

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "promises": {name: promise.record() for name, promise in self.promises.items()},
            "growth": {name: {phase: g._asdict() for phase, g in found.items()} for name, found in self.growth.items()},
        }


def measure(*, quick: bool) -> Grown:
    """Measure all programs; with ``quick`` the smaller size of each, and one process each."""
    promises = {}
    for name, sizes in unrolled.SIZES.items():
        for size in sizes[:1] if quick else sizes:
            loop = _median(name, "loop", size, 1 if quick else 3)
            scan = _median(name, "scan", size, 1 if quick else 3)
            promises[f"{name}, {size}"] = Promise(
                name in unrolled.UNSEEN,
                int(loop["equations"]),
                _total(loop),
                loop["expected"],
                _total(loop) - _total(scan),
            )
    growth = {name: _growth(name, 1 if quick else 3) for name in GROWING}
    return Grown(promises, growth)


def _growth(name: str, times: int) -> dict[str, Growth]:
    found = [_median(name, "grow", size, times) for size in GROWING_SIZES.get(name, _WIDE_SIZES)]
    equations = [int(each["equations"]) for each in found]
    return {phase: growth_exponent(equations, [each[phase] for each in found]) for phase in PHASES}


def _total(found: dict[str, float]) -> float:
    return sum(found[phase] for phase in PHASES)


def _median(name: str, form: str, size: int, times: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.compile_growth", name, form, str(size)]
    found = []
    for _ in range(times):
        done = subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603 -- ourselves
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {key: statistics.median(each[key] for each in found) for key in found[0]}


def one(name: str, form: str, size: int) -> dict[str, float]:
    """Compile one program here, and return what its miss tells."""
    function, arguments = GROWING[name](size) if form == "grow" else getattr(unrolled.PAIRS[name], form)(size)
    jax.jit(lambda x: x + 1)(1.0)  # starts the backend
    events: list[Event] = []
    HUB.add("benchmark", events.append)
    jaxwatch.jit(function)(*arguments)
    miss = next(event for event in reversed(events) if isinstance(event, CacheMiss))
    assert miss.program is not None  # noqa: S101 -- each JAX that is supported shows it
    return {
        "equations": miss.program.equations,
        "trace": miss.seconds.trace,
        "lower": miss.seconds.lower,
        "compile": miss.seconds.backend_compile,
        "expected": sum(loop.scan_saves_seconds for loop in miss.program.loops[:1]),
    }


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
