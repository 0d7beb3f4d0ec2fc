import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from jaxwatch._program import Program
from jaxwatch.errors import NoProgramError

CHECKOUT = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.py").write_text("print('ran')")
    (tmp_path / "empty").mkdir()
    with zipfile.ZipFile(tmp_path / "empty.zip", "w") as archive:
        archive.writestr("other.py", "")
    return tmp_path


@pytest.mark.parametrize("name", ["missing.py", "no/such/folder/x.py", "empty", "empty.zip", "", "a\0b", "prog.py/x"])
def test_a_program_that_is_not_there_is_said_with_a_way_out(name: str) -> None:
    with pytest.raises(NoProgramError, match=r"\. Give a Python file.*\[no-program\]"):
        Program(name, [], is_module=False).check()


@pytest.mark.parametrize("name", ["no_such_module", "no_such_package.sub"])
def test_a_module_that_is_not_there_is_said(name: str) -> None:
    with pytest.raises(NoProgramError, match=r"no module named .* Give a module's name after -m"):
        Program(name, [], is_module=True).check()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_program_without_permission_is_said(folder: Path) -> None:
    (folder / "prog.py").chmod(stat.S_IWUSR)

    with pytest.raises(NoProgramError, match="permission denied"):
        Program("prog.py", [], is_module=False).check()


@pytest.mark.parametrize("name", ["prog", "json", "json.tool", "sys", "zipimport"])
def test_modules_that_are_there_pass(name: str) -> None:
    Program(name, [], is_module=True).check()


def test_checking_runs_nothing_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(sys.argv), list(sys.path), sys.modules["__main__"]

    Program("prog.py", ["a"], is_module=False).check()
    Program("prog", ["a"], is_module=True).check()

    assert (list(sys.argv), list(sys.path), sys.modules["__main__"]) == before
    assert capsys.readouterr() == ("", "")


def test_executing_needs_no_more_than_the_three_steps(folder: Path) -> None:
    code = (
        "from jaxwatch._program import Program\n"
        "p = Program('prog.py', ['a'], is_module=False)\n"
        "p.check(); p.prepare(); p.execute()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": CHECKOUT},
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"ran\n"
