import dataclasses
import json
import pickle

from event_records import Rec, eager, miss, report_of, run_end, stats, training_run
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._report_data import Report, merged

# Three eager compiles or none: what is no finding in the one report is not added to the other's.
EAGER = st.sampled_from([[], [eager(seconds=0.25)] * 3])
ranks = st.lists(
    st.sampled_from(
        [
            miss(1),
            miss(2, "shape", seconds=0.5),
            miss(3, "dtype", call=9),
            stats(calls=5, misses=2, dispatch={"0.001": 3}),
            stats(calls=9_000, dispatch={"0.001": 8_999}, touched=7, inlined={"f": 3}, inlined_read=3, inlined_keys=2),
            run_end(8.0, exit_code=1),
        ]
    ),
    min_size=1,
).flatmap(lambda records: EAGER.map(lambda ops: records + ops))


def as_pid(records: list[Rec], pid: int) -> list[Rec]:
    return [{**one, "pid": pid} for one in records]


@given(first=ranks, second=ranks)
def test_merging_reports_of_two_processes_is_as_reporting_on_both(first: list[Rec], second: list[Rec]) -> None:
    whole = report_of(as_pid(first, 1) + as_pid(second, 2))
    parts = merged([report_of(as_pid(first, 1)), report_of(as_pid(second, 2))])

    assert parts == whole


def test_merging_nothing_or_one_changes_nothing() -> None:
    report = report_of(training_run())

    assert merged([report]) == report
    assert merged([]) == merged([merged([]), merged([])])
    assert merged([report, merged([])]) == report


def test_a_report_is_plain_versioned_data() -> None:
    report = report_of(training_run())

    assert Report.schema == "jaxwatch.report/1"
    assert pickle.loads(pickle.dumps(report)) == report  # noqa: S301 -- just made
    assert json.loads(json.dumps(dataclasses.asdict(report)))["wall_seconds"] == 41.2
    hash(report)
