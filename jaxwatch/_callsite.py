"""The user's frame: where a call comes from, seen through JAX, jaxwatch, and libraries that call it for the user."""

import os
import sys
import sysconfig
from functools import lru_cache
from types import FrameType
from typing import Literal, NamedTuple

import jaxlib

from jaxwatch import _cells, _compat

_OWN = os.path.join(os.path.dirname(__file__), "")
_JAX = _compat.jax_folder()
_SKIPPED = (_OWN, _JAX, os.path.join(os.path.dirname(str(jaxlib.__file__)), ""), "<frozen ")
_STAGES = os.path.join(_JAX, "_src", "stages.py")
_AHEAD = {"compile", "lower", "trace"}


class Site(NamedTuple):
    """A place in the user's code."""

    text: str  # file:line, or cell [3]:line
    ahead_of_time: bool  # reached through ``Lowered.compile`` and its like
    via: str | None = None  # file:line of the library's frame that made the call, where that is not the user's own


def user_site(depth: int = 1) -> Site:
    """Return the innermost frame of the user's own code, looking from ``depth`` frames up.

    Where all of the stack is in installed packages: the innermost one outside jax and jaxwatch.
    """
    ahead, via = False, None
    frame: FrameType | None = sys._getframe(depth)  # noqa: SLF001 -- inspect.stack reads source files, 1000 times slower
    while frame is not None:
        code = frame.f_code
        kind = whose(code.co_filename if code.co_filename[:1] != "<" else _module_file(frame))
        if kind == "user":
            return Site(_cells.place(code.co_filename, frame.f_lineno), ahead, via)
        if kind == "library":
            via = via or f"{code.co_filename}:{frame.f_lineno}"
        ahead = ahead or (via is None and (code.co_name in _AHEAD and code.co_filename == _STAGES))
        frame = frame.f_back
    return Site(via or "<unknown>", ahead)


def _module_file(frame: FrameType) -> str:
    """Return the file of the module that code without a file of its own was made in, as a dataclass's methods are."""
    file = frame.f_globals.get("__file__")
    return file if isinstance(file, str) else frame.f_code.co_filename


_STANDARD = os.path.join(sysconfig.get_path("stdlib"), "")
_PACKAGES = tuple(f"{os.sep}{name}{os.sep}" for name in ("site-packages", "dist-packages"))


@lru_cache(maxsize=1024)
def whose(file: str) -> Literal["user", "library", "skipped"]:
    """Return whose code a file is: the user's, an installed package's, or one that sites are seen through."""
    if file.startswith(_SKIPPED):
        return "skipped"
    installed = file.startswith(_STANDARD) or any(folder in file for folder in _PACKAGES)
    return "library" if installed else "user"
