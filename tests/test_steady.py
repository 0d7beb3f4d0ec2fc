"""``steady_after``: what it takes, and when the warm-up is over."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._steady import Steady, steady
from jaxwatch.errors import BadOptionError


class Clock:
    """A clock that stands still until it is set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def read(text: object) -> Steady | None:
    return steady(text, by="configure(steady_after={})", clock=Clock())


@pytest.mark.parametrize(
    ("text", "seconds", "calls"),
    [
        ("300 s", 300, 0),
        ("300s", 300, 0),
        ("0 s", 0, 0),
        ("1.5 seconds", 1.5, 0),
        ("1 second", 1, 0),
        ("200 calls", 0, 200),
        ("1 call", 0, 1),
        ("300 s, 3 calls", 300, 3),
        (" 3 CALLS ,300  S", 300, 3),
    ],
)
def test_seconds_calls_or_both(text: str, seconds: float, calls: int) -> None:
    found = read(text)

    assert found is not None
    assert (found.seconds, found.calls, found.since) == (seconds, calls, 1000.0)


def test_never() -> None:
    assert read("never") is None


@pytest.mark.parametrize(
    "wrong",
    [
        *(300, 300.0, True, None, b"3 s", ["3 s"]),
        *("", "300", "-1 s", "1e3 s", "nan s", "5 minutes", "1.5 calls", "9" * 5000 + " s", "\u0663 s"),
        *("3 s 4 calls", "3 s, 4 s", "3 s,", ","),
    ],
)
def test_all_else_is_named_with_the_way_out(wrong: Any) -> None:
    with pytest.raises(BadOptionError, match=r"^configure\(steady_after=.*Give '300 s', '200 calls'.*\[bad-option\]$"):
        read(wrong)


def test_a_number_alone_is_neither() -> None:
    """It could be read as either."""
    with pytest.raises(BadOptionError, match="neither seconds nor calls"):
        read("300")


@given(
    seconds=st.integers(0, 10**6),
    calls=st.integers(0, 10**6),
    passed=st.floats(0, 2e6),
    made=st.integers(0, 2 * 10**6),
)
def test_it_is_reached_when_both_have_passed_and_stays_so(seconds: int, calls: int, passed: float, made: int) -> None:
    clock = Clock()
    found = steady(f"{seconds} s, {calls} calls", by="{}", clock=clock)
    assert found is not None
    clock.now = 1000.0 + passed

    reached = found.reached(lambda: made)
    assert reached == (clock.now - 1000.0 >= seconds and made >= calls)
    clock.now = math.inf
    assert found.reached(lambda: made + 1) or not reached


def test_calls_are_not_counted_where_they_do_not_matter() -> None:
    def fails() -> int:
        raise AssertionError

    for text, reached in (("0 s", True), ("5 s, 3 calls", False)):
        found = read(text)
        assert found is not None
        assert found.reached(fails) is reached


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        found = read(text)
    except BadOptionError:
        return
    assert found is None or found.seconds >= 0
