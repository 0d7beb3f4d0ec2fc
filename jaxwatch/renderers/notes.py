"""What a report says beside its findings, in words: notes, and the lines at its foot."""

from collections.abc import Iterator

from jaxwatch._report_data import Note, Report
from jaxwatch.renderers import phrases
from jaxwatch.renderers.cells import clean


def note(note: Note, folder: str) -> str:
    """Return a note in one sentence; paths are told relative to the folder."""
    times = f"{note.count:,} ×"  # noqa: RUF001
    if note.kind == "violation":
        return f"guard broken: {clean(note.function)} ({clean(note.what)}), {times}"
    if note.kind == "advice":
        at, seconds = phrases.place(note.place, folder), phrases.duration(note.seconds)
        compiles = phrases.counted(note.count, "compile")
        return f"→ {clean(note.what)} ({clean(note.function)} at {at}, {compiles}, {seconds})"
    if note.kind == "moved":
        at = phrases.place(note.place, folder)
        told = f"{clean(note.function)} at {at} has {note.count:,} keys in the cache on disk for the same arguments"
        return f"{told}: its program, a version or an option of the compiler differs between the processes"
    where = f"{clean(note.function)} at {phrases.place(note.place, folder)}"
    return f"raised while traced: {where}, {clean(note.what)}, {times}, {phrases.duration(note.seconds)}"


def foot(report: Report) -> Iterator[str]:
    """Yield what the disk cache did, what jaxwatch itself took, and what is not there to be told."""
    for what, count, seconds in report.disk:
        price = (
            f"at least {phrases.duration(seconds)} saved"
            if what == "read"
            else f"{phrases.duration(seconds)} compiling"
        )
        told = f", {price}" if seconds > 0 else ""
        yield f"Cache on disk, watched functions: {phrases.counted(count, 'program')} {what}{told}."
    own = sum(seconds for _, seconds in report.overhead)
    if own and not report.healthy:
        share = f" ({phrases.share(own, report.wall_seconds)})" if report.wall_seconds else ""
        yield f"jaxwatch itself took {phrases.duration(own)}{share}."
    if report.unlogged:
        yield f"{report.unlogged:,} more missed and were counted, but their events are not there: no cause can be told."
    for what, count in report.folded:
        yield f"{phrases.counted(count, what)} beyond a bound, told as one named other."
