"""What the commands share to write their answer."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from jaxwatch.errors import JaxwatchError, ReportUnwritableError

FAILED = 2  # the exit code


def written(write: Callable[[], None]) -> int:
    """Write to stdout, and return the exit code."""
    if sys.stdout is None:  # closed by who started us
        return 0
    try:
        write()
    except JaxwatchError:
        raise
    except OSError as error:
        # What is still buffered would fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # `| head` has seen enough
            return 0
        reason = (error.strerror or str(error)).lower()
        sys.stderr.write(f"jaxwatch: cannot write the report to stdout: {reason}.\n")
        return FAILED
    return 0


def passed_over(faults: int, named: Sequence[str]) -> str:
    """Return how many lines were passed over, and the first of them."""
    return f"{faults:,} line{'' if faults == 1 else 's'} passed over: {'; '.join(named)}"


def put_to(path: str, option: str, write: Callable[[TextIO], None]) -> None:
    """Write to a file; what cannot be encoded is written as an escape.

    Raises:
        ReportUnwritableError: It cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
            write(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        way_out = f"Give {option} a file in a folder that you may write to."
        raise ReportUnwritableError(f"cannot write {path}: {reason}.", way_out) from error
