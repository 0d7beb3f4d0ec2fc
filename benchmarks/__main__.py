"""``python -m benchmarks [--quick] [--check] [--json FILE]``: the tables, in Markdown."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks import hot_path, imports

IMPORT_MILLISECONDS = 30  # what `import jaxwatch` may add where jax is there already


def main() -> int:
    """Measure, print, and return 1 where --check finds a bound broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and rows, in under a minute")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bound is broken")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    found = imports.measure(quick=given.quick)
    print("## Import, with jax imported already (milliseconds)\n")
    print("| import jaxwatch | and jaxwatch.jit | whole process, paired | noise |\n|---|---|---|---|")
    print(f"| {found.package:.1f} | {found.engine:.1f} | {found.process:+.1f} | ±{found.noise:.1f} |")
    rows = hot_path.measure(quick=given.quick)
    print("\n## A call from the cache, against jax.jit: median ratio of paired rounds [quartiles], and what is added\n")
    print(hot_path.table(rows))
    if given.json is not None:
        calls = {row: {name: figure.record() for name, figure in cells.items()} for row, cells in rows.items()}
        given.json.write_text(json.dumps({"import": found.record(), "calls": calls}, indent=1))
    broken = found.package > IMPORT_MILLISECONDS
    if broken:
        print(f"\nimport jaxwatch takes {found.package:.1f} ms, more than {IMPORT_MILLISECONDS} ms")
    return int(broken and given.check)


if __name__ == "__main__":
    sys.exit(main())
