"""One source: its findings, less those that it says to leave."""

import ast
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from jaxwatch._lint import jit_options, jit_places, jits
from jaxwatch._lint.engine import Machine
from jaxwatch._lint.ignores import Ignores
from jaxwatch._lint.rules import RULES, Finding
from jaxwatch._lint.scopes import read

# Python calls that deep expressions may take: some ten for each level of them, and CPython's own parser allows 200.
_RECURSION = 6_000
_MENTIONS = ("jax", "flax", "equinox", "haiku")  # without one of these words nothing in a file is jitted


def check(source: str, *, pedantic: bool = False) -> list[Finding]:
    """Return what is at fault in a source, in the order of its lines.

    Args:
        source: Python.
        pedantic: Also what may be right.
    """
    try:
        with _room():
            return _check(source, pedantic=pedantic)
    except SyntaxError as error:
        return [unreadable(f"{error.msg}", error.lineno or 1)]
    except (RecursionError, MemoryError):
        return [unreadable("nested too deeply")]
    except ValueError as error:  # a null byte, before Python 3.12
        return [unreadable(str(error))]
    except Exception as error:  # noqa: BLE001 -- a fault of ours in one file must not stop the others
        return [unreadable(f"a fault of jaxwatch, please report it: {type(error).__name__}: {error}")]


def _check(source: str, *, pedantic: bool) -> list[Finding]:
    tree = _parsed(source)
    if not any(word in source for word in _MENTIONS):
        return []
    machine = Machine(read(tree))
    jits.look(machine)
    jit_options.look(machine)
    jit_places.look(machine)
    found = [finding for finding in machine.findings.values() if pedantic or finding.certain]
    lines = source.splitlines()
    ignores = Ignores(source, tree)
    kept = [_placed(finding, lines) for finding in found if not ignores.cover(finding)]
    return sorted([*kept, *ignores.findings()])


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes and the like: they are the compiler's to tell
        return ast.parse(source)


@contextmanager
def _room() -> Iterator[None]:
    """Allow deeper recursion: Python's own frames take no room on the C stack since 3.11."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def unreadable(why: str, line: int = 1) -> Finding:
    """Return the finding that a file cannot be checked."""
    return Finding(max(line, 1), 1, "JW000", RULES["JW000"].message.format(what=why))


def _placed(finding: Finding, lines: list[str]) -> Finding:
    """Return a finding with its column in characters, from 1: ast counts bytes, from 0."""
    line = lines[finding.line - 1] if finding.line <= len(lines) else ""
    return replace(
        finding, column=len(line.encode("utf-8", "surrogatepass")[: finding.column].decode("utf-8", "ignore")) + 1
    )


def selected(findings: Iterable[Finding], select: frozenset[str], ignore: frozenset[str]) -> list[Finding]:
    """Return the findings whose code begins with one of ``select``, if that is given, and with none of ``ignore``."""
    chosen, left = tuple(select), tuple(ignore)
    return [f for f in findings if (not chosen or f.code.startswith(chosen)) and not f.code.startswith(left or ("-",))]
