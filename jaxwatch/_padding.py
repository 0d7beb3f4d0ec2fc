"""Advice on lengths that several processes saw: each of them knew only its own. Pure: plain data in, plain data out."""

import re
from collections.abc import Mapping, Sequence

from jaxwatch._advisor import Sizes, Varying, advise, paths
from jaxwatch.events import Change

Pair = tuple[str | None, str | None]

_ARRAY = re.compile(r"~?\w+\[([\d,]*)\]")


def over_all(function: str, told: tuple[str, str], pairs: Mapping[str, Sequence[Pair]]) -> tuple[str, str]:
    """Return the advice on shapes again, with the lengths of all processes.

    Args:
        function: Its name.
        told: Code and text of one process's advice.
        pairs: Path of each leaf whose shape differed → what it was and became, in any process.
    """
    changes = [
        Change(reason="shape", path=path, before=before, after=after)
        for path, seen in pairs.items()
        for before, after in seen
    ]
    if told[0] != "pad_or_bucket" or not changes or paths(changes) not in told[1]:  # of a user's argument, say
        return told
    (advice,) = advise(function, changes, lambda path: _varying(pairs.get(path, ())))
    return advice.code, advice.text


def _varying(pairs: Sequence[Pair]) -> Varying | None:
    sizes = Sizes()
    for text in {text for pair in pairs for text in pair}:
        found = _ARRAY.fullmatch(text or "")
        if found is None:
            return None
        sizes.count(tuple(map(int, filter(None, found[1].split(",")))), 1)
    return sizes.varying()
