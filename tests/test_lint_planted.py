"""Recall and precision: planted faults are found, each with its code on its line, and look-alikes are not."""

import re
from pathlib import Path

import pytest

from jaxwatch._lint.check import check

PLANTED = sorted((Path(__file__).parent / "lint_planted").glob("*.py"))
MARK = re.compile(r"# (JW\d{3})")


def marks(source: str) -> set[tuple[int, str]]:
    """Return the lines that carry a mark, with the code."""
    lines = enumerate(source.splitlines(), 1)
    return {(number, code) for number, line in lines for code in MARK.findall(line)}


@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_what_is_found_is_what_is_marked(path: Path) -> None:
    source = path.read_text("utf-8")
    found = {(finding.line, finding.code) for finding in check(source)}

    assert found - marks(source) == set(), "told, and not marked"
    assert marks(source) - found == set(), "marked, and not told"


def test_every_rule_of_the_default_level_is_planted() -> None:
    from jaxwatch._lint.rules import RULES

    planted = {code for path in PLANTED for _, code in marks(path.read_text("utf-8"))}
    assert planted == {code for code, rule in RULES.items() if not rule.pedantic and not code.startswith("JW0")}


def test_there_is_as_much_right_code() -> None:
    faulty, right = (
        sum(len(path.read_text("utf-8").splitlines()) for path in PLANTED if path.stem.endswith(kind))
        for kind in ("faults", "right")
    )
    assert right > faulty / 2


@pytest.mark.parametrize("path", PLANTED, ids=lambda path: path.stem)
def test_planted_code_is_python(path: Path) -> None:
    compile(path.read_text("utf-8"), str(path), "exec")
