import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from event_records import Rec, miss, record, training_run, write_log

from jaxwatch import _cli
from jaxwatch._commands import progress
from jaxwatch._reader import read_log

CHECKOUT = str(Path(__file__).parents[1])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "run.jsonl", training_run())


def jaxwatch(*args: str, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAXWATCH")}
    return subprocess.run(
        [sys.executable, "-m", "jaxwatch", *args],
        env={**env, "PYTHONPATH": CHECKOUT, **environ},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


# ------------------------------------------------------------------ report


def test_report_tells_what_a_log_holds(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", str(log)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("jaxwatch · train.py · 41.2 s, 12.4 s (30 %) of it compiling")
    assert out.endswith(f"\n1 more under 1 %: jaxwatch report {log} --all\n")
    assert err == ""


def test_all_tells_all(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", "--all", str(log)]) == 0

    assert "4  evaluate: y int32[] → int16[]" in capsys.readouterr().out


def test_several_logs_are_one_report(tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = write_log(tmp_path / "other run.jsonl", training_run())

    assert _cli.main(["report", str(log), str(other)]) == 0

    out = capsys.readouterr().out
    assert "train.py · 2 processes together · 82.4 s,\n  24.8 s (30 %) of it compiling" in out
    assert "calls 57, 203, 488, 911; each compared with" in out.replace("\n   ", " ")
    assert "mask: 4\n     signatures in place of 5" in out  # of all processes
    assert f"'{other}' --all" in out


def test_lines_that_are_no_events_are_counted_and_the_rest_is_told(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = record("cache_miss", id="x")
    text = log.read_text()
    write_log(log, [broken, {"other": 1}, broken, broken])
    log.write_text(log.read_text() + text + '{"cut')

    assert _cli.main(["report", str(log)]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("jaxwatch · train.py · 41.2 s")
    assert err == (
        f"jaxwatch: 5 lines passed over: {log}:1 is a malformed cache_miss; {log}:2 is not of schema jaxwatch.event/1; "
        f"{log}:3 is a malformed cache_miss; and 2 more\n"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no event in {log}: nothing was written. Give a log"),
        ("garbage\n", "no event in {log}; 1 line passed over: {log}:1 is no JSON. Give a log"),
        ("{}\n" * 9, "no event in {log}; 9 lines passed over: {log}:1 is not of schema"),
    ],
)
def test_a_file_without_any_event_is_an_error(
    tmp_path: Path, text: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(text)

    assert _cli.main(["report", str(log)]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"jaxwatch: {told.format(log=log)}")
    assert err.endswith("[log-unreadable]\n")


def test_a_missing_log_is_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", "/no/such.jsonl"]) == 2

    assert capsys.readouterr().err == (
        "jaxwatch: cannot read the log /no/such.jsonl: no such file or directory. "
        "Give the file that --log or JAXWATCH_LOG named. [log-unreadable]\n"
    )


def test_a_log_without_a_run_is_called_by_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    misses: list[Rec] = [one for one in training_run() if one["event"] == "cache_miss"]

    assert _cli.main(["report", str(write_log(tmp_path / "part.jsonl", misses))]) == 0

    assert capsys.readouterr().out.startswith("jaxwatch · part.jsonl · no end in the log · 11.0 s compiling,")


def test_a_reader_that_has_seen_enough_is_no_error(log: Path) -> None:
    command = f"{sys.executable} -m jaxwatch report {log}; echo $? >&2"
    pipe = f"({command}) | true"
    env = {**os.environ, "PYTHONPATH": CHECKOUT}
    done = subprocess.run(["/bin/sh", "-c", pipe], env=env, capture_output=True, text=True, check=True)

    assert done.stderr == "0\n"


@pytest.mark.parametrize(
    ("redirect", "code", "told"), [(">&-", 0, ""), ("> /dev/full", 2, "no space left on device.\n")]
)
def test_a_stdout_that_is_closed_or_full(log: Path, redirect: str, code: int, told: str) -> None:
    command = f"{sys.executable} -m jaxwatch report {log} {redirect}"
    env = {**os.environ, "PYTHONPATH": CHECKOUT}
    done = subprocess.run(["/bin/sh", "-c", command], env=env, capture_output=True, text=True, check=False)

    assert done.returncode == code
    assert done.stderr.endswith(told)
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------ run


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "prog.py").write_text("print('ran')")
    return tmp_path


def test_a_log_that_cannot_be_written_stops_before_the_program(program: Path) -> None:
    done = jaxwatch("run", "--log", "/no/such/folder/run.jsonl", "prog.py", cwd=program)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"jaxwatch: .*/no/such/folder/run\.jsonl.* \[log-unwritable\]\n", done.stderr)


def test_a_port_that_is_taken_stops_before_the_program(program: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = jaxwatch("run", "--port", str(port), "prog.py", cwd=program)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"jaxwatch: port {port} on 127.0.0.1 is taken. ")
    assert done.stderr.endswith("[port-taken]\n")


def test_a_free_port_is_served_and_the_program_runs(program: Path) -> None:
    done = jaxwatch("run", "--port", "0", "prog.py", cwd=program)

    assert (done.returncode, done.stdout) == (0, "ran\n")


@pytest.mark.parametrize("args", [["nope.py"], ["-m", "nope"], ["."]])
def test_a_program_that_is_not_there_is_an_error_of_one_line(program: Path, args: list[str]) -> None:
    done = jaxwatch("run", *args, cwd=program)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"jaxwatch: [^\n]* Give [^\n]*\[no-program\]\n", done.stderr)


def test_options_of_run_stand_before_the_program_and_all_behind_it_is_the_programs_own(program: Path) -> None:
    (program / "args.py").write_text("import sys; print(sys.argv[1:])")
    theirs = ["--log", "x", "--quiet", "-m", "--help", "--", "--port=1"]

    done = jaxwatch("run", "--quiet", "--log", "run.jsonl", "-m", "args", *theirs, cwd=program)

    assert (done.returncode, done.stdout) == (0, f"{theirs}\n")
    assert not (program / "x").exists()


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nope"],
        ["run"],
        ["run", "--log"],
        ["run", "-m"],
        ["run", "--port", "99999", "x.py"],
        ["run", "--port", "x", "x.py"],
        ["report"],
        ["report", "--nope", "x"],
        ["--nope"],
    ],
)
def test_a_wrong_usage_exits_with_2_and_says_how_it_goes(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(args) == 2

    out, err = capsys.readouterr()
    assert "Usage: jaxwatch" in out + err or "requires an argument" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["run", "--help"], ["report", "-h"], ["doctor", "-h"]])
def test_help_is_no_error(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(args) == 0
    assert "Usage: jaxwatch" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["--version"]) == 0
    assert re.fullmatch(r"jaxwatch \S.*\n", capsys.readouterr().out)


def test_importing_the_command_loads_neither_jax_nor_what_a_subcommand_alone_needs() -> None:
    names = ("jax", "numpy", "rich", "prometheus_client", "structlog", "runpy")
    code = f"import sys, jaxwatch._cli; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": CHECKOUT},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "[]\n"


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_paths: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxwatch._reader.read_log", interrupt)


