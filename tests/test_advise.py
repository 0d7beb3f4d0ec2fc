"""The parts of ``jaxwatch advise`` that are pure: plan, verdict, curves, samples, words."""

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._advise import curves, figures, judge, plot, reasons, samples, spawn
from jaxwatch._advise.comparison import Comparison, ScopeFigures
from jaxwatch._advise.outcome import Function, Order, Outcome, Steady, Workload
from jaxwatch._advise.plan import Place, effective, label, plan
from jaxwatch._advise.table import lines
from jaxwatch._scope import Record
from jaxwatch.errors import BadOptionError
from jaxwatch.renderers.phrases import precise


def function(name: str, *nested: str, outermost: int = 0, seconds: float = 1.0, library: bool = False) -> Function:
    return Function(
        name=name,
        definition=f"{name}.py:1",
        in_library=library,
        calls=max(outermost, 1),
        outermost=outermost,
        compile_seconds=seconds,
        seconds=seconds,
        nested=tuple((inner, f"{inner}.py:1") for inner in nested),
    )


def names(scopes: Any) -> list[list[str]]:
    return [sorted(name for name, _ in scope) for scope in scopes]


# ------------------------------------------------------------------ plan


def test_a_function_alone_is_run_with_and_without() -> None:
    assert names(plan([function("f", outermost=3)]).scopes) == [["f"], []]


def test_of_two_one_within_the_other_all_four_scopes_are_run() -> None:
    found = plan([function("g", "f", outermost=3), function("f")])

    assert sorted(names(found.scopes)) == [[], ["f"], ["f", "g"], ["g"]]
    assert names(found.scopes)[0] == ["f", "g"], "as it is written comes first"


def test_of_three_in_a_row_only_those_are_run_whose_jits_are_not_seen_through() -> None:
    found = plan([function("h", "g", outermost=3), function("g", "f"), function("f")])

    assert sorted(names(found.scopes)) == [[], ["f"], ["f", "g", "h"], ["g"], ["h"]]


def test_functions_that_have_nothing_to_do_with_each_other_are_not_combined() -> None:
    found = plan([function(name, outermost=1) for name in "abcd"])

    assert len(found.scopes) == 1 + 4 + 1
    assert len(found.groups) == 4


def test_functions_of_libraries_stay_jitted_and_are_looked_through() -> None:
    found = plan([function("g", "lib", outermost=3), function("lib", "f", library=True), function("f")])

    assert [name for name, _ in found.functions] == ["g", "f"] or [name for name, _ in found.functions] == ["f", "g"]
    assert len(found.groups) == 1
    assert "lib" in found.variables(frozenset())


def test_what_the_program_calls_itself_is_its_own_wherever_its_code_lies() -> None:
    found = plan([function("wrapped", "inner", outermost=1, library=True), function("inner", library=True)])

    assert names(found.scopes) == [["wrapped"], []]
    assert found.variables(frozenset()) == ["inner"]


def test_what_takes_no_time_is_left_as_it_is() -> None:
    found = plan([function("g", outermost=1, seconds=10.0), function("tiny", outermost=1, seconds=0.001)])

    assert names(found.scopes) == [["g"], []]
    assert found.variables(frozenset()) == ["tiny"]


def test_what_was_chosen_is_compared_however_cheap_and_all_else_stays() -> None:
    found = plan([function("g", "f", outermost=1, seconds=10.0), function("f", seconds=0.001)], ["f"])

    assert names(found.scopes) == [["f"], []]
    assert found.variables(frozenset()) == ["g"]


def test_a_name_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(BadOptionError, match=r"names 'h'.*Give some of: f, g"):
        plan([function("g", "f", outermost=1), function("f")], ["h"])


