"""The docs: their Python runs as it stands, their commands exist, their links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT, run

import jaxwatch
from jaxwatch._cli import command

DOCS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", *sorted((ROOT / "grafana").glob("*.md"))]
WITH_CODE = [path for path in DOCS if path.parent == ROOT / "docs" and "```python" in path.read_text("utf-8")]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", WITH_CODE, ids=name)
def test_its_python_runs(path: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [path for path in DOCS if "```ipython" in path.read_text("utf-8")], ids=name)
def test_its_cells_run(path: Path, tmp_path: Path) -> None:
    """Each block is a cell; what the page prints after one is told by the same finding."""
    pytest.importorskip("IPython")
    blocks = re.findall(r"^```(?:ipython)?\n(.*?)^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    program = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"for cell in {[block for block in blocks if not block.startswith('jaxwatch · ')]!r}:\n"
        "    InteractiveShell.instance().run_cell(cell, store_history=True).raise_error()\n"
    )
    done = run(program, folder=tmp_path, IPYTHONDIR=str(tmp_path))

    assert done.code == 0, done.out + done.err
    shown = [block.splitlines() for block in blocks if block.startswith("jaxwatch · ")]
    assert shown
    for line in (line for block in shown for line in block):
        for finding in re.findall(r"(step: .*?)(?:  +| \()", line):
            assert finding in done.out


def commands(text: str) -> set[str]:
    """Return the subcommands that a text names in code."""
    code = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    code += re.findall(r"`([^`\n]+)`", text)
    return {found for block in code for found in re.findall(r"(?:^|[\s$/])jaxwatch ([a-z]+)\b", block)}


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_its_commands_exist(path: Path) -> None:
    assert commands(path.read_text("utf-8")) <= command.commands.keys() | {"overview", "function", "fleet"}


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCS, ids=name)
def test_its_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "code", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), target


def test_every_option_of_run_is_in_the_readme_or_the_docs() -> None:
    told = "".join(path.read_text("utf-8") for path in DOCS)
    options = {name for option in command.commands["run"].params for name in option.opts if name.startswith("--")}

    assert {option for option in options if option not in told} == set()


def test_every_public_name_is_in_the_reference() -> None:
    told = (ROOT / "docs" / "reference.md").read_text("utf-8")

    missing = {name for name in jaxwatch.__all__ if not re.search(rf"^(:::|###) jaxwatch\.{name}$", told, re.MULTILINE)}

    in_errors = {name for name in missing if hasattr(jaxwatch.errors, name)}  # which is there as a whole
    assert missing - in_errors == set()


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="needs mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} | {"design", "changelog", "metrics", "commands"}
    assert {page for page in pages if not (tmp_path / page / "index.html").exists()} == set()
    loaded = re.compile(r'<(?:link|script|img)[^>]+(?:href|src)="(https?:[^"]+)"')
    assert {url for page in tmp_path.rglob("*.html") for url in loaded.findall(page.read_text("utf-8"))} == set()
