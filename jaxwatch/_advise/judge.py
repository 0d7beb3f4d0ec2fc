"""Which scope is best, and how sure that is. Pure: seconds of repeated runs in, a verdict out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

_EQUAL = 0.02  # of the best: less is nothing that anybody would change a program for
_NONE = 0.03  # of the best: where no scope is further away, there is no difference worth a name
_DOUBT = 0.05  # of the best: further away, one that is not certain to be slower is still not taken for equal
_SLOWER = 2.0  # times the best, from which on a single run is enough
_HALVED = 4  # runs of a scope from which on the slower half is left out: something else had the machine

# Two-sided 95 % quantiles of Student's t by degrees of freedom; beyond, 2.
_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10)


@dataclass(frozen=True, slots=True)
class Against:
    """A scope against the best one.

    Attributes:
        ratio: Its total in parts of the best one's; 1 of the best itself.
        low: Of a 95 % confidence interval.
        high: Of that interval.
    """

    ratio: float
    low: float
    high: float

    @property
    def settled(self) -> bool:
        """Whether more runs would change nothing: it is slower, or equal for all that matters."""
        return self.low > 1 or self.high < 1 + _NONE

    @property
    def tied(self) -> bool:
        """Whether it cannot be told from the best one, or not by anything that matters."""
        return self.ratio <= 1 + (_DOUBT if self.low <= 1 else _EQUAL)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the runs show.

    Attributes:
        best: The scope of the least total.
        against: Each scope against it.
        recommended: What to jit; None where no difference can be measured.
    """

    best: int
    against: Mapping[int, Against]
    recommended: int | None

    @property
    def settled(self) -> bool:
        """Whether more runs would change nothing."""
        return all(each.settled for each in self.against.values())


def center(seconds: Sequence[float]) -> float:
    """Return the geometric mean of repeated runs; of four or more that of the quicker half.

    What disturbs a run makes it slower, never quicker: the quicker ones tell of the program, the others of the machine.
    """
    return math.exp(fmean(map(math.log, _kept(seconds))))


def _kept(seconds: Sequence[float]) -> list[float]:
    ordered = sorted(max(value, 1e-9) for value in seconds)
    return ordered[: (len(ordered) + 1) // 2] if len(ordered) >= _HALVED else ordered


def is_out(seconds: float, best: float) -> bool:
    """Whether a scope that took so long is out of the race after one run."""
    return seconds > _SLOWER * best


def judge(totals: Mapping[int, Sequence[float]], simplicity: Mapping[int, int]) -> Verdict:
    """Return the verdict on scopes that were run so often.

    Args:
        totals: Scope → the total of each of its runs, in seconds; at least one each, of one scope at least.
        simplicity: Scope → how many functions it jits. Of scopes that cannot be told apart that with fewest is taken.

    Source:
        Logarithms of the totals are compared, with one standard deviation pooled over the scopes (Student's t).
    """
    centers = {scope: center(seconds) for scope, seconds in totals.items()}
    best = min(centers, key=lambda scope: centers[scope])
    deviation, freedom = _pooled([_kept(seconds) for seconds in totals.values()])
    against = {}
    for scope, seconds in totals.items():
        ratio = centers[scope] / centers[best]
        numbers = len(_kept(seconds)), len(_kept(totals[best]))
        spread = 1.0 if scope == best else math.exp(_half_width(ratio, deviation, freedom, numbers))
        against[scope] = Against(ratio, ratio / spread, ratio * spread)
    tied = [scope for scope, each in against.items() if each.tied]
    if len(tied) == len(totals) > 1 or (len(totals) > 1 and max(each.ratio for each in against.values()) <= 1 + _NONE):
        return Verdict(best, against, None)
    near = [scope for scope in tied if scope == best or (against[scope].ratio <= 1 + _EQUAL and against[scope].settled)]
    return Verdict(best, against, min(near, key=lambda scope: (simplicity[scope], centers[scope])))


def _pooled(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the standard deviation of the logarithms within groups, and its degrees of freedom."""
    squares, freedom = 0.0, 0
    for group in groups:
        logs = [math.log(value) for value in group]
        squares += sum((value - fmean(logs)) ** 2 for value in logs)
        freedom += len(logs) - 1
    return (math.sqrt(squares / freedom), freedom) if freedom else (math.inf, 0)


def _half_width(ratio: float, deviation: float, freedom: int, numbers: tuple[int, int]) -> float:
    if not freedom:  # one run each: only what is far away is known to be
        return 0.0 if is_out(ratio, 1.0) else math.inf
    quantile = _T[freedom - 1] if freedom <= len(_T) else 2.0
    return quantile * deviation * math.sqrt(sum(1 / number for number in numbers))
