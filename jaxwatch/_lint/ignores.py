"""Comments that say to leave a finding: ``# jaxwatch: ignore``, ``…: ignore[JW101,JW102]``, ``…: ignore-file``."""

import ast
import io
import re
import tokenize

from jaxwatch._lint.rules import RULES, Finding

_COMMENT = re.compile(r"#\s*jaxwatch:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]]*)\])?", re.IGNORECASE)


class Ignores:
    """The comments of one source."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._lines: dict[int, frozenset[str]] = {}  # no code: all of them
        self._file: list[frozenset[str]] = []
        self._unknown: list[Finding] = []
        self._first: dict[int, int] = {}
        if "jaxwatch:" not in source:
            return
        self._read(source)
        if self._lines:
            self._span(tree)

    def _read(self, source: str) -> None:
        try:
            for token in tokenize.generate_tokens(io.StringIO(source).readline):
                found = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
                if found is not None:
                    self._note(found, *token.start)
        except (tokenize.TokenError, SyntaxError, IndentationError):
            return  # what came before counts

    def _note(self, found: re.Match[str], line: int, column: int) -> None:
        told = found["codes"]
        codes = [code.strip().upper() for code in told.split(",") if code.strip()] if told is not None else []
        known = frozenset(code for code in codes if code in RULES)
        for code in codes:
            if code not in known:
                message = RULES["JW001"].message.format(what=code)
                self._unknown.append(Finding(line, column + found.start() + 1, "JW001", message))
        if told is not None and not known:
            return
        if found["file"]:
            self._file.append(known)
        else:
            self._lines[line] = (
                self._lines.get(line, known) | known if known and self._lines.get(line, known) else frozenset()
            )

    def _span(self, tree: ast.Module) -> None:
        """Note for each line at which statement it is: the innermost one, of a compound one its head alone."""
        for node in ast.walk(tree):  # outer ones come first
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno or node.lineno
                for line in range(node.lineno, max(last, node.lineno) + 1):
                    self._first[line] = node.lineno

    def cover(self, finding: Finding) -> bool:
        """Whether a comment says to leave a finding: on its line, on its statement's first, or for the file."""
        places = {finding.line, self._first.get(finding.line, finding.line)}
        told = [*self._file, *(self._lines[line] for line in places if line in self._lines)]
        return any(not codes or finding.code in codes for codes in told)

    def findings(self) -> list[Finding]:
        """Return what is wrong with the comments themselves."""
        return self._unknown
