"""Figures of one watched object: counted, folded, and copied no more often than they change."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
from test_events import MISS

from jaxwatch import _limits
from jaxwatch._counters import OTHER, Counters, Inlined
from jaxwatch._histogram import bucket
from jaxwatch.events import PhaseSeconds, Program


@given(st.lists(st.tuples(st.sampled_from(["s1", "s2", "s3"]), st.integers(1, 10**6)), max_size=20), st.integers(0, 20))
def test_figures_that_are_folded_are_those_of_both(misses: list[tuple[str, int]], cut: int) -> None:
    one, two, whole = Counters(), Counters(), Counters()
    for number, (signature, micros) in enumerate(misses):
        made = dataclasses.replace(MISS, signature=signature, seconds=PhaseSeconds(trace=micros * 2.0**-20))
        (one if number < cut else two).add_miss(made, float(number))
        whole.add_miss(made, float(number))
    one.fold(two)

    for name in set(Counters.__slots__) - {"cell"}:
        assert getattr(one, name) == getattr(whole, name), name


calls_within = st.lists(
    st.tuples(st.sampled_from(["step", "evaluate"]), st.none() | st.integers(0, 300).map(str)), max_size=40
)


@given(calls_within, calls_within)
def test_calls_within_traces_that_are_folded_are_those_of_both(
    first: list[tuple[str, str | None]], second: list[tuple[str, str | None]]
) -> None:
    one, two, whole = Inlined(), Inlined(), Inlined()
    for counts, calls in ((one, first), (two, second), (whole, first + second)):
        for outer, key in calls:
            counts.add(outer, key)
    one.fold(two)

    assert one == whole


def test_calls_within_traces_are_bounded_and_what_is_beyond_counts_as_not_looked_at() -> None:
    counts, more = Inlined(), _limits.INLINED_KEYS + 50
    for number in range(more):
        counts.add(f"outer {number}", str(number))

    assert len(counts.keys) == counts.read == _limits.INLINED_KEYS
    assert counts.calls.total() == more
    assert counts.calls[OTHER] == more - _limits.INLINED_OUTERS
    both = Inlined()
    both.fold(counts)
    both.add("step", "one more")
    assert (len(both.keys), both.read, both.calls.total()) == (counts.read, counts.read, more + 1)


def test_one_program_that_is_not_known_makes_all_unknown() -> None:
    counters, other = Counters(), Counters()
    for numbers in (7, 40, 3):
        counters.add_miss(
            dataclasses.replace(MISS, program=Program(equations=1, constant_bytes=0, touched=numbers)), 0.0
        )
    assert (counters.touched, counters.unseen) == (40, False)

    other.add_miss(dataclasses.replace(MISS, program=None), 0.0)
    counters.fold(other)
    assert counters.unseen


def test_calls_and_latencies_that_are_folded_are_those_of_both() -> None:
    one, two = Counters(), Counters()
    for counters, calls in ((one, 3), (two, 5)):
        counters.cell.calls = calls
        for call in range(calls):
            counters.cell.add(1000 * (call + 1))
    one.fold(two)

    assert one.cell.calls == 8
    assert sum(one.cell.counts().values()) == 8
    assert one.cell.counts()[bucket(1000)] == 2


def test_what_a_miss_changes_is_copied_once_for_each_miss() -> None:
    counters = Counters()
    counters.add_miss(MISS, 1.0)
    first = counters.of_misses()
    assert counters.of_misses() is first

    counters.add_miss(dataclasses.replace(MISS, id=2, signature="s9"), 2.0)
    second = counters.of_misses()
    assert (first["misses"], second["misses"]) == (1, 2)
    assert "s9" not in first["misses_by_signature"], "what was read does not change"
    counters.fold(counters_of(3))
    assert counters.of_misses()["misses"] == 5


def counters_of(misses: int) -> Counters:
    counters = Counters()
    for number in range(misses):
        counters.add_miss(MISS, float(number))
    return counters
