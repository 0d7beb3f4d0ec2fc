"""The soak's random program, for two rounds: what must be equal is, and what is not is seen."""

import json
import sys

from programs import ROOT, run

sys.path.insert(0, str(ROOT))

from benchmarks import bounds, soak
from benchmarks.soaked.equalities import equal, in_order

SHORT = """
    import json, sys
    from benchmarks import bounds, soak
    found = soak.soak(int(sys.argv[1]), rounds=2)
    kept = {each.what: each.value for each in bounds.bounds({"soak": found}) if "KiB" not in each.what}
    print(json.dumps({"table": found.table(), "compared": found.compared, "broken": found.broken, "kept": kept}))
"""


def test_two_rounds_are_equal_to_two_without_jaxwatch_and_all_counts_agree() -> None:
    found = run(SHORT, "7").data()

    assert found["broken"] == []
    assert set(found["kept"].values()) == {0}, found["kept"]
    assert len(found["kept"]) == 5
    assert found["compared"] > 1000
    assert "calls of each function: own, stats, metrics, log" in found["table"]


def test_a_count_that_is_off_by_one_is_named_with_all_that_were_compared() -> None:
    found = equal("calls", own={"f": 3, "g": 1, "h": 0}, stats={"f": 3, "g": 2})

    assert json.loads(found.wrong.replace("'", '"')) == {"g": {"own": 1, "stats": 2}}
    assert (equal("calls", own={"f": 3, "h": 0}, stats={"f": 3}).wrong, equal("none", found=0, none=0).wrong) == (
        "",
        "",
    )
    assert equal("events", log=4, quick=5).wrong == "{'log': 4, 'quick': 5}"


def test_counts_out_of_order_are_named() -> None:
    told = in_order("traces", bodies={"f": 2, "g": 1}, told={"f": 2, "g": 3}, jax={"f": 4, "g": 3})
    assert told.wrong == ""
    assert in_order("traces", bodies={"f": 2}, told={"f": 1}).wrong == "{'f': {'bodies': 2, 'told': 1}}"


def test_growth_is_the_rise_of_a_line_over_what_was_weighed() -> None:
    assert soak.growth([0, 10, 20, 30], [5, 6, 7, 8]) == 3
    assert soak.growth([0, 10, 20, 30], [5, 5, 5, 5]) == 0
    assert soak.growth([4], [5]) == soak.growth([], []) == 0


def test_what_a_run_leaves_or_changes_breaks_a_bound() -> None:
    end = {
        "equalities": [{"what": "calls", "compared": 3, "wrong": "{'own': 1}"}],
        "left": {
            "descriptors": ["log", "more"],
            "descriptors_more": 2,
            "threads": ["jaxwatch-stats", "lost"],
        },
        "warnings": ["UserWarning: odd"],
    }
    plain = {"left": {"descriptors": [], "descriptors_more": 0, "threads": []}, "warnings": []}
    weighed = tuple(soak.Weighed(n, 100 * n, 1000 + 20_000 * n, 1000) for n in range(1, 7))
    found = soak.Soaked(1, 1.0, 6, 5, 2, weighed, end, plain)
    kept = bounds.bounds({"soak": found})

    assert [each.value for each in kept[:5]] == [1, 1, 2, 3, 1]
    assert not any(each.kept for each in kept)
