"""Write the dashboards: ``python grafana/build_dashboards.py``. Their JSON is committed; a test compares the two.

Every panel has a description and a unit; the data source is a variable, and so are job, instance and function.
"""

# ruff: noqa: INP001 -- a script and its parts, no package

import json
import sys
from pathlib import Path

from fleet import fleet
from function import function
from overview import overview

FOLDER = Path(__file__).parent / "dashboards"


def files() -> dict[Path, str]:
    """Return each dashboard's file and its text."""
    built = {"overview": overview(), "function": function(), "fleet": fleet()}
    return {
        FOLDER / f"{name}.json": json.dumps(one, indent=2, ensure_ascii=False) + "\n" for name, one in built.items()
    }


def main() -> None:
    """Write the files."""
    for path, content in files().items():
        path.write_text(content, "utf-8")
        sys.stdout.write(f"{path.name}: {len(content)} characters\n")


if __name__ == "__main__":
    main()
