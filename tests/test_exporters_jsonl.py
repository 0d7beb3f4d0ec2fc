"""The log: whole lines, whatever happens to the file, and a program that never notices."""

import contextlib
import dataclasses
import errno
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from figures import hostile
from hypothesis import HealthCheck, given, settings
from programs import environment, records, run
from test_events import ALL, MISS, ORIGIN, score  # noqa: F401 -- a fixture

from jaxwatch import _limits
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import JaxwatchWarning, LogUnwritableError
from jaxwatch.events import Change
from jaxwatch.exporters.jsonl import LogFile


@pytest.fixture
def log(fresh: None, fresh_log: Path) -> Iterator[LogFile]:
    del fresh
    made = LogFile(fresh_log)
    yield made
    made.close()


def lost() -> int:
    return REGISTRY.snapshot().dropped.get("log_line", 0)


# ------------------------------------------------------------------ lines


def test_every_event_is_a_line_that_the_scorer_can_read(log: LogFile, score: ModuleType) -> None:  # noqa: F811 -- the fixture
    for event in ALL.values():
        log(event)
    lines = Path(log.path).read_text().splitlines()

    assert [json.loads(line)["event"] for line in lines] == list(ALL)
    assert not [fault for line in lines for fault in score.event_faults(json.loads(line))]


@given(hostile, hostile)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_name_makes_one_line(log: LogFile, name: str, value: str) -> None:
    before = len(Path(log.path).read_bytes().splitlines())
    change = Change(reason="static", path=name, before=value, after="b")
    log(dataclasses.replace(MISS, function=name, site=value, changes=(change,)))
    lines = Path(log.path).read_bytes().splitlines()

    assert len(lines) == before + 1
    read = json.loads(lines[-1])
    assert (read["function"], read["site"], read["changes"][0]["path"]) == (name, value, name)


def test_numbers_that_json_has_not_are_none_of_ours(log: LogFile) -> None:
    log(MISS)
    text = Path(log.path).read_text()

    def refuse(name: str) -> None:
        raise ValueError(name)

    json.loads(text, parse_constant=refuse)


def test_lines_are_added_to_what_is_there(log: LogFile) -> None:
    log(MISS)
    again = LogFile(log.path)
    again(MISS)
    again.close()

    assert len(Path(log.path).read_text().splitlines()) == 2


def test_a_relative_path_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = LogFile("run.jsonl")
    monkeypatch.chdir("/")
    log(MISS)
    log.close()

    assert log.path == str(tmp_path / "run.jsonl")
    assert len(records(tmp_path / "run.jsonl")) == 1


WRITER = """
    import sys
    sys.path.insert(0, sys.argv[2])
    import dataclasses
    from test_events import MISS, ORIGIN
    from jaxwatch.exporters.jsonl import LogFile
    log = LogFile(sys.argv[1])
    for number in range(300):
        log(dataclasses.replace(MISS, id=number, abstract="x" * (number * 37 % 5000), origin=ORIGIN))
"""


def test_several_processes_share_a_file_without_cutting_each_others_lines(fresh_log: Path) -> None:
    here = str(Path(__file__).parent)
    program = "\n".join(line.removeprefix("    ") for line in WRITER.splitlines())
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(fresh_log), here], env=environment()) for _ in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]

    ids = [record["id"] for record in records(fresh_log)]
    assert len(ids) == 900
    assert sorted(ids) == sorted(list(range(300)) * 3)


def test_several_threads_share_a_log(log: LogFile) -> None:
    def work() -> None:
        for _ in range(200):
            log(MISS)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(records(Path(log.path))) == 800


# ------------------------------------------------------------------ what happens to the file


@pytest.mark.parametrize("happens", ["moved", "removed", "replaced"])
def test_a_log_that_was_moved_or_removed_is_opened_anew(happens: str, log: LogFile) -> None:
    path = Path(log.path)
    log(MISS)
    if happens == "moved":
        path.rename(path.with_suffix(".1"))
    elif happens == "removed":
        path.unlink()
    else:
        path.with_suffix(".new").write_text("")
        path.with_suffix(".new").replace(path)
    log(MISS)

    assert len(records(path)) == 1
    if happens == "moved":
        assert len(records(path.with_suffix(".1"))) == 1
    assert lost() == 0


