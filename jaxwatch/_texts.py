"""Texts of values that are the user's: short, guarded, without addresses, and never an array's content."""

import functools
import hashlib
import os
import re
import types
from typing import Any

from jaxwatch import _limits

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def shortened(text: str, characters: int = _limits.REPR_CHARACTERS) -> str:
    """Return ``text``, cut with an ellipsis where it is longer."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def around_difference(before: str, after: str, characters: int = _limits.REPR_CHARACTERS) -> tuple[str, str]:
    """Return the parts of two different texts around the first place where they differ, each of at most so many."""
    start = max(0, len(os.path.commonprefix([before, after])) - characters // 3)  # noqa: RUF071 -- characters are meant
    lead = "…" if start else ""
    return lead + shortened(before[start:], characters - 1), lead + shortened(after[start:], characters - 1)


def is_plain(value: object) -> bool:
    """Whether the value's ``repr`` says all of it: a scalar or text of Python's own, or a tuple of such."""
    return type(value) in _PLAIN or (type(value) in (tuple, frozenset) and all(map(is_plain, value)))  # type: ignore[call-overload]


def value_text(value: Any) -> str:
    """Return a static value as text: its ``repr`` without addresses, shortened; functions by their name."""
    return shortened(whole_text(value))


def whole_text(value: Any) -> str:
    """Return a static value as text that is not shortened; the same in every process, as far as its ``repr`` is."""
    kind = type(value)
    if issubclass(kind, types.FunctionType):
        return f"<function {value.__qualname__}>"
    if issubclass(kind, functools.partial):
        return f"partial({whole_text(value.func)}, …)"
    try:
        if hasattr(kind, "__array__") and (shape := getattr(value, "shape", ())):
            return f"<{kind.__name__} {value.dtype}{list(shape)}>"  # never what it holds
        text = _plain_repr(value) if kind in (tuple, frozenset) and is_plain(value) else repr(value)
    except KeyboardInterrupt:  # the user's own, whose moment it happens to be
        raise
    except BaseException as error:  # noqa: BLE001 -- a repr of the user's that fails must not matter, SystemExit neither
        return f"<{kind.__name__}, whose repr raises {type(error).__name__}>"
    return _without_addresses(text) if isinstance(text, str) else f"<{kind.__name__}>"


def _without_addresses(text: str) -> str:
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def _plain_repr(value: Any) -> str:
    """Return the ``repr`` of a plain value, with sets in one order: theirs depends on the process's hash seed."""
    if type(value) is tuple:
        return f"({', '.join(map(_plain_repr, value))}{',' if len(value) == 1 else ''})"
    if type(value) is frozenset:
        return f"frozenset({{{', '.join(sorted(map(_plain_repr, value)))}}})" if value else "frozenset()"
    return repr(value)


def equal_text(value: Any) -> str:
    """Return a text that is equal for plain values that are: for 1, 1.0 and True; NaNs are told apart by ``nans``."""
    kind = type(value)
    if kind in (tuple, frozenset):
        parts = map(equal_text, value)
        return f"{kind.__name__}({', '.join(parts if kind is tuple else sorted(parts))})"
    if kind is complex and value.imag:
        return f"{equal_text(value.real)}+{equal_text(value.imag)}j"
    number = value.real if kind is complex else value
    if kind is bool or (isinstance(number, float) and number.is_integer()):
        number = int(number)
    return f"{number:x}" if isinstance(number, int) else repr(number)


def nans(value: Any) -> str:
    """Return which objects the NaNs in a plain value are: one is equal to itself alone."""
    if type(value) in (tuple, frozenset):
        return "".join(map(nans, value))
    return "" if value == value else f"@{id(value):x}"  # noqa: PLR0124 -- just so is a NaN told


def label_text(text: str) -> str:
    """Return the key of a container's child as a part of a path; one that is too long ends in a digest."""
    text = _without_addresses(text)
    most = _limits.NAME_CHARACTERS
    return text if len(text) <= most else f"{text[:most]}…{digest(text)[:8]}"


def digest(text: str) -> str:
    """Return a text of fixed length that stands for ``text``."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:24]
