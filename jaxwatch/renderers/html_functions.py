"""Functions on a page: their figures, the keys of each and what they were compared with, and lines outside jit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from jaxwatch import _limits
from jaxwatch._details import FunctionDetails, Key, Point
from jaxwatch._report_data import Report
from jaxwatch._rows import FunctionRow
from jaxwatch.renderers import html_timeline, phrases
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.html_findings import change
from jaxwatch.renderers.markup import Html, tag

_NAMED = 20  # operations at one line
_DEEPEST = 6  # indents that are told apart
_CAUSES = {
    "first_call": "first key of its function object",
    "new_function": "the same code as another function object",
    "cache_lost": "compiled before, and gone from the cache",
    "unknown": "no difference could be shown",
}
_NONE = "–"  # noqa: RUF001 -- what people write for nothing

Name = tuple[str, str]


def table(report: Report, folder: str) -> Iterator[Html]:
    """Yield the table of functions; each leads to its keys."""
    rows = [row for row in report.functions if row.misses or row.seconds or row.dispatch]
    if not rows:
        yield tag("p", "No watched function was called.", class_="note")
        return
    numbers = _numbers(report)
    found = () if report.details is None else report.details.functions
    phases = {_name(one): one.phases for one in found}
    titles = ["function", "calls", "misses", "keys", "trace", "lower", "XLA", "compiling", "dispatch p50", "p99"]
    heads = [
        tag("th", title, scope="col", class_="number" if place else None, data_kind="number" if place else "text")
        for place, title in enumerate(titles)
    ]
    shown = rows[: _limits.REPORT_FUNCTIONS]
    body = [_row(row, folder, numbers.get((row.function, row.definition)), phases) for row in shown]
    yield scrolled(
        "h-functions", tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *body), id="functions-table")
    )
    yield tag("p", id="shown", class_="note", role="status")
    if len(rows) > len(shown):
        yield tag("p", f"The dearest of {phrases.counted(len(rows), 'function')}; --json has all.", class_="note")


def scrolled(label: str, content: Html) -> Html:
    """Return what may be wider than the page, to be scrolled by keyboard too."""
    return tag("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def _name(found: FunctionDetails) -> Name:
    return found.function, found.definition


def _numbers(report: Report) -> dict[Name, int]:
    """Return the number by which each function's keys are found on the page."""
    found = () if report.details is None else report.details.functions
    return {_name(one): number for number, one in enumerate(found[: _limits.REPORT_FUNCTIONS], start=1)}


def _row(row: FunctionRow, folder: str, number: int | None, phases: Mapping[Name, Sequence[float | None]]) -> Html:
    name: str = clean(row.function)
    if number is not None:
        name = tag("a", name, href=f"#f{number}")
    at = tag("span", phrases.place(row.definition, folder), class_="beside") if row.definition else None
    known = phases.get((row.function, row.definition), (None,) * 3)
    latencies = [row.dispatch_quantile(0.5), row.dispatch_quantile(0.99)]
    cells = [
        _figure(f"{row.calls:,}" if row.calls_exact else f"≥{row.calls:,}", row.calls),
        *(_figure(f"{count:,}", count) for count in (row.misses, row.signatures)),
        *(_seconds(seconds) for seconds in (*known, row.seconds, *latencies)),
    ]
    head = tag("th", name, at, scope="row", data_value=row.function.lower())
    return tag("tr", head, *cells, data_name=row.function)


def _figure(told: str, value: float) -> Html:
    return tag("td", told, class_="number", data_value=f"{value:.9g}")


def _seconds(seconds: float | None) -> Html:
    return _figure(_NONE, -1) if seconds is None else _figure(phrases.duration(seconds), seconds)


# ------------------------------------------------------------------ keys


def keys(report: Report, folder: str) -> Iterator[Html]:
    """Yield, for each function, its keys as a tree: each stands below the one it was compared with."""
    if report.details is None:
        return
    points: defaultdict[Name, list[Point]] = defaultdict(list)
    for point in report.details.points:
        if point.call:
            points[point.function, point.definition].append(point)
    calls = {(row.function, row.definition): row.calls for row in report.functions}
    for number, found in enumerate(report.details.functions[: _limits.REPORT_FUNCTIONS], start=1):
        marks = points[_name(found)]
        yield _function(number, found, marks, calls.get(_name(found), 0), folder)


