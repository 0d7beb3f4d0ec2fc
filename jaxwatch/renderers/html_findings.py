"""What is to be changed, on a page: findings, ranks that differ, what jits are worth, notes."""

from collections.abc import Iterator, Sequence

from jaxwatch._findings import Finding, Values
from jaxwatch._report_data import Report
from jaxwatch._worth import Worth
from jaxwatch.renderers import divergence, notes, phrases, slow, worth
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.markup import Html, joined, tag

# Findings below this share of the time lost stand behind a click, but for the dearest and those off the fast path.
MINOR_SHARE = 0.01
_DEAREST = 10
_BAR = 200  # units of a bar's width


def findings(report: Report, folder: str) -> Iterator[Html]:
    """Yield all findings, dearest first; then what jits are worth, and notes."""
    lost = sum(one.seconds for one in report.findings)
    large, minor = list[Finding](), list[Finding]()
    for place, one in enumerate(report.findings):
        is_large = place < _DEAREST or one.cause.kind == "dispatch" or one.seconds >= MINOR_SHARE * lost
        (large if is_large else minor).append(one)
    calls = {(row.function, row.definition): row.calls for row in report.functions if row.calls_exact}
    notable = [one for one in report.worth if one.notable]
    told = [note for note in report.notes if note.kind == "advice"]
    if report.healthy:
        yield tag("p", "Nothing to improve.", class_="note")
    if large:
        yield tag("ol", *(_finding(one, lost, folder, calls) for one in large), class_="cards")
    if minor:
        summed = phrases.duration(sum(one.seconds for one in minor))
        summary = tag("summary", f"{len(minor):,} more, each under 1 % of the time lost; {summed} together")
        start = str(len(large) + 1)
        cards = tag("ol", *(_finding(one, lost, folder, calls) for one in minor), class_="cards", start=start)
        yield tag("details", summary, cards)
    if notable:
        yield tag("ul", *(_worth(one, folder) for one in notable), class_="cards")
    if told:
        yield tag("ul", *(tag("li", notes.note(note, folder)) for note in told), class_="notes")
    failed = [note for note in report.notes if note.kind != "advice"]
    if failed:
        yield tag("ul", *(tag("li", notes.note(note, folder)) for note in failed), class_="notes failed")


def _finding(found: Finding, lost: float, folder: str, calls: dict[tuple[str, str], int]) -> Html:
    title = phrases.titles(found, folder)[0]
    of_calls = calls.get((found.cause.function, found.cause.definition))
    is_free = found.cause.kind == "dispatch"
    price = None
    if found.seconds or not is_free:
        count = None if is_free else f"{found.count:,} × "  # noqa: RUF001 -- people read it
        price = tag("span", count, tag("strong", phrases.duration(found.seconds)), class_="price")
    advice = found.advice and tag("p", f"→ {clean(found.advice[1])}", class_="to-do")
    return tag(
        "li",
        tag("h3", tag("span", title), price),
        bar(found.seconds, lost) if lost else None,
        tag("p", phrases.evidence(found, title, folder, of_calls), class_="evidence"),
        advice or None,
        _more(found, folder),
        class_="card",
    )


def _more(found: Finding, folder: str) -> Html | None:
    """Return all that is known of a finding, behind a click; None where that is no more than is told."""
    several = [values for values in found.values if len(values.pairs) > 1]
    if not several and len(found.sites) <= 1:
        return None
    parts = [_values(values) for values in several]
    if len(found.sites) > 1:
        sites = [tag("li", f"{phrases.place(site, folder)}, {count:,} ×") for site, count in found.sites]  # noqa: RUF001
        more = f"and {found.sites_left_out:,} more at other places" if found.sites_left_out else None
        parts.append(joined(tag("p", "Where, most first"), tag("ul", *sites), more and tag("p", more)))
    return tag("details", tag("summary", "All values and places"), *parts)


def _values(values: Values) -> Html:
    name = clean(values.path or values.reasons[0].replace("_", " "))
    # plain text: the keys, further down, have it with the differences marked
    items = [tag("li", " → ".join("nothing" if side is None else side for side in pair)) for pair in values.pairs]
    left_out = f"and {values.left_out:,} more" if values.left_out else None
    return joined(tag("p", tag("code", name)), tag("ul", *items, class_="pairs"), left_out and tag("p", left_out))


def change(before: str | None, after: str | None) -> Html:
    """Return ``before → after``, with what differs marked."""
    if before is None or after is None:
        old, new = (Html("nothing") if side is None else tag("code", side) for side in (before, after))
        return joined(old, " → ", new)
    start = len(before) if before == after else _common(before, after)
    end = min(_common(before[::-1], after[::-1]), len(before) - start, len(after) - start)
    sides = []
    for side in (before, after):
        stop = len(side) - end
        middle = tag("mark", side[start:stop]) if start < stop else None
        sides.append(tag("code", side[:start], middle, side[stop:]))
    return joined(sides[0], " → ", sides[1])


def _common(first: str, second: str) -> int:
    """Return how many characters two texts have in common from their start on, a number taken as a whole."""
    pairs = zip(first, second, strict=False)
    length = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(first), len(second)))
    while length and first[length - 1].isdigit():
        length -= 1
    return length


def bar(part: float, whole: float) -> Html:
    """Return a bar that shows a share; the figures stand beside it."""
    width = f"{_BAR * min(part / whole, 1):.1f}" if whole > 0 else "0"
    svg = tag("rect", width=width, height="4", class_="again")
    return tag("svg", svg, class_="bar", viewBox=f"0 0 {_BAR} 4", preserveAspectRatio="none", aria_hidden="true")


def _worth(found: Worth, folder: str) -> Html:
    cost = worth.price(found)
    return tag(
        "li",
        tag("h3", tag("span", worth.title(found)), tag("span", tag("strong", cost), class_="price") if cost else None),
        tag("p", worth.evidence(found, folder), class_="evidence"),
        tag("p", f"→ {worth.advice(found)}", class_="to-do"),
        class_="card",
    )


def divergences(report: Report, folder: str) -> Iterator[Html]:
    """Yield where ranks of one job did not compile the same."""
    cards = []
    for found in report.divergences:
        title = tag("h3", tag("span", divergence.title(found)))
        sides = tag("ul", *(tag("li", side) for side in divergence.evidence(found, folder)))
        to_do = tag("p", f"→ {divergence.advice(found)}", class_="to-do")
        cards.append(tag("li", title, sides, to_do, class_="card"))
    yield tag("ol", *cards, class_="cards")


def rest(report: Report, folder: str) -> Iterator[Html]:
    """Yield slow programs, jits that are worth their price, the disk cache, and what is not there to be told."""
    lists: Sequence[tuple[str, list[str]]] = (
        ("Where slow programs come from", [slow.text(program, folder) for program in report.slow]),
        ("Jits", [f"{worth.title(one)}. {worth.advice(one)}" for one in report.worth if not one.notable]),
        ("Of the run and its log", list(notes.foot(report))),
    )
    for title, lines in lists:
        if lines:
            yield tag("h3", title)
            yield tag("ul", *(tag("li", line) for line in lines))
    if not any(lines for _, lines in lists):
        yield tag("p", "Nothing else was told.", class_="note")
