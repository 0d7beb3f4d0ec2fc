"""What the persistent cache did for each program, from records."""

from typing import Any

import pytest
from event_records import Rec, miss, report_of, run_end, run_start
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _records, _stored
from jaxwatch._report import merged
from jaxwatch._stored import Stored
from jaxwatch.renderers.terminal import render

SOON = "compiled in less than jax_persistent_cache_min_compile_time_secs=1"


def looked_up(number: int, *, key: str | None = "k", seconds: float = 2.0, function: str = "step", **disk: Any) -> Rec:
    """Return a miss with a look-up; one that saved is a hit."""
    entry = {"key": key, "read_seconds": None, "saved_seconds": None, "not_stored": None} | disk
    hit = entry["saved_seconds"] is not None
    result = "hit" if hit else "miss"
    return miss(number, seconds=seconds, signature="s1", function=function, disk=entry, persistent_cache=result)


def gathered(*records: tuple[int, Rec]) -> Stored:
    stored = Stored()
    for process, record in records:
        stored.add(_records.miss(record), process)
    return stored


def test_programs_are_counted_by_what_became_of_them_most_seconds_first() -> None:
    stored = gathered(
        (1, looked_up(1, saved_seconds=30.0)),
        (1, looked_up(2, saved_seconds=4.0)),
        (1, looked_up(3, not_stored=SOON, seconds=0.5)),
        (1, looked_up(4, not_stored=SOON, seconds=0.25)),
        (1, looked_up(5, seconds=8.0)),
        (1, miss(6)),  # the cache was off
    )

    assert stored.rows() == (("read", 2, 34.0), ("stored", 1, 8.0), (f"not stored: {SOON}", 2, 0.75))


@pytest.mark.parametrize(
    "disk", [None, {}, {"saved_seconds": "x"}, {"saved_seconds": True}, {"saved_seconds": 1e300}, []]
)
def test_a_log_of_an_earlier_version_or_an_odd_one_is_read_all_the_same(disk: Any) -> None:
    report = report_of([run_start(), miss(1, disk=disk), run_end()])

    assert report.faults == 0
    assert all(seconds in (0.0, 1.0) for _, _, seconds in report.disk)


def test_an_entry_has_moved_where_two_processes_have_two_keys_for_the_same_arguments() -> None:
    same = gathered((1, looked_up(1, key="a")), (2, looked_up(1, key="a")), (3, looked_up(1, key=None)))
    assert list(same.moved()) == []

    twice_in_one = gathered((1, looked_up(1, key="a")), (1, looked_up(2, key="b")))
    assert list(twice_in_one.moved()) == [], "a function made anew may be another program"

    moved = gathered((1, looked_up(1, key="a")), (2, looked_up(1, key="b")), (3, looked_up(1, key="b")))
    assert [number for _, _, number in moved.moved()] == [2]


def test_keys_beyond_the_bound_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_stored, "ENTRIES", 1)
    first, second = (looked_up(1, key="a", function=name) for name in ("f", "g"))
    again, other = (looked_up(1, key="b", function=name) for name in ("f", "g"))
    stored = gathered((1, first), (1, second), (2, again), (2, other))

    assert [function for function, _, _ in stored.moved()] == ["f"]
    assert stored.rows() == (("stored", 4, 8.0),)


def test_the_report_tells_it_in_its_last_lines_and_a_moved_key_as_a_note() -> None:
    records = [
        run_start(),
        looked_up(1, key="a"),
        run_end(),
        run_start(pid=2),
        {**looked_up(1, key="b", saved_seconds=3.0), "pid": 2},
        run_end(pid=2),
    ]
    text = render(report_of(records))

    assert "Cache on disk, watched functions: 1 program read, at least 3.0 s saved." in text
    assert "Cache on disk, watched functions: 1 program stored, 2.0 s compiling." in text
    assert "step at train.py:30 has 2 keys in the cache on disk for the same arguments" in text
    assert not report_of(records).healthy


def test_a_program_that_was_only_stored_or_read_leaves_a_run_healthy() -> None:
    report = report_of([run_start(), looked_up(1, not_stored=SOON), run_end()])

    assert report.healthy
    assert "Nothing to improve." in render(report).splitlines()[0]
    assert "not stored" in render(report)


rows = st.tuples(st.sampled_from(["read", "stored", "not stored: x"]), st.integers(1, 9), st.integers(0, 99).map(float))


@given(st.lists(st.lists(rows, max_size=4), max_size=4))
def test_rows_of_several_reports_add_up(parts: list[list[tuple[str, int, float]]]) -> None:
    import dataclasses

    reports = [dataclasses.replace(report_of([]), disk=_stored.in_order(iter(part))) for part in parts]
    found = merged(reports).disk

    assert sum(count for _, count, _ in found) == sum(count for part in parts for _, count, _ in part)
    assert sum(seconds for *_, seconds in found) == sum(seconds for part in parts for *_, seconds in part)
    assert [seconds for *_, seconds in found] == sorted((seconds for *_, seconds in found), reverse=True)
