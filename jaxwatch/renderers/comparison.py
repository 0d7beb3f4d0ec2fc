"""A comparison for people: one line where there is no difference, else what differs, dearest first, at 80 columns."""

from collections.abc import Iterator, Sequence

from jaxwatch._compare.data import Comparison, MissChange, NoteChange, Pair, PhaseChange, ProgramChange, Totals
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean, cut, left, right, width, wrapped
from jaxwatch.renderers.headline import folder_of_programs
from jaxwatch.renderers.page import Line, Span

MOST = 20  # of each kind
_PLACE_COLUMNS = 20
_ADVICE_LINES = 2
_SIDES = ("the first", "the second")


def lines(found: Comparison, exceeded: Sequence[str], *, columns: int = 80, everything: bool = False) -> Iterator[Line]:
    """Yield the lines of a comparison, and of the limits that it exceeds, without line ends."""
    if found.equal:
        yield from ([Span(text, "green")] for text in wrapped(nothing(found), columns))
    else:
        yield from ([Span(text, "bold")] for text in wrapped(headline(found), columns))
        yield from ([Span(text)] for text in wrapped(versions(found), columns) if text)
    for text in circumstances(found):
        yield from ([Span(part)] for part in wrapped(text, columns))
    yield from _misses(found, columns, everything=everything)
    told = [(_sign(phase.seconds), phase_text(phase)) for phase in found.phases]
    told += [("~", text) for text in program_texts(found, everything=everything)]
    told += [(_sign(note.times), note_text(note)) for note in found.notes]
    for sign, text in told if everything else told[: 2 * MOST]:
        yield from _item(sign, text, columns)
    if hidden := 0 if everything else len(told[2 * MOST :]):
        yield [Span(f"  and {hidden:,} more: --all", "dim")]
    if everything:
        yield from _functions(found, columns)
    yield from ([Span(f"limit {text}", "red")] for text in exceeded)


def _item(sign: str, text: str, columns: int) -> Iterator[Line]:
    for number, part in enumerate(wrapped(text, columns - 2)):
        yield [Span(f"{sign} " if not number else "  ", _STYLES[sign]), Span(part)]


_STYLES = {"+": "red", "-": "green", "~": "yellow"}


def _sign(pair: Pair) -> str:
    return "+" if pair.gained > 0 else "-"


# ------------------------------------------------------------------ the head


def nothing(found: Comparison) -> str:
    """Return the one line of two runs that do not differ."""
    after = found.after
    told = [phrases.counted(after.misses, "miss").replace("misss", "misses")]
    if after.eager_count:
        told.append(f"{phrases.counted(after.eager_count, 'compile')} outside jit")
    return f"No difference: {', '.join(told)}, compiling {seconds_text(found)}."


def headline(found: Comparison) -> str:
    """Return what compiling came to on both sides, in seconds and misses."""
    before, after = found.before, found.after
    seconds = Pair(before=before.compile_seconds, after=after.compile_seconds)
    share = f" ({percent(seconds)})" if seconds.before else ""
    told = f"compiling {seconds_text(found)}{share}, misses {before.misses:,} → {after.misses:,}"
    if before.eager_count != after.eager_count:
        told += f", compiles outside jit {before.eager_count:,} → {after.eager_count:,}"
    return told


def seconds_text(found: Comparison) -> str:
    """Return the seconds of compiling on both sides."""
    return f"{phrases.duration(found.before.compile_seconds)} → {phrases.duration(found.after.compile_seconds)}"


def percent(pair: Pair) -> str:
    """Return how much more the second is, as ``+53 %``."""
    return f"{100 * pair.gained / pair.before:+,.0f} %"


def versions(found: Comparison) -> str:
    """Return the versions that differ, in one line."""
    return ", ".join(
        f"{one.what} {clean('/'.join(one.before))} → {clean('/'.join(one.after))}" for one in found.versions
    )


def circumstances(found: Comparison) -> Iterator[str]:
    """Yield what makes the two sides no like for like: an end that is missing, a longer run, what could not be read."""
    for side, totals in zip(_SIDES, (found.before, found.after), strict=True):
        if totals.unfinished:
            yield f"{_unfinished(side, totals)}: it is told as far as its log goes."
        if totals.exit_codes:
            codes = ", ".join(str(code) for code, _ in totals.exit_codes)
            yield f"{side} ended with exit code {codes}: what came after is not in it."
    before, after = found.before, found.after
    if before.processes != after.processes:
        yield f"processes {before.processes:,} → {after.processes:,}"
    if before.calls != after.calls:
        least = ["" if one.calls_exact else "≥" for one in (before, after)]
        yield f"calls {least[0]}{before.calls:,} → {least[1]}{after.calls:,}"
    for side, totals in zip(_SIDES, (before, after), strict=True):
        if totals.unlogged:
            yield f"{side} has {totals.unlogged:,} more misses whose events are not in its log: no cause can be told."
        for what, count in totals.folded:
            yield f"{side}: {phrases.counted(count, what)} beyond a bound, not told apart."


def _unfinished(side: str, totals: Totals) -> str:
    if totals.processes == 1:
        return f"{side} has no end in its log"
    return f"{side} has {totals.unfinished:,} of {totals.processes:,} processes without an end in its log"


# ------------------------------------------------------------------ misses


def title(change: MissChange, folder: str, room: int) -> str:
    """Return what missed and why, in the fullest wording that has room."""
    if change.reason == "eager":
        return f"{clean(change.function)}, outside jit"
    wordings = phrases.titles(change.finding, folder)
    return next((wording for wording in wordings if width(wording) <= room), wordings[-1])


