"""Cumulative time against calls, and where two scopes break even. Pure."""

import bisect
from collections.abc import Sequence

Curve = Sequence[tuple[int, float]]  # (calls, seconds)


def at(curve: Curve, calls: int, later_seconds: float | None) -> float | None:
    """Return the seconds that so many calls took, beyond the last one at so many seconds each; None where unknown."""
    if not curve:
        return None
    last, seconds = curve[-1]
    if calls > last:
        return None if later_seconds is None else seconds + (calls - last) * later_seconds
    place = bisect.bisect_left(curve, (calls, 0.0))
    after_calls, after = curve[place]
    before_calls, before = curve[place - 1] if place else (0, 0.0)
    if after_calls == calls:
        return after
    return before + (after - before) * (calls - before_calls) / (after_calls - before_calls)


def break_even(slow_start: Curve, later: float | None, other: Curve, other_later: float | None) -> int | None:
    """Return the call from which on the first scope has taken less than the other one, for good; None if never.

    Args:
        slow_start: Of the first scope.
        later: Its seconds per call beyond its curve; None: unknown.
        other: Of the other one.
        other_later: Its seconds per call beyond its curve.
    """
    if not slow_start or not other:
        return None
    places = sorted({calls for calls, _ in slow_start} | {calls for calls, _ in other})
    end = min(slow_start[-1][0], other[-1][0])
    gains = [
        (calls, b - a)
        for calls in places
        if calls <= end
        and (a := at(slow_start, calls, later)) is not None
        and (b := at(other, calls, other_later)) is not None
    ]
    lost = [calls for calls, gain in gains if gain <= 0]
    if not lost:
        return 1
    behind = max(lost)
    if behind < gains[-1][0]:
        return next(calls for calls, _ in gains if calls > behind)
    if later is None or other_later is None or later >= other_later:
        return None
    return gains[-1][0] + int(-gains[-1][1] / (other_later - later)) + 1
