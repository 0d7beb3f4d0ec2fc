"""Figures of a run out of the records of its outermost calls. Pure: times in nanoseconds in, seconds out."""

import bisect
import itertools
from collections.abc import Sequence
from statistics import fmean, median, quantiles

from jaxwatch._advise.outcome import Steady
from jaxwatch._scope import Record

_POINTS = 200
_NANO = 1e-9
_QUARTERS = 4


def quiet(records: Sequence[Record], compiled: Sequence[int]) -> list[Record]:
    """Return the records of the calls within which nothing was compiled.

    Args:
        records: Of all outermost calls.
        compiled: When something had been compiled, sorted.
    """
    return [
        record
        for record in records
        if bisect.bisect_left(compiled, record.begun) == bisect.bisect_right(compiled, record.ready)
    ]


def steady(records: Sequence[Record]) -> Steady | None:
    """Return the figures of calls that compiled nothing; None of none."""
    if not records:
        return None
    seconds = [_NANO * (record.ready - record.begun) for record in records]
    quarters = quantiles(seconds, n=_QUARTERS, method="inclusive") if len(seconds) > 1 else seconds * 3
    shares = [
        (record.returned - record.begun) / (record.ready - record.begun)
        for record in records
        if record.ready > record.begun
    ]
    return Steady(
        calls=len(seconds),
        median=median(seconds),
        low=quarters[0],
        high=quarters[2],
        dispatch_share=median(shares) if shares else 1.0,
    )


def later_seconds(records: Sequence[Record], compiled: Sequence[int], end: int) -> float | None:
    """Return the mean time from one call to the next, over the second half of the calls and to the end; None of one.

    What still compiles there is in it, since it goes on where signatures never come to an end; but not where it is one
    call alone, a function's first one most likely.

    Args:
        records: Of all outermost calls.
        compiled: When something had been compiled, sorted.
        end: When the program had ended.
    """
    if len(records) < 2:  # noqa: PLR2004 -- of one call nothing is known of later ones
        return None
    begins = sorted(record.begun for record in records)
    later = [*begins[len(begins) // 2 :], end]
    gaps = [
        (after - before, bisect.bisect_left(compiled, before) < bisect.bisect_left(compiled, after))
        for before, after in itertools.pairwise(later)
    ]
    calm = [gap for gap, compiles in gaps if not compiles]
    counted = calm if calm and len(calm) == len(gaps) - 1 else [gap for gap, _ in gaps]
    return _NANO * fmean(counted)


def curve(records: Sequence[Record], end: int) -> tuple[tuple[int, float], ...]:
    """Return ``(calls, seconds since the first began)``: when so many calls had been made and the next one began.

    At most some hundred points: the first ones, and then fewer and fewer.
    """
    begins = sorted(record.begun for record in records)
    if not begins:
        return ()
    ends = [*begins[1:], end]
    last = len(ends)
    places = {last, *range(1, min(last, _POINTS // 2) + 1)}
    ratio = max(last / (_POINTS // 2), 1.0) ** (2 / _POINTS)
    places |= (
        {min(last, round(_POINTS // 2 * ratio**step)) for step in range(_POINTS // 2)} if last > _POINTS // 2 else set()
    )
    return tuple((place, _NANO * (ends[place - 1] - begins[0])) for place in sorted(places))
