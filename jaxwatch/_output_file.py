"""A file that a command was asked to write: looked at before, written after."""

import os
from collections.abc import Callable
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


def _unwritable(path: str, option: str, reason: str) -> ReportUnwritableError:
    way_out = f"Give {option} a file in a folder that you may write to."
    return ReportUnwritableError(f"cannot write {path!r}: {reason}.", way_out)