def _function(number: int, found: FunctionDetails, marks: Sequence[Point], calls: int, folder: str) -> Html:
    misses = sum(key.misses for key in found.keys) + found.left_out
    told = f"{phrases.counted(len(found.keys), 'key')}, {misses:,} miss{'' if misses == 1 else 'es'}, "
    title = tag(
        "summary",
        tag("strong", found.function),
        f" {phrases.place(found.definition, folder)} · {told}{phrases.duration(sum(found.phases))}",
    )
    heads = ["key", "what differs from the key it was compared with", "first at", "misses", "trace", "lower", "XLA"]
    numeric = {"misses", "trace", "lower", "XLA"}
    head = (tag("th", one, scope="col", class_="number" if one in numeric else None) for one in heads)
    body = (_key(key, depth, folder) for key, depth in tree(found.keys))
    content = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    label = f"{clean(found.function)}: its calls from the first to the last; marks are those that compiled"
    # function objects that were made anew, and processes, count their calls each from 1: then no call has one place
    is_one_object = 0 < len(marks) == len({point.call for point in marks})
    more = f"and {found.left_out:,} misses with further keys, beyond a bound" if found.left_out else None
    return tag(
        "details",
        title,
        html_timeline.strip(marks, calls, label) if is_one_object and calls > 1 else None,
        scrolled(f"Keys of {clean(found.function)} ({number})", content),
        more and tag("p", more, class_="note"),
        id=f"f{number}",
        class_="function",
        data_name=found.function,
        open="" if number == 1 else None,
    )


def tree(every: Sequence[Key]) -> Iterator[tuple[Key, int]]:
    """Yield each key with its depth, below the one that it was compared with."""
    below: defaultdict[int | None, list[Key]] = defaultdict(list)
    for key in every:
        below[key.parent].append(key)
    waiting = [(key, 0) for key in reversed(below[None])]
    while waiting:
        key, depth = waiting.pop()
        yield key, depth
        waiting += [(child, depth + 1) for child in reversed(below[key.number])]


def _key(key: Key, depth: int, folder: str) -> Html:
    number = f"{'└ ' if depth else ''}{key.number}"
    compared = f"to {key.parent}" if key.parent is not None else None
    cells = [
        tag("td", number, compared and tag("span", compared, class_="beside"), class_=f"short d{min(depth, _DEEPEST)}"),
        tag("td", *_differences(key)),
        tag("td", f"call {key.call:,}", tag("span", phrases.place(key.site, folder), class_="beside"), class_="place"),
        tag("td", f"{key.misses:,}", class_="number"),
        *(tag("td", phrases.duration(seconds), class_="number") for seconds in key.phases),
    ]
    return tag("tr", *cells)


def _differences(key: Key) -> Iterator[Html]:
    for one in key.changes:
        reason = one.reason.replace("_", " ")
        path = tag("code", one.path, class_="path") if one.path else None
        values = change(one.before, one.after) if one.before is not None or one.after is not None else None
        said = f" ({reason})" if path or values else f"{reason}"
        note = f" {one.note}" if one.note and not values else None
        yield tag("div", path, " " if path else None, values, said, note)
    if key.changes_left_out:
        yield tag("div", f"and {phrases.counted(key.changes_left_out, 'more change')}", class_="beside")
    if not key.changes or key.parent is None:
        lost = "compared with a key that is no longer known: " if key.compared and key.parent is None else ""
        reason = "first_call" if "first_call" in dict(key.reasons) else key.reasons[0][0]
        yield tag("div", f"{lost}{_cause(reason)}")
        if key.abstract:
            yield tag("div", tag("code", key.abstract), class_="abstract")
    if key.misses > 1:
        told = (f"{_cause(reason)} {count:,} ×" for reason, count in key.reasons)  # noqa: RUF001
        yield tag("div", "; ".join(told), class_="beside")
    if key.from_disk:
        yield tag("div", f"{key.from_disk:,} of its misses read from the cache on disk", class_="beside")


def _cause(reason: str) -> str:
    return _CAUSES.get(reason, reason.replace("_", " "))


# ------------------------------------------------------------------ outside jit


def eager(report: Report, folder: str) -> Iterator[Html]:
    """Yield the lines that compiled outside jit, dearest first."""
    if report.details is None:
        told = f"{phrases.counted(report.eager_count, 'compile')}, {phrases.duration(report.eager_seconds)}"
        yield tag("p", f"{told}; the dearest lines are among the findings.", class_="note")
        return
    heads = ("where", "operations", "compiles", "cost")
    head = (tag("th", one, scope="col", class_="number" if one in heads[2:] else None) for one in heads)
    body = (
        tag(
            "tr",
            tag("th", phrases.place(site, folder), scope="row"),
            tag("td", _named(names), class_="place"),
            tag("td", f"{count:,}", class_="number"),
            tag("td", phrases.duration(seconds), class_="number"),
        )
        for site, names, count, seconds in report.details.eager
    )
    yield scrolled("Lines with compiles", tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body)))
    if report.details.eager_left_out:
        yield tag("p", f"and {phrases.counted(report.details.eager_left_out, 'more line')}", class_="note")


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(map(clean, names[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")
