"""What a failing test says: how much is too much, what differed, where, and what to do. Pure."""

import shlex
from collections.abc import Collection, Sequence
from typing import Protocol

from jaxwatch import _limits
from jaxwatch._testing.judge import New
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.phrases import counted, duration, place


class Miss(Protocol):
    """One miss, as it is told."""

    @property
    def function(self) -> str:
        """Its function."""

    @property
    def causes(self) -> tuple[str, ...]:
        """What it is counted by."""

    @property
    def text(self) -> str:
        """What differed."""

    @property
    def site(self) -> str:
        """Where the call is, as ``file:line``."""

    @property
    def call(self) -> int:
        """Which call of the function it was."""

    @property
    def seconds(self) -> float:
        """What it took."""


def evidence(misses: Sequence[Miss], root: str) -> list[str]:
    """Return a line for each of the first misses, and how many more there are."""
    lines = [f"  {_line(miss, root)}" for miss in misses[: _limits.MISSES_TOLD]]
    more = len(misses) - len(lines)
    return [*lines, f"  and {more:,} more"] if more else lines


def _line(miss: Miss, root: str) -> str:
    where = f"{place(miss.site, root)}, call {miss.call}, {duration(miss.seconds)}"
    return f"{clean(miss.function)}: {clean(miss.text)}; {where}"


def exceeded(test: str, new: Collection[New], misses: Sequence[Miss], root: str, baseline: str) -> str:
    """Return why a test fails that misses more than its baseline."""
    told = [miss for miss in misses if any(_is_of(miss, each) for each in new)]
    much = ", ".join(f"{clean(each.function)} +{each.misses:,}" for each in new)
    known = len(told) > sum(each.misses for each in new)  # which of equal cause are the new ones cannot be said
    head = f"Compiles more than its baseline: {much}. What differed{f', in all {len(told):,}' if known else ''}:"
    return "\n".join([head, *evidence(told, root), _way_out(test, baseline)])


def unlisted(test: str, misses: Sequence[Miss], root: str, baseline: str) -> str:
    """Return why a test fails that misses and has no baseline."""
    head = f"Not in the baseline, and has {misses_text(len(misses))}."
    return "\n".join([head, *evidence(misses, root), _way_out(test, baseline)])


def _is_of(miss: Miss, new: New) -> bool:
    return miss.function == new.function and (not new.causes or bool(set(new.causes) & set(miss.causes)))


def _way_out(test: str, baseline: str) -> str:
    command = (
        f"pytest --jaxwatch-baseline {shlex.quote(baseline)} --jaxwatch-update-baseline {shlex.quote(clean(test))}"
    )
    return f"Mend it; or accept it: {command} [baseline-exceeded]"


def too_many(head: str, misses: Sequence[Miss], root: str, by: str) -> str:
    """Return why a test fails that broke a limit: ``head``, what there was, and ``by`` what it is limited."""
    return "\n".join([head, *evidence(misses, root), f"Limited by {by}. [max-compiles]"])


def misses_text(number: int) -> str:
    """Return ``1 miss``, ``4 misses``."""
    return f"{number:,} miss" if number == 1 else f"{counted(number, 'misse')}"
