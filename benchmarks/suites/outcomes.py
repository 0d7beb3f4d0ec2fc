"""What came of each test, out of JUnit's XML; and whether two runs agree. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from xml.etree import ElementTree as ET

_TYPE = re.compile(r"(?:failed on (?:setup|teardown) with \"?)?([A-Za-z_][\w.]*)")


class Outcome(NamedTuple):
    """What came of one test.

    Attributes:
        kind: ``passed``, ``failed``, ``error`` (outside of the test itself), ``skipped``, ``xfailed``; of a file that
            gave no result ``stopped`` or ``crashed``; ``absent`` where only the other run has the test.
        type: The exception's type where there is one, else "".
    """

    kind: str
    type: str = ""

    def __str__(self) -> str:
        return f"{self.kind} ({self.type})" if self.type else self.kind


ABSENT = Outcome("absent")
Outcomes = Mapping[str, Outcome]


class Verdict(StrEnum):
    """What a test whose outcomes differed turned out to be, when it was run again both ways."""

    DIFFERS = "differs"  # no outcome is common to both
    UNSTEADY = "unsteady"  # plainly always the same, watched not: it may be jaxwatch's doing
    FLAKY = "flaky"  # plainly, too, not always the same


class Difference(NamedTuple):
    """A test whose outcome was not the same plainly and watched; each outcome with how often it came."""

    test: str
    plain: tuple[tuple[Outcome, int], ...]
    watched: tuple[tuple[Outcome, int], ...]

    @property
    def verdict(self) -> Verdict:
        """What the repeated runs say."""
        plain, watched = {outcome for outcome, _ in self.plain}, {outcome for outcome, _ in self.watched}
        if not plain & watched:
            return Verdict.DIFFERS
        return Verdict.FLAKY if len(plain) > 1 else Verdict.UNSTEADY


def read(text: str) -> dict[str, Outcome]:
    """Return test → outcome from JUnit's XML as pytest writes it.

    Args:
        text: The XML. A test that is in it several times (call and teardown both failed; repeated) is numbered.

    Raises:
        xml.etree.ElementTree.ParseError: It is no XML, as where the process died while it wrote.
    """
    found: dict[str, Outcome] = {}
    times: Counter[str] = Counter()
    for case in ET.fromstring(text).iter("testcase"):  # noqa: S314 -- of pytest, which we started
        name = "::".join(part for part in (case.get("classname"), case.get("name")) if part)
        times[name] += 1
        found[name if times[name] == 1 else f"{name} #{times[name]}"] = _outcome(case)
    return found


def _outcome(case: ET.Element) -> Outcome:
    """Return the worst of what is told: a test with subtests may have skipped one and failed in another."""
    for child in case:
        message = child.get("message") or ""
        if child.tag in ("failure", "error"):
            told = _last_type(child.text) if message in ("", "collection failure") else _first_type(message)
            return Outcome("failed" if child.tag == "failure" else "error", told)
    skipped = case.find("skipped")
    if skipped is None:
        return Outcome("passed")
    return Outcome("xfailed" if skipped.get("type") == "pytest.xfail" else "skipped")


def _first_type(message: str) -> str:
    found = _TYPE.match(message)
    return found[1].rpartition(".")[2] if found else ""


def _last_type(text: str | None) -> str:
    """Return the type in the last line of a traceback that has one."""
    lines = [line.removeprefix("E").strip() for line in (text or "").splitlines() if line.startswith("E ")]
    return _first_type(lines[-1]) if lines else ""


def unequal(plain: Outcomes, watched: Outcomes) -> list[str]:
    """Return the tests whose outcomes are not the same, or that only one of the two has."""
    return [
        test for test in sorted(plain.keys() | watched.keys()) if plain.get(test, ABSENT) != watched.get(test, ABSENT)
    ]


def differences(tests: Iterable[str], plain: Sequence[Outcomes], watched: Sequence[Outcomes]) -> Iterator[Difference]:
    """Return what came of these tests in all the runs, plainly and watched."""
    for test in tests:
        yield Difference(test, _counted(test, plain), _counted(test, watched))


def _counted(test: str, runs: Sequence[Outcomes]) -> tuple[tuple[Outcome, int], ...]:
    return tuple(Counter(run.get(test, ABSENT) for run in runs).most_common())


def counts(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Return kind → how many, the most frequent first."""
    return dict(Counter(outcome.kind for outcome in outcomes).most_common())
