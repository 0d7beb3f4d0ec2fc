"""The user's frame: where a call comes from, seen through JAX and jaxwatch."""

import os
import sys
from functools import lru_cache
from types import FrameType
from typing import NamedTuple

import jaxlib

from jaxwatch import _compat

_OWN = os.path.join(os.path.dirname(__file__), "")
_JAX = _compat.jax_folder()
_SKIPPED = (_OWN, _JAX, os.path.join(os.path.dirname(str(jaxlib.__file__)), ""), "<frozen ")
_STAGES = os.path.join(_JAX, "_src", "stages.py")
_AHEAD = {"compile", "lower", "trace"}


class Site(NamedTuple):
    """A place in the user's code."""

    text: str  # file:line
    ahead_of_time: bool  # reached through ``Lowered.compile`` and its like


def user_site(depth: int = 1) -> Site:
    """Return the innermost frame outside jax and jaxwatch, looking from ``depth`` frames up."""
    frame: FrameType | None = sys._getframe(depth)  # noqa: SLF001 -- inspect.stack reads source files, 1000 times slower
    ahead = False
    while frame is not None:
        code = frame.f_code
        if not _is_skipped(code.co_filename):
            return Site(f"{code.co_filename}:{frame.f_lineno}", ahead)
        ahead = ahead or (code.co_name in _AHEAD and code.co_filename == _STAGES)
        frame = frame.f_back
    return Site("<unknown>", ahead)


@lru_cache(maxsize=1024)
def _is_skipped(file: str) -> bool:
    return file.startswith(_SKIPPED)
