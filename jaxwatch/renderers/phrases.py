"""What a report says, in words: numbers, places, and the parts of a finding. No layout; only what the report holds."""

import os
import re
from collections.abc import Iterable, Sequence

from jaxwatch._advisor import DEFINED_AGAIN
from jaxwatch._findings import Finding, Place, Values
from jaxwatch._places import place_text
from jaxwatch.renderers.cells import clean

_PLACE_CHARACTERS = 48
_CALLS_NAMED = 6
_FIRST_CALLS = 4  # of more than so many: the line then has room for what they were compared with
_COMPARED_NAMED = 3
_PLACES_NAMED = 3
_OTHERS_NAMED = 3
_VALUES_NAMED = 5
_LENGTHS_NAMED = 8
_VALUE_CHARACTERS = 40

# What a cause without values is called; other causes have a note, or their name.
_CAUSES = {
    "new_function": "the same code as another function object",
    "cache_lost": "compiled before, but its entry in the cache was gone",
    "unknown": "no difference could be shown",
    "other": "causes beyond the bound, not told apart",
}
_SAID_BY_VALUES = {"shape", "dtype"}
# Their notes say once more what the title says.
_SAID_BY_TITLE = {"new_function", "cache_lost", "call_form"}
_ARRAY = re.compile(r"(~?\w+)\[([\d,]*)\]")


# ------------------------------------------------------------------ numbers and places


def duration(seconds: float) -> str:
    """Return a duration as people say it: ``8.1 s``, ``61 µs``, ``1,204 s``, ``2.5 h``."""
    for below, factor, unit in ((0.9995e-6, 1e9, "ns"), (0.9995e-3, 1e6, "µs"), (0.0995, 1e3, "ms")):
        if 0 < seconds < below:
            return f"{seconds * factor:.0f} {unit}"
    if seconds < 99.95:  # noqa: PLR2004 -- from here on, tenths are not meant
        return f"{seconds:.1f} s" if seconds else "0 s"
    return f"{seconds:,.0f} s" if seconds < 7_200 else f"{seconds / 3_600:,.1f} h"  # noqa: PLR2004 -- two hours


def precise(seconds: float) -> str:
    """Return a duration with three digits, for what is compared: ``119 ms``, ``1.54 s``."""
    value, unit = next(
        (seconds * factor, unit)
        for factor, unit in ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"), (1.0, "s"))
        if seconds * factor < 999.5 or unit == "s"  # noqa: PLR2004 -- what rounds to a thousand takes the next unit
    )
    decimals = 0 if value >= 99.95 or unit == "ns" else 1 if value >= 9.995 else 2  # noqa: PLR2004 -- three digits
    return f"{value:,.{decimals}f} {unit}"


def share(part: float, whole: float) -> str:
    """Return what share ``part`` is of ``whole``, as ``30 %``."""
    percent = 100 * part / whole
    return "< 1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def counted(number: int, noun: str) -> str:
    """Return ``3 functions``, ``1 function``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def place(site: str, folder: str) -> str:
    """Return ``file:line`` relative to the program's folder, and short."""
    path = clean(place_text(site))
    if folder and os.path.isabs(path):
        relative = os.path.relpath(path, clean(folder))
        if not relative.startswith(os.path.join("..", "..", "..")) and len(relative) < len(path):
            path = relative
    for part in ("site-packages/", "dist-packages/"):
        path = path.rpartition(part)[2]
    if len(path) <= _PLACE_CHARACTERS:
        return path
    return "…" + path[len(path) - _PLACE_CHARACTERS + 1 :]


def places(sites: Sequence[Place], left_out: int, folder: str) -> str:
    """Return where something happened, most first; how often at each, where there are several."""
    if len(sites) == 1 and not left_out:
        return place(sites[0][0], folder)
    named = [f"{place(site, folder)} ({count:,} ×)" for site, count in sites[:_PLACES_NAMED]]  # noqa: RUF001
    more = len(sites) - _PLACES_NAMED
    if left_out:
        return f"{', '.join(named)} and over {max(more, 0):,} more places"
    return ", ".join(named) + (f" and {counted(more, 'more place')}" if more > 0 else "")


# ------------------------------------------------------------------ a finding


def titles(finding: Finding, folder: str) -> list[str]:
    """Return what a finding is, from the fullest wording to the shortest; the first that fits is to be taken."""
    function = clean(finding.cause.function)
    if finding.cause.kind == "eager":
        return [f"{function}, outside jit, at {places(finding.sites, 0, folder)}"]
    if finding.cause.kind == "eager_own":
        return [f"{function}: a program of that name outside its own call, at {places(finding.sites, 0, folder)}"]
    if finding.cause.kind == "eager_rest":
        return ["ops outside jit, each compiled once or twice at its place"]
    head = f"{function}, not on the fast path" if finding.cause.kind == "dispatch" else function
    if not finding.values:
        return [f"{head}: {_cause(finding.cause.reason, None)}"]
    first, *others = finding.values
    wordings = [f"{head}: {wording}" for wording in _wordings(first, finding.cause.reason)]
    return [f"{wordings[0]}, {_with(others)}", *wordings] if others else wordings


