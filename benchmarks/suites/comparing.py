"""The whole of one package: each file plainly and watched in turn, and what differed again."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.suites.environment import Prepared
from benchmarks.suites.outcomes import Difference, Outcome, differences, unequal
from benchmarks.suites.running import Door, Run, Runner
from benchmarks.suites.seen import seen
from benchmarks.suites.tables import Compared

_AGAIN = 3  # runs of each kind for a file in which a test differed


def compare(ready: Prepared, runner: Runner, groups: Sequence[Sequence[str]], door: Door) -> Compared:
    """Run each group of files both ways, one after the other and each first in its turn.

    Args:
        ready: The package.
        runner: Runs its tests.
        groups: Files that share a process.
        door: The watched runs'.
    """
    plain: dict[str, Outcome] = {}
    watched: dict[str, Outcome] = {}
    found: list[Difference] = []
    seconds, logs = [0.0, 0.0], list[Path]()
    for number, files in enumerate(groups):
        pair = _pair(runner, files, door, plain_first=number % 2 == 0)
        plain |= pair[0].outcomes
        watched |= pair[1].outcomes
        seconds[0] += pair[0].seconds
        seconds[1] += pair[1].seconds
        logs.append(pair[1].log)
        unlike = unequal(pair[0].outcomes, pair[1].outcomes)
        told = f"{len(pair[0].outcomes)} tests, {pair[0].seconds:.0f} s → {pair[1].seconds:.0f} s"
        print(
            f"{ready.package.name} {', '.join(files[:2])}: {told}{f', {len(unlike)} unlike' if unlike else ''}",
            flush=True,
        )
        if unlike:
            found += _again(runner, files, door, unlike, pair)
    package = ready.package
    counted = (sum(map(len, groups)), len(package.files(ready.tree, whole=True)) + len(package.never))
    return Compared(package.name, ready.versions, counted, plain, watched, found, (seconds[0], seconds[1]), seen(logs))


def _pair(runner: Runner, files: Sequence[str], door: Door, *, plain_first: bool, number: int = 0) -> tuple[Run, Run]:
    doors = (Door.PLAIN, door) if plain_first else (door, Door.PLAIN)
    runs = {one: runner.run(files, one, number) for one in doors}
    return runs[Door.PLAIN], runs[door]


def _again(
    runner: Runner, files: Sequence[str], door: Door, unlike: Iterable[str], first: tuple[Run, Run]
) -> Iterator[Difference]:
    more = (_pair(runner, files, door, plain_first=number % 2 == 0, number=number) for number in range(1, _AGAIN + 1))
    runs = list(itertools.chain([first], more))
    return differences(unlike, [plain.outcomes for plain, _ in runs], [watched.outcomes for _, watched in runs])
