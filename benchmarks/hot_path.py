"""A call that runs from JAX's cache: every column in every row."""

from contextlib import nullcontext

from benchmarks import variants
from benchmarks._paired import Figure, Run, against, calls_in, interleaved
from benchmarks.cases import CASES, Case

_BATCH_NANOSECONDS = 250_000.0  # a tenth of the scheduler's time slice


def measure(*, quick: bool) -> dict[str, dict[str, Figure]]:
    """Return row → column → figure, against plain jax.jit."""
    cases = [case for case in CASES if case.brief or not quick]
    return {case.name: row(case, rounds=200 if quick else 1000) for case in cases}


def row(case: Case, *, rounds: int) -> dict[str, Figure]:
    """Return the figures of one kind of call."""
    runs = {name: case.make(jit) for name, jit in variants.columns().items()}
    for run in runs.values():
        run(50)  # compile, and let the interpreter adapt
    calls = calls_in(runs[variants.PLAIN], _BATCH_NANOSECONDS)
    runs = {name: _flagged(name, run) for name, run in runs.items()}
    return against(variants.PLAIN, interleaved(runs, calls=calls, rounds=rounds))


def _flagged(name: str, run: Run) -> Run:
    """Return a run with JAX's flag of that name on, where there is one; neither switching nor a first call is timed."""

    def switched(calls: int) -> float:
        with variants.switched_on(name) if name in variants.FLAGS else nullcontext():
            run(1)  # for every variant: without it those with a flag would alone find the processor's caches warm
            return run(calls)

    return switched
