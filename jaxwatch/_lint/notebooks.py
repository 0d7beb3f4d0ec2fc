"""Notebooks: the Python of their code cells, each line in the place where the notebook would show it."""

import json

# Magics by which a whole cell is no Python.
_NO_PYTHON = (
    "%%bash",
    "%%sh",
    "%%html",
    "%%javascript",
    "%%js",
    "%%latex",
    "%%markdown",
    "%%writefile",
    "%%script",
    "%%perl",
    "%%ruby",
    "%%cmd",
)


def source_of(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a notebook's Python as one source, and for each of its lines the cell and the line therein, from 1.

    Raises:
        SyntaxError: It is no notebook.
    """
    try:
        cells = json.loads(text)["cells"]
        code = [(at, "".join(cell["source"])) for at, cell in enumerate(cells, 1) if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SyntaxError("it is no notebook") from None
    lines: list[str] = []
    places: list[tuple[int, int]] = []
    for cell, source in code:
        if source.lstrip().startswith(_NO_PYTHON):
            continue
        for number, line in enumerate(source.splitlines(), 1):
            lines.append(_plain(line))
            places.append((cell, number))
    return "\n".join([*lines, ""]), places


def _plain(line: str) -> str:
    """Return a line as Python: ``pass`` for a magic, a command of the shell, or a question."""
    bare = line.lstrip()
    if bare.startswith(("%", "!")) or (bare.endswith("?") and "#" not in bare):
        return f"{line[: len(line) - len(bare)]}pass"
    return line
