"""Where something is, as people say it: ``train.py:71``, ``cell [3], line 2``."""

import os
import re
import sys
from pathlib import Path

_CELL = re.compile(r"(cell \[\d+\]):(\d+)")


def program_folder() -> str:
    """Return the folder of the program that runs, of an interactive one the current folder; "" where there is none."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    try:
        return str(Path(file).absolute().parent) if file else _current_folder()
    except OSError:  # the program's path is relative, and the current folder was removed
        return ""


def place_text(site: str) -> str:
    """Return a site as people say it: ``cell [3], line 2`` of ``cell [3]:2``; a file's as it is."""
    found = _CELL.fullmatch(site)
    return f"{found[1]}, line {found[2]}" if found else site


def place_here(site: str) -> str:
    """Return a site as the person says it who started the program: relative to its folder, or to the current one."""
    for folder in (program_folder(), _current_folder()):
        inside = os.path.join(folder, "")
        if folder and inside != os.sep and site.startswith(inside):
            return site.removeprefix(inside)
    return place_text(site)


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was removed
        return ""