def counts(change: MissChange) -> str:
    """Return how many there were and are, as ``0 → 5``."""
    return f"{change.misses.before:,.0f} → {change.misses.after:,.0f}"


def price(pair: Pair) -> str:
    """Return the seconds that are gained or lost."""
    return f"{'-' if pair.gained < 0 else ''}{phrases.duration(abs(pair.gained))}"


def where(change: MissChange, found: Comparison) -> str:
    """Return where most of them came from."""
    side = found.after if change.misses.gained > 0 else found.before
    sites = change.finding.sites
    return phrases.place(sites[0][0], folder_of_programs(side.programs)) if sites else ""


def _misses(found: Comparison, columns: int, *, everything: bool) -> Iterator[Line]:
    shown = found.misses if everything else found.misses[:MOST]
    if not shown:
        return
    sites = [where(change, found) for change in shown]
    cells = [(counts(change), price(change.seconds), site) for change, site in zip(shown, sites, strict=True)]
    widths = [max(width(row[number]) for row in cells) for number in range(3)]
    widths[2] = min(widths[2], _PLACE_COLUMNS)
    room = max(columns - 2 - sum(widths) - 3 * 2, 20)
    for change, (count, seconds, site) in zip(shown, cells, strict=True):
        yield from _miss(
            change, found, (right(count, widths[0]), right(seconds, widths[1]), _tail(site, widths[2])), room
        )
    if hidden := found.misses[len(shown) :]:
        seconds = phrases.duration(sum(abs(change.seconds.gained) for change in hidden))
        yield [Span(f"  and {len(hidden):,} more, {seconds}: --all", "dim")]


def _tail(site: str, cells: int) -> str:
    """Return the end of a place, which says more than its beginning."""
    return site if width(site) <= cells else "…" + site[len(site) - cells + 1 :]


def _miss(change: MissChange, found: Comparison, cells: tuple[str, str, str], room: int) -> Iterator[Line]:
    sign = _sign(change.misses)
    side = found.after if sign == "+" else found.before
    first, *further = wrapped(title(change, folder_of_programs(side.programs), room), room, 2)
    yield [Span(f"{sign} ", _STYLES[sign]), Span(left(first, room)), Span("  " + "  ".join(cells).rstrip(), "yellow")]
    yield from ([Span(f"  {text}")] for text in further)
    if sign == "-":
        return
    below = room + 2 + sum(map(width, cells))
    if change.calls.before and change.calls.before != change.calls.after and change.reason != "first_call":
        fair = "" if change.counted else ", as often as before"
        yield [Span(f"  of {change.calls.before:,.0f} → {change.calls.after:,.0f} calls{fair}", "dim")]
    if change.counted and change.finding.advice is not None:
        for number, part in enumerate(wrapped(f"→ {clean(change.finding.advice[1])}", below, _ADVICE_LINES)):
            yield [Span(f"  {'  ' if number else ''}{part}", "cyan")]


# ------------------------------------------------------------------ the rest


def phase_text(phase: PhaseChange) -> str:
    """Return which phase of what takes longer, or less long."""
    seconds = f"{phrases.precise(phase.seconds.before)} → {phrases.precise(phase.seconds.after)}"
    of = phrases.counted(phase.programs, "program") if phase.programs else "a miss, on average"
    name = phase.phase.replace("_", " ")
    return f"{clean(phase.function)}: {name} {seconds} ({percent(phase.seconds)}), {of}"


def program_texts(found: Comparison, *, everything: bool) -> Iterator[str]:
    """Yield whose programs are others; of another JAX most are, which is told in one line."""
    if found.versions and len(found.programs) > 1 and not everything:
        together = ProgramChange(
            function=phrases.counted(len(found.programs), "function"),
            definition="",
            programs=sum(one.programs for one in found.programs),
            fingerprints=sum(one.fingerprints for one in found.programs),
            disk_keys=sum(one.disk_keys for one in found.programs),
        )
        yield _program(together)
    else:
        yield from map(_program, found.programs)


def _program(change: ProgramChange) -> str:
    head = f"{clean(change.function)}: of {phrases.counted(change.programs, 'program')} for the same arguments"
    told = []
    if change.fingerprints:
        told.append(f"{change.fingerprints:,} lowered to another text")
    if change.disk_keys:
        told.append(f"{change.disk_keys:,} with another key in the cache on disk")
    return f"{head}, {' and '.join(told)}"


def note_text(note: NoteChange) -> str:
    """Return what happened more or fewer times."""
    what = "raised while traced" if note.kind == "trace_error" else "guard broken"
    times = f"{note.times.before:,.0f} → {note.times.after:,.0f}"
    return f"{what}: {clean(note.function)}, {clean(note.what)}, {times}"


def _functions(found: Comparison, columns: int) -> Iterator[Line]:
    rows: list[tuple[str, ...]] = [("function", "calls", "misses", "compiling")]
    for one in found.functions:
        seconds = f"{phrases.duration(one.seconds.before)} → {phrases.duration(one.seconds.after)}"
        numbers = (f"{pair.before:,.0f} → {pair.after:,.0f}" for pair in (one.calls, one.misses))
        rows.append((clean(one.function), *numbers, seconds))
    widths = [max(width(row[number]) for row in rows) for number in range(4)]
    name = max(min(widths[0], columns - 2 - sum(widths[1:]) - 6), 8)
    yield []
    for row in rows:
        cells = "".join(f"  {right(cell, size)}" for cell, size in zip(row[1:], widths[1:], strict=True))
        yield [Span(f"  {left(cut(row[0], name), name)}{cells}")]
