"""The figures of all packages, as Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.suites.outcomes import Difference, Outcomes, Verdict, counts
from benchmarks.suites.seen import Seen

_COLUMNS = (
    "package",
    "files",
    "tests",
    "passed",
    "failed",
    "skipped",
    "differ",
    "flaky",
    "seconds",
    "ratio",
    "misses",
    "eager",
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One package.

    Attributes:
        versions: Of python, jax, jaxlib, jaxwatch and the package.
        files: How many were run, and how many there are.
        plain: Test → outcome, plainly; ``watched`` under jaxwatch. Both of the first run.
        differences: The tests that did not come out the same in it, with what came of them in the others.
        seconds: Of the plain processes, and of the watched ones, summed.
        seen: What jaxwatch saw.
    """

    package: str
    versions: Mapping[str, str]
    files: tuple[int, int]
    plain: Outcomes
    watched: Outcomes
    differences: Sequence[Difference]
    seconds: tuple[float, float]
    seen: Seen

    @property
    def agrees(self) -> bool:
        """Whether each test came out the same, but for those that do not without jaxwatch either; and it was there."""
        told = all(difference.verdict is Verdict.FLAKY for difference in self.differences)
        return told and bool(self.seen.misses + self.seen.eager) and not self.seen.faults

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {
            "package": self.package,
            "versions": dict(self.versions),
            "files": self.files,
            "plain": counts(self.plain.values()),
            "watched": counts(self.watched.values()),
            "differences": [{"test": d.test, "verdict": d.verdict, "runs": told(d)} for d in self.differences],
            "seconds": self.seconds,
            "seen": self.seen._asdict(),
            "agrees": self.agrees,
        }


def table(rows: Iterable[Compared]) -> str:
    """Return a row for each package; where the two runs' counts are not the same, both are told."""
    lines = [" | ".join(_COLUMNS), " | ".join("---" for _ in _COLUMNS), *(" | ".join(_cells(row)) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _cells(row: Compared) -> list[str]:
    plain, watched = counts(row.plain.values()), counts(row.watched.values())
    flaky = sum(difference.verdict is Verdict.FLAKY for difference in row.differences)

    def both(*kinds: str) -> str:
        first, second = (sum(found.get(kind, 0) for kind in kinds) for found in (plain, watched))
        return f"{first:,}" if first == second else f"{first:,} → {second:,}"

    return [
        f"{row.package} {row.versions[row.package]}",
        f"{row.files[0]} of {row.files[1]}",
        f"{len(row.plain.keys() | row.watched.keys()):,}",
        both("passed", "xfailed"),
        both("failed", "error", "stopped", "crashed"),
        both("skipped"),
        str(len(row.differences) - flaky),
        str(flaky),
        f"{row.seconds[0]:,.0f} → {row.seconds[1]:,.0f}",
        f"{row.seconds[1] / row.seconds[0]:.2f}",
        f"{row.seen.misses:,}",
        f"{row.seen.eager:,}",
    ]


def told(difference: Difference) -> str:
    """Return one line: plainly this, watched that, each with how often."""
    return "; ".join(
        f"{name}: {', '.join(f'{outcome} {count} times' for outcome, count in found)}"
        for name, found in (("plain", difference.plain), ("watched", difference.watched))
    )


def details(row: Compared) -> list[str]:
    """Return what the table has no place for: each difference, the faults, and what jaxwatch saw."""
    lines = [
        f"{row.package}: {difference.verdict}: {difference.test}: {told(difference)}" for difference in row.differences
    ]
    lines += [f"{row.package}: {what}: {count:,}" for what, count in row.seen.faults]
    if not row.seen.misses + row.seen.eager:
        lines.append(f"{row.package}: jaxwatch saw nothing at all: two plain runs were compared")
    seen = row.seen
    share = f"{seen.compile_seconds:,.0f} s compiling, {seen.overhead_seconds:,.1f} s of jaxwatch's own"
    lines.append(
        f"{row.package}: {', '.join(seen.cores)} core; {share}; {seen.unknown:,} misses without a known reason"
    )
    return lines
