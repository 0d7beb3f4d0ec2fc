"""``examples/scopes.py``: verdicts follow from figures alone, and what is too uncertain is not judged."""

import importlib
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
from hypothesis import given
from hypothesis import strategies as st

EXAMPLES = programs.ROOT / "examples"
SURE_ABOVE, SURE_EQUAL, UNSURE = (3.0, 2.8, 3.2), (1.0, 0.98, 1.03), (1.2, 0.4, 4.0)

rounds = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=12)


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        yield


@pytest.fixture(scope="module")
def times() -> Any:
    return importlib.import_module("scopes_times")


@pytest.fixture(scope="module")
def judges() -> Any:
    return importlib.import_module("scopes")


@given(seconds=rounds, factor=st.floats(0.1, 10))
def test_a_ratio_lies_between_its_bounds_and_scales(seconds: list[float], factor: float) -> None:
    middle, low, high = importlib.import_module("scopes_times").ratio([factor * each for each in seconds], seconds)

    assert all(math.isclose(each, factor, rel_tol=1e-6) for each in (middle, low, high))


def test_what_is_the_same_but_for_noise_is_rarely_told_apart_by_few_rounds(times: Any) -> None:
    generator = np.random.default_rng(0)
    same = [times.ratio(*np.exp(0.2 * generator.normal(size=(2, 5)))) for _ in range(200)]

    assert sum(not low <= 1 <= high for _, low, high in same) <= 20


def test_a_disturbed_round_does_not_move_a_ratio(times: Any) -> None:
    assert times.ratio([2.0, 2.0, 50.0, 2.0, 2.0], [1.0] * 5)[0] == 2.0


@pytest.mark.parametrize(
    ("found", "limit", "expected"),
    [
        (SURE_ABOVE, 2, True),
        (SURE_ABOVE, 4, False),
        (UNSURE, 1.1, None),
        ((1.11, 1.09, 1.13), 1.1, True),  # so narrow that it is the limit itself, for all that matters
    ],
)
def test_a_ratio_is_above_a_limit_or_not_or_cannot_be_told(
    times: Any, found: tuple[float, float, float], limit: float, expected: bool | None
) -> None:
    assert times.above(found, limit) is expected


@pytest.mark.parametrize(
    ("found", "expected"), [(SURE_EQUAL, True), (SURE_ABOVE, False), (UNSURE, None), ((1.0, 0.5, 2.0), None)]
)
def test_a_scope_is_as_good_as_the_best_or_not_or_cannot_be_told(
    times: Any, found: tuple[float, float, float], expected: bool | None
) -> None:
    assert times.good(found) is expected


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ({"a": True, "b": True}, "holds"),
        ({"a": False, "b": False}, "does not hold"),
        ({"a": True, "b": False}, "holds only when: a"),
        ({"a": True, "b": None}, "holds (could not be measured: b)"),
        ({"a": False, "b": None}, "does not hold (could not be measured: b)"),
        ({"a": None, "b": None}, "could not be measured"),
    ],
)
def test_a_verdict_says_in_which_cases_a_claim_holds(times: Any, cases: dict[str, bool | None], said: str) -> None:
    assert times.verdict(cases) == said


@pytest.mark.parametrize(("power", "expected"), [(1.0, "does not hold"), (2.0, "holds"), (3.0, "does not hold")])
def test_growth_is_quadratic_where_the_seconds_are(times: Any, judges: Any, power: float, expected: str) -> None:
    sizes, floor = (100, 200, 400, 800), 0.01
    seconds = [floor + 1e-6 * size**power for size in sizes]

    found = {"straight, compile": times.exponent(sizes, seconds, floor)}

    assert found["straight, compile"][0] == pytest.approx(power, abs=1e-6)
    assert judges.judge(4, found) == expected


def nested(case: str, *, cheaper: tuple[float, float, float], same: bool) -> dict[str, Any]:
    return {f"{case}, trace and lower, g to both": cheaper, f"{case}, same instructions": same}


@pytest.mark.parametrize(
    ("cheaper", "same", "expected"),
    [
        (SURE_EQUAL, True, "holds; alone"),
        (SURE_ABOVE, True, "does not hold; alone"),
        (SURE_EQUAL, False, "does not hold; alone"),
        (UNSURE, True, "could not be measured"),
    ],
)
def test_an_inner_jit_is_redundant_where_it_changes_nothing_and_saves_nothing(
    judges: Any, cheaper: tuple[float, float, float], same: bool, expected: str
) -> None:
    found = nested("f called 2 times", cheaper=cheaper, same=same) | {"f called alone, eager to jit": SURE_ABOVE}

    assert judges.judge(9, found).startswith(expected)


@pytest.mark.parametrize(
    ("g", "compiling", "advised", "expected"),
    [
        (SURE_EQUAL, 0.1, SURE_EQUAL, "holds"),
        (SURE_ABOVE, 0.9, SURE_EQUAL, "holds"),  # one goes inwards
        (SURE_ABOVE, 0.1, SURE_EQUAL, "holds only when: a_large, the advisor; b_varying, the advisor"),
        (SURE_EQUAL, 0.1, SURE_ABOVE, "holds only when: a_large, widest first; b_varying, widest first"),
        (UNSURE, 0.1, UNSURE, "could not be measured"),
    ],
)
def test_the_advisor_is_held_against_the_best_scope_that_was_measured(
    judges: Any, g: Any, compiling: float, advised: Any, expected: str
) -> None:
    found = {
        f"{name}, {what}": figure
        for name in ("a_large", "b_varying")
        for what, figure in (
            ("recommended to the best one measured", advised),
            ("g to the best one measured", g),
            ("part of g's time that is compiling", compiling),
        )
    }

    assert judges.judge(10, found) == expected


def test_what_a_jitted_body_may_do_is_tried(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "scopes.py"), "--quick", "--json", str(tmp_path / "found.json"), "6"],
        env=programs.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (claim,) = json.loads((tmp_path / "found.json").read_text())["claims"]
    assert claim["measured"]["a branch on a traced value"] == "raises TracerBoolConversionError"
    assert claim["verdict"] == (
        "holds only when: a branch on a traced value; once, at the trace: print, a global write, an outer list that is "
        "added to, an outer list that is changed and read; as without jit: a local list, a local dict"
    )
    assert claim["verdict"] in re.sub(r"\s+", " ", done.stdout)


def test_each_claim_has_its_measurement_its_rule_and_its_section(judges: Any) -> None:
    page = (programs.ROOT / "docs" / "when_to_jit.md").read_text("utf-8")

    assert [int(number) for number in re.findall(r"^## (\d+)\.", page, re.MULTILINE)] == list(judges.CLAIMS)
    for number, claim in judges.CLAIMS.items():
        assert f"## {number}. {claim}" in page
