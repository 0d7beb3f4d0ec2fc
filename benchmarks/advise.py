"""Is the scope that ``jaxwatch advise`` recommends the best one? Twelve programs, each measured again without jaxwatch.

``python -m benchmarks advise`` runs ``jaxwatch advise`` on each program of ``benchmarks/scopes``, and then each of its
scopes again, five times and interleaved, in processes in which nothing of jaxwatch is loaded: ``jax.jit`` is replaced
by a function that returns what is not in the scope as it is.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

PROGRAMS = sorted(Path(__file__).parent.glob("scopes/*.py"))
_ROUNDS = 5
_QUICK = 4  # programs
_LIMIT = 120.0

_ALONE = """
import functools, runpy, sys, time
import jax, jax.numpy as jnp
path, scope = sys.argv[1], sys.argv[2].split(",")
real = jax.jit

def jit(fun=None, **options):
    if fun is None:
        return functools.partial(jit, **options)
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    return real(fun, **options) if inner.__name__ in scope else fun

jax.jit = jit
(jnp.ones(3) + 1).block_until_ready()
started = time.perf_counter()
runpy.run_path(path, run_name="__main__")
jax.block_until_ready(jax.live_arrays())
print("seconds", time.perf_counter() - started)
"""


class Judged(NamedTuple):
    """One program.

    Attributes:
        program: Its name.
        recommended: What is to be jitted; None: no measurable difference.
        best: What was best in the independent runs.
        ratio: The recommended scope's independent time against the best one's; of no difference that of the worst one.
        advice_seconds: How long the advice took.
        seconds: Scope → independent time: mean of the quicker half.
        rounds: How often each scope was run again.
    """

    program: str
    recommended: str | None
    best: str
    ratio: float
    advice_seconds: float
    seconds: dict[str, float]
    rounds: int = _ROUNDS


def measure(*, quick: bool = False) -> list[Judged]:
    """Return what came of each program; with ``quick`` of the first ones."""
    return list(judged(PROGRAMS[:_QUICK] if quick else PROGRAMS))


def judged(programs: Sequence[Path]) -> Iterator[Judged]:
    """Advise on each program, and measure its scopes without jaxwatch."""
    for program in programs:
        found = _advice(program)
        scopes = [tuple(scope["jit"]) for scope in found["scopes"]]
        seconds = _independent(
            program, scopes, {tuple(s["jit"]) for s in found["scopes"] if s["stopped"] or s["error"]}
        )
        best = min(seconds, key=lambda scope: seconds[scope])
        chosen = None if found["recommended"] is None else scopes[found["recommended"]]
        worst = max(seconds.values()) if chosen is None else seconds[chosen]
        yield Judged(
            program.stem,
            None if chosen is None else ", ".join(chosen) or "none",
            ", ".join(best) or "none",
            worst / seconds[best],
            found["seconds"],
            {", ".join(scope) or "none": value for scope, value in seconds.items()},
        )


def _advice(program: Path) -> dict:  # type: ignore[type-arg]  # JSON
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "advice.json")
        command = [sys.executable, "-m", "jaxwatch", "advise", "--yes", "--json", path, str(program)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 -- ours
        found: dict = json.loads(Path(path).read_text(encoding="utf-8"))  # type: ignore[type-arg]  # as above
    return found


def _independent(
    program: Path, scopes: Sequence[tuple[str, ...]], slow: Collection[tuple[str, ...]]
) -> dict[tuple[str, ...], float]:
    """Return the mean of the quicker half of five runs of each scope; those that were far off run once."""
    taken: dict[tuple[str, ...], list[float]] = {scope: [] for scope in scopes}
    for number, scope in itertools.product(range(_ROUNDS), scopes):
        if number and scope in slow:
            continue
        taken[scope].append(_alone(program, scope))
    return {scope: fmean(sorted(values)[: (len(values) + 1) // 2]) for scope, values in taken.items()}


def _alone(program: Path, scope: Collection[str]) -> float:
    done = subprocess.run(  # noqa: S603 -- ours
        [sys.executable, "-c", _ALONE, str(program), ",".join(scope)],
        check=False,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    if done.returncode:
        return float("inf")
    return float(done.stdout.rsplit("seconds", 1)[1])
