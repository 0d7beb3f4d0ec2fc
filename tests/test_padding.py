"""``_padding``: advice on lengths that several processes saw."""

import pytest
from event_records import change, miss, run_start

from jaxwatch._padding import over_all
from jaxwatch._report import ReportBuilder

CODE = "pad_or_bucket"


@pytest.mark.parametrize("order", [(5, 8), (8, 5)])
def test_advice_holds_for_the_lengths_of_all_processes_in_any_order_of_logs(order: tuple[int, int]) -> None:
    builder = ReportBuilder()
    for pid, length in enumerate(order, 1):
        before, after = "float32[4]", f"float32[{length}]"
        text = f"Pad x to {length} rows and mask, or drop the remainder."
        other = miss(2, "shape", call=2, changes=[change("shape", "x", before, after)], advice_text=text, pid=pid)
        for record in (run_start(pid=pid), miss(1, pid=pid), other):
            builder.add(record)

    (finding,) = builder.build(program="train.py").findings

    assert finding.advice is not None
    assert finding.advice[0] == CODE
    assert "3" in finding.advice[1].rpartition("in place of ")[2]
    assert "5 rows" not in finding.advice[1]


def test_two_lengths_in_all_are_padded_to_the_longer_of_them() -> None:
    told = CODE, "Pad x to 5 rows and mask, or drop the remainder."

    found = over_all("f", told, {"x": [("f32[5]", "f32[3]"), ("f32[3]", "f32[5]")]})

    assert found == told


def test_shapes_that_vary_in_more_than_one_way_are_padded_to_the_largest() -> None:
    told = CODE, "Pad x to 5 rows and mask, or drop the remainder."

    assert "one shape" in over_all("f", told, {"x": [("f32[5,2]", "f32[3,2]"), ("f32[5,2]", "f32[5,4]")]})[1]
    assert "number of dimensions" in over_all("f", told, {"x": [("f32[5]", "an object"), ("f32[5]", "f32[4]")]})[1]


@pytest.mark.parametrize("told", [(CODE, "Pad batch to 5 rows and mask."), ("jit_once", "Jit f once.")])
def test_advice_that_names_other_arguments_or_is_of_another_kind_stays(told: tuple[str, str]) -> None:
    assert over_all("f", told, {"x": [("f32[5]", "f32[3]"), ("f32[5]", "f32[4]")]}) == told


def test_nothing_that_differed_leaves_the_advice() -> None:
    assert over_all("f", (CODE, "Pad x."), {}) == (CODE, "Pad x.")
