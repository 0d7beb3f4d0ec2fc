"""What a run knows of a baseline's entries: which ran, in what order, and which are no more. Pure."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.ids import file_of
from jaxwatch._testing.sums import REST, Sum, Sums
from jaxwatch._testing.update import Ran, in_order


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was collected."""

    collected: list[str] = field(default_factory=list)  # all tests that exist in the files, deselected ones too
    files: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)  # those that are to run


def order_of(sums: Sums, gathered: Gathered) -> list[Entry]:
    """Return all entries in the order of the run, deselected tests behind what they were collected behind.

    Fixtures and imports stand before the test that they came with.
    """
    found: list[Entry] = []
    for test in in_order(gathered.collected, gathered.order):
        found += [*sums.wide_before.get(test, ()), Entry("test", test)]
    return found


def whole(baseline: Baseline, gathered: Gathered, no_more: Collection[Entry]) -> bool:
    """Whether all tests that there are were to run."""
    tests = {entry.name for entry in baseline.entries if entry.kind == "test" and entry not in no_more}
    return set(gathered.order) == set(gathered.collected) and tests <= set(gathered.order)


def gone(
    baseline: Baseline, gathered: Gathered, arguments: Collection[str], exists: Callable[[str], bool], *, in_full: bool
) -> set[Entry]:
    """Return the tests of a baseline that are no more: their file is, or it was collected as a whole, and without them.

    Args:
        baseline: The baseline.
        gathered: What was collected.
        arguments: What pytest was told to run.
        exists: Whether there is a file of that name.
        in_full: False where pytest left tests out before they were collected, as ``--last-failed`` does.
    """
    collected, files = set(gathered.collected), set(gathered.files)
    in_parts = any("::" in argument for argument in arguments)
    found = set()
    for entry in baseline.entries:
        if entry.kind != "test" or entry.name in collected:
            continue
        file = file_of(entry.name)
        if (in_full and not in_parts and file in files) or not exists(file):
            found.add(entry)
    return found


def ran(
    sums: Sums, baseline: Baseline, gathered: Gathered, no_more: Collection[Entry], *, alone: bool
) -> dict[Entry, Ran]:
    """Return what ran. The figures are exact as long as all tests ran, in one process, and none ended early.

    Args:
        sums: The run's figures.
        baseline: The baseline before.
        gathered: What was collected.
        no_more: Entries that are no more.
        alone: Whether all ran in one process.
    """
    exact = alone and whole(baseline, gathered, no_more)
    found: dict[Entry, Ran] = {}
    for name in gathered.order:
        entry = Entry("test", name)
        sum_ = sums.entries.get(entry)
        if sum_ is None or sum_.outcome in ("", "skipped"):
            exact = exact and not baseline.entries.get(entry) and sum_ is not None
            continue
        exact = exact and sum_.outcome == "passed"
        found[entry] = _ran(sum_, exact=exact, failed=sum_.outcome != "passed")
    wide = {entry: sum_ for entry, sum_ in sums.entries.items() if entry.kind != "test" and entry != REST}
    return found | {entry: _ran(sum_, exact=exact, failed=False) for entry, sum_ in wide.items()}


def _ran(found: Sum, *, exact: bool, failed: bool) -> Ran:
    return Ran(found.by_cause, tuple(found.new.values()), exact=exact, failed=failed)


def complete(found: Mapping[Entry, Ran], baseline: Baseline, order: Collection[Entry]) -> bool:
    """Whether all of a baseline's tests ran in its order, and their figures are exact."""
    tests = [entry for entry in baseline.entries if entry.kind == "test"]
    there = set(tests)
    return [entry for entry in order if entry in there] == tests and all(each.exact for each in found.values())
