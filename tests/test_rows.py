"""Figures of functions over processes: summed, whatever the order."""

from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._rows import FunctionRow, merged_rows

rows = st.lists(
    st.builds(
        FunctionRow,
        function=st.sampled_from(["step", "evaluate"]),
        definition=st.just("a.py:1"),
        calls=st.integers(10, 99),
        calls_exact=st.booleans(),
        misses=st.integers(0, 9),
        signatures=st.integers(0, 9),
        seconds=st.integers(0, 100).map(float),
        from_disk=st.integers(0, 3),
        dispatch=st.lists(st.tuples(st.sampled_from([1e-6, 2e-6, 5e-6]), st.integers(1, 9)), unique_by=lambda p: p[0])
        .map(sorted)
        .map(tuple),
        most_misses=st.integers(0, 9),
        unlogged=st.integers(0, 3),
        most_own_calls=st.integers(0, 9),
        inlined=st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 5)), unique_by=lambda p: p[0])
        .map(sorted)
        .map(tuple),
        inlined_read=st.integers(0, 9),
        inlined_keys=st.integers(0, 9),
        touched=st.none() | st.integers(0, 99),
    ),
    max_size=6,
)


@given(rows, st.randoms(use_true_random=False), st.integers(0, 6))
def test_the_order_and_the_grouping_of_processes_do_not_matter(
    every: list[FunctionRow], shuffling: object, cut: int
) -> None:
    shuffled = list(every)
    shuffling.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a Random

    whole = merged_rows(every)
    assert merged_rows(shuffled) == whole
    assert merged_rows([*merged_rows(every[:cut]), *merged_rows(every[cut:])]) == whole


@given(rows)
def test_calls_of_all_kinds_are_summed_and_what_a_program_touches_is_known_only_where_all_know_it(
    every: list[FunctionRow],
) -> None:
    for row in merged_rows(every):
        own = [one for one in every if one.function == row.function]
        assert row.own_calls == sum(one.own_calls for one in own)
        assert row.most_own_calls == max(one.most_own_calls for one in own)
        assert sum(count for _, count in row.inlined) == sum(count for one in own for _, count in one.inlined)
        touched = [one.touched for one in own]
        assert row.touched == (None if None in touched else max(number for number in touched if number is not None))
