"""What a page shows beside the report: keys, what they were compared with, and when was compiled."""

import pytest
from event_records import Rec, change, eager, miss, other_length, record, run_end, run_start, training_run
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._details import Details
from jaxwatch._report import Report, ReportBuilder


def report_of(records: list[Rec]) -> Report:
    builder = ReportBuilder(details=True)
    for one in records:
        builder.add(one)
    return builder.build()


def details_of(records: list[Rec]) -> Details:
    found = report_of(records).details
    assert found is not None
    return found


def test_without_being_asked_for_nothing_is_gathered() -> None:
    assert ReportBuilder().build().details is None


def test_each_key_stands_below_the_one_it_was_compared_with() -> None:
    records = [miss(1), other_length(2, 5, 9), {**other_length(3, 8, 10), "compared_with": 2}]
    (function,) = details_of(records).functions

    assert [(key.number, key.parent, key.call) for key in function.keys] == [(1, None, 1), (2, 1, 5), (3, 2, 8)]
    assert [len(key.changes) for key in function.keys] == [0, 2, 2]
    assert function.keys[1].changes[0].after == "float32[9,64]"


def test_a_key_that_comes_again_is_one_with_all_its_misses() -> None:
    again = miss(2, "new_function", seconds=0.5, signature="s1", call=1)
    (function,) = details_of(
        [miss(1), again, miss(3, "new_function", signature="s1", persistent_cache="hit")]
    ).functions
    (key,) = function.keys

    assert (key.misses, key.from_disk) == (3, 1)
    assert key.reasons == (("new_function", 2), ("first_call", 1))
    assert key.phases == pytest.approx((0, 0, 2.5))


def test_processes_share_keys_and_a_miss_is_compared_within_its_own() -> None:
    def process(pid: int, lengths: list[int]) -> list[Rec]:
        others = (
            {**other_length(2 + i, 4, length), "pid": pid, "signature": f"of {length}"}
            for i, length in enumerate(lengths)
        )
        return [run_start(pid=pid), miss(1, signature="first", pid=pid), *others]

    (function,) = details_of([*process(1, [5, 6]), *process(2, [6, 7])]).functions
    found = {key.signature: (key.misses, key.parent) for key in function.keys}
    assert found == {"first": (2, None), "of 5": (1, 1), "of 6": (2, 1), "of 7": (1, 1)}


def test_what_is_compared_with_an_unknown_miss_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "REPORT_COMPARED", 1)
    records = [miss(1), other_length(2, 5, 9), other_length(3, 8, 10)]
    (function,) = details_of(records).functions

    assert [(key.parent, key.compared) for key in function.keys] == [(None, False), (1, True), (None, True)]


@pytest.mark.parametrize(
    ("bound", "most", "kept"),
    [("REPORT_KEYS_PER_FUNCTION", 3, 3), ("REPORT_KEYS", 2, 2), ("REPORT_CHARACTERS", 1, 1)],
)
def test_misses_with_further_keys_are_counted(
    bound: str, most: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, bound, most)
    records = [miss(1), *(other_length(i, i, i) for i in range(2, 12))]
    (function,) = details_of(records).functions

    assert len(function.keys) == kept
    assert sum(key.misses for key in function.keys) + function.left_out == 11
    assert sum(function.phases) == pytest.approx(1.0 + 10 * 1.3), "nothing is lost of the seconds"


def test_texts_and_changes_are_bounded() -> None:
    long = "x" * 1_999
    changes = [change("shape", f"{long}{i}", long, long) for i in range(50)]
    found = details_of([miss(1), miss(2, "shape", changes=changes, abstract=long)])
    key = found.functions[0].keys[1]

    assert len(key.changes) + key.changes_left_out == 50
    assert len(key.changes) == _limits.REPORT_CHANGES
    assert max(len(text or "") for one in key.changes for text in (one.path, one.before, one.after)) == 300
    assert len(key.abstract) <= 300


def test_compiles_have_their_place_on_the_axis_of_their_process() -> None:
    found = details_of(
        [
            run_start(at=100.0),
            miss(1, time=record("x", 104.0)["time"], seconds=3.0),
            {**eager(seconds=0.5), "time": record("x", 105.0)["time"]},
            run_start(at=500.0, pid=2),
            miss(1, time=record("x", 502.0)["time"], seconds=1.0, pid=2),
            run_end(20.0),
        ]
    )

    assert [(p.function, p.kind, round(p.start, 3), p.seconds) for p in found.points] == [
        ("step", "once", 1.0, 3.0),
        ("step", "once", 1.0, 1.0),
        ("cumsum", "eager", 4.5, 0.5),
    ]
    assert sum(found.timeline.once) == pytest.approx(4.0)
    assert sum(found.timeline.eager) == pytest.approx(0.5)
    assert found.seconds == 20.0


def test_a_log_that_begins_with_a_miss_begins_where_that_began() -> None:
    found = details_of([miss(1, time=record("x", 50.0)["time"], seconds=30.0)])

    assert [(point.start, point.seconds) for point in found.points] == [(0.0, 30.0)]


def test_the_beginnings_count_what_fell_into_them() -> None:
    found = details_of(
        [
            run_start(),
            miss(1, time=record("x", 12.0)["time"], seconds=4.0),  # from 8 to 12
            miss(2, "shape", time=record("x", 700.0)["time"], seconds=5.0),
        ]
    )

    assert dict(found.windows) == pytest.approx({10.0: 2.0, 60.0: 4.0, 600.0: 4.0, 3600.0: 9.0})


def test_beyond_the_bound_the_dearest_are_drawn_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "REPORT_POINTS", 3)
    found = details_of([miss(1), *(other_length(i, i, i, seconds=float(i)) for i in range(2, 10))])

    assert sorted(point.seconds for point in found.points) == [7.0, 8.0, 9.0]
    assert found.points_left_out == 6


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 8), st.floats(0, 5), st.booleans()), max_size=30))
def test_all_seconds_are_somewhere(drawn: list[tuple[int, int, float, bool]]) -> None:
    records = [
        miss(i, "shape" if compared else "first_call", seconds=seconds, function=f"f{function}", signature=f"s{key}")
        for i, (function, key, seconds, compared) in enumerate(drawn, start=1)
    ]
    report = report_of(records)
    found = report.details
    assert found is not None

    total = pytest.approx(sum(seconds for _, _, seconds, _ in drawn))
    assert sum(found.phases) == total
    assert report.compile_seconds == total
    assert sum(found.timeline.once) + sum(found.timeline.again) == total
    for function in found.functions:
        assert all(key.parent is None or key.parent < key.number for key in function.keys), "no circle"
        assert sum(key.misses for key in function.keys) == sum(f"f{f}" == function.function for f, *_ in drawn)


def test_of_a_whole_run_it_agrees_with_the_report() -> None:
    report = report_of(training_run())
    assert report.details is not None

    by_name = {(row.function, row.definition): row for row in report.functions}
    for one in report.details.functions:
        row = by_name[one.function, one.definition]
        assert sum(one.phases) == pytest.approx(row.seconds)
        assert sum(key.misses for key in one.keys) == row.misses
        assert len(one.keys) == row.signatures
    ((site, operations, compiles, seconds),) = report.details.eager
    assert (site, operations, compiles) == ("/home/u/proj/metrics.py:18", ("cumsum",), 9)
    assert seconds == pytest.approx(1.4)
