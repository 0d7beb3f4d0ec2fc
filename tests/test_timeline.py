"""Seconds over time in slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._timeline import SERIES, SLOTS, Slots

NOON = 1_777_636_800.0
MOMENTS = st.floats(0, 1e5).map(lambda seconds: NOON + seconds)
ADDED = st.lists(st.tuples(st.sampled_from(SERIES), MOMENTS, st.floats(0, 1e4)), max_size=40)


def test_what_took_several_slots_is_in_each_of_them() -> None:
    slots = Slots()
    slots.add("once", NOON + 2.5, 2.0)
    slots.add("again", NOON + 2.5, 0.25)

    found = slots.timeline(NOON + 4)

    assert (found.start, found.width) == (NOON, 1.0)
    assert found.once == (0.5, 1.0, 0.5, 0.0, 0.0)
    assert found.again == (0.0, 0.0, 0.25, 0.0, 0.0)
    assert found.eager == (0.0,) * 5


def test_nothing_is_an_empty_timeline() -> None:
    assert Slots().timeline(NOON).once == ()


def test_a_long_run_has_wider_slots() -> None:
    slots = Slots()
    for second in range(1_000):
        slots.add("eager", NOON + second + 1, 0.5)

    found = slots.timeline(NOON + 1_000)

    assert found.width == 16.0
    assert len(found.eager) <= SLOTS
    assert found.eager[0] == pytest.approx(0.5 * 16)


@given(ADDED, MOMENTS)
def test_nothing_is_lost_and_there_are_never_too_many_slots(added: list[tuple[str, float, float]], now: float) -> None:
    slots = Slots()
    for series, end, seconds in added:
        slots.add(series, end, seconds)

    found = slots.timeline(now)

    for series in SERIES:
        sums: tuple[float, ...] = getattr(found, series)
        assert len(sums) <= SLOTS
        expected = sum(seconds for name, _, seconds in added if name == series)
        assert sum(sums) == pytest.approx(expected, abs=1e-5 * (len(added) + 1))  # a float of 1970 to now has 2e-7 s


@pytest.mark.parametrize("end", [0.0, -1.0, 1.0, 1e9, 9e9])
def test_a_clock_that_is_wrong_costs_no_memory(end: float) -> None:
    slots = Slots()
    slots.add("once", NOON, 1.0)
    slots.add("once", end, 1e9)

    assert len(slots.timeline(NOON).once) <= SLOTS
    assert len(slots._sums) <= SLOTS
