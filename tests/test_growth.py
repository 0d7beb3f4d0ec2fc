"""How seconds grow with equations: what is fitted is what the seconds were made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._growth import growth_exponent
from jaxwatch.errors import TooFewSizesError

SIZES = (50, 100, 200, 400, 800, 1600)


@given(st.floats(0.3, 3.0), st.floats(1e-6, 1e-2))
def test_a_pure_power_is_found(exponent: float, factor: float) -> None:
    growth = growth_exponent(SIZES, [factor * size**exponent for size in SIZES])

    assert growth.exponent == pytest.approx(exponent, abs=1e-3)
    assert growth.floor_seconds == pytest.approx(0, abs=factor)
    assert growth.low <= growth.exponent <= growth.high


@given(st.floats(0.8, 2.5), st.floats(0.1, 5.0))
def test_a_constant_part_is_taken_out(exponent: float, floor: float) -> None:
    """The floor is as large as up to five times what the smallest program takes beside it."""
    seconds = [floor * (size / SIZES[0]) ** exponent * 0.2 + floor for size in SIZES]
    growth = growth_exponent(SIZES, seconds)

    assert growth.exponent == pytest.approx(exponent, rel=0.1)
    assert growth.low <= growth.exponent <= growth.high


@given(
    st.floats(0.8, 2.0),
    st.lists(st.floats(0.95, 1.05), min_size=len(SIZES), max_size=len(SIZES)),
)
def test_noise_widens_what_is_claimed(exponent: float, noise: list[float]) -> None:
    seconds = [1e-4 * size**exponent * each + 0.01 for size, each in zip(SIZES, noise, strict=True)]
    growth = growth_exponent(SIZES, seconds)

    assert growth.low - 0.15 <= exponent <= growth.high + 0.15
    assert 0 <= growth.floor_seconds <= min(seconds)


@given(st.lists(st.floats(0.01, 1.0), min_size=3, max_size=3))
def test_three_sizes_cannot_tell_floor_and_exponent_apart_and_say_so(seconds: list[float]) -> None:
    growth = growth_exponent(SIZES[:3], seconds)

    assert growth.floor_seconds == 0
    assert growth.high - growth.low > 0.2


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_two_sizes_are_too_few(one: int, two: int) -> None:
    with pytest.raises(TooFewSizesError, match=r"too few to fit .* \[too-few-sizes\]"):
        growth_exponent([one, two, two, one], [1.0, 2.0, 2.0, 1.0])
