"""A report in a few sentences, the same for a page and for a comment. Only what the figures show."""

import os
from collections.abc import Iterator

from jaxwatch._findings import Finding
from jaxwatch._report_data import Report
from jaxwatch.renderers import headline, phrases
from jaxwatch.renderers.cells import clean

# From this many times the share of the whole run on, the beginning of a run has a sentence of its own.
_BUSIER = 1.5
_LEAST_SHARE = 0.1
_CODES_NAMED = 3
_WINDOW_NAMES = {10.0: "10 seconds", 60.0: "minute", 600.0: "10 minutes", 3_600.0: "hour"}


def sentences(report: Report) -> list[str]:
    """Return what is to be known first, most telling first; each ends with a full stop."""
    if report.healthy:
        return [f"{_ran(report)}: {headline.healthy(report)}", *_ended(report)]
    return [
        f"{_ran(report)}, {_compiling(report)}.",
        *_ended(report),
        *_beginning(report),
        *_recompiles(report),
        *_eager(report),
        *_ranks(report),
        *_failed(report),
    ]


def program_names(report: Report) -> str:
    """Return the programs by their file names."""
    names = list(dict.fromkeys(clean(os.path.basename(name) or name) for name in report.programs))
    more = len(names) - 2
    return (", ".join(names[:2]) or "The program") + (f" and {more:,} more" if more > 0 else "")


def _ran(report: Report) -> str:
    who = program_names(report)
    if report.processes > 1:
        who = f"{report.processes:,} processes of {who}"
    if not report.wall_seconds:
        return who
    together = " together" if report.processes > 1 else ""
    ended = " up to its last event in the log" if report.unfinished and report.processes == 1 else ""
    return f"{who} ran for {phrases.duration(report.wall_seconds)}{together}{ended}"


def _compiling(report: Report) -> str:
    wall, compiling = report.wall_seconds, report.compile_seconds
    # Where several threads compiled at once, or the time is not known, there is no share to tell.
    share = f" ({phrases.share(compiling, wall)})" if wall >= compiling > 0 else ""
    told = (
        f"{phrases.duration(compiling)}{share} of it compiling" if wall else f"{phrases.duration(compiling)} compiling"
    )
    return f"{told}, {phrases.duration(report.again_seconds)} of that again and again" if report.again_seconds else told


def _ended(report: Report) -> Iterator[str]:
    """Yield how processes ended, where not well: what came after is not in the report."""
    for code, processes in report.exit_codes[:_CODES_NAMED]:
        who = "It" if report.processes == 1 else f"{processes:,} of {report.processes:,} processes"
        yield f"{who} ended with exit code {code}."
    if report.unfinished and report.processes > 1:
        yield f"{report.unfinished:,} of {report.processes:,} processes have no end in the log."


def _beginning(report: Report) -> Iterator[str]:
    """Yield what share of its first while went into compiling, where that is much more than of the whole run."""
    wall, compiling = report.wall_seconds, report.compile_seconds
    if report.processes != 1 or report.details is None or not wall >= compiling > 0:
        return
    for window, spent in reversed(report.details.windows):
        share = spent / window
        if window < wall and _LEAST_SHARE <= share <= 1 and share >= _BUSIER * compiling / wall:
            yield f"{phrases.share(spent, window)} of the first {_WINDOW_NAMES[window]} went into compiling."
            return


def _recompiles(report: Report) -> Iterator[str]:
    """Yield what most of the recompiles are, where they have something in common."""
    found = [one for one in report.findings if one.cause.kind == "recompile"]
    total = sum(one.count for one in found)
    groups: dict[str, list[Finding]] = {}
    for one in found:
        if (what := _kind(one)) is not None:
            groups.setdefault(what, []).append(one)
    if not groups:
        return
    sums = {what: (sum(one.count for one in ones), sum(one.seconds for one in ones)) for what, ones in groups.items()}
    what, (count, seconds) = max(sums.items(), key=lambda group: (group[1], group[0]))
    functions = {one.cause.function for one in groups[what]}
    of_all = f"All {total:,} recompiles are" if count == total else f"{count:,} of {total:,} recompiles are"
    if total == 1:
        of_all = "The one recompile is"
    where = clean(min(functions)) if len(functions) == 1 else f"{len(functions):,} functions"
    yield f"{of_all} {what}, in {where} ({phrases.duration(seconds)})."


def _kind(finding: Finding) -> str | None:
    """Return what kind of change the misses of a finding have in common; None where it has no short name."""
    reason = finding.cause.reason
    if reason == "new_function":
        return "of the same code as another function object"
    if reason == "cache_lost":
        return "of what was compiled before, and was gone from the cache"
    if not finding.values or finding.values[0].path is None:
        return None
    values = finding.values[0]
    path = clean(values.path or "")
    if values.reasons == ("shape",):
        befores, afters = [before for before, _ in values.pairs], [after for _, after in values.pairs]
        is_length = not values.left_out and befores and phrases.lengths(befores, afters) is not None
        return f"other lengths of {path}" if is_length else f"other shapes of {path}"
    return f"other values of {path}" if reason == "static" else None


def _eager(report: Report) -> Iterator[str]:
    if not report.eager_count:
        return
    told = f"{phrases.counted(report.eager_count, 'compile')} outside jit took {phrases.duration(report.eager_seconds)}"
    lines = report.details.eager if report.details is not None else ()
    where = ""
    if lines and report.eager_count > 1 and 2 * lines[0][3] >= report.eager_seconds > 0:
        at = phrases.place(lines[0][0], headline.folder_of(report))
        where = f", {phrases.share(lines[0][3], report.eager_seconds)} of that at {at}"
    yield f"{told}{where}."


def _ranks(report: Report) -> Iterator[str]:
    if report.divergences:
        number = phrases.counted(len({found.function for found in report.divergences}), "function")
        yield f"Ranks of one job did not compile {number} alike."


def _failed(report: Report) -> Iterator[str]:
    raised = sum(note.count for note in report.notes if note.kind == "trace_error")
    broken = sum(note.count for note in report.notes if note.kind == "violation")
    if raised:
        yield f"{phrases.counted(raised, 'call')} raised while traced."
    if broken:
        yield f"Guards were broken {phrases.counted(broken, 'time')}."
