"""Texts of values that are the user's: short, guarded, without addresses, and never an array's content."""

import functools
import re
import types
from typing import Any

from jaxwatch import _limits

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def shortened(text: str, characters: int = _limits.REPR_CHARACTERS) -> str:
    """Return ``text``, cut with an ellipsis where it is longer."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def is_plain(value: object) -> bool:
    """Whether the value's ``repr`` says all of it: a scalar or text of Python's own, or a tuple of such."""
    return type(value) in _PLAIN or (type(value) in (tuple, frozenset) and all(map(is_plain, value)))  # type: ignore[call-overload]


def value_text(value: Any) -> str:
    """Return a static value as text: its ``repr`` without addresses, shortened; functions by their name."""
    kind = type(value)
    if kind is str and len(value) > 10 * _limits.REPR_CHARACTERS:
        value = value[: 10 * _limits.REPR_CHARACTERS]
    if issubclass(kind, types.FunctionType):
        return shortened(f"<function {value.__qualname__}>")
    if issubclass(kind, functools.partial):
        return shortened(f"partial({value_text(value.func)}, …)")
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 -- a repr of the user's that fails must not matter
        return f"<{kind.__name__}, whose repr raises {type(error).__name__}>"
    return shortened(_ADDRESS.sub("", text) if isinstance(text, str) else f"<{kind.__name__}>")
