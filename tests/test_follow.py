"""Logs that are followed while they are written, moved, cut and removed."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from event_records import Rec, miss, run_start

from jaxwatch import _follow
from jaxwatch._follow import LogFollower


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def line(record: Rec) -> bytes:
    return json.dumps(record).encode() + b"\n"


def append(path: Path, *numbers: int, text: bytes | None = None) -> None:
    with path.open("ab") as file:
        file.write(text if text is not None else b"".join(line(miss(number)) for number in numbers))


def ids(follower: LogFollower) -> list[Any]:
    return [record["id"] for record in follower.poll()]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def test_what_came_since_the_last_poll_is_told_once(log: Path) -> None:
    append(log, 1, 2)
    follower = LogFollower([str(log)])

    assert ids(follower) == [1, 2]
    assert ids(follower) == []
    append(log, 3)
    assert ids(follower) == [3]
    follower.close()


def test_a_log_may_come_later(log: Path) -> None:
    follower = LogFollower([str(log)])
    assert ids(follower) == []
    append(log, 1)
    assert ids(follower) == [1]


def test_a_line_counts_when_its_end_is_there(log: Path) -> None:
    whole = line(miss(1))
    follower = LogFollower([str(log)])
    for cut in range(0, len(whole), 50):
        append(log, text=whole[cut : cut + 50])
        assert ids(follower) == ([1] if cut + 50 >= len(whole) else [])
    assert follower.faults == 0


def test_a_folder_is_looked_through_for_new_logs(tmp_path: Path) -> None:
    follower = LogFollower([str(tmp_path)])
    append(tmp_path / "a.jsonl", 1)
    assert ids(follower) == [1]
    append(tmp_path / "b.jsonl", 2)
    append(tmp_path / "a.jsonl", 3)
    append(tmp_path / "c.txt", 4)
    assert sorted(ids(follower)) == [2, 3]


def test_a_pattern_finds_logs_and_a_log_named_twice_is_read_once(tmp_path: Path, log: Path) -> None:
    append(log, 1)
    (tmp_path / "same.jsonl").symlink_to(log)
    follower = LogFollower([str(tmp_path / "*.jsonl"), str(log), str(tmp_path)])

    assert ids(follower) == [1]
    append(log, 2)
    assert ids(follower) == [2]


def test_a_log_that_is_moved_is_read_to_its_end_and_the_new_one_from_its_start(log: Path) -> None:
    clock = Clock()
    follower = LogFollower([str(log)], clock)
    append(log, 1)
    assert ids(follower) == [1]

    append(log, 2)
    moved = log.with_suffix(".jsonl.1")
    log.rename(moved)
    assert ids(follower) == [2]
    append(moved, 3)  # by a writer that has not noticed
    append(log, 4)
    assert sorted(ids(follower)) == [3, 4]
    append(moved, 5)  # the last line of one that was in the midst of it
    assert ids(follower) == [5]
    clock.now += _follow.MOVED_SECONDS
    append(log, 6)
    assert ids(follower) == [6]
    append(moved, 7)
    assert ids(follower) == []


def test_no_descriptor_stays_open(log: Path) -> None:
    clock = Clock()
    before = len(os.listdir("/proc/self/fd"))
    follower = LogFollower([str(log)], clock)
    for number in range(50):
        append(log, number)
        assert ids(follower) == [number]
        log.rename(log.with_suffix(f".{number}"))
        clock.now += 2 * _follow.MOVED_SECONDS
    follower.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_log_that_became_shorter_is_read_from_its_start(log: Path) -> None:
    follower = LogFollower([str(log)])
    append(log, 1, 2, 3)
    assert ids(follower) == [1, 2, 3]
    os.truncate(log, 0)
    append(log, 4)
    assert ids(follower) == [4]


def test_lines_that_are_none_of_ours_are_counted_and_named(log: Path) -> None:
    append(log, text=b"garbage\n\n{}\n" + line(run_start()))
    append(log, 1)
    follower = LogFollower([str(log)])

    assert [record["event"] for record in follower.poll()] == ["run", "cache_miss"]
    assert follower.faults == 2
    assert follower.named == [f"{log}:1 is no JSON", f"{log}:3 is not of schema jaxwatch.event/1"]


def test_an_endless_line_is_passed_over_in_bounded_memory(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_follow, "LINE_BYTES", 1_000)
    monkeypatch.setattr(_follow, "_CHUNK", 700)
    append(log, text=b"x" * 10_000)
    follower = LogFollower([str(log)])
    assert ids(follower) == []
    append(log, text=b"x" * 10_000 + b"\n" + line(miss(1)))

    assert ids(follower) == [1]
    assert follower.faults == 1


def test_more_logs_than_the_bound_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_follow, "FILES", 2)
    for name in "abc":
        append(tmp_path / f"{name}.jsonl", 1)
    follower = LogFollower([str(tmp_path)])

    assert ids(follower) == [1, 1]
    assert len(follower.left_out) == 1


def test_lines_of_many_writers_come_each_once(log: Path) -> None:
    follower, seen = LogFollower([str(log)]), []

    def write(first: int) -> None:
        for number in range(first, first + 200):
            descriptor = os.open(log, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
            os.write(descriptor, line(miss(number)))
            os.close(descriptor)

    threads = [threading.Thread(target=write, args=(1_000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seen += ids(follower)
    seen += ids(follower)

    assert sorted(seen) == sorted(1_000 * number + step for number in range(4) for step in range(200))
