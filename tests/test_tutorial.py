"""Pages as a reader goes through them: files are saved, commands are run, and print what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from programs import ROOT

PAGES = "tutorial.md", "tests.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# What each command of the page is, in this process's environment.
PROGRAMS = {"jaxwatch": ["-m", "jaxwatch"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}


def normal(line: str) -> str:
    """Return a line without what differs from run to run: figures of time, their space, and the reader's folder."""
    line = re.sub(r"(?:, )?with \w+\['\w'\](?:; )?", "", line)  # moves to the next line where a figure is wider
    line = re.sub(r"(?<= )/\S*/(?=\w+\.py:)", "", line)
    line = re.sub(r"\d[\d.,]* ?(?:µs|ms|s\b|%)|\u2013", "T", line)
    return re.sub(r"^\d+ ", "N ", re.sub(r"\s+", " ", line)).strip()


def run(command: str, folder: Path) -> tuple[int, str]:
    program, *args = command.split()
    done = subprocess.run(
        [sys.executable, *PROGRAMS[program], *args],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=os.environ | {"PYTHONPATH": f"{folder}:{ROOT}", "COLUMNS": "80"},
    )
    return done.returncode, done.stdout + done.stderr


def shown(block: str) -> list[tuple[str, list[str]]]:
    """Return each command of a console block with the lines that it is shown to print."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
    return [
        (command, [line for line in printed.splitlines() if line.strip() and line != "…"])
        for command, printed in zip(parts[::2], parts[1::2], strict=True)
    ]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_reader_does_prints_what_the_page_shows(page: str, tmp_path: Path) -> None:
    for kind, title, block in BLOCK.findall((ROOT / "docs" / page).read_text("utf-8")):
        if title:
            (tmp_path / title).write_text(block, "utf-8")
        elif kind == "sh" and block.startswith("sed"):
            subprocess.run(["/bin/sh", "-ec", block], cwd=tmp_path, check=True)
        for command, expected in shown(block) if kind == "console" else []:
            code, printed = run(command, tmp_path)
            found = {normal(line) for line in printed.splitlines()}
            assert [line for line in expected if normal(line) not in found] == [], printed
            assert code == bool(re.search(r"^\d+ failed", block, re.MULTILINE)), printed


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("step   80   3   0.4 s   106 µs  524 µs", "step 80 3 1.4 s \u2013 3 ms", True),
        ("step   80   3   0.4 s   106 µs  524 µs", "step 80 4 1.4 s \u2013 3 ms", False),
        (
            "1  step: x float32[5] → float32[4]   4 times   0.5 s",
            "2  step: x float32[5] → float32[4] 4 times 1.5 s",
            True,
        ),
        (
            "1  step: x float32[5] → float32[4]   4 times   0.5 s",
            "1  step: x float32[5] → float32[4] 3 times 0.5 s",
            False,
        ),
    ],
)
def test_lines_that_differ_in_time_alone_are_the_same(one: str, other: str, *, same: bool) -> None:
    assert (normal(one) == normal(other)) == same
