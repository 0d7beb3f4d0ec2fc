"""Equal blocks in a row: what is found is there, and what is there is found."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._blocks import Run, runs

LEAST = 4
sequences = st.lists(st.integers(0, 3), max_size=60)
blocks_of_distinct = st.lists(st.integers(100, 120), min_size=1, max_size=6, unique=True)


@given(sequences, st.integers(2, 6))
def test_every_row_that_is_found_is_really_there(symbols: list[int], least: int) -> None:
    for run in runs(symbols, least):
        block = symbols[run.start : run.start + run.period]
        assert symbols[run.start : run.stop] == block * run.blocks
        assert run.blocks >= least


@given(st.lists(st.integers(), max_size=60, unique=True))
def test_where_nothing_repeats_nothing_is_claimed(symbols: list[int]) -> None:
    assert runs(symbols, 2) == []


@given(sequences, blocks_of_distinct, st.integers(LEAST, 9), sequences)
def test_a_row_of_blocks_is_found_whatever_stands_around_it(
    before: list[int], block: list[int], count: int, after: list[int]
) -> None:
    found = runs([*before, *(block * count), *after], LEAST)

    assert Run(len(before), len(block), count) in found


@given(blocks_of_distinct, st.integers(LEAST, 6), st.integers(2, 6), st.integers(0, 1))
def test_rows_within_the_blocks_of_a_row_hide_neither(block: list[int], count: int, inner: int, tail: int) -> None:
    outer = [*(block * inner), 7, *range(tail)]
    found = runs(outer * count, LEAST)

    assert Run(0, len(outer), count) in found
    if inner >= LEAST:
        assert Run(0, len(block), inner) in found


def test_the_search_ends_at_a_bound() -> None:
    size = 2_000
    symbols = [number % (number // 50 + 2) for number in range(size)]
    taken = 0

    class Counted(list[int]):
        def __getitem__(self, key: Any) -> Any:
            nonlocal taken
            taken += 1
            return super().__getitem__(key)

    runs(Counted(symbols), 2)

    assert taken < 2 * (_limits.LOOP_STEPS + 4) * size
