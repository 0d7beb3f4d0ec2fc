"""``jaxwatch report`` on logs of a million events: seconds, memory; and how long a browser takes for a large page."""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jaxwatch.events import SCHEMA

EVENTS = 1_000_000
SECONDS, MEGABYTES = 20.0, 500.0  # for so many events
START_SECONDS = 3.0  # beside, for Python to start and import
LOAD_SECONDS = 2.0
_FUNCTIONS, _PROCESSES = 300, 8
_PAGE_MISSES = 10_000
# What of the events are misses: as in long runs, where each function tells its figures each minute; and the worst.
WORST = "misses alone"
_MIXES = {"5 % misses": 0.05, WORST: 1.0}
_FORMS = {"terminal": (), "html": ("--html", os.devnull)}


@dataclass(frozen=True, slots=True)
class Reported:
    """What one report takes."""

    mix: str
    form: str
    events: int
    log_megabytes: float
    seconds: float
    cpu_seconds: float
    peak_megabytes: float

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a browser takes to show the page of a run with ``misses``."""

    misses: int
    page_megabytes: float
    seconds: float
    cpu_seconds: float  # of the page's own thread

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> dict[str, Any]:
    """Write logs to a temporary folder, report on them, and open a page."""
    events = EVENTS // 10 if quick else EVENTS
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for mix, misses in _MIXES.items():
            log = os.path.join(folder, "run.jsonl")
            _write(log, events, misses)
            for form, options in _FORMS.items():
                took = _child("report", log, *options)
                found[f"{mix}, {form}"] = Reported(mix, form, events, os.path.getsize(log) / 1e6, *took)
            os.remove(log)
        if (chromium := shutil.which("chromium")) is not None:
            found["page"] = _page(chromium, folder)
    return found


_CHILD = """
import resource, sys, time
from jaxwatch._cli import main
sys.stdout = open("/dev/null", "w")
code = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
with open("/proc/self/status") as status:  # ru_maxrss may be that of the process that started this one
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(code, used.ru_utime + used.ru_stime, peak, file=sys.stderr)
"""


def _child(*arguments: str) -> tuple[float, float, float]:
    """Run a command in a process of its own; return its seconds, those of the CPU, and its peak memory in MB."""
    command, started = [sys.executable, "-c", _CHILD, *arguments], time.perf_counter()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603 -- ourselves
    seconds = time.perf_counter() - started
    code, cpu, kilobytes = done.stderr.splitlines()[-1].split()
    if code != "0":
        raise SystemExit(done.stderr)
    return seconds, float(cpu), int(kilobytes) / 1e3


def _page(chromium: str, folder: str) -> Loaded:
    """Open the page of a run with many misses in a browser, and ask that how long it took."""
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), os.pardir, "tests"))
    from browser import browser  # noqa: PLC0415 -- the tests' own

    log, page = os.path.join(folder, "run.jsonl"), os.path.join(folder, "page.html")
    _write(log, _PAGE_MISSES, 1.0)
    _child("report", log, "--html", page)
    with browser(chromium, Path(folder)) as shown:
        seconds, cpu_seconds = shown.load_seconds(Path(page).as_uri())
    return Loaded(_PAGE_MISSES, os.path.getsize(page) / 1e6, seconds, cpu_seconds)


# ------------------------------------------------------------------ a log


def _write(path: str, events: int, misses: float) -> None:
    """Write a log as several processes share it: figures of functions, compiles outside jit, and misses."""
    draw = random.Random(1)  # noqa: S311 -- data, no secret
    with open(path, "w", encoding="ascii") as file:
        file.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in _lines(draw, events, misses))


def _lines(draw: random.Random, events: int, misses: float) -> Iterator[dict[str, Any]]:
    ids: dict[int, int] = {}
    seen: dict[tuple[int, int], list[int]] = {}
    for step in range(events):
        pid, which, at = 1_000 + step % _PROCESSES, draw.randrange(_FUNCTIONS), step * 3_600 / events
        origin = {
            "time": f"2026-05-01T12:{int(at // 60) % 60:02}:{at % 60:09.6f}+00:00",
            "pid": pid,
            "process_index": None,
            "thread_name": "MainThread",
            "process_count": None,
        }
        if draw.random() < misses:
            number = ids[pid] = ids.get(pid, 0) + 1
            earlier = seen.setdefault((pid, which), [])
            yield _miss(number, origin, which, draw.randrange(1, 200), draw.choice(earlier) if earlier else None)
            if len(earlier) < 8:  # noqa: PLR2004 -- some to choose from
                earlier.append(number)
        elif draw.random() < 0.5:  # noqa: PLR2004 -- half of the others
            yield _stats(origin, which, step)
        else:
            site = f"/srv/metrics.py:{which}"
            told = {"function": "cumsum", "site": site, "seconds": 0.01, "via": None, "persistent_cache": None}
            yield {"schema": SCHEMA, "event": "eager_compile", **origin, **told, "count": 1}


def _where(which: int) -> dict[str, Any]:
    return {"function": f"layer_{which}", "definition": f"/srv/model.py:{30 + which}"}


def _stats(origin: dict[str, Any], which: int, step: int) -> dict[str, Any]:
    figures = {"calls": 10 * step, "misses": 1, "signatures": 1, "inlined": {}, "inlined_read": 0, "inlined_keys": 0}
    dispatch = {f"{6.1e-05 * (1 + bucket / 16):.6g}": step + bucket for bucket in range(16)}
    return {
        "schema": SCHEMA, "event": "function_stats", **origin, **_where(which), **figures, "dispatch": dispatch,
        "touched": None,
    }  # fmt: skip


def _miss(number: int, origin: dict[str, Any], which: int, rows: int, earlier: int | None) -> dict[str, Any]:
    """Return a miss as a training step of 148 equations has it, with two arrays of another length."""
    changes = [
        {"reason": "shape", "path": path, "before": f"{kind}[64,64]", "after": f"{kind}[{rows},64]", "note": None}
        for path, kind in (("batch['x']", "float32"), ("batch['y']", "int32"))
    ]
    state = ", ".join(f"['w{layer}']: float32[64,64], ['b{layer}']: float32[64]" for layer in range(8))
    advice = {"code": "pad_or_bucket", "text": "Pad batch['x'] and batch['y'] to 64 rows and mask."}
    lines = [{"name": f"/srv/model.py:{line}", "equations": 148 // (line - 20)} for line in range(21, 26)]
    parts = [{"name": name, "equations": 23} for name in ("add", "mul", "div", "sub", "dot_general", "other")]
    program = {
        "equations": 148, "constant_bytes": 0, "constants": [], "inner": [], "partial": False, "distinct": 101,
        "primitives": parts, "lines": lines, "loops": [], "touched": None, "bodies": [], "donatable": [], "advice": [],
    }  # fmt: skip
    return {
        "schema": SCHEMA, "event": "cache_miss", "id": number, **origin, **_where(which),
        "site": "/srv/train.py:71", "via": None, "call": 10 * number, "layer": "compile",
        "traces": 1, "lowerings": 1, "compiles": 1, "persistent_cache": None,
        "seconds": {"trace": 0.07639503, "lower": 0.04522299, "backend_compile": 1.67785215, "total": 1.79947017},
        "reasons": ["shape" if earlier else "first_call"], "changes": changes if earlier else [],
        "compared_with": earlier, "fingerprint": "6cd523fddaa8af87", "signature": f"s{which:04x}{rows:08x}",
        "abstract": f"(params: dict({state}), batch: dict(['x']: float32[{rows},64], ['y']: int32[{rows}]))",
        "advice": [advice] if earlier else [], "program": program, "disk": None, "compiled_within": 0,
        "compiled_within_seconds": 0.0, "seconds_per_call": None, "keys": [],
    }  # fmt: skip
