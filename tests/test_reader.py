import gzip
import json
import os
import stat
import tracemalloc
from pathlib import Path

import pytest
from event_records import Rec, miss, record, run_start, write_log

from jaxwatch import _reader
from jaxwatch._reader import read_log
from jaxwatch.errors import LogUnreadableError

GOOD: list[Rec] = [run_start(), miss(1), miss(2, "shape")]


def test_records_come_in_order_file_after_file(tmp_path: Path) -> None:
    first, second = write_log(tmp_path / "a.jsonl", GOOD), write_log(tmp_path / "b.jsonl", GOOD[1:])

    reading = read_log([first, second])

    assert list(reading) == GOOD + GOOD[1:]
    assert (reading.events, reading.faults, reading.named) == (5, 0, [])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"garbage", "is no JSON"),
        (b"\xff\xfe\x00\x01", "is no JSON"),
        (b"\0" * 100, "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"1" * 10_000, "is no JSON"),
        (b"[1, 2]", "is no object"),
        (b'"text"', "is no object"),
        (b"{}", "is not of schema"),
        (b'{"schema": "jaxwatch.event/2", "event": "run"}', "is not of schema"),
        (b'{"schema": ["x"], "event": "run"}', "is not of schema"),
        (b'{"schema": "jaxwatch.event/1", "event": 3}', "names no event"),
    ],
)
def test_a_line_that_is_no_event_is_named_and_the_rest_is_read(tmp_path: Path, line: bytes, what: str) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD[:1])
    log.write_bytes(log.read_bytes() + line + b"\n" + json.dumps(GOOD[1]).encode() + b"\n")

    reading = read_log([log])

    assert list(reading) == GOOD[:2]
    assert reading.faults == 1
    assert reading.named[0].startswith(f"{log}:2 {what}")


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_last_line_that_was_cut_off_is_a_fault(tmp_path: Path, cut: int) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    log.write_bytes(log.read_bytes()[: -cut - 1])

    reading = read_log([log])

    assert list(reading) == GOOD[:2]
    assert "cut off" in reading.named[0]


def test_a_last_line_that_lacks_its_line_end_alone_is_whole(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    log.write_bytes(log.read_bytes().rstrip())

    assert list(read_log([log])) == GOOD


def test_empty_lines_and_a_byte_order_mark_are_no_fault(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes().replace(b"\n", b"\r\n\n"))

    reading = read_log([log])

    assert list(reading) == GOOD
    assert reading.faults == 0


def test_unknown_events_and_fields_are_handed_on(tmp_path: Path) -> None:
    new = [record("invented_later", x=1), {**GOOD[0], "also": "new"}]

    assert list(read_log([write_log(tmp_path / "run.jsonl", new)])) == new


def test_only_the_first_few_faults_are_named(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text("x\n" * 50)
    reading = read_log([log])

    assert list(reading) == []
    assert reading.faults == 50
    assert len(reading.named) == _reader.FAULTS_NAMED


def test_a_line_too_long_to_hold_is_passed_over_without_being_held(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    with log.open("wb") as file:
        for _ in range(16):
            file.write(b"x" * 4_000_000)
        file.write(b"\n" + json.dumps(GOOD[0]).encode() + b"\n")
    tracemalloc.start()
    try:
        reading = read_log([log])
        assert list(reading) == GOOD[:1]
        assert tracemalloc.get_traced_memory()[1] < 5 * _reader.LINE_BYTES
    finally:
        tracemalloc.stop()
    assert reading.faults == 1
    assert "is longer than" in reading.named[0]


def test_one_file_under_two_names_is_read_once(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    (tmp_path / "link.jsonl").symlink_to(log)

    assert list(read_log([log, log, tmp_path / "link.jsonl"])) == GOOD


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, (tmp_path / write_log(tmp_path / "run.jsonl", GOOD)).read_bytes())
    os.close(writer)

    assert list(read_log([f"/dev/fd/{reader}"])) == GOOD
    os.close(reader)


@pytest.mark.parametrize("name", ["missing.jsonl", "folder", "no\0name"])
def test_a_log_that_cannot_be_read_is_said_with_a_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(LogUnreadableError, match=r"cannot read the log .*: .*\. Give .*\[log-unreadable\]") as caught:
        list(read_log([str(tmp_path / name)]))

    assert isinstance(caught.value, OSError)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_log_without_permission_is_said(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    log.chmod(stat.S_IWUSR)

    with pytest.raises(LogUnreadableError, match="permission denied"):
        list(read_log([log]))


def test_the_reader_of_the_records_may_name_a_line_as_a_fault_too(tmp_path: Path) -> None:
    log = write_log(tmp_path / "run.jsonl", GOOD)
    reading = read_log([log])

    for _ in reading:
        reading.fault("is odd")

    assert reading.named == [f"{log}:{number} is odd" for number in (1, 2, 3)]


def test_a_file_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxwatch._reader.PIECES", 3)

    reading = read_log(["/dev/zero"])

    assert list(reading) == []
    assert reading.faults == 1


def test_of_a_folder_all_logs_are_read(tmp_path: Path) -> None:
    write_log(tmp_path / "b.jsonl", GOOD)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress((tmp_path / "b.jsonl").read_bytes()))
    (tmp_path / "notes.txt").write_text("no log")
    reading = read_log([tmp_path])

    assert list(reading) == GOOD * 2
    assert reading.faults == 0


def test_a_folder_without_logs_is_told(tmp_path: Path) -> None:
    with pytest.raises(LogUnreadableError, match="a folder that holds no"):
        list(read_log([tmp_path]))
