"""``_places``: where something is, as people say it."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxwatch._places import place_here, place_text, program_folder


@pytest.mark.parametrize(
    ("site", "told"),
    [("cell [12]:3", "cell [12], line 3"), ("train.py:3", "train.py:3"), ("cell [1]:2 x", "cell [1]:2 x"), ("", "")],
)
def test_a_place_in_a_notebook_is_told_by_cell_and_line(site: str, told: str) -> None:
    assert place_text(site) == told


def program(monkeypatch: pytest.MonkeyPatch, file: Path | None) -> None:
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(**({} if file is None else {"__file__": str(file)})))


def test_the_folder_is_that_of_the_program_or_the_current_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(monkeypatch, tmp_path / "train.py")
    assert program_folder() == str(tmp_path)

    program(monkeypatch, None)
    monkeypatch.chdir(tmp_path)
    assert Path(program_folder()).samefile(tmp_path)


def test_a_folder_that_was_removed_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> str:
        raise FileNotFoundError

    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace())
    monkeypatch.setattr(Path, "cwd", refuse)
    assert program_folder() == ""
    assert place_here("/a.py:3") == "/a.py:3"


def test_a_site_is_told_relative_to_the_program_else_to_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(tmp_path)
    program(monkeypatch, project / "train.py")

    assert place_here(f"{project / 'train.py'}:3") == "train.py:3"
    assert place_here(f"{tmp_path / 'tests' / 'test_it.py'}:3") == f"{Path('tests/test_it.py')}:3"
    assert place_here(f"{tmp_path}_other/x.py:3") == f"{tmp_path}_other/x.py:3"
    assert place_here("cell [1]:2") == "cell [1], line 2"
    assert place_here("<unknown>") == "<unknown>"


def test_no_site_is_told_relative_to_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.sep)
    program(monkeypatch, None)

    assert place_here("/home/me/train.py:3") == "/home/me/train.py:3"
