"""Text in the cells of a terminal: what is hostile is made visible, and widths are those that people see."""

import unicodedata

# Categories that a terminal may obey in place of showing: controls, bidi marks and other format characters, lone
# surrogates, unassigned ones, line and paragraph separators.
_OBEYED = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
_WIDE = {"W", "F"}
_MARKS = {"Mn", "Me"}

_ASCII = str.maketrans(
    {"·": "-", "→": "->", "×": "x", "–": "-", "µ": "u", "…": "...", "≥": ">="}  # noqa: RUF001 -- what is replaced
)


def clean(text: str) -> str:
    """Return ``text`` with every character that a terminal would obey written as an escape."""
    if text.isprintable():  # no character of these categories is
        return text
    return "".join(
        _escaped(character) if unicodedata.category(character) in _OBEYED else character for character in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def ascii_only(text: str) -> str:
    """Return ``text`` for a stream that knows ASCII alone."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def width(text: str) -> int:
    """Return how many cells ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(_width_of(character) for character in text)


def _width_of(character: str) -> int:
    if unicodedata.category(character) in _MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


def cut(text: str, cells: int) -> str:
    """Return ``text``, cut with an ellipsis where it is wider than ``cells``."""
    if width(text) <= cells:
        return text
    kept, room = [], cells - 1
    for character in text:
        room -= _width_of(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"


def left(text: str, cells: int) -> str:
    """Return ``text`` with blanks behind it, up to ``cells``."""
    return text + " " * (cells - width(text))


def right(text: str, cells: int) -> str:
    """Return ``text`` with blanks before it, up to ``cells``."""
    return " " * (cells - width(text)) + text


def wrapped(text: str, cells: int, most: int | None = None) -> list[str]:
    """Return ``text`` in lines of at most ``cells``, broken at blanks; what exceeds ``most`` lines is cut off."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if line and width(longer) > cells:
            lines.append(line)
            line = word
        else:
            line = longer
    lines.append(line)
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
    return [cut(line, cells) for line in lines]