def evidence(finding: Finding, title: str, folder: str, of_calls: int | None = None) -> str:
    """Return what shows that ``title`` is so: the places, the calls, and what they were compared with.

    Args:
        finding: What was found.
        title: How it is told.
        folder: Paths are told relative to it.
        of_calls: How often the function was called in all; None where it is not known.
    """
    kind, parts = finding.cause.kind, []
    if kind == "eager_rest":
        parts = [f"most at {places(finding.sites, finding.sites_left_out, folder)}"]
    elif kind not in {"eager", "eager_own"}:
        together = _with(finding.values[1:])
        parts = [together] if together and together not in title else []
        parts.append(f"{places(finding.sites, finding.sites_left_out, folder)}, {_calls(finding, of_calls)}")
        parts.append("nothing was compiled" if kind == "dispatch" else _compared(finding))
    if finding.processes > 1:
        parts.append(f"in {finding.processes:,} processes")
    if finding.via:
        parts.append(f"by way of {place(finding.via, folder)}")
    for seconds, phase in zip(finding.before_xla, ("tracing", "lowering"), strict=True):
        if seconds > finding.seconds / 2:
            parts.append(f"{share(seconds, finding.seconds)} of the time went into {phase}, before XLA")
    if finding.from_disk:
        parts.append(f"{finding.from_disk:,} of them read from the cache on disk")
    notes = [clean(one.note) for one in finding.values if one.note and one.reasons[0] not in _SAID_BY_TITLE]
    parts += [note for note in notes if note not in title][:1]
    return "; ".join(part for part in parts if part)


def _cause(reason: str, note: str | None) -> str:
    if reason == "cache_lost" and note and "clear_caches" in note:
        return "compiled before, and jax.clear_caches() was called since"
    if reason == "new_function" and note and note.startswith(DEFINED_AGAIN):
        return f"{DEFINED_AGAIN}, as another function object"
    return _CAUSES.get(reason) or clean(note or reason.replace("_", " "))


def _with(others: Iterable[Values]) -> str:
    names = [_name(values) for values in others]
    if not names:
        return ""
    more = len(names) - _OTHERS_NAMED
    return "with " + ", ".join(names[:_OTHERS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _name(values: Values) -> str:
    return clean(values.path or values.reasons[0].replace("_", " "))


def _wordings(values: Values, reason: str) -> list[str]:
    """Return what one path was and became, from the fullest wording to the shortest."""
    if not values.pairs:
        told = _cause(reason if values.path is None else values.reasons[0], values.note)
        return [f"{clean(values.path)}: {told}" if values.path else told]
    head = f"{clean(values.path)} " if values.path else ""
    kind = "" if values.reasons[0] in _SAID_BY_VALUES else f" ({clean(values.reasons[0].replace('_', ' '))})"
    return [f"{head}{pairs}{kind}" for pairs in _pairs(values)]


def _pairs(values: Values) -> list[str]:
    befores = list(dict.fromkeys(before for before, _ in values.pairs))
    afters = list(dict.fromkeys(after for _, after in values.pairs))
    before = _value(befores[0])
    if len(values.pairs) == 1 and not values.left_out:
        return [f"{before} → {_value(afters[0])}"]
    over = "over " if values.left_out else ""
    if (others := lengths(befores, afters)) is not None:
        short = f"{before} → {over}{len(others)} other length{'s' if len(others) > 1 else ''}"
        return [f"{short} ({_listed(map(str, others), _LENGTHS_NAMED)})", short]
    if len(befores) == 1:
        short = f"{before} → {over}{len(afters)} other values"
        return [f"{short} ({_listed(map(_value, afters), _VALUES_NAMED)})", short]
    changes = [f"{_value(old)} → {_value(new)}" for old, new in values.pairs]
    short = f"{over}{len(changes)} changes"
    return [f"{short} ({_listed(changes, _OTHERS_NAMED)})", f"{short} ({changes[0]}, …)", short]


def lengths(befores: Sequence[str | None], afters: Sequence[str | None]) -> list[int] | None:
    """Return the other lengths of the one dimension that varies, sorted; None where something else varies too."""
    shapes = []
    for text in [*befores, *afters]:
        found = _ARRAY.fullmatch(text or "")
        if found is None:
            return None
        shapes.append((found[1], tuple(map(int, filter(None, found[2].split(","))))))
    (dtype, first), others = shapes[0], shapes[1:]
    if any(kind != dtype or len(shape) != len(first) for kind, shape in others):
        return None
    varying = {axis for _, shape in others for axis, size in enumerate(shape) if size != first[axis]}
    if len(varying) != 1:
        return None
    axis = varying.pop()
    return sorted({shape[axis] for _, shape in others} - {first[axis]})


def _value(text: str | None) -> str:
    if text is None:
        return "nothing"
    shown = clean(text)
    return shown if len(shown) <= _VALUE_CHARACTERS else shown[: _VALUE_CHARACTERS - 1] + "…"


def _listed(texts: Iterable[str], most: int) -> str:
    every = list(texts)
    return ", ".join(every[:most]) + (", …" if len(every) > most else "")


def _calls(finding: Finding, of_calls: int | None) -> str:
    numbers, left_out = finding.calls, finding.calls_left_out
    if len(numbers) == 1 and not left_out:
        return f"call {numbers[0]:,}" if finding.count == 1 else f"each time call {numbers[0]:,}"
    named = numbers if len(numbers) <= _CALLS_NAMED and not left_out else numbers[:_FIRST_CALLS]
    more = len(numbers) - len(named) + left_out
    listed = ", ".join(f"{number:,}" for number in named)
    of = f" of {of_calls:,}" if of_calls else ""
    return f"calls {listed}" + (f" and {more:,} more{of}" if more else "")


def _compared(finding: Finding) -> str:
    numbers = finding.compared_with
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"{'each ' if finding.count > 1 else ''}compared with call {numbers[0]:,}"
    return f"compared with calls {_listed((f'{number:,}' for number in numbers), _COMPARED_NAMED)}"
