"""The advice in words. Pure; nothing is said that was not measured in these runs."""

import math
from collections.abc import Sequence

from jaxwatch._advise.comparison import ScopeFigures
from jaxwatch._advise.curves import break_even
from jaxwatch._advise.judge import Against, Verdict
from jaxwatch.renderers.phrases import precise

_CLOSE = 0.02


def recommended(scopes: Sequence[ScopeFigures], verdict: Verdict | None) -> int | None:
    """Return the scope to take; None where there is no difference, or nothing was compared."""
    if verdict is not None:
        return verdict.recommended
    able = [place for place, figures in enumerate(scopes) if figures.eligible and figures.totals]
    others = [
        figures
        for figures in scopes
        if not figures.eligible and (figures.error or figures.stopped or figures.difference)
    ]
    return able[0] if len(able) == 1 and len(others) == len(scopes) - 1 and others else None


def reason(scopes: Sequence[ScopeFigures], verdict: Verdict | None, *, kept: bool = False) -> str:
    """Return why.

    Args:
        scopes: What was measured.
        verdict: On those that can be compared.
        kept: Whether other functions stay jitted in all of them.
    """
    chosen = recommended(scopes, verdict)
    if verdict is None:
        if chosen is None:
            return "Nothing was compared."
        return f"{_jit(scopes[chosen])} is the only scope that {_why_alone(scopes)}."
    if chosen is None:
        return _no_difference(scopes, verdict)
    best = scopes[chosen]
    took = f"{_jit(best)} took {precise(best.total_seconds)} for {best.calls:,} calls"
    sentences = [f"{took}{_against(scopes, verdict, chosen)}."]
    sentences += _as_fast(scopes, verdict, chosen)
    sentences += _pays(scopes, chosen, kept=kept)
    return " ".join(sentences)


def _why_alone(scopes: Sequence[ScopeFigures]) -> str:
    had = ["came to its end"] if any(figures.error for figures in scopes) else []
    had += ["did not take several times as long"] if any(figures.stopped for figures in scopes) else []
    had += ["has the results that the program has"] if any(figures.difference for figures in scopes) else []
    return " and ".join(had)


def _no_difference(scopes: Sequence[ScopeFigures], verdict: Verdict) -> str:
    widest = max(each.ratio for each in verdict.against.values())
    doubt = max(each.high for each in verdict.against.values())
    count = len(verdict.against)
    text = f"No difference that can be measured between {count} scopes over {scopes[verdict.best].calls:,} calls: "
    text += f"their totals are within {_percent(widest)} of each other, and with 95 % within {_percent(doubt)}."
    left = [figures.name for figures in scopes if not figures.eligible]
    return text + (f" Not among them: {', '.join(left)}." if left else "")


def _against(scopes: Sequence[ScopeFigures], verdict: Verdict, chosen: int) -> str:
    """Return how far the program as it is written is behind; where that is chosen, the next best."""
    rivals = [place for place, each in verdict.against.items() if place != chosen and not _equal(each)]
    written = next((place for place in rivals if scopes[place].as_written), None)
    if written is None:
        written = min(rivals, key=lambda place: verdict.against[place].ratio, default=None)
    if written is None:
        return ""
    what = "as it is written" if scopes[written].as_written else f"with {_jit(scopes[written])}"
    each = verdict.against[written]
    own = verdict.against[chosen].ratio
    low, high = each.low / own, each.high / own
    doubt = "" if each.low > 1 else ", which these runs do not settle"
    return f"; {what} it is {_times(each.ratio / own)} that{_interval(low, high)}{doubt}"


def _equal(each: Against) -> bool:
    return each.ratio <= 1 + _CLOSE


def _as_fast(scopes: Sequence[ScopeFigures], verdict: Verdict, chosen: int) -> list[str]:
    alike = [place for place, each in verdict.against.items() if place != chosen and each.tied]
    if not alike:
        return []
    names = " and ".join(_jit(scopes[place]) for place in alike)
    own = verdict.against[chosen].ratio
    ratio = max(max(verdict.against[place].ratio / own, own / verdict.against[place].ratio) for place in alike)
    more = all(set(scopes[place].jit) > set(scopes[chosen].jit) for place in alike)
    text = f"{names} cannot be told from it (within {_percent(ratio)})"
    return [f"{text}: what it jits besides changes nothing here." if more and len(alike) == 1 else f"{text}."]


def _pays(scopes: Sequence[ScopeFigures], chosen: int, *, kept: bool) -> list[str]:
    """Return from which call on it has paid for itself, against running all of these functions without jit."""
    none = next((figures for figures in scopes if not figures.jit and figures.complete), None)
    best = scopes[chosen]
    if none is None or not best.jit:
        return []
    call = break_even(best.curve, best.later_seconds, none.curve, none.later_seconds)
    if call is None:
        return []
    none_of = "none of these jitted" if kept else "no jit at all"
    return [f"Against {none_of} it has paid for itself from call {call:,} on."]


def _jit(figures: ScopeFigures) -> str:
    return f"jit {figures.name}" if figures.jit else "no jit"


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.0f} times"  # noqa: PLR2004 -- tenths are not meant there


def _interval(low: float, high: float) -> str:
    if high == low or not math.isfinite(high):
        return " (one run)"
    return f" ({low:.2f} to {high:.2f})" if high < 10 else f" ({low:.0f} to {high:.0f})"  # noqa: PLR2004 -- as above


def _percent(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    return "a doubling" if percent > 100 else f"{max(percent, 0.1):.1f} %"  # noqa: PLR2004 -- not known at all