def test_functions_of_one_name_are_told_apart_by_where_they_are() -> None:
    places = [("f", "/x/a.py:1"), ("f", "/x/b.py:1"), ("f", "/y/b.py:1"), ("g", "/x/a.py:9")]

    assert [label(place, places) for place in places] == ["f@a.py:1", "f@/x/b.py:1", "f@/y/b.py:1", "g"]


graphs = st.integers(1, 9).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.sets(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=20),
        st.sets(st.integers(0, count - 1), min_size=1),
    )
)


def made(graph: tuple[int, set[tuple[int, int]], set[int]]) -> list[Function]:
    count, edges, entries = graph
    return [
        function(f"f{n}", *(f"f{b}" for a, b in sorted(edges) if a == n), outermost=int(n in entries))
        for n in range(count)
    ]


@given(graphs)
def test_a_plan_never_has_all_combinations_and_always_the_program_itself_and_none(graph: Any) -> None:
    found = plan(made(graph))

    assert found.scopes[0] == frozenset(found.functions)
    assert frozenset() in found.scopes or found.left_out
    assert len(found.scopes) <= 12
    assert len(set(found.scopes)) == len(found.scopes)
    assert sorted(place for group in found.groups for place in group) == sorted(found.functions)


@given(graphs, st.data())
def test_what_is_effective_is_a_part_that_is_itself_effective(graph: Any, data: st.DataObject) -> None:
    functions = made(graph)
    nested = {(f.name, f.definition): frozenset(f.nested) for f in functions}
    entries = [(f.name, f.definition) for f in functions if f.outermost]
    jitted: frozenset[Place] = data.draw(st.frozensets(st.sampled_from(sorted(nested))))

    once = effective(jitted, entries, nested)

    assert once <= jitted
    assert effective(once, entries, nested) == once
    assert all(place in once for place in entries if place in jitted)


# ------------------------------------------------------------------ verdict

SIMPLE = {0: 2, 1: 0, 2: 1, 3: 1}


def test_a_clear_difference_is_recommended_and_settled() -> None:
    found = judge.judge({0: [2.0, 2.02, 1.98], 1: [1.0, 1.01, 0.99]}, SIMPLE)

    assert found.recommended == 1
    assert found.settled
    assert found.against[0].low > 1.9
    assert found.against[0].high < 2.1


def test_no_difference_is_an_answer() -> None:
    found = judge.judge({0: [1.0, 1.01, 0.99], 1: [1.005, 0.995, 1.0]}, SIMPLE)

    assert found.recommended is None


def test_what_cannot_be_told_apart_for_noise_is_no_difference_and_not_settled() -> None:
    found = judge.judge({0: [1.0, 1.5, 0.7], 1: [1.1, 0.8, 1.25]}, SIMPLE)

    assert found.recommended is None
    assert not found.settled


def test_a_large_difference_that_is_not_certain_is_taken_and_not_settled() -> None:
    found = judge.judge({0: [1.0, 1.5, 0.7], 1: [1.4, 1.0, 1.9]}, SIMPLE)

    assert found.recommended == 0
    assert not found.settled
    assert (
        "which these runs do not settle"
        in compared(scope_figures(("f", "g"), [1.4, 1.0, 1.9]), scope_figures((), [1.0, 1.5, 0.7])).reason
    )


def test_of_those_that_cannot_be_told_apart_the_simplest_is_taken() -> None:
    found = judge.judge({0: [1.0, 1.01, 0.99], 1: [3.0], 2: [1.005, 1.0, 1.01], 3: [1.9, 1.91, 1.92]}, SIMPLE)

    assert found.recommended == 2


def test_of_those_that_ran_once_none_is_taken_for_the_simpler_one() -> None:
    assert judge.judge({0: [1.0], 1: [3.0], 2: [1.01]}, SIMPLE).recommended == 0


def test_one_run_is_enough_to_be_out_but_not_to_be_behind() -> None:
    assert judge.judge({0: [1.0], 1: [2.5]}, SIMPLE).recommended == 0
    assert not judge.judge({0: [1.0], 1: [1.4]}, SIMPLE).settled