def test_a_log_that_was_emptied_goes_on_at_its_start(log: LogFile) -> None:
    log(MISS)
    os.truncate(log.path, 0)
    log(MISS)

    assert len(records(Path(log.path))) == 1


def test_descriptors_are_not_used_up(log: LogFile) -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(50):
        os.unlink(log.path)
        log(MISS)

    assert before == 0 or len(os.listdir("/proc/self/fd")) == before


def test_where_its_folder_is_gone_one_warning_says_so_and_it_comes_back_with_it(fresh: None, tmp_path: Path) -> None:
    del fresh
    folder = tmp_path / "logs"
    folder.mkdir()
    log = LogFile(folder / "run.jsonl")
    log(MISS)
    os.unlink(log.path)
    folder.rmdir()
    with pytest.warns(
        JaxwatchWarning, match=r"loses lines: no such file or directory\. The program goes on.*\[log-lost\]"
    ):
        log(MISS)
    log(MISS)
    folder.mkdir()
    log(MISS)
    log.close()

    assert lost() == 2
    assert len(records(folder / "run.jsonl")) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_costs_one_warning_and_the_lines(fresh: None) -> None:
    del fresh
    log = LogFile("/dev/full")
    with pytest.warns(JaxwatchWarning, match="no space left"):
        log(MISS)
    log(MISS)  # a second warning would be an error
    log(MISS)
    log.close()

    assert lost() == 3


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_where_warnings_are_errors_it_is_told_on_stderr_and_nobody_ends_by_it(
    fresh: None, capsys: pytest.CaptureFixture[str]
) -> None:
    del fresh
    log = LogFile("/dev/full")
    log(MISS)
    log(MISS)
    log.close()

    assert capsys.readouterr().err.count("[log-lost]") == 1
    assert lost() == 2


