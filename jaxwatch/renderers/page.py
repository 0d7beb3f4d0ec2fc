"""What all parts of a report on a terminal are laid out by."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A piece of a line, and rich's name of how it looks."""

    text: str
    style: str = ""


Line = Sequence[Span]


class Page(NamedTuple):
    """How wide lines are, and what is told."""

    columns: int
    everything: bool  # nothing is cut short
    folder: str  # paths are told relative to it
    calls: Mapping[tuple[str, str], int]  # function and definition → calls in all, where they are known