def test_runs_that_something_disturbed_do_not_decide() -> None:
    quiet, disturbed = [1.0, 1.01, 1.0, 1.02], [1.1, 1.11, 9.0, 1.12]

    assert judge.judge({0: quiet, 1: disturbed}, SIMPLE).against[1].ratio == pytest.approx(1.1, rel=0.02)


@given(st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=9), min_size=1, max_size=4))
def test_a_verdict_contradicts_itself_in_nothing(groups: list[list[float]]) -> None:
    found = judge.judge(dict(enumerate(groups)), SIMPLE)

    assert found.against[found.best].ratio == 1
    for each in found.against.values():
        assert each.low <= each.ratio <= each.high
        assert each.ratio >= 1
    if found.recommended is not None:
        assert found.against[found.recommended].ratio <= 1.02


def test_the_confidence_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    generator, held = random.Random(0), 0  # noqa: S311 -- figures
    for _ in range(400):
        runs = {
            n: [scale * math.exp(abs(generator.gauss(0, 0.03))) for _ in range(7)] for n, scale in ((0, 1.0), (1, 1.2))
        }
        each = judge.judge(runs, SIMPLE).against[1]
        held += each.low <= 1.2 <= each.high

    assert held >= 0.85 * 400


# ------------------------------------------------------------------ curves


def straight(first: float, each: float, calls: int) -> list[tuple[int, float]]:
    return [(n, first + each * (n - 1)) for n in range(1, calls + 1)]


def test_break_even_is_where_the_dear_start_has_paid() -> None:
    assert curves.break_even(straight(1.0, 0.1, 50), 0.1, straight(0.3, 0.3, 50), 0.3) == 5


def test_break_even_beyond_what_was_measured_goes_on_at_the_last_rate() -> None:
    assert curves.break_even(straight(10.0, 0.1, 5), 0.1, straight(0.2, 0.2, 5), 0.2) == 100


def test_what_is_never_ahead_has_no_break_even() -> None:
    assert curves.break_even(straight(1.0, 0.3, 9), 0.3, straight(0.3, 0.3, 9), 0.3) is None
    assert curves.break_even(straight(1.0, 0.3, 1), None, straight(0.3, 0.3, 1), None) is None
    assert curves.break_even([], None, straight(0.3, 0.3, 1), None) is None


def test_what_is_always_ahead_is_so_from_the_first_call_on() -> None:
    assert curves.break_even(straight(0.1, 0.1, 9), 0.1, straight(0.3, 0.3, 9), 0.3) == 1


@given(st.floats(0.01, 10), st.floats(0.001, 1), st.floats(0.01, 10), st.floats(0.001, 1), st.integers(1, 60))
def test_from_break_even_on_it_is_ahead_and_just_before_it_is_not(
    first: float, each: float, other_first: float, other_each: float, calls: int
) -> None:
    one, two = straight(first, each, calls), straight(other_first, other_each, calls)

    call = curves.break_even(one, each, two, other_each)

    def gain(n: int) -> float:
        return (other_first + other_each * (n - 1)) - (first + each * (n - 1))

    if call is None:
        assert gain(10**7) < 1e-6 * 10**7
    else:
        assert gain(call) >= -1e-6 * call
        assert call == 1 or gain(call - 1) <= 1e-6 * call


def records(begins: list[int], took: int = 5) -> list[Record]:
    return [Record(begin, begin + took, begin + took, 0) for begin in begins]


def test_a_curve_begins_at_the_first_call_and_ends_at_the_end() -> None:
    found = figures.curve(records([0, 10**9, 3 * 10**9]), 7 * 10**9)

    assert found == ((1, 1.0), (2, 3.0), (3, 7.0))


