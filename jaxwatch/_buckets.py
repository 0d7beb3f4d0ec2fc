"""Sizes to round lengths up to: few signatures against elements that are padding. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

# Lengths below are not told apart: a program for 3 rows is not cheaper than one for 8.
SMALLEST = 8
# One signature less is worth so large a share more of elements: it saves one compile, padding is paid for at each call.
SIGNATURE_PRICE = 0.03


class Scheme(NamedTuple):
    """A way to round lengths up."""

    step: int | None  # to a multiple of it; None: to a power of two, from ``SMALLEST`` on
    signatures: int  # that are left of the lengths
    waste: float  # share of elements that are added, over the lengths, each counted once

    def __str__(self) -> str:
        """Return what to round up to."""
        if self.step is None:
            return "a power of two"
        return f"a multiple of {self.step}" if self.signatures > 1 else str(self.step)

    def rounded(self, size: int) -> int:
        """Return what a length is rounded up to."""
        if self.step is None:
            return max(SMALLEST, 1 << (size - 1).bit_length())
        return self.step * max(1, -(-size // self.step))


def best(sizes: Collection[int]) -> Scheme:
    """Return the scheme with the best trade of signatures against padding.

    Args:
        sizes: Distinct lengths, from 0, at least 2.

    Returns:
        The one with the lowest ``waste + SIGNATURE_PRICE * signatures`` of those that leave fewer signatures than
        there are lengths; of equal ones the smallest step. There is one: a single bucket for all.
    """
    total = max(sum(sizes), 1)
    # number of the bucket of the smallest size → lengths in it: all but this pass goes over few
    buckets = Counter([-(-size // SMALLEST) or 1 for size in sizes])
    whole = Scheme(max(sizes), 1, max(sizes) * len(sizes) / total - 1)
    found = [*_multiples(buckets, total), whole, _powers(buckets, total)]
    return min(
        (scheme for scheme in found if scheme.signatures < len(sizes)),
        key=lambda scheme: scheme.waste + SIGNATURE_PRICE * scheme.signatures,
    )


def _powers(buckets: Mapping[int, int], total: int) -> Scheme:
    rounded = [(bucket - 1).bit_length() for bucket in buckets]
    elements = SMALLEST * sum(count << bits for bits, count in zip(rounded, buckets.values(), strict=True))
    return Scheme(None, len(set(rounded)), elements / total - 1)


def _multiples(buckets: Mapping[int, int], total: int) -> Iterator[Scheme]:
    """Yield a scheme for each power of two that leaves several signatures as step."""
    step = SMALLEST
    elements = step * sum(bucket * count for bucket, count in buckets.items())
    while len(buckets) > 1:
        yield Scheme(step, len(buckets), elements / total - 1)
        halved: dict[int, int] = {}
        for bucket, count in buckets.items():
            if bucket & 1:  # half of the new bucket is empty
                elements += step * count
            half = (bucket + 1) >> 1
            halved[half] = halved.get(half, 0) + count
        step, buckets = 2 * step, halved
