"""The log-linear histogram of durations."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._histogram import LOWEST_OCTAVE, OCTAVES, SIZE, Cell, as_seconds, bucket, quantile, upper_seconds

LOWEST, HIGHEST = 256, 2 ** (LOWEST_OCTAVE + OCTAVES) - 1  # ns, between which a bucket is within 6.25 %
durations = st.integers(0, 2**60)


@given(st.integers(LOWEST, HIGHEST))
def test_a_duration_is_below_its_buckets_bound_by_a_sixteenth_at_most(nanoseconds: int) -> None:
    bound = upper_seconds(bucket(nanoseconds)) * 1e9

    assert nanoseconds * (1 - 1e-12) < bound <= nanoseconds * 1.0625 * (1 + 1e-12)


@given(durations, durations)
def test_longer_durations_fall_into_no_lower_bucket(a: int, b: int) -> None:
    assert (bucket(min(a, b))) <= bucket(max(a, b)) < SIZE


def test_bounds_rise_and_the_first_holds_the_dust() -> None:
    bounds = [upper_seconds(index) for index in range(SIZE)]

    assert all(a < b for a, b in pairwise(bounds))
    assert bounds[0] == pytest.approx(256e-9)
    assert [bucket(n) for n in (0, 1, 255)] == [0, 0, 0]
    assert bucket(256) == 1


def test_what_is_too_long_is_in_the_last_bucket() -> None:
    assert bucket(HIGHEST) == bucket(HIGHEST + 1) == bucket(2**60) == SIZE - 1


@given(st.lists(durations, max_size=60))
def test_nothing_is_lost_on_the_way_to_counts(nanoseconds: list[int]) -> None:
    cell = Cell()
    for duration in nanoseconds:
        cell.add(duration)

    counts = as_seconds(cell.counts())
    assert sum(counts.values()) == len(nanoseconds)
    assert all(counts.values())
    assert list(counts) == sorted(counts)


@given(st.lists(st.integers(LOWEST, HIGHEST), min_size=1, max_size=60), st.floats(0.01, 1))
def test_a_quantile_is_within_a_sixteenth_above_the_true_one(nanoseconds: list[int], q: float) -> None:
    cell = Cell()
    for duration in nanoseconds:
        cell.add(duration)
    rank = next(n for n in range(1, len(nanoseconds) + 1) if n >= q * len(nanoseconds))
    true = sorted(nanoseconds)[rank - 1] * 1e-9

    found = quantile(as_seconds(cell.counts()), q)
    assert found is not None
    assert true * (1 - 1e-12) <= found <= true * 1.0625 * (1 + 1e-12)


def test_nothing_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
