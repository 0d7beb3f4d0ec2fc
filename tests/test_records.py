import math
from typing import Any

import pytest
from event_records import miss, record, stats
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _records
from jaxwatch._records import MalformedError

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_a_miss_is_read_as_it_was_written() -> None:
    seen = _records.miss(miss(3, "shape", seconds=1.5, call=57, persistent_cache="hit"))

    assert (seen.number, seen.call, seen.reasons, seen.seconds, seen.from_disk) == (3, 57, ("shape",), 1.5, True)
    assert seen.is_recompile


def test_first_calls_and_dispatch_are_no_recompiles() -> None:
    assert not _records.miss(miss(1)).is_recompile
    assert not _records.miss(miss(2, "fast_path", layer="dispatch")).is_recompile


@given(key=st.sampled_from(sorted(miss(1))), value=JUNK)
def test_a_miss_with_any_field_replaced_is_read_or_refused_as_malformed(key: str, value: Any) -> None:
    try:
        seen = _records.miss({**miss(1), key: value})
    except MalformedError:
        return
    assert 0 <= seen.seconds < math.inf
    assert seen.reasons


@pytest.mark.parametrize("value", [-1, -0.5, math.nan, math.inf, True, "1", None, 1e300])
def test_what_is_no_duration_is_refused(value: Any) -> None:
    with pytest.raises(MalformedError):
        _records.seconds({"seconds": value}, "seconds")


@pytest.mark.parametrize("value", [-1, 1.5, True, "1", None, 2**70])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(MalformedError):
        _records.whole({"calls": value}, "calls")


@pytest.mark.parametrize("value", ["", "noon", "0000-00-00", 5])
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(MalformedError):
        _records.unix_seconds({"time": value})


def test_a_time_without_zone_is_utc() -> None:
    assert _records.unix_seconds({"time": "1970-01-01T00:00:02"}) == 2.0
    assert _records.unix_seconds(record("run")) == _records.unix_seconds({"time": "2026-05-01T14:00:00+02:00"})


def test_dispatch_is_bound_to_count_without_empty_buckets() -> None:
    assert _records.dispatch(stats(dispatch={"6.1e-05": 3, "1": 0})) == {6.1e-05: 3}


@pytest.mark.parametrize(
    "value", [{"x": 1}, {"nan": 1}, {"-1": 1}, {"1": -1}, {"1": "a"}, [], 3, {str(i): 1 for i in range(9999)}]
)
def test_what_is_no_histogram_is_refused(value: Any) -> None:
    with pytest.raises(MalformedError):
        _records.dispatch(stats(dispatch=value))


@pytest.mark.parametrize("code", [0, -11, 3, None])
def test_exit_codes_may_be_negative_or_unknown(code: int | None) -> None:
    assert _records.exit_code({"exit_code": code}) == code


def test_absurdly_long_texts_are_cut() -> None:
    assert len(_records.text({"function": "x" * 10**6}, "function")) < 10_000
