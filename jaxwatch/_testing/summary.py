"""The lines that a run of pytest ends with. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from jaxwatch import _limits
from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.counts import Misses
from jaxwatch._testing.sums import REST, Sum, Sums
from jaxwatch._testing.texts import misses_text
from jaxwatch._testing.update import Changes
from jaxwatch.renderers.cells import clean, right
from jaxwatch.renderers.phrases import counted, duration, share

# Of a test's seconds, those in its setup are told from this share on.
_SETUP_SHARE = 0.1


def slowest(sums: Sums, rows: int) -> tuple[str, list[str]]:
    """Return the title and lines of what took longest to compile: so many rows, all for 0."""
    found = [(entry, sum_) for entry, sum_ in sums.entries.items() if sum_.misses or sum_.eager]
    if not found:
        return "jaxwatch: nothing was compiled", []
    found.sort(key=lambda each: (-each[1].all_seconds, each[0]))
    shown = found[:rows] if rows else found
    eager = any(sum_.eager for _, sum_ in shown)
    lines = [_row(entry, sum_, eager=eager) for entry, sum_ in shown]
    return f"jaxwatch: {len(shown)} slowest to compile", [*lines, _all(sums, found)]


def _row(entry: Entry, found: Sum, *, eager: bool) -> str:
    misses = misses_text(found.misses) if found.misses else "–"  # noqa: RUF001 -- as in the report of a run
    ops = (f"{duration(found.eager_seconds)} eager" if found.eager else "") if eager else ""
    in_setup = found.setup_seconds if found.setup_seconds >= _SETUP_SHARE * found.all_seconds else 0.0
    setup = f", {duration(in_setup)} in its setup" if in_setup else ""
    column = f"{right(ops, 14)}   " if eager else ""
    return f"{right(duration(found.all_seconds), 7)}   {misses:<11}{column}{named(entry)}{setup}"


def named(entry: Entry) -> str:
    """Return an entry as people read it."""
    if entry == REST:
        return "(between tests)"
    name = clean(entry.name)
    return {"test": name, "fixture": f"{name} (fixture)", "collection": f"{name} (import)"}[entry.kind]


def _all(sums: Sums, found: Sequence[tuple[Entry, Sum]]) -> str:
    seconds = sum(each.all_seconds for _, each in found)
    misses, eager = (sum(getattr(each, name) for _, each in found) for name in ("misses", "eager"))
    tests = sum(entry.kind == "test" for entry in sums.entries)
    compiling = sum(entry.kind == "test" for entry, _ in found)
    of = (
        f" ({share(seconds, sums.tests_seconds)} of the tests' {duration(sums.tests_seconds)})"
        if sums.tests_seconds
        else ""
    )
    ops = f", {counted(eager, 'eager op')}" if eager else ""
    counts = f"{misses_text(misses)}{ops}; {compiling:,} of {counted(tests, 'test')} compiled."
    return f"In all {duration(seconds)}{of}: {counts}"


# ------------------------------------------------------------------ the baseline


def verdicts(sums: Sums, *, strict: bool) -> list[str]:
    """Return what the baseline says of the run."""
    tests = {
        entry: found for entry, found in sums.entries.items() if entry.kind == "test" and found.outcome != "skipped"
    }
    lines = []
    more = {entry: found for entry, found in sums.entries.items() if found.new}
    if more:
        told = _told((_name(entry), _news(found)) for entry, found in more.items())
        lines.append(f"{_compile(more)} more than {_their(len(more))} baseline: {told}")
    unlisted = {entry: found for entry, found in tests.items() if not found.listed}
    missing = sum(bool(found.misses) for found in unlisted.values())
    if unlisted:
        verdict = "failed" if strict else "passed"
        what = f"{missing:,} of them with misses, which {verdict}" if missing else "none of them with misses"
        lines.append(
            f"{counted(len(unlisted), 'test')} not in the baseline yet, {what}: --jaxwatch-update-baseline adds them"
        )
    if not more and len(unlisted) < len(tests):
        lines.append(f"{counted(len(tests) - len(unlisted), 'test')} within the baseline")
    return lines


def _name(entry: Entry) -> str:
    return named(entry).rpartition("::")[2]


def _compile(entries: Collection[Entry]) -> str:
    kinds = {entry.kind for entry in entries}
    noun = "test" if kinds == {"test"} else "fixture or import" if "test" not in kinds else "test or fixture"
    return f"1 {noun} compiles" if len(entries) == 1 else f"{counted(len(entries), noun)} compile"


def _their(number: int) -> str:
    return "its" if number == 1 else "their"


def _news(found: Sum) -> str:
    number = sum(new.misses for new in found.new.values())
    first, *rest = found.new.values()
    causes = [clean(cause) for cause in first.causes]
    what = f"{first.function}: {causes[0]}" if causes else first.function
    return f"+{number:,} ({what}{' …' if rest or len(causes) > 1 else ''})"


def _told(found: Iterable[tuple[str, str]]) -> str:
    texts = [f"{name} {text}" for name, text in found]
    more = f" and {len(texts) - _limits.TESTS_TOLD:,} more" if len(texts) > _limits.TESTS_TOLD else ""
    return ", ".join(texts[: _limits.TESTS_TOLD]) + more


def fewer(baseline: Baseline, exact: Mapping[Entry, Misses]) -> str | None:
    """Return which tests miss less than the baseline says, of a run of all tests in its order; None where none does."""
    total: dict[str, int] = {}
    for entry, misses in baseline.entries.items():
        for function, counts in misses.items():
            total[function] = total.get(function, 0) - counts.misses
        for function, counts in exact.get(entry, {}).items():
            total[function] = total.get(function, 0) + counts.misses
    less: dict[Entry, int] = {}
    for entry, misses in baseline.entries.items():
        for function, counts in misses.items() if entry in exact else ():
            difference = counts.misses - _misses(exact[entry], function)
            if total[function] < 0 < difference:
                less[entry] = less.get(entry, 0) + difference
    if not less:
        return None
    told = _told((_name(entry), f"-{number:,}") for entry, number in sorted(less.items(), key=lambda each: -each[1]))
    head = f"{_compile(less)} less than {_their(len(less))} baseline: {told}"
    return f"{head}; --jaxwatch-update-baseline tightens it"


def _misses(misses: Misses, function: str) -> int:
    return misses[function].misses if function in misses else 0


def written(path: str, tests: int, found: Changes) -> str:
    """Return what became of a baseline that was brought up to date."""
    parts = [("added", found.added), ("changed", found.changed), ("dropped", found.dropped)]
    told = ", ".join(f"{number:,} {what}" for what, number in parts if number) or "nothing new"
    return f"baseline {clean(path)}: {counted(tests, 'test')}, {told}"


def ended_early(number: int) -> str:
    """Return what is told of tests that failed, or were skipped within."""
    return f"{counted(number, 'test')} ended early: what would have been compiled after that is not in it"
