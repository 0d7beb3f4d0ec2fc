"""Which files are looked at, and how they are read."""

import fnmatch
import io
import os
import tokenize
from collections.abc import Iterator, Sequence

from jaxwatch.errors import LintPathError

ENDINGS = (".py", ".ipynb")
LARGEST_BYTES = 20 * 1024 * 1024
_SKIPPED = frozenset({"node_modules", "build", "dist", "__pycache__", "venv", "site-packages"})


def files_of(paths: Sequence[str], exclude: Sequence[str]) -> Iterator[str]:
    """Yield the files below ``paths`` once each, folders in the order of their names.

    Args:
        paths: Files, whatever their names, and folders.
        exclude: Patterns of shells; of paths, or of the name of a file or folder.

    Raises:
        LintPathError: A path does not exist, or a folder may not be read.
    """
    seen: set[str] = set()
    for path in paths:
        if not os.path.exists(path):
            raise LintPathError(f"{path} does not exist.", "Give files or folders of Python.")
        if not os.path.isdir(path) and not os.path.isfile(path):
            raise LintPathError(f"{path} is neither a file nor a folder.", "Give files or folders of Python.")
        for file in [path] if not os.path.isdir(path) else _below(path, exclude):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                yield file


def _below(folder: str, exclude: Sequence[str]) -> Iterator[str]:
    for where, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = sorted(
            name for name in folders if not _is_skipped(name) and not is_excluded(os.path.join(where, name), exclude)
        )
        for name in sorted(names):
            path = os.path.normpath(os.path.join(where, name))
            wanted = name.endswith(ENDINGS) and not name.startswith(".") and not is_excluded(path, exclude)
            if wanted and os.path.isfile(path):  # no pipe, and no link that leads nowhere
                yield path


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED or name.startswith(".") or name.endswith(".egg-info")


def is_excluded(path: str, exclude: Sequence[str]) -> bool:
    """Whether a pattern fits a path, or its last part."""
    path = os.path.normpath(path)
    return any(
        fnmatch.fnmatch(path, pattern)
        or fnmatch.fnmatch(path, f"*/{pattern}")
        or fnmatch.fnmatch(os.path.basename(path), pattern)
        for pattern in (pattern.rstrip("/") for pattern in exclude)
    )


def _refuse(error: OSError) -> None:
    reason = (error.strerror or str(error)).lower()
    raise LintPathError(f"{error.filename} cannot be read: {reason}.", "Give files or folders that you may read.")


def text_of(path: str) -> str:
    """Return a file's text by its own encoding.

    Raises:
        LintPathError: It may not be read.
        SyntaxError: Its encoding is unknown, or not what it says; also of a file that is too large.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        error.filename = path
        _refuse(error)
        raise
    if len(content) > LARGEST_BYTES:
        raise SyntaxError(f"larger than {LARGEST_BYTES // 1024 // 1024} MiB")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        text = content.decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise SyntaxError(f"its text is not in the encoding that it says: {error}") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")
