"""Ranks that did not compile the same, in words."""

from jaxwatch._divergence import Divergence, Side
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean

_WHAT_CHARACTERS = 60
_RUNS_NAMED = 4
_ADVICE = {
    "key": "Give every rank the same shapes, dtypes and statics: on a pod the others wait for this one.",
    "behind": "See whether it hangs, or was given less data: on a pod the others wait for it.",
    "program": "Its body reads what differs by host: a constant, the environment, the order of a set.",
}


def title(found: Divergence) -> str:
    """Return what differs, and in which rank first."""
    name, most = clean(found.function), ranks(found.sides[0].ranks)
    others = tuple(rank for side in found.sides[1:] for rank in side.ranks)
    verb = "did not compile as" if found.kind != "program" else "compiled another program than"
    return f"{name}: {ranks(tuple(sorted(others)))} {verb} {most}, from compile {found.number} on"


def evidence(found: Divergence, folder: str) -> list[str]:
    """Return a line for each side, the largest first."""
    return [_side(side, found.kind, folder) for side in found.sides]


def advice(found: Divergence) -> str:
    """Return what to do."""
    return _ADVICE[found.kind]


def _side(side: Side, kind: str, folder: str) -> str:
    if side.call is None:
        return f"{ranks(side.ranks)}: nothing more"
    what = clean(side.what)
    if len(what) > _WHAT_CHARACTERS:
        what = what[: _WHAT_CHARACTERS - 1] + "…"
    program = f", program {clean(side.fingerprint)}" if kind == "program" and side.fingerprint else ""
    return f"{ranks(side.ranks)}: {what}{program}; {phrases.place(side.site, folder)}, call {side.call:,}"


def ranks(numbers: tuple[int, ...]) -> str:
    """Return ranks as ``rank 3``, ``ranks 0-2, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:_RUNS_NAMED]]
    more = sum(last - first + 1 for first, last in runs[_RUNS_NAMED:])
    return f"rank{'s' if len(numbers) > 1 else ''} {', '.join(told)}{f' and {more:,} more' if more else ''}"
