"""What importing jaxwatch takes where jax is imported already, in processes of their own."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any

_WITHOUT = "import time, jax"
_WITH = """
import time, jax
started = time.perf_counter()
import jaxwatch
package = time.perf_counter()
jaxwatch.jit
print(package - started, time.perf_counter() - started)
"""


@dataclass(frozen=True, slots=True)
class Import:
    """Milliseconds, medians."""

    package: float  # `import jaxwatch`: its names, nothing behind them
    engine: float  # and `jaxwatch.jit`: all that watches
    process: float  # of a whole process with the latter, less one without, in pairs
    noise: float  # half the distance of the quartiles of the whole process without
    processes: int

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> Import:
    """Return how long the import takes."""
    times = 3 if quick else 15
    package, engine, pairs, without = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        _run(_WITH, folder)  # writes the bytecode, as an installation does
        for _ in range(times):
            plain, _ = _run(_WITHOUT, folder)
            whole, out = _run(_WITH, folder)
            first, second = map(float, out.split())
            package.append(first)
            engine.append(second)
            without.append(plain)
            pairs.append(whole - plain)
    low, _, high = statistics.quantiles(without, n=4)
    return Import(
        package=statistics.median(package) * 1e3,
        engine=statistics.median(engine) * 1e3,
        process=statistics.median(pairs) * 1e3,
        noise=(high - low) / 2 * 1e3,
        processes=2 * times,
    )


def _run(program: str, bytecode: str) -> tuple[float, str]:
    """Return the seconds that a process took, and what it printed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    done = subprocess.run(  # noqa: S603 -- ours
        [sys.executable, "-P", "-c", program],
        check=True,
        capture_output=True,
        text=True,
        env={**kept, "PYTHONPYCACHEPREFIX": bytecode},
    )
    return time.perf_counter() - started, done.stdout
