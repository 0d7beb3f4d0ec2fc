"""When was compiled, and in which phase, on a page: bars over time, a lane for each function, the phases."""

from collections.abc import Iterator, Sequence

from jaxwatch._details import Details, Point
from jaxwatch._report_data import Report
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean
from jaxwatch.renderers.markup import Html, joined, tag

_WIDTH, _HEIGHT, _LANE = 960, 120, 14
_LANES = 12
_TICKS = 4
_SERIES = {"once": "once", "again": "again, under another key", "eager": "outside jit"}
_PHASES = {
    "trace": ("tracing", "Python runs the function once, to make its jaxpr"),
    "lower": ("lowering", "the jaxpr becomes StableHLO"),
    "backend": ("XLA compiles", "or reads from the cache on disk"),
    "eager": ("outside jit", "all phases of operations that ran by themselves"),
    "other": ("ahead of time, or raised", "all phases of lower(), compile(), eval_shape() and of calls that raised"),
}


def timeline(report: Report) -> Iterator[Html]:
    """Yield the charts; without details, a sentence why they are not there."""
    found = report.details
    if found is None:
        yield tag("p", "Neither times nor phases are in this report: make it from the logs themselves.", class_="note")
        return
    if not report.compile_seconds:
        yield tag("p", "Nothing was compiled.", class_="note")
        return
    yield tag("h3", "Phases")
    yield from _phases(report, found)
    yield tag("h3", "Over time")
    legend = (tag("li", tag("span", class_=f"key {kind}", aria_hidden="true"), told) for kind, told in _SERIES.items())
    yield tag("ul", *legend, class_="legend")
    yield _bars(found)
    yield _axis(found)
    yield from _lanes(report, found)


def _svg(label: str, height: int, *content: Html, class_: str) -> Html:
    box = f"0 0 {_WIDTH} {height}"
    return tag("svg", *content, class_=class_, role="img", aria_label=label, viewBox=box, preserveAspectRatio="none")


def _rect(kind: str, x: float, y: float, width: float, height: float, title: str | None = None) -> Html:  # noqa: PLR0913, PLR0917 -- a rectangle
    place = {"x": x, "y": y, "width": max(width, 1.0), "height": height}
    told = {name: f"{value:.2f}".rstrip("0").rstrip(".") or "0" for name, value in place.items()}
    return tag("rect", tag("title", title) if title else None, class_=kind, **told)


def _bars(found: Details) -> Html:
    line = found.timeline
    slots = list(zip(line.once, line.again, line.eager, strict=True))
    most = max(map(sum, slots), default=0.0) or 1.0
    span = _end(found)
    rects = []
    for number, slot in enumerate(slots):
        below = float(_HEIGHT)
        for kind, seconds in zip(_SERIES, slot, strict=True):
            height = (_HEIGHT - 2) * seconds / most
            if height > 0:
                below -= height
                x, width = _WIDTH * (line.start + number * line.width) / span, _WIDTH * line.width / span
                rects.append(_rect(kind, x, below, width - 1, height))
    sums = [sum(slot) for slot in slots]
    dearest = sums.index(max(sums)) if sums else 0
    label = f"Seconds of compiling over time; most, {phrases.duration(max(sums, default=0.0))}, between "
    start = line.start + dearest * line.width
    label += f"{phrases.duration(start)} and {phrases.duration(start + line.width)} after the start"
    return _svg(label, _HEIGHT, *rects, class_="chart")


def _end(found: Details) -> float:
    """Return where the axis ends: at the end of the last slot."""
    line = found.timeline
    return max(line.start + line.width * len(line.once), found.seconds, line.width)


def _axis(found: Details) -> Html:
    end = _end(found)
    ticks = [tag("span", phrases.duration(end * tick / _TICKS)) for tick in range(_TICKS + 1)]
    width, line = phrases.duration(found.timeline.width), found.timeline
    most = max(map(sum, zip(line.once, line.again, line.eager, strict=True)), default=0.0)
    told = f"Since the start of its process; a bar is {width}, its full height {phrases.duration(most)} of compiling."
    return joined(tag("p", *ticks, class_="axis"), tag("p", told, class_="note"))


def _lanes(report: Report, found: Details) -> Iterator[Html]:
    """Yield a lane for each of the dearest functions, one for the others, one for what is outside jit."""
    named = [(row.function, row.definition) for row in report.functions if row.misses or row.seconds][:_LANES]
    lanes: dict[tuple[str, str], list[Point]] = {name: [] for name in named}
    others, eager = ("other functions", ""), ("outside jit", "")
    for point in found.points:
        key = (point.function, point.definition)
        lanes.setdefault(eager if point.kind == "eager" else key if key in lanes else others, []).append(point)
    end, rows = _end(found), []
    for (name, _), points in lanes.items():
        if points:
            rects = [_point(point, end) for point in points]
            seconds = phrases.duration(sum(point.seconds for point in points))
            label = f"{clean(name)}: {phrases.counted(len(points), 'compile')}, {seconds}"
            rows.append(tag("span", name, class_="lane-name"))
            rows.append(_svg(label, _LANE, *rects, class_="lane"))
    if rows:
        yield tag("div", *rows, class_="lanes")
    left_out = f"; the {found.points_left_out:,} shortest are not drawn" if found.points_left_out else ""
    yield tag("p", f"Each compile, from its start to its end; the higher ones are recompiles{left_out}.", class_="note")


def _point(point: Point, end: float) -> Html:
    call = f", call {point.call:,}" if point.call else ""
    title = f"{clean(point.function)}{call}, {phrases.duration(point.seconds)}, after {phrases.duration(point.start)}"
    top = 0 if point.kind == "again" else _LANE * 0.4
    return _rect(point.kind, _WIDTH * point.start / end, top, _WIDTH * point.seconds / end, _LANE - top, title)


def strip(points: Sequence[Point], calls: int, label: str) -> Html:
    """Return the calls of a function from left to right, with a mark at each that compiled."""
    last = max([calls, *(point.call for point in points), 2])
    rects = []
    for point in points:
        top = 0 if point.kind == "again" else _LANE * 0.4
        x = (_WIDTH - 3) * (point.call - 1) / (last - 1)
        rects.append(
            _rect(point.kind, x, top, 3, _LANE - top, f"call {point.call:,}, {phrases.duration(point.seconds)}")
        )
    ends = tag("p", tag("span", "call 1"), tag("span", f"call {last:,}"), class_="axis")
    return joined(_svg(label, _LANE, *rects, class_="lane"), ends)


def _phases(report: Report, found: Details) -> Iterator[Html]:
    known = dict(zip(("trace", "lower", "backend"), found.phases, strict=True))
    known["eager"] = report.eager_seconds
    known["other"] = max(0.0, report.compile_seconds - sum(known.values()))
    whole, x, rects, items = sum(known.values()) or 1.0, 0.0, [], []
    for kind, seconds in known.items():
        if seconds < whole * 1e-6:
            continue
        width = _WIDTH * seconds / whole
        rects.append(_rect(f"phase-{kind}", x, 0, width, 24))
        x += width
        name, told = _PHASES[kind]
        figures = tag("strong", f"{phrases.duration(seconds)}, {phrases.share(seconds, whole)}")
        key = tag("span", class_=f"key phase-{kind}", aria_hidden="true")
        items.append(tag("li", key, f"{name}: ", figures, tag("span", f" {told}", class_="beside")))
    yield tag("div", _svg("Phases, as the list below has them", 24, *rects, class_="phases"))
    yield tag("ul", *items, class_="phase-list")