@given(st.integers(1, 100_000))
def test_a_curve_is_bounded_and_holds_both_ends(calls: int) -> None:
    found = figures.curve(records([n * 1000 for n in range(calls)]), calls * 1000)

    assert len(found) <= 201
    assert found[-1][0] == calls
    assert found[-1][1] == pytest.approx(calls * 1e-6)
    assert found[0][0] == 1


def test_calls_that_compiled_are_not_steady() -> None:
    found = figures.quiet(records([0, 100, 200]), [102])

    assert [record.begun for record in found] == [0, 200]
    assert figures.steady([]) is None
    assert figures.steady(found) == Steady(calls=2, median=5e-9, low=5e-9, high=5e-9, dispatch_share=1.0)


def test_later_calls_are_those_of_the_second_half() -> None:
    begins = records([0, 10**9, 2 * 10**9, 4 * 10**9])

    assert figures.later_seconds(begins, [], 8 * 10**9) == 3.0
    assert figures.later_seconds(records([0]), [], 10) is None


def test_what_compiles_once_among_later_calls_does_not_go_on_and_what_does_so_twice_may() -> None:
    begins = records([0, 10**9, 2 * 10**9, 4 * 10**9])

    assert figures.later_seconds(begins, [7 * 10**9], 8 * 10**9) == 2.0
    assert figures.later_seconds(begins, [3 * 10**9, 7 * 10**9], 8 * 10**9) == 3.0
    assert figures.later_seconds(records([0, 10**9]), [15 * 10**8], 2 * 10**9) == 1.0


# ------------------------------------------------------------------ samples


def sampled(value: Any) -> dict[str, Any]:
    return {"1": samples.sample([("", value)])}


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        (np.ones(3, np.float32), np.ones(3, np.float32) * 1.0001, True),
        (np.ones(3, np.float32), np.ones(3, np.float32) * 1.1, False),
        (np.ones(3, np.float64), np.ones(3, np.float64) * 1.0001, False),
        (np.ones(3, np.int32), np.array([1, 1, 2], np.int32), False),
        (np.ones(3), np.ones(4), False),
        (np.float32(2), 2.0, True),
        (np.array([1.0, np.nan], np.float32), np.array([1.0, np.nan], np.float32), True),
        (np.array([1.0, np.inf], np.float32), np.array([1.0, 1.0], np.float32), False),
        (np.ones(3) * 1j, np.ones(3) * 2j, False),
        (np.zeros(3), np.zeros(3), True),
        (np.zeros(3, np.float32), np.full(3, 1e-9, np.float32), False),
        (object(), object(), True),
        (np.linspace(0, 1, 100_000), np.linspace(0, 1, 100_000), True),
        ("text", "text", True),
    ],
)
def test_results_are_the_same_up_to_rounding(before: Any, after: Any, is_same: bool) -> None:
    assert (samples.difference(sampled(before), sampled(after)) is None) == is_same


def test_a_difference_of_later_calls_may_be_the_programs_own_feedback() -> None:
    one, two = samples.sample([("", 1.0)]), samples.sample([("", 2.0)])

    found = samples.difference({"1": one, "64": one}, {"1": one, "64": two})

    assert found is not None
    assert (found.call, found.early) == (64, False)
    early = samples.difference({"2": one}, {"2": two})
    assert early is not None
    assert early.early


def test_few_calls_are_sampled_of_however_many() -> None:
    assert sum(map(samples.is_sampled, range(1, 100_000))) == 14
    assert samples.is_sampled(1)


# ------------------------------------------------------------------ through JSON