def test_a_line_that_a_full_disk_cut_does_not_spoil_the_next(log: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    room = [100]

    def nearly_full(descriptor: int, line: bytes) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(descriptor, line[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", nearly_full)
    with pytest.warns(JaxwatchWarning):
        log(MISS)
    log(MISS)
    monkeypatch.setattr(os, "write", write)
    log(MISS)
    log(MISS)

    lines = Path(log.path).read_text().splitlines()
    whole = []
    for line in lines:
        with contextlib.suppress(ValueError):
            whole.append(json.loads(line))
    assert len(whole) == 2
    assert len(lines) == 3
    assert lost() == 2


def test_beyond_the_limit_lines_are_counted_and_warned_of_once(log: LogFile, monkeypatch: pytest.MonkeyPatch) -> None:
    log(MISS)
    size = os.path.getsize(log.path)
    monkeypatch.setattr(_limits, "LOG_BYTES", 3 * size)
    log(MISS)
    log(MISS)
    with pytest.warns(JaxwatchWarning, match="the most that is allowed"):
        log(MISS)
    for _ in range(3):
        log(MISS)  # a second warning would be an error

    assert len(records(Path(log.path))) == 3
    assert lost() == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_a_limit_of_its_own_and_no_lock_of_the_parents(
    log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(MISS)
    size = os.path.getsize(log.path)
    monkeypatch.setattr(_limits, "LOG_BYTES", 2 * size)
    held = threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with log._lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that threads and fork do not go together
        child = os.fork()
    if child == 0:
        log(dataclasses.replace(MISS, id=1))
        log(dataclasses.replace(MISS, id=2))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    leave.set()
    thread.join()

    assert status == 0
    assert [record["id"] for record in records(Path(log.path))] == [3, 1, 2]


def test_a_closed_log_writes_into_nobody_elses_file(log: LogFile, tmp_path: Path) -> None:
    log.close()
    log.close()
    with (tmp_path / "mine.txt").open("w") as mine:  # most likely under the very number
        mine.write("all mine")
        mine.flush()
        assert not log(MISS)

    assert (tmp_path / "mine.txt").read_text() == "all mine"
    assert lost() == 0  # which is for whom it tells that it is closed


def test_a_program_that_closes_all_descriptors_gets_its_own_files_back_untouched(log: LogFile, tmp_path: Path) -> None:
    """As one that makes itself a daemon does; its next file has the log's old number."""
    log(MISS)
    os.close(log._fd)
    with (tmp_path / "mine.txt").open("w") as mine:
        assert mine.fileno() == log._fd
        mine.write("all ")
        mine.flush()
        log(MISS)
        log(MISS)
        mine.write("mine")

    assert (tmp_path / "mine.txt").read_text() == "all mine"
    assert len(records(Path(log.path))) == 3
    assert lost() == 0


def test_and_where_nothing_has_the_number_the_log_goes_on_too(log: LogFile) -> None:
    os.close(log._fd)
    log(MISS)

    assert (len(records(Path(log.path))), lost()) == (1, 0)


def test_a_closed_log_closes_nobody_elses_file(log: LogFile, tmp_path: Path) -> None:
    os.close(log._fd)
    with (tmp_path / "mine.txt").open("w") as mine:
        assert mine.fileno() == log._fd
        log.close()
        mine.write("still open")

    assert (tmp_path / "mine.txt").read_text() == "still open"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("read", [False, True])
def test_a_pipe_is_refused_whether_somebody_reads_it_or_not(read: bool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK) if read else None
    try:
        with pytest.raises(LogUnwritableError, match=r"it is a pipe or a socket\. Give --log"):
            LogFile(tmp_path / "pipe")
    finally:
        if reader is not None:
            os.close(reader)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_log_that_is_replaced_by_a_pipe_loses_lines_and_holds_nobody_up(log: LogFile) -> None:
    log(MISS)
    os.unlink(log.path)
    os.mkfifo(log.path)
    with pytest.warns(JaxwatchWarning, match="loses lines"):
        log(MISS)
    os.unlink(log.path)
    log(MISS)

    assert (len(records(Path(log.path))), lost()) == (1, 1)


def test_without_descriptors_lines_are_lost_and_counted_until_there_are_some(
    log: LogFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    log(MISS)
    os.unlink(log.path)

    def none_left(*_: Any) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as full:
        full.setattr(os, "open", none_left)
        with pytest.warns(JaxwatchWarning, match="too many open files"):
            log(MISS)
    log(MISS)

    assert (len(records(Path(log.path))), lost()) == (1, 1)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: folder, "is a directory"),
        (lambda folder: folder / "nowhere" / "run.jsonl", "no such file or directory"),
        (lambda folder: folder / ("x" * 300), "file name too long"),
        (lambda folder: folder / "file" / "run.jsonl", "not a directory"),
    ],
)
def test_a_log_that_cannot_be_opened_is_refused_with_a_way_out(make: Any, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = make(tmp_path)
    with pytest.raises(LogUnwritableError) as caught:
        LogFile(path)

    expected = f"cannot write the log to {path}: {why}. Give --log or JAXWATCH_LOG a file"
    assert str(caught.value).startswith(expected)
    assert str(caught.value).endswith("[log-unwritable]")
    assert isinstance(caught.value, OSError)
    assert caught.value.__cause__ is None


# ------------------------------------------------------------------ in a program


def test_a_full_disk_does_not_disturb_a_program() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    ended = run(
        """
        import jaxwatch
        step = jaxwatch.jit(lambda x: x + 1)
        print(step(1.0), step(1))
        """,
        JAXWATCH_LOG="/dev/full",
    )

    assert ended.code == 0
    assert ended.out == "2.0 2\n"
    assert ended.err.count("[log-lost]") == 1


def test_the_origin_is_told_flat() -> None:
    assert ORIGIN.pid == 7
