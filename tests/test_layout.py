"""The shape of the project: tests for every module, a section for every message, imports that go one way."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import ROOT

from jaxwatch import errors
from jaxwatch.errors import JaxwatchError

PACKAGE = ROOT / "jaxwatch"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# of a package as a whole, of a file without code, of what is no Python, of the project
TOGETHER = {
    "renderers": "renderers",
    "_advise": "advise",
    "_columnar": "columnar",
    "_commands": "cli",
    "_compare": "compare",
    "_lint": "lint",
    "_testing": "testing",
    "__main__": "cli",
}
OF_NO_MODULE = {
    "grafana",
    "prometheus",
    "alerts",
    "cases",
    "layout",
    "docs",
    "examples",
    "scopes_example",
    "measure",
    "native",
    "mutations",
    "advise_runs",
    "side_by_side",
    "tutorial",
    "distributed",
    "redact",
    "report_files",
    "lint_docs",
    "lint_planted",
    "lint_sources",
    "suites",
    "pytest_report",
    "pytest_baseline",
    "faults",
    "soak",
}


def test_name(path: Path) -> str:
    """Return the part of the test file's name that stands for a module; ``_metrics`` stands beside ``metrics``."""
    folder, name = path.relative_to(PACKAGE).parent.name, path.stem
    if folder in TOGETHER or name in TOGETHER:
        return TOGETHER.get(folder) or TOGETHER[name]
    if folder:
        return f"{folder}_{name}"
    bare = "init" if name == "__init__" else name.removeprefix("_")
    return name if name.startswith("_") and (PACKAGE / f"{bare}.py").exists() else bare


test_name.__test__ = False  # type: ignore[attr-defined]  # no test itself


def modules() -> list[Path]:
    return [path for path in SOURCES if path.name != "__init__.py" or path.parent == PACKAGE]


def test_every_module_has_its_tests() -> None:
    missing = {
        str(path.relative_to(ROOT)): f"tests/test_{test_name(path)}.py"
        for path in modules()
        if not (ROOT / "tests" / f"test_{test_name(path)}.py").exists()
    }
    assert missing == {}


def test_every_file_of_tests_has_its_module() -> None:
    found = {path.stem.removeprefix("test_") for path in (ROOT / "tests").glob("test_*.py")}

    assert found - {test_name(path) for path in modules()} - OF_NO_MODULE == set()


# ------------------------------------------------------------------ messages


def sections() -> set[str]:
    return set(re.findall(r"^## \[([a-z-]+)\]$", (ROOT / "docs" / "messages.md").read_text(), re.MULTILINE))


def slugs() -> set[str]:
    of_errors = {
        kind.slug for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, JaxwatchError)
    }
    texts = (
        node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)
    )
    of_warnings = {
        slug
        for node in texts
        if isinstance(node.value, str)
        for slug in re.findall(r"\[([a-z]+(?:-[a-z]+)+)\]$", node.value)
    }
    return of_errors | of_warnings


def test_every_message_has_a_section_and_every_section_a_message() -> None:
    assert slugs() - sections() == set(), "in docs/messages.md there is no section for these"
    assert sections() - slugs() == set(), "nothing in jaxwatch says these"


# ------------------------------------------------------------------ code


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(node: Documented) -> Iterator[Documented]:
    yield node
    for child in node.body if isinstance(node, ast.Module | ast.ClassDef) else ():
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            yield from public(child)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_all_that_is_public_is_documented(path: Path) -> None:
    missing = [
        getattr(node, "name", path.name) for node in public(ast.parse(path.read_text())) if not ast.get_docstring(node)
    ]
    assert missing == []


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "graph.py"), str(PACKAGE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_can_be_read_in_one_go(path: Path) -> None:
    """Targets of style.md: an outlier is a question."""
    tree = ast.parse(path.read_text())
    lengths = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    longest = 455 if path.name == "_compat.py" else 380  # that one holds all of JAX's privates, wherever they are used
    assert len(path.read_text().splitlines()) <= longest
    assert {name: length for name, length in lengths.items() if length > 60} == {}
