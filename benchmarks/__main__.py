"""``python -m benchmarks [--quick] [--json FILE] [--check] [--breakdown] [--minutes N] [--seed N] [SECTION …]``."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import (
    advise,
    bodies,
    bounds,
    breakdown,
    columns,
    compile_growth,
    fleet,
    hot_path,
    imports,
    inner_jit,
    memory,
    miss_path,
    report,
    scrape,
    scrape_load,
    soak,
    tables,
    threads,
    variants,
)

SECTIONS: Mapping[str, Callable[..., Any]] = {
    "hot path": hot_path.measure,
    "misses": miss_path.measure,
    "inner jit": inner_jit.measure,
    "import": imports.measure,
    "memory": memory.sizes,
    "memory, flat": memory.flat,
    "scrape": scrape.measure,
    "scrape, under load": scrape_load.measure,
    "fleet": fleet.measure,
    "columns": columns.measure,
    "report": report.measure,
    "threads": threads.measure,
    "threads, exact": threads.exact,
    "growth": compile_growth.measure,
    "advise": advise.measure,
    "bodies": bodies.measure,
    "breakdown": breakdown.measure,
    "soak": soak.measure,
}

_BY_NAME_ALONE = (
    "breakdown",
    "fleet",
    "columns",
    "report",
    "growth",
    "inner jit",
    "advise",
    "bodies",
    "soak",
)  # they take many minutes


def main(arguments: list[str]) -> int:
    """Measure, print Markdown, and return 1 where ``--check`` finds a bound broken."""
    options = _parser().parse_args(arguments)
    wanted = options.section or ([] if options.breakdown else [name for name in SECTIONS if name not in _BY_NAME_ALONE])
    if options.breakdown and "breakdown" not in wanted:
        wanted = [*wanted, "breakdown"]
    if wanted != ["soak"]:  # that measures the core in use, whichever it is
        variants.columns()  # says so at once where the native core is missing
    machine = tables.machine()
    print(f"jax {machine['jax']}, Python {machine['python']}, {machine['processor']}.")
    print("Medians; in brackets the quartiles of the paired ratios.\n")
    found: dict[str, Any] = {}
    for name in wanted:
        started = time.perf_counter()
        asked = {"minutes": options.minutes, "seed": options.seed} if name == "soak" else {}
        found[name] = SECTIONS[name](quick=options.quick, **asked)
        print(tables.section(name, found[name]), flush=True)
        print(f"{name}: {time.perf_counter() - started:.1f} s", file=sys.stderr)
    kept = bounds.bounds(found)
    if options.check:
        print(tables.checked(kept))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            record = {
                "machine": machine,
                "quick": options.quick,
                **_plain(found),
                "bounds": [b._asdict() for b in kept],
            }
            json.dump(record, file, indent=1)
    return int(options.check and not all(bound.kept for bound in kept))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What jaxwatch costs, measured.")
    parser.add_argument("section", nargs="*", choices=[*SECTIONS, []], metavar="SECTION", help="; ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: less than a minute")
    parser.add_argument("--json", metavar="FILE", help="write all figures there too")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is broken")
    parser.add_argument("--minutes", type=float, metavar="N", help="how long the soak runs: 60, with --quick 3")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the soak's random program")
    parser.add_argument(
        "--breakdown", action="store_true", help="where each nanosecond of a scalar call goes (needs cc)"
    )
    return parser


def _plain(value: Any) -> Any:
    """Return figures as JSON has them."""
    if hasattr(value, "record"):
        return value.record()
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
