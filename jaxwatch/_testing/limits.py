"""Limits on what a test's call compiles: ``max_traces``, ``max_compiles`` and ``--jaxwatch-max-compiles``."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from jaxwatch._options import switched_off
from jaxwatch._registry import REGISTRY
from jaxwatch._testing.ledger import Seen, Tally
from jaxwatch._testing.texts import misses_text, too_many
from jaxwatch.renderers.cells import clean


@dataclass(frozen=True, slots=True)
class Limit:
    """So many misses: of each function, or of all together."""

    most: int
    by: str
    each: bool
    names: tuple[str, ...] = ()  # of functions; none: of all


def limits_of(item: pytest.Item, most: int | None) -> tuple[Limit, ...]:
    """Return the limits of a test, ``most`` being that of the option; where a marker means nothing, fail the test."""
    found = []
    if (marker := item.get_closest_marker("max_traces")) is not None:
        number, names = _arguments(marker)
        found.append(Limit(number, f"the marker max_traces of {item.nodeid}", each=True, names=names))
    if (marker := item.get_closest_marker("max_compiles")) is not None:
        number, names = _arguments(marker)
        if names:
            pytest.fail(f"@pytest.mark.max_compiles takes one number, got {marker.args}. [bad-option]", pytrace=False)
        found.append(Limit(number, f"the marker max_compiles of {item.nodeid}", each=False))
    elif most is not None:
        found.append(Limit(most, f"--jaxwatch-max-compiles {most}", each=False))
    return tuple(found)


def _arguments(marker: pytest.Mark) -> tuple[int, tuple[str, ...]]:
    first, *rest = marker.args or (None,)
    good = isinstance(first, int) and not isinstance(first, bool) and first >= 0
    if not good or marker.kwargs or not all(isinstance(name, str) for name in rest):
        problem = f"@pytest.mark.{marker.name} got {marker.args} {marker.kwargs}."
        way_out = "Give a number of misses from 0, and to max_traces also names of functions."
        pytest.fail(f"{problem} {way_out} [bad-option]", pytrace=False)
    return first, tuple(rest)


def broken(limits: Sequence[Limit], tally: Tally, root: str) -> str | None:
    """Return what a test fails with that compiled ``tally``; None where it keeps its limits."""
    if switched_off():
        return None
    texts = [_broken(limit, tally, root) for limit in limits]
    return "\n".join(filter(None, texts)) or None


def _broken(limit: Limit, tally: Tally, root: str) -> str | None:
    if not limit.each:
        if tally.misses <= limit.most:
            return None
        head = f"Compiles too much: {misses_text(tally.misses)} of watched functions, more than {limit.most}."
        return too_many(head, tally.seen, root, clean(limit.by))
    over: list[Seen] = []
    told: list[str] = []
    for key, number in tally.by_definition.items():
        if number > limit.most and (not limit.names or any(_called(key[0], name) for name in limit.names)):
            told.append(f"{key[0]} {number:,} times")
            over += [seen for seen in tally.seen if (seen.function, seen.definition) == key]
    if told:
        head = f"Compiles too often: {', '.join(told)}, more than {limit.most}."
        return too_many(head, over, root, clean(limit.by))
    return _unknown(limit, tally)


def _called(function: str, name: str) -> bool:
    return name in (function, function.rpartition(".")[2])


def _unknown(limit: Limit, tally: Tally) -> str | None:
    """Say which names are no watched function's: a limit on them would hold whatever happens."""
    if not limit.names:
        return None
    there = {function.function for function in REGISTRY.snapshot().functions} | {
        name for name, _ in tally.by_definition
    }
    missing = [name for name in limit.names if not any(_called(function, name) for function in there)]
    if not missing:
        return None
    known = ", ".join(sorted(map(clean, there))[:10]) or "none"
    problem = f"{clean(limit.by)} names {clean(', '.join(missing))}: no watched function that was called is named so"
    way_out = "Correct the name; plain jax.jit is watched with pytest --jaxwatch."
    return f"{problem} (there is: {known}). {way_out} [not-watched]"
