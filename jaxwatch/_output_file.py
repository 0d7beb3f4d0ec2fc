"""A file that a command was asked to write: looked at before, written after."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TextIO

from jaxwatch.errors import ReportUnwritableError


def check(path: str, option: str) -> str:
    """Return the path in full, which a program's ``chdir`` leaves as it is.

    Args:
        path: A file that is to be written later; none is made.
        option: The option that named it.

    Raises:
        ReportUnwritableError: It could not be written now.
    """
    full = os.path.abspath(path)
    folder = os.path.dirname(full)
    if not os.path.isdir(folder):
        raise _unwritable(path, option, "no such directory")
    if os.path.isdir(full):
        raise _unwritable(path, option, "is a directory")
    if not os.access(full if os.path.exists(full) else folder, os.W_OK):
        raise _unwritable(path, option, "permission denied")
    return full


def put(path: str, option: str, write: Callable[[TextIO], None]) -> None:
    """Write the file; what cannot be encoded is written as an escape.

    Raises:
        ReportUnwritableError: It cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            write(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unwritable(path, option, (getattr(error, "strerror", None) or str(error)).lower()) from error


def is_special(path: str) -> bool:
    """Whether it is there and no plain file: a device or a pipe, which is written to and never replaced."""
    return os.path.exists(path) and not os.path.isfile(path)


def clash(outputs: Mapping[str, str | None], inputs: Iterable[str]) -> str | None:
    """Return what is wrong where a file is to be written over an input, or twice; None where nothing is.

    Args:
        outputs: Option → its file; ``-`` and None are none.
        inputs: Files, and folders for all that is in them.
    """
    taken = {_identity(within): within for path in inputs for within in _within(path)}
    for option, path in outputs.items():
        if path is None or path == "-" or is_special(path):
            continue
        what = taken.setdefault(_identity(path), f"what {option} writes")
        if what != f"what {option} writes":
            return f"{option} {path} would overwrite {what}: give another FILE."
    return None


def _within(path: str) -> list[str]:
    try:
        return [path, *(entry.path for entry in os.scandir(path))] if os.path.isdir(path) else [path]
    except OSError:
        return [path]


def _identity(path: str) -> tuple[int, int] | str:
    """Return what two names of one file have in common."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.abspath(path)
    return status.st_dev, status.st_ino


def _unwritable(path: str, option: str, reason: str) -> ReportUnwritableError:
    way_out = f"Give {option} a file in a folder that you may write to."
    return ReportUnwritableError(f"cannot write {path!r}: {reason}.", way_out)
