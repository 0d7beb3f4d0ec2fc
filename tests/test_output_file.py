"""Files that a command was asked to write."""

import os
from pathlib import Path

import pytest

from jaxwatch import _output_file
from jaxwatch.errors import ReportUnwritableError


def test_what_is_written_is_there_and_what_cannot_be_encoded_is_an_escape(tmp_path: Path) -> None:
    path = tmp_path / "out.md"

    _output_file.put(str(path), "--markdown", lambda file: print("é \ud800", file=file))

    assert path.read_text(encoding="utf-8") == "é \\ud800\n"


def test_a_path_is_told_in_full_and_nothing_is_made_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert _output_file.check("out.html", "--html") == str(tmp_path / "out.html")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("path", "why"), [("no/such.html", "no such directory"), (".", "is a directory")])
def test_what_cannot_be_written_is_known_before(
    path: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(ReportUnwritableError, match=rf"cannot write '{path}': {why}. Give --html a file"):
        _output_file.check(path, "--html")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_known_before(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)

    with pytest.raises(ReportUnwritableError, match="permission denied"):
        _output_file.check(str(tmp_path / "out.html"), "--html")


def test_what_fails_while_it_is_written_is_the_same_error(tmp_path: Path) -> None:
    with pytest.raises(ReportUnwritableError, match="no such file or directory"):
        _output_file.put(str(tmp_path / "no" / "such"), "--json", lambda _file: None)
    if os.path.exists("/dev/full"):
        with pytest.raises(ReportUnwritableError, match="no space left on device"):
            _output_file.put("/dev/full", "--json", lambda file: print("x", file=file))


def test_no_output_is_an_input_or_another_output(tmp_path: Path) -> None:
    logs, log, link = tmp_path / "logs", tmp_path / "logs" / "a.jsonl", tmp_path / "link"
    logs.mkdir()
    log.write_text("")
    link.symlink_to(log)

    for inputs in ([str(log)], [str(logs)]):
        for name in (log, link, logs / ".." / "logs" / "a.jsonl"):
            told = _output_file.clash({"--json": None, "--html": str(name)}, inputs)
            assert told == f"--html {name} would overwrite {log}: give another FILE."
        assert _output_file.clash({"--html": str(tmp_path / "new"), "--json": "-"}, inputs) is None
    new = str(tmp_path / "new")
    assert _output_file.clash({"--html": new, "--json": new}, []) == (
        f"--json {new} would overwrite what --html writes: give another FILE."
    )
    assert _output_file.clash({"--html": os.devnull, "--json": os.devnull}, [os.devnull]) is None
    assert _output_file.clash({"--html": "\0"}, [str(log), "\0x", str(tmp_path / "no")]) is None
