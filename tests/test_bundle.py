"""Dashboards, rules and alerts as users get them, from a checkout and from a wheel; nothing of theirs is lost."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from programs import ROOT

from jaxwatch import _bundle, _cli
from jaxwatch.errors import BundleError

NEEDED = {
    "dashboards/overview.json",
    "dashboards/function.json",
    "dashboards/fleet.json",
    "rules/jaxwatch.yml",
    "alerts/jaxwatch.yml",
    "provisioning/dashboards/jaxwatch.yml",
    "provisioning/datasources/jaxwatch.yml",
    "runbook.md",
    "METRICS.md",
}


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_all_that_is_needed_is_written_and_nothing_else(tmp_path: Path) -> None:
    written = _bundle.export(tmp_path / "new" / "folder")

    assert names(tmp_path / "new" / "folder") == NEEDED == set(map(str, written))
    for name in NEEDED:
        assert (tmp_path / "new" / "folder" / name).read_bytes() == (ROOT / "grafana" / name).read_bytes()


def test_once_more_writes_nothing(tmp_path: Path) -> None:
    _bundle.export(tmp_path)
    assert _bundle.export(tmp_path) == []


def test_what_was_changed_is_not_overwritten_unasked_and_nothing_is_half_done(tmp_path: Path) -> None:
    mine = tmp_path / "alerts" / "jaxwatch.yml"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(BundleError, match=r"alerts/jaxwatch.yml differs.*--force"):
        _bundle.export(tmp_path)
    assert names(tmp_path) == {"alerts/jaxwatch.yml"}
    assert mine.read_text() == "mine"

    _bundle.export(tmp_path, force=True)
    assert names(tmp_path) == NEEDED
    assert mine.read_text() != "mine"


@pytest.mark.parametrize("place", ["file/below", "nul\0"])
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError, match="cannot write to"):
        _bundle.export(tmp_path / place)


def test_an_installation_without_them_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_bundle, "__file__", str(tmp_path / "site" / "jaxwatch" / "_bundle.py"))
    with pytest.raises(BundleError, match="are not in"):
        _bundle.bundle()


def test_the_command_tells_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["dashboards", "export", str(tmp_path / "here")]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{len(NEEDED)} files written to {tmp_path / 'here'}.\n")
    assert f'rule_files: ["{tmp_path}/here/rules/*.yml", "{tmp_path}/here/alerts/*.yml"]' in told
    (provider,) = (tmp_path / "here" / "provisioning" / "dashboards").iterdir()
    assert "path: /var/lib/grafana/dashboards/jaxwatch" in provider.read_text()
    assert "/var/lib/grafana/dashboards/jaxwatch" in told


def test_its_commands_hold_for_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "it's $HOME here"
    _bundle.export(folder)
    commands = [line for line in _bundle.next_steps(folder).splitlines() if " cp " in line]
    for line in commands:
        text = line.replace("sudo ", "").replace("/var/lib/grafana", "lib").replace("/etc/grafana/", "etc/")
        text = f"mkdir -p etc/provisioning/dashboards && {text}"
        subprocess.run(text, shell=True, cwd=tmp_path, check=True, timeout=60)  # noqa: S602 -- our own

    assert len(commands) == 2
    assert names(tmp_path / "lib" / "dashboards" / "jaxwatch") == {"overview.json", "function.json", "fleet.json"}
    assert names(tmp_path / "etc") == {"provisioning/dashboards/jaxwatch.yml"}


def test_a_wheel_has_them_and_writes_them(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    copy.mkdir()
    kept = ("jaxwatch", "grafana", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")
    for name in kept:  # a build leaves folders behind
        (copy / name).symlink_to(ROOT / name)
    environ = {**os.environ, "CC": "false"}
    built = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path / "dist"), str(copy)]
    done = subprocess.run(built, env=environ, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "site")
    site = tmp_path / "site"

    assert names(site / "jaxwatch" / "_grafana") == NEEDED
    assert {"index.html", "page.css", "page.js"} <= names(site / "jaxwatch" / "_page")
    packages = {path.parent.name for path in (ROOT / "jaxwatch").rglob("__init__.py")}
    assert packages == {path.parent.name for path in (site / "jaxwatch").rglob("__init__.py")}
    program = (
        "from jaxwatch import _bundle, _cli; import sys; sys.exit(_cli.main(['dashboards', 'export', sys.argv[1]]))"
    )
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "out")]
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path / "out") == NEEDED