@pytest.mark.usefixtures("interrupted")
def test_an_interrupt_while_a_log_is_read_shows_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", "x"]) == 130
    assert "Traceback" not in capsys.readouterr().err


# ------------------------------------------------------------------ report --unknown


def test_misses_without_a_reason_are_told_as_a_report_to_send(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [{"arguments": [["x", "float32[2]"]]}, {"arguments": [["x", "float32[3]"]]}]
    one = miss(1, "unknown", keys=keys)
    log = write_log(tmp_path / "run.jsonl", [*training_run(), one])

    assert _cli.main(["report", "--unknown", str(log)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("# Misses that jaxwatch could not explain\n")
    assert "- `x`: float32[2] → float32[3]\n" in out
    assert err == ""


def test_where_each_miss_has_a_reason_it_says_so(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", "--unknown", str(log)]) == 0

    assert capsys.readouterr().out == "Every miss in the log has a reason: there is nothing to send.\n"


def test_a_job_without_a_push_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["run", "--job", "x", "program.py"]) == 2
    assert "--job names what is pushed: it needs --push URL." in capsys.readouterr().err


@pytest.mark.parametrize("subcommand", ["run", "advise"])
def test_a_mistyped_option_before_the_program_is_not_taken_for_it(
    subcommand: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _cli.main([subcommand, "--lgo", "run.jsonl", "train.py"]) == 2

    told = capsys.readouterr().err
    assert "No such option" in told
    assert "--lgo" in told


# ------------------------------------------------------------------ report: files, and how far it is


def test_report_writes_files_and_tells_people_as_always(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, figures, comment = tmp_path / "r.html", tmp_path / "r.json", tmp_path / "r.md"

    done = _cli.main(["report", str(log), "--html", str(page), "--json", str(figures), "--markdown", str(comment)])

    assert done == 0
    assert capsys.readouterr().out.startswith("jaxwatch · train.py · 41.2 s")
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads(figures.read_text())["details"]["functions"]
    assert comment.read_text().startswith("### jaxwatch: train.py\n")


def test_a_run_does_not_write_its_page_over_its_log(capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["run", "--log", "x.jsonl", "--html", "./x.jsonl", "prog.py"]) == 2

    assert "would overwrite what --log writes: give another FILE." in " ".join(capsys.readouterr().err.split())


def test_a_run_writes_neither_page_nor_log_over_its_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "prog.py"
    program.write_text("print(1)")

    for option in ("--log", "--html"):
        assert _cli.main(["run", option, str(program), str(program)]) == 2
        assert "would overwrite" in capsys.readouterr().err
    assert _cli.main(["run", "--html", "-", str(program)]) == 2
    assert program.read_text() == "print(1)"


def test_a_report_on_a_folder_is_not_written_over_a_log_in_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = log.read_bytes()

    for option in ("--html", "--json", "--markdown", "--perfetto"):
        assert _cli.main(["report", str(log.parent), option, str(log)]) == 2
        assert _cli.main(["report", str(log), "--json", "same", "--html", "same"]) == 2
    for option in ("--json", "--markdown"):
        assert _cli.main(["diff", str(log.parent), str(log.parent), option, str(log)]) == 2
    assert log.read_bytes() == before
    assert "would overwrite" in capsys.readouterr().err


def test_a_dash_is_stdout_and_then_that_alone_is_there(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _cli.main(["report", str(log), "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["schema"] == "jaxwatch.report/1"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--html", "{}/no/such.html"], "no such file or directory. Give --html a file in a folder"),
        (["--json", "{}"], "is a directory. Give --json a file in a folder"),
        (["--markdown", "\0"], "embedded null byte. Give --markdown a file"),
        (["--html", "-", "--json", "-"], "stdout has room for one form: give the others a FILE."),
        (["--html", "{}/run.jsonl"], "run.jsonl: give another FILE."),
        (["--unknown", "--json", "x"], "--unknown is a report of its own: it has no --json."),
    ],
)
def test_a_file_that_cannot_be_written_is_a_clear_error(
    options: list[str], told: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _cli.main(["report", str(log), *(option.replace("{}", str(tmp_path)) for option in options)]) == 2

    assert told in " ".join(capsys.readouterr().err.split())


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_how_far_it_is_is_shown_after_two_seconds_and_erased(tmp_path: Path) -> None:
    log = write_log(tmp_path / "long.jsonl", [miss(1)] * 3_000)
    stream, times = Terminal(), iter(range(1_000))

    records = list(progress.told(read_log([log]), stream, lambda: next(times)))

    assert len(records) == 3_000
    shown = re.findall(r"(\d+)%", stream.getvalue())
    assert shown
    assert all(0 < int(percent) < 100 for percent in shown)
    assert stream.getvalue().rstrip("\r").endswith(("\x1b[1A\x1b[2K", "\x1b[2K", "\x1b[?25h\x1b[1A\x1b[2K")), "erased"


def test_a_quick_reading_and_one_that_is_piped_show_nothing(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", [miss(1)] * 3_000)
    terminal, pipe, times = Terminal(), io.StringIO(), iter(range(1_000))

    assert len(list(progress.told(read_log([log]), terminal, lambda: 0.0))) == 3_000
    assert len(list(progress.told(read_log([log]), pipe, lambda: next(times)))) == 3_000
    assert (terminal.getvalue(), pipe.getvalue()) == ("", "")


def test_the_bytes_of_all_logs_are_known_and_of_a_pipe_are_not(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", [miss(1)] * 100)
    packed = tmp_path / "run.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    reading = read_log([log, packed])

    assert reading.bytes_in_all == log.stat().st_size + packed.stat().st_size
    assert reading.bytes_done == 0
    assert len(list(reading)) == 200
    assert reading.bytes_done == reading.bytes_in_all
    os.mkfifo(tmp_path / "pipe")
    assert read_log([tmp_path / "pipe"]).bytes_in_all is None


def test_a_folder_of_parquet_has_every_form_and_says_what_it_lacks(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("duckdb")
    folder, page = str(tmp_path / "events"), tmp_path / "r.html"
    assert _cli.main(["export", str(log), "--parquet", folder]) == 0
    capsys.readouterr()

    assert _cli.main(["report", folder, "--html", str(page), "--json", "-"]) == 0

    assert json.loads(capsys.readouterr().out)["details"] is None
    assert "Neither times nor phases are in this report" in page.read_text(encoding="utf-8")
