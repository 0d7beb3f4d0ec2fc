"""``jaxwatch lint``: files in, findings out."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from jaxwatch._lint import files, notebooks
from jaxwatch._lint.check import check, selected, unreadable
from jaxwatch._lint.output import Report
from jaxwatch._lint.rules import RULES, Finding
from jaxwatch.errors import BadOptionError


def lint(
    paths: Sequence[str], *, pedantic: bool = False, select: str = "", ignore: str = "", exclude: Sequence[str] = ()
) -> Report:
    """Look at all Python below ``paths``; nothing of it is imported.

    Args:
        paths: Files and folders.
        pedantic: Also what may be right.
        select: Codes or their beginnings, with commas between: these alone.
        ignore: Likewise: all but these.
        exclude: Patterns of files and folders to leave out.

    Raises:
        BadOptionError: A code is none.
        LintPathError: A path cannot be read.
    """
    chosen, left = codes(select, "--select"), codes(ignore, "--ignore")
    found: list[tuple[str, int, Finding]] = []
    count = 0
    for path in files.files_of(paths, exclude):
        count += 1
        its, places = _of_file(path, pedantic=pedantic)
        for finding in selected(its, chosen, left):
            cell, line = places[finding.line - 1] if 0 < finding.line <= len(places) else (0, finding.line)
            found.append((path, cell, replace(finding, line=line)))
    return Report(found, count)


def _of_file(path: str, *, pedantic: bool) -> tuple[list[Finding], list[tuple[int, int]]]:
    places: list[tuple[int, int]] = []
    try:
        source = files.text_of(path)
        if path.endswith(".ipynb"):
            source, places = notebooks.source_of(source)
    except SyntaxError as error:
        return [unreadable(error.msg)], []
    return check(source, pedantic=pedantic), places


def codes(text: str, option: str) -> frozenset[str]:
    """Read a list of codes, or beginnings of them.

    Raises:
        BadOptionError: One is no code, and no code begins with it.
    """
    found = frozenset(code.strip().upper() for code in text.split(",") if code.strip())
    for code in sorted(found):
        if not _begins_one(code, RULES):
            raise BadOptionError(
                f"{option} {code} is no code, and none begins so.", "Give some of docs/lint.md, like JW101 or JW3."
            )
    return found


def _begins_one(beginning: str, every: Iterable[str]) -> bool:
    return any(code.startswith(beginning) for code in every)