def test_orders_and_outcomes_come_through_json() -> None:
    order = Order(
        workload=Workload(argv=("a.py", "-x")),
        look=True,
        calls=3,
        limit_seconds=2.5,
        answer="/tmp/x",  # noqa: S108 -- a text
    )
    outcome = Outcome(
        ended="end",
        calls=3,
        steady=Steady(calls=1, median=1.0, low=1.0, high=1.0, dispatch_share=0.5),
        curve=((1, 0.5),),
        functions=(function("g", "f"),),
        samples=sampled(np.ones(3)),
    )

    assert Order.from_json(order.to_json()) == order
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_a_run_is_cold_numbered_and_quiet_whatever_the_environment() -> None:
    outside = {"JAX_COMPILATION_CACHE_DIR": "/c", "JAXWATCH_LOG": "l", "JAXWATCH": "0", "HOME": "/h"}

    found = spawn.environment(3, [], outside)

    assert found == {
        "HOME": "/h",
        "JAXWATCH_ADVISE": "3",
        "JAXWATCH_JIT_SCOPE": "none",
        "JAX_ENABLE_COMPILATION_CACHE": "false",
    }
    assert spawn.environment(1, ["f", "g"], {})["JAXWATCH_JIT_SCOPE"] == "f,g"
    assert "JAXWATCH_JIT_SCOPE" not in spawn.environment(1, None, {"JAXWATCH_JIT_SCOPE": "f"})


# ------------------------------------------------------------------ words


def scope_figures(jit: tuple[str, ...], totals: list[float], **more: Any) -> ScopeFigures:
    fields: dict[str, Any] = {
        "jit": jit,
        "bypassed": (),
        "as_written": jit == ("f", "g"),
        "runs": len(totals),
        "totals": tuple(totals),
        "total_seconds": judge.center(totals) if totals else 0.0,
        "first_call_seconds": 0.1,
        "compile_seconds": 0.05,
        "misses": 1,
        "eager_compiles": 0,
        "steady": Steady(calls=9, median=1e-5, low=9e-6, high=2e-5, dispatch_share=0.5),
        "later_seconds": 0.01,
        "peak_bytes": 10**8,
        "on_device": False,
        "calls": 10,
        "curve": ((1, 0.1), (10, totals[0] if totals else 1.0)),
    }
    return ScopeFigures(**{**fields, **more})


def compared(*scopes: ScopeFigures) -> Comparison:
    able = {n: list(s.totals) for n, s in enumerate(scopes) if s.eligible and s.totals}
    verdict = judge.judge(able, {n: len(scopes[n].jit) for n in able}) if len(able) > 1 else None
    ratios = {} if verdict is None else verdict.against
    return Comparison(
        workload="train.py",
        calls=10,
        functions=("f", "g"),
        kept=(),
        scopes=scopes,
        recommended=reasons.recommended(scopes, verdict),
        reason=reasons.reason(scopes, verdict),
        ratios=tuple(
            (ratios[n].ratio, ratios[n].low, ratios[n].high) if n in ratios else None for n in range(len(scopes))
        ),
        runs=9,
        seconds=30.0,
    )


def told(found: Comparison) -> str:
    return "\n".join(lines(found))


def test_the_reason_says_how_far_the_program_as_written_is_behind() -> None:
    found = compared(
        scope_figures(("f", "g"), [2.0, 2.01, 1.99]), scope_figures((), [9.0]), scope_figures(("g",), [1.0, 1.01, 0.99])
    )

    assert found.recommended == 2
    assert found.reason.startswith("jit g took 1.00 s for 10 calls; as it is written it is 2.00 times that (1.")


def test_an_inner_jit_that_changes_nothing_is_said_to() -> None:
    found = compared(
        scope_figures(("f", "g"), [1.0, 1.01, 0.99]), scope_figures((), [9.0]), scope_figures(("g",), [1.0, 1.01, 0.99])
    )

    assert found.recommended == 2
    assert "jit f, g cannot be told from it" in found.reason
    assert "what it jits besides changes nothing here" in found.reason


def test_no_difference_is_said_with_its_uncertainty() -> None:
    found = compared(scope_figures(("f", "g"), [1.0, 1.01, 0.99]), scope_figures((), [1.0, 1.005, 0.99]))

    assert found.recommended is None
    assert found.reason.startswith("No difference that can be measured between 2 scopes over 10 calls")


