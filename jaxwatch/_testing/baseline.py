"""The baseline: which function each test may miss how often, and why; a JSON file to be reviewed and committed."""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from jaxwatch._testing.counts import Misses, from_plain, to_plain
from jaxwatch._texts import shortened
from jaxwatch.errors import BaselineError

SCHEMA = "jaxwatch.baseline/1"
EntryKind = Literal["test", "fixture", "collection"]
_KINDS: tuple[EntryKind, ...] = ("test", "fixture", "collection")
_OURS = "pytest --jaxwatch-baseline FILE --jaxwatch-update-baseline"


class Entry(NamedTuple):
    """What has misses of its own in a baseline: a test, a fixture of wider scope, or the import of a file of tests."""

    kind: EntryKind
    name: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """The misses of each entry, in the order in which the tests ran: each pays what those before it have not."""

    entries: Mapping[Entry, Misses] = field(default_factory=dict)

    @property
    def tests(self) -> int:
        """How many tests there are in it."""
        return sum(entry.kind == "test" for entry in self.entries)


def dumped(baseline: Baseline) -> str:
    """Return the file's text: a line for each test and each function that misses."""
    blocks = [_block(entry, misses) for entry, misses in baseline.entries.items()]
    return f'{{\n "schema": "{SCHEMA}",\n "entries": [\n' + ",\n".join(blocks) + "\n ]\n}\n"


def _block(entry: Entry, misses: Misses) -> str:
    head = f"  {{{_json(entry.kind)}: {_json(entry.name)}"
    if not misses:
        return head + "}"
    lines = ",\n".join(f"   {_json(function)}: {_json(counts)}" for function, counts in to_plain(misses).items())
    return f'{head}, "misses": {{\n{lines}\n  }}}}'


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def parsed(text: str, path: str) -> Baseline:
    """Return the baseline that a file's text holds.

    Raises:
        BaselineError: The text is no baseline, or that of another version.
    """
    if any(line.startswith(("<<<<<<< ", ">>>>>>> ")) for line in text.splitlines()):
        problem = f"The baseline {path} has marks of a merge conflict."
        raise BaselineError(problem, f"Take one side of each, then run {_OURS}.")
    try:
        found = json.loads(text)
        entries = _entries(found)
    except (ValueError, RecursionError) as error:
        problem = f"The baseline {path} cannot be read: {shortened(str(error), 200)}."
        raise BaselineError(problem, f"Take it from version control again, or delete it and run {_OURS}.") from error
    return Baseline(entries)


def _entries(found: Any) -> dict[Entry, Misses]:
    if not isinstance(found, dict) or not isinstance(found.get("entries"), list):
        raise ValueError("it has no list of entries")  # noqa: TRY004 -- one kind of error for bad data
    if found.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {found.get('schema')!r}, and this version of jaxwatch reads {SCHEMA!r}")
    entries: dict[Entry, Misses] = {}
    for number, each in enumerate(found["entries"], 1):
        kind = next((kind for kind in _KINDS if isinstance(each, dict) and isinstance(each.get(kind), str)), None)
        if kind is None or set(each) - {kind, "misses"}:
            raise ValueError(f"entry {number} is {each!r}, and neither test, fixture nor collection")
        entry = Entry(kind, each[kind])
        if entry in entries:
            raise ValueError(f"{kind} {entry.name!r} is in it twice, as after a merge")
        try:
            entries[entry] = from_plain(each.get("misses", {}))
        except ValueError as error:
            raise ValueError(f"in {entry.name!r}, {error}") from None
    return entries


def read(path: str, *, may_be_missing: bool = False) -> Baseline:
    """Read a file; where it ``may_be_missing``, an empty baseline stands for it.

    Raises:
        BaselineError: It is not there, cannot be read, or is no baseline.
    """
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        if may_be_missing:
            return Baseline()
        problem = f"There is no baseline at {path}."
        raise BaselineError(problem, f"Write it from a run of all tests: {_OURS}.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8"
        problem = f"The baseline {path} cannot be read: {why}."
        raise BaselineError(problem, "Give --jaxwatch-baseline a file that you may read.") from None
    return parsed(text, path)


def write(path: str, baseline: Baseline) -> None:
    """Write a file as a whole or not at all; one that holds the same is not touched.

    Raises:
        BaselineError: It cannot be written.
    """
    text = dumped(baseline)
    folder = os.path.dirname(os.path.realpath(path))
    try:
        if os.path.exists(path) and _text(path) == text:
            return
        mode = os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~_umask()
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=folder, delete=False) as file:
            file.write(text)
        os.chmod(file.name, mode)
        os.replace(file.name, os.path.realpath(path))
    except OSError as error:
        problem = f"The baseline {path} cannot be written: {error.strerror}."
        raise BaselineError(problem, "Give --jaxwatch-baseline a file in a folder that you may write to.") from None


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
