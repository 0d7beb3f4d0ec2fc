"""Which function of one run is which of another, where lines have shifted and folders are others. Pure."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePath

Named = tuple[str, str]
"""A name, and the file that it is in."""

# Pairs of files of one name that are looked at; where there are more, those of the very same path are paired alone.
_PAIRS = 250_000
_SAME_PATH, _SAME_PROGRAM = 1_000_000, 500_000


def paired(
    before: Collection[Named], after: Collection[Named], programs: tuple[Collection[str], Collection[str]] = ((), ())
) -> Iterator[tuple[Named | None, Named | None]]:
    """Yield each of both sides once, with its counterpart, or None.

    Those of one name belong together in the same file; else in the programs that were run; else where their paths end
    alike (another checkout, another virtual environment); else where the name is the only one on both sides.

    Args:
        before: Names and files, each once.
        after: As ``before``, of the other side.
        programs: The files that were run, of either side.
    """
    there: dict[str, tuple[list[str], list[str]]] = {}
    for number, side in enumerate((before, after)):
        for name, file in side:
            there.setdefault(name, ([], []))[number].append(file)
    for name, (old, new) in there.items():
        for first, second in _paired_files(old, new, programs):
            yield None if first is None else (name, first), None if second is None else (name, second)


def _paired_files(
    old: list[str], new: list[str], programs: tuple[Collection[str], Collection[str]]
) -> Iterator[tuple[str | None, str | None]]:
    left, right = dict.fromkeys(old), dict.fromkeys(new)
    for _, first, second in sorted(_candidates(old, new, programs), key=lambda pair: (-pair[0], sorted(pair[1:]))):
        if first in left and second in right:
            del left[first], right[second]
            yield first, second
    if len(old) == len(new) == len(left) == len(right) == 1:  # it moved
        yield old[0], new[0]
        return
    yield from ((file, None) for file in left)
    yield from ((None, file) for file in right)


def _candidates(
    old: Iterable[str], new: Collection[str], programs: tuple[Collection[str], Collection[str]]
) -> Iterator[tuple[int, str, str]]:
    """Yield how alike two files are, and the two, where they are at all."""
    old = list(old)
    if len(old) * len(new) > _PAIRS:
        yield from ((_SAME_PATH, file, file) for file in set(old) & set(new))
        return
    ends = {file: PurePath(file).parts[::-1] for file in [*old, *new]}
    for first in old:
        for second in new:
            if first == second:
                alike = _SAME_PATH
            elif first in programs[0] and second in programs[1]:
                alike = _SAME_PROGRAM
            else:
                alike = _common(ends[first], ends[second])
            if alike:
                yield alike, first, second


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    number = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        number += 1
    return number
