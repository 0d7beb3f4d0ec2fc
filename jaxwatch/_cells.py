"""Cells of a notebook: which one code is from, and which one runs. Imports no IPython: without it there are none.

IPython compiles a cell under a name of its own making, ``/tmp/ipykernel_7/123.py`` or ``<ipython-input-3-…>``, and
keeps which number that is. A place in a cell is told as ``cell [3]:2``.
"""

import re
import sys
import threading
from collections import OrderedDict
from types import CodeType, FrameType
from typing import Any

from jaxwatch import _limits

# What %%time and its like compile a cell's code under: the cell is the one that runs.
_OF_MAGICS = {"<timed exec>", "<timed eval>", "<magic-timeit>", "<magic-timeit-setup>"}
_NUMBERED = re.compile(r"ipython-input-(\d+)-")  # older ones and Colab
_IN_BRACKETS = re.compile(r"\[(\d+)\]")

# The place where code was seen first, by what the code does; at the bound the oldest goes.
_seen: OrderedDict[int, str] = OrderedDict()
_lock = threading.RLock()


def shell() -> Any:
    """Return IPython's shell, where the program runs in one; else None."""
    module = sys.modules.get("IPython.core.interactiveshell")
    kind = getattr(module, "InteractiveShell", None)
    try:
        return kind.instance() if kind is not None and kind.initialized() else None
    except Exception:  # noqa: BLE001 -- another one's object, of any version: there is then no cell to tell
        return None


def number(file: str) -> int | None:
    """Return the number of the cell that code of this file name is from; None where it is from none."""
    if file in _OF_MAGICS:
        return running()
    return _number(file, shell())


def _number(file: str, ipython: Any) -> int | None:
    if ipython is None:
        return None
    try:
        told = ipython.compile.format_code_name(file)  # ("Cell", "In[3]")
    except Exception:  # noqa: BLE001 -- as above
        told = None
    found = _IN_BRACKETS.search(told[1]) if told else _NUMBERED.search(file)
    return int(found[1]) if found else None


def running() -> int | None:
    """Return the number of the cell that runs on this thread: the outermost one on the stack; None where none does."""
    ipython, outermost = shell(), None
    frame: FrameType | None = None if ipython is None else sys._getframe(1)  # noqa: SLF001 -- as in `_callsite`
    while frame is not None:
        found = _number(frame.f_code.co_filename, ipython)
        outermost = outermost if found is None else found
        frame = frame.f_back
    return outermost


def place(file: str, line: int) -> str:
    """Return ``file:line``, or ``cell [3]:line``."""
    cell = number(file)
    return f"{file}:{line}" if cell is None else f"cell [{cell}]:{line}"


def definition(code: CodeType) -> str:
    """Return the place of a function's code: in a cell, where code that does the same was seen first.

    So a function stays the same one when its cell is run again, or edited elsewhere.
    """
    if number(code.co_filename) is None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    key = fingerprint(code)
    with _lock:
        found = _seen.setdefault(key, place(code.co_filename, code.co_firstlineno))
        _seen.move_to_end(key)
        while len(_seen) > _limits.DEFINITIONS:
            _seen.popitem(last=False)
    return found


def fingerprint(code: CodeType) -> int:
    """Return a hash of what code does, wherever it stands: Python's own counts the line too."""
    constants = tuple(
        fingerprint(one) if isinstance(one, CodeType) else hash((type(one), one)) for one in code.co_consts
    )
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return hash((code.co_name, code.co_code, constants, names, counts))