def test_what_fails_is_slow_or_gives_other_results_is_never_recommended() -> None:
    apart = samples.Difference(1, "", "by 0.5 of its largest value", early=True)
    found = compared(
        scope_figures(("f", "g"), [2.0, 2.01, 1.99]),
        scope_figures((), [0.1, 0.1, 0.1], difference=apart),
        scope_figures(("g",), [], error="TypeError: no"),
        scope_figures(("f",), [], stopped=True),
    )

    assert found.recommended == 0
    text = " ".join(told(found).split())
    assert "no jit: result of call 1 differs, by 0.5 of its largest value, so it is not recommended." in text
    assert "jit g fails: TypeError: no" in text


def test_a_scope_whose_results_were_not_looked_at_is_not_recommended() -> None:
    found = compared(scope_figures(("f", "g"), [2.0, 2.01]), scope_figures((), [1.0, 1.01], checked=False))

    assert found.recommended is None
    assert found.to_json()["scopes"][1]["results_compared"] is False


def test_json_has_no_number_that_is_none() -> None:
    found = compared(scope_figures(("f", "g"), [2.0]), scope_figures((), [1.9]))

    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["scopes"][0]["ratio_to_best"][2] is None


def test_the_text_fits_eighty_columns_and_hostile_names_obey() -> None:
    found = compared(
        scope_figures(("f", "g"), [2.0, 2.01, 1.99]),
        scope_figures(("\x1b[31m<lambda>" * 5,), [1.0, 1.01, 0.99], error="\x1b]0;x\x07"),
        scope_figures((), [9.0]),
    )

    for line in told(found).splitlines():
        assert len(line) <= 80, line
        assert "\x1b" not in line


def test_json_has_what_the_schema_promises() -> None:
    found = compared(scope_figures(("f", "g"), [2.0, 2.01, 1.99]), scope_figures((), [9.0]))

    plain = json.loads(json.dumps(found.to_json()))

    assert plain["calls"] == 10
    assert plain["recommended"] == 0
    assert {
        "jit",
        "bypassed",
        "first_call_seconds",
        "compile_seconds",
        "steady_seconds_per_call",
        "total_seconds",
        "misses",
        "peak_bytes",
    } <= plain["scopes"][0].keys()
    assert plain["scopes"][0]["total_seconds_for_10_times"] == pytest.approx(2.0 + 90 * 0.01, rel=0.01)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ns"),
        (1.5e-6, "1.50 µs"),
        (0.0119, "11.9 ms"),
        (0.119, "119 ms"),
        (0.99999, "1.00 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_durations_that_are_compared_have_three_digits(seconds: float, text: str) -> None:
    assert precise(seconds) == text


def test_a_plot_has_a_letter_for_each_scope_and_none_of_a_single_call() -> None:
    drawn = plot.drawn([("g", straight(0.5, 0.01, 50)), ("none", straight(0.01, 0.1, 50))])

    assert all(len(line) <= 80 for line in drawn)
    assert "a g  b none" in drawn[-1]
    assert any("a" in line and "b" in line for line in drawn[1:-1])
    assert plot.drawn([("g", [(1, 0.5)]), ("none", [(1, 0.5)])]) == []


def test_a_page_is_one_file_that_asks_for_nothing(tmp_path: Any) -> None:
    files = pytest.importorskip("jaxwatch._advise.files")
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    found = compared(
        scope_figures(("f", "<script>$x$"), [2.0, 2.01, 1.99]),
        scope_figures(("g",), [1.0, 1.01, 0.99]),
        scope_figures((), [9.0]),
    )

    files.write_html(found, str(tmp_path / "a.html"))
    files.write_png(found, str(tmp_path / "a.png"))

    page = (tmp_path / "a.html").read_text()
    assert "<script" not in page
    assert "src=" not in page
    assert "<svg" in page
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
