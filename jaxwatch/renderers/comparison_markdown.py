"""A comparison as Markdown, for a comment on a pull request: what a name holds stays text, and pings nobody."""

from collections.abc import Iterator, Sequence

from jaxwatch._compare.data import Comparison, MissChange
from jaxwatch.renderers import comparison, phrases
from jaxwatch.renderers.cells import clean, cut
from jaxwatch.renderers.headline import folder_of_programs

_CELL_CHARACTERS = 160  # 20 rows with advice stay below the 65,536 characters that GitHub takes
_TITLE_ROOM = 100


def text(found: Comparison, exceeded: Sequence[str]) -> str:
    """Return a comparison, and the limits that it exceeds, as GitHub's Markdown."""
    return "\n".join(_lines(found, exceeded))


def code(told: str) -> str:
    """Return text as code in a cell of a table: nothing in it is a link, a mention or HTML."""
    shown = cut(clean(told), _CELL_CHARACTERS).replace("|", "\\|")
    if not shown:
        return ""
    longest = max(map(len, "".join(one if one == "`" else " " for one in shown).split()), default=0)
    fence = "`" * (longest + 1)
    blank = " " if longest else ""
    return f"{fence}{blank}{shown}{blank}{fence}"


def _lines(found: Comparison, exceeded: Sequence[str]) -> Iterator[str]:
    yield "### jaxwatch"
    yield ""
    if found.equal:
        yield comparison.nothing(found)
    else:
        yield f"{'❌' if exceeded else '✅'} {comparison.headline(found)}"
    yield from (f"- {limit(one)}" for one in exceeded)
    told = [text for text in (comparison.versions(found), *comparison.circumstances(found)) if text]
    yield from (f"- {code(one)}" for one in told)
    yield from _misses(found)
    rest = [
        *map(comparison.phase_text, found.phases),
        *comparison.program_texts(found, everything=False),
        *map(comparison.note_text, found.notes),
    ]
    if rest:
        yield ""
        yield from (f"- {code(one)}" for one in rest[: comparison.MOST])
        if hidden := rest[comparison.MOST :]:
            yield f"- and {len(hidden):,} more"


def limit(told: str) -> str:
    """Return a limit that was exceeded; its words are ours."""
    option, _, rest = told.partition(" ")
    return f"limit `{option}` {rest}"


def _misses(found: Comparison) -> Iterator[str]:
    shown = found.misses[: comparison.MOST]
    if not shown:
        return
    yield from ("", "| | misses | seconds | where |", "|---|---|---|---|")
    for change in shown:
        place, price = comparison.where(change, found), comparison.price(change.seconds)
        yield f"| {_what(change, found)} | {comparison.counts(change)} | {price} | {code(place)} |"
    if hidden := found.misses[len(shown) :]:
        yield f"| and {phrases.counted(len(hidden), 'more cause')} | | | |"


def _what(change: MissChange, found: Comparison) -> str:
    more = change.misses.gained > 0
    side = found.after if more else found.before
    told = f"{'+' if more else '−'} {code(comparison.title(change, folder_of_programs(side.programs), _TITLE_ROOM))}"  # noqa: RUF001 -- a list would begin with a hyphen
    if change.counted and change.finding.advice is not None:
        told += f"<br>→ {code(change.finding.advice[1])}"
    return told
