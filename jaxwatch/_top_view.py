"""A frame on the terminal, drawn with rich: the same for a live screen and for a pipe."""

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from jaxwatch._live_data import EagerLine, Frame, FunctionLine, Happening
from jaxwatch._timeline import Timeline
from jaxwatch.renderers.cells import ascii_only, cut
from jaxwatch.renderers.phrases import counted, duration, share

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

# Rows of each table where there is no screen to fill.
ROWS = 12
_FEWEST = 3
_SIGNS = 48
_NAME_CELLS = 24
_SITE_CHARACTERS = 24
_GIVING_WAY = ("what changed", "operations")
_HEADS = 14  # lines of a screen that are no rows
_BARS = " ▁▂▃▄▅▆▇█"
_ASCII_BARS = " .:-=+*#@"
_KINDS = {"recompile": "", "first": "first: ", "dispatch": "off the fast path: ", "error": "raised: "}
_KINDS["violation"] = "guard broken: "


class View:
    """How frames are drawn.

    Args:
        lines: Height of the screen; None where there is none.
        ascii_signs: Whether the terminal knows ASCII alone.
        zone: Of the times; None: this machine's.
    """

    def __init__(self, lines: int | None = None, *, ascii_signs: bool = False, zone: dt.tzinfo | None = None) -> None:
        self._rows = ROWS if lines is None else max((lines - _HEADS) // 3, _FEWEST)
        self._on_screen = lines is not None
        self._ascii = ascii_signs
        self._told: Callable[[str], str] = ascii_only if ascii_signs else str
        self._zone = zone

    def draw(self, frame: Frame, note: str = "") -> "Group":
        """Return the frame as something that rich prints; ``note`` stands below the headline."""
        from rich.console import Group  # noqa: PLC0415 -- slow to load, and needed here alone

        parts: list[Text | Table] = [self._text(headline(frame), "bold")]
        if note:
            parts.append(self._text(note, "yellow"))
        if frame.timeline.once:
            parts += self._bars(frame.timeline)
        parts += [self._text(""), self._functions(frame.functions), *self._more(frame)]
        parts += [self._text(""), self._happened(frame)]
        if frame.eager:
            parts += [self._text(""), self._eager(frame.eager)]
        if frame.overhead:
            own = ", ".join(f"{part} {duration(seconds)}" for part, seconds in frame.overhead.items())
            total = duration(sum(frame.overhead.values()))
            parts += [self._text(""), self._text(f"jaxwatch itself took {total}: {own}", "dim")]
        return Group(*parts)

    def _text(self, text: str, style: str = "") -> "Text":
        from rich.text import Text  # noqa: PLC0415 -- as above

        # Text: what looks like markup in a name stays what it is
        return Text(self._told(text), style, no_wrap=self._on_screen, overflow=self._overflow)

    @property
    def _overflow(self) -> Literal["fold", "crop", "ellipsis"]:
        return "fold" if not self._on_screen else "crop" if self._ascii else "ellipsis"

    def _bars(self, timeline: Timeline) -> "Iterable[Text]":
        sums = [sum(parts) for parts in zip(timeline.once, timeline.again, timeline.eager, strict=True)]
        signs = _ASCII_BARS if self._ascii else _BARS
        width = timeline.width
        while len(sums) > _SIGNS:
            sums = [sum(sums[place : place + 2]) for place in range(0, len(sums), 2)]
            width *= 2
        most = max(width, *sums)  # full height: compiling all the time
        line = "".join(signs[math.ceil(seconds / most * (len(signs) - 1))] for seconds in sums)
        yield self._text(f"{self._clock(timeline.start)} {line} a sign: {duration(width)}", "cyan")

    def _table(self, columns: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]) -> "Table":
        from rich.table import Table  # noqa: PLC0415 -- as above

        table = Table(box=None, pad_edge=False, header_style="dim", expand=False)
        for column in columns:
            # where it is narrow, one column gives way, and the others stay whole
            side: Literal["left", "right"] = "right" if column in numbers else "left"
            table.add_column(column, justify=side, no_wrap=column not in _GIVING_WAY, overflow=self._overflow)
        for row in rows:
            table.add_row(*map(self._text, row))
        return table

    def _functions(self, functions: Sequence[FunctionLine]) -> "Table":
        numbers = ("calls", "misses", "keys", "compiling", "dispatch p50", "p99")
        rows = (
            (
                cut(one.function, _NAME_CELLS),
                f"{'' if one.calls_exact else '≥'}{one.calls:,}",
                f"{one.misses:,}",
                f"{one.keys:,}",
                duration(one.seconds),
                *("–" if latency is None else duration(latency) for latency in (one.p50, one.p99)),  # noqa: RUF001
            )
            for one in functions[: self._rows]
        )
        return self._table(("function", *numbers), numbers, rows)

    def _more(self, frame: Frame) -> "Iterable[Text]":
        if hidden := len(frame.functions[self._rows :]) + frame.functions_left_out:
            yield self._text(f"and {counted(hidden, 'more function')}", "dim")

    def _happened(self, frame: Frame) -> "Table | Text":
        told = [one for one in frame.happened if one.kind != "first"]
        if not told:
            return self._text("No recompile so far.", "green")
        rows = (self._happening(one) for one in reversed(told[-self._rows :]))
        return self._table(("time", "function", "what changed", "cost", "where"), ("cost",), rows)

    def _happening(self, one: Happening) -> Sequence[str]:
        what = _KINDS.get(one.kind, "") + one.what + (f"\n→ {one.advice}" if one.advice else "")
        price = duration(one.seconds) if one.seconds else ""
        return self._clock(one.time), cut(one.function, _NAME_CELLS), what, price, _end_of(one.site)

    def _eager(self, eager: Sequence[EagerLine]) -> "Table":
        rows = ((_end_of(one.site), one.what, f"{one.count:,}", duration(one.seconds)) for one in eager[: self._rows])
        return self._table(("outside jit, at", "operations", "compiles", "cost"), ("compiles", "cost"), rows)

    def _clock(self, seconds: float) -> str:
        try:
            return dt.datetime.fromtimestamp(seconds, self._zone).strftime("%H:%M:%S")
        except (OverflowError, ValueError, OSError):  # a log from beyond the year 9999
            return "?"


def _end_of(site: str) -> str:
    return site if len(site) <= _SITE_CHARACTERS else "…" + site[1 - _SITE_CHARACTERS :]


def headline(frame: Frame) -> str:
    """Return the first line: which program, how long, how much of it was compiling."""
    wall, compiling = frame.wall_seconds, frame.compile_seconds
    who = ["jaxwatch", frame.program or "unnamed program"]
    if frame.processes > 1:
        who.append(f"{frame.processes:,} processes, {frame.running:,} running")
    told = f" ({share(compiling, wall)})" if wall >= compiling > 0 else ""
    pieces = [" · ".join([*who, duration(wall)]), f"{duration(compiling)}{told} of it compiling"]
    if frame.again_seconds:
        pieces.append(f"{duration(frame.again_seconds)} of that again")
    if frame.unlogged:
        pieces.append(f"{counted(frame.unlogged, 'miss')} without an event")
    if frame.faults:
        pieces.append(f"{counted(frame.faults, 'line')} passed over")
    return ", ".join(pieces)
