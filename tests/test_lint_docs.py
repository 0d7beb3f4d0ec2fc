"""docs/lint.md: its table is the rules, its bad examples are told and its good ones are not, and its options exist."""

import re
from pathlib import Path

import pytest

from jaxwatch._cli import command
from jaxwatch._lint.check import check
from jaxwatch._lint.rules import RULES

TEXT = (Path(__file__).parents[1] / "docs" / "lint.md").read_text("utf-8")
SECTIONS = re.findall(r"^### (JW\d{3}) (.+?)\n\n```py\n(.*?)```\n\n```py\n(.*?)```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_table_is_the_rules() -> None:
    rows = re.findall(r"^\| \[?(JW\d{3})\]?\S* \| (.+?) \| (default|pedantic) \| (.+?) \|$", TEXT, re.MULTILINE)

    assert rows == [
        (
            code,
            rule.name,
            "pedantic" if rule.pedantic else "default",
            rule.message.format(what="…").replace("|", "\\|"),
        )
        for code, rule in RULES.items()
    ]


def test_every_rule_has_its_examples() -> None:
    assert [(code, name) for code, name, _, _ in SECTIONS] == [
        (code, rule.name) for code, rule in RULES.items() if not code.startswith("JW0")
    ]


@pytest.mark.parametrize(("code", "bad"), [(code, bad) for code, _, bad, _ in SECTIONS])
def test_a_bad_example_is_told_with_its_code_alone(code: str, bad: str) -> None:
    pedantic = RULES[code].pedantic

    assert {finding.code for finding in check(bad, pedantic=pedantic)} == {code}


@pytest.mark.parametrize(("code", "good"), [(code, good) for code, _, _, good in SECTIONS])
def test_of_a_good_example_nothing_is_told(code: str, good: str) -> None:
    assert check(good, pedantic=True) == [], code


def test_every_option_is_told() -> None:
    options = {name for option in command.commands["lint"].params for name in option.opts if name.startswith("--")}

    assert {option for option in options if option not in TEXT} == set()


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_message_says_what_and_then_the_way_out_in_one_line(rule: object) -> None:
    message = getattr(rule, "message", "")

    assert "{what}" in message
    assert ": " in message
    assert len(message) <= 110
    assert not message.endswith(".")
