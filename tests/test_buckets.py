"""What lengths are rounded up to: all are covered, the padding is told right, and nothing better was left out."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._buckets import SIGNATURE_PRICE, SMALLEST, Scheme, best

lengths = st.sets(st.integers(0, 10**6) | st.integers(0, 300), min_size=2, max_size=60)


def schemes(largest: int) -> Iterator[Scheme]:
    yield Scheme(None, 0, 0.0)
    yield Scheme(largest, 0, 0.0)
    step = SMALLEST
    while step < largest:
        yield Scheme(step, 0, 0.0)
        step *= 2


def figures(scheme: Scheme, sizes: set[int]) -> tuple[int, float]:
    """Return signatures and waste, by what each length is rounded up to."""
    rounded = [scheme.rounded(size) for size in sizes]
    return len(set(rounded)), sum(rounded) / max(sum(sizes), 1) - 1


@given(lengths)
def test_every_length_fits_into_what_it_is_rounded_up_to_and_that_is_of_the_scheme(sizes: set[int]) -> None:
    scheme = best(sizes)
    for size in sizes:
        rounded = scheme.rounded(size)
        assert rounded >= size
        assert rounded % scheme.step == 0 if scheme.step else rounded.bit_count() == 1
        assert scheme.rounded(rounded) == rounded


@given(lengths)
def test_signatures_and_padding_are_those_of_the_lengths(sizes: set[int]) -> None:
    scheme = best(sizes)
    signatures, waste = figures(scheme, sizes)

    assert scheme.signatures == signatures < len(sizes)
    assert scheme.waste == pytest.approx(waste)
    assert scheme.waste >= 0


@given(lengths)
def test_no_other_scheme_has_a_better_trade(sizes: set[int]) -> None:
    def price(signatures: int, waste: float) -> float:
        return waste + SIGNATURE_PRICE * signatures

    found = best(sizes)
    others = (figures(scheme, sizes) for scheme in schemes(max(sizes)))
    assert all(
        price(found.signatures, found.waste) <= price(*other) + 1e-9 for other in others if other[0] < len(sizes)
    )


@pytest.mark.parametrize(
    ("sizes", "told", "signatures"),
    [
        (range(1, 401), "a multiple of 64", 7),
        (range(5, 9), "8", 1),
        (range(1, 38), "a multiple of 8", 5),
        ({12, 1302, 1583}, "a power of two", 2),
        ({100, 2_000, 2_001}, "a multiple of 32", 2),
        ({0, 1, 2}, "2", 1),
        (range(90, 101), "100", 1),
    ],
)
def test_a_few_signatures_with_little_padding_are_advised(sizes: set[int], told: str, signatures: int) -> None:
    scheme = best(set(sizes))

    assert (str(scheme), scheme.signatures) == (told, signatures)
