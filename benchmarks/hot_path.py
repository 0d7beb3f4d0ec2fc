"""The price of a call that runs from the cache."""

from benchmarks._paired import Figure, against, calls_in, interleaved
from benchmarks.cases import CASES
from benchmarks.variants import PLAIN, columns

_BATCH_NANOSECONDS = 1_500_000
_ROUNDS, _QUICK_ROUNDS = 300, 60


def measure(*, quick: bool) -> dict[str, dict[str, Figure]]:
    """Return row → column → figure."""
    found = {}
    for case in CASES:
        if quick and not case.brief:
            continue
        runs = {name: case.make(jit) for name, jit in columns().items()}
        for run in runs.values():
            run(50)  # compiled, and on JAX's fast path
        calls = calls_in(runs[PLAIN], _BATCH_NANOSECONDS)
        times = interleaved(runs, calls=calls, rounds=_QUICK_ROUNDS if quick else _ROUNDS)
        found[case.name] = {name: cell for name, cell in against(PLAIN, times).items() if name != PLAIN}
    return found


def table(rows: dict[str, dict[str, Figure]]) -> str:
    """Return the figures as a table in Markdown."""
    names = list(next(iter(rows.values())))
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    lines += [f"| {row} | {' | '.join(cells[name].cell() for name in names)} |" for row, cells in rows.items()]
    return "\n".join(lines)
