from typing import Any

from event_records import change, miss, other_length
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _findings, _records
from jaxwatch._findings import Finding, Findings, in_order, merged


def found(records: list[dict[str, Any]], process: int = 0) -> tuple[Finding, ...]:
    gathered = Findings()
    for one in records:
        gathered.add(_records.miss(one), process, one["compared_with"])
    return gathered.build()


def test_misses_of_one_cause_are_one_finding_with_all_paths_that_changed_together() -> None:
    (finding,) = found([other_length(i, call, n) for i, (call, n) in enumerate([(57, 5), (203, 9), (911, 5)], start=2)])

    assert (finding.count, finding.calls, finding.compared_with) == (3, (57, 203, 911), (1,))
    assert [values.path for values in finding.values] == ["batch['x']", "batch['y']"]
    assert finding.values[0].pairs == (("float32[32,64]", "float32[5,64]"), ("float32[32,64]", "float32[9,64]"))
    assert finding.sites == (("/home/u/proj/train.py:71", 3),)


def test_another_path_reason_function_or_definition_is_another_finding() -> None:
    shape, other_path = change("shape", "x", "f[1]", "f[2]"), change("shape", "y", "f[1]", "f[2]")
    records = [
        miss(2, "shape", changes=[shape]),
        miss(3, "shape", changes=[other_path]),
        miss(4, "dtype", changes=[change("dtype", "x", "f[1]", "i[1]")]),
        miss(5, "shape", changes=[shape], function="other"),
        miss(6, "shape", changes=[shape], definition="b.py:1"),
        miss(7, "shape", changes=[shape, other_path]),
    ]

    assert len(found(records)) == len(records)


def test_the_order_in_which_changes_are_told_does_not_matter() -> None:
    first, second = change("shape", "x", "f[1]", "f[2]"), change("dtype", "y", "f[1]", "i[1]")

    assert len(found([miss(2, "shape", changes=[first, second]), miss(3, "shape", changes=[second, first])])) == 1


def test_dispatch_is_told_apart_and_stands_last() -> None:
    cheap, off = found([miss(2, "fast_path", layer="dispatch", seconds=5.0), miss(3, "shape", seconds=0.1)])

    assert (cheap.cause.kind, off.cause.kind) == ("recompile", "dispatch")


def test_the_last_advice_counts() -> None:
    (finding,) = found([miss(2, "shape", advice_text="old"), miss(3, "shape", advice_text="new"), miss(4, "shape")])

    assert finding.advice == ("pad_or_bucket", "new")


def test_a_million_values_are_counted_and_not_kept() -> None:
    gathered = Findings()
    for number in range(20_000):
        changes = [change("static", "n", "0", str(number))]
        gathered.add(_records.miss(miss(number + 2, "static", changes=changes, site=f"a.py:{number}")), number, number)

    (finding,) = gathered.build()

    assert finding.count == 20_000
    assert len(finding.calls) + finding.calls_left_out == 20_000
    assert len(finding.calls) == _findings.CALLS_KEPT
    assert len(finding.values[0].pairs) + finding.values[0].left_out == 20_000
    assert sum(count for _, count in finding.sites) + finding.sites_left_out == 20_000
    assert finding.processes == _findings.PROCESSES_KEPT


def test_causes_beyond_the_bound_share_one_finding_and_are_counted() -> None:
    gathered = Findings()
    for number in range(_findings.FINDINGS + 50):
        gathered.add(_records.miss(miss(2, "shape", function=f"f{number}")), 0, 1)

    every = gathered.build()

    assert gathered.folded == 50
    assert len(every) == _findings.FINDINGS + 1
    assert next(one for one in every if one.cause.function == "other").count == 50
    assert sum(one.seconds for one in every) == _findings.FINDINGS + 50


misses = st.builds(
    lambda call, path, after, function, seconds: miss(
        call + 1, "shape", call=call, function=function, seconds=seconds, changes=[change("shape", path, "f[1]", after)]
    ),
    st.integers(1, 9),
    st.sampled_from("xy"),
    st.sampled_from(["f[2]", "f[3]"]),
    st.sampled_from(["step", "evaluate"]),
    st.sampled_from([0.0, 0.5, 2.0]),
)


@given(first=st.lists(misses), second=st.lists(misses))
def test_merging_two_processes_is_as_gathering_both(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    gathered = Findings()
    for process, records in enumerate((first, second)):
        for one in records:
            gathered.add(_records.miss(one), process, one["compared_with"])
    apart = {finding.cause: finding for finding in found(first)}
    for finding in found(second):
        earlier = apart.get(finding.cause)
        apart[finding.cause] = finding if earlier is None else merged(earlier, finding)

    assert in_order(apart.values()) == gathered.build()


def test_statics_that_are_to_be_mended_in_different_ways_are_different_findings() -> None:
    value: dict[str, Any] = {"reasons": ["static"], "changes": [change("static", "cfg", "1", "2")]}
    number = [{"code": "unmark_static", "text": "Pass cfg as an array."}]
    anew = [{"code": "make_hashable", "text": "Pass the same object."}]
    findings = found([miss(2 + n, **value, advice=advice) for n, advice in enumerate([number, number, anew])])

    assert sorted((one.count, one.advice[0]) for one in findings if one.advice) == [
        (1, "make_hashable"),
        (2, "unmark_static"),
    ]
