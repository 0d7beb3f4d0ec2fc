"""The pytest plugin's thought: what is new against a baseline, in whatever order tests run; its file; what is said."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._hub import HUB
from jaxwatch._testing import baseline as baselines
from jaxwatch._testing import ids, runs, summary, texts
from jaxwatch._testing.baseline import Baseline, Entry
from jaxwatch._testing.counts import Counts, Misses, causes_of, from_plain, kind_of, merged, to_plain
from jaxwatch._testing.judge import Judge, New
from jaxwatch._testing.ledger import Ledger, Owner, Seen
from jaxwatch._testing.sums import REST, Sums
from jaxwatch._testing.update import Ran, changes, in_order, updated
from jaxwatch.errors import BaselineError
from jaxwatch.events import CacheMiss, Change, EagerCompile, Origin, PhaseSeconds

# ------------------------------------------------------------------ a model: a process compiles each key once

Needs = list[set[tuple[str, int]]]  # of each test: function and key
FUNCTIONS = ("step", "evaluate", "_mean")
needed = st.sets(st.tuples(st.sampled_from(FUNCTIONS), st.integers(0, 5)), max_size=6)
suites = st.lists(needed, min_size=1, max_size=7)


def entry(number: int) -> Entry:
    return Entry("test", f"test_a.py::test_{number}")


def missed(needs: Needs, order: Sequence[int]) -> dict[int, Misses]:
    """Return what each test misses in a process that runs them in that order."""
    compiled: set[tuple[str, int]] = set()
    found: dict[int, Misses] = {}
    for test in order:
        misses: Misses = {}
        for function, key in sorted(needs[test] - compiled):
            first = not any(name == function for name, _ in compiled)
            misses.setdefault(function, Counts()).add(["first call" if first else "shape x"])
            compiled.add((function, key))
        found[test] = misses
    return found


def baseline_of(needs: Needs) -> Baseline:
    found = missed(needs, range(len(needs)))
    return Baseline({entry(test): found[test] for test in range(len(needs))})


def judged(baseline: Baseline, needs: Needs, order: Sequence[int]) -> dict[int, tuple[New, ...]]:
    judge = Judge(baseline)
    return {test: judge.judge(entry(test), misses).new for test, misses in missed(needs, order).items()}


@given(needs=suites, data=st.data())
def test_no_order_and_no_selection_of_the_same_tests_has_anything_new(needs: Needs, data: st.DataObject) -> None:
    order = data.draw(st.lists(st.sampled_from(range(len(needs))), unique=True))

    assert not any(judged(_with_both_causes(baseline_of(needs)), needs, order).values())


def _with_both_causes(baseline: Baseline) -> Baseline:
    """Which of the model's keys is compared with which is no matter here: every function knows both causes."""
    every = {name: Counts(0, Counter(["first call", "shape x"])) for name in FUNCTIONS}
    return Baseline({Entry("collection", "causes"): every, **baseline.entries})


@given(needs=suites, data=st.data())
def test_in_the_baselines_order_just_the_test_that_needs_more_is_blamed_for_just_that(
    needs: Needs, data: st.DataObject
) -> None:
    baseline = _with_both_causes(baseline_of(needs))
    test = data.draw(st.sampled_from(range(len(needs))))
    more = data.draw(st.integers(1, 4))
    after = [set(keys) for keys in needs]
    after[test] |= {("step", 100 + key) for key in range(more)}  # nobody else's

    found = {at: new for at, new in judged(baseline, after, range(len(needs))).items() if new}
    assert found.keys() == {test}
    assert [(new.function, new.misses) for new in found[test]] == [("step", more)]


@given(needs=suites, data=st.data())
def test_a_baseline_of_several_workers_holds_for_one_process_too(needs: Needs, data: st.DataObject) -> None:
    at = [data.draw(st.integers(0, 2)) for _ in needs]
    found: dict[int, Misses] = {}
    for worker in range(3):
        found |= missed(needs, [test for test in range(len(needs)) if at[test] == worker])
    baseline = _with_both_causes(Baseline({entry(test): found[test] for test in range(len(needs))}))

    order = data.draw(st.lists(st.sampled_from(range(len(needs))), unique=True))
    assert not any(judged(baseline, needs, order).values())


def misses(**functions: dict[str, int]) -> Misses:
    return {name: Counts(sum(causes.values()), Counter(causes)) for name, causes in functions.items()}


def test_a_cause_that_the_baseline_has_nowhere_is_new_though_the_number_is_the_same() -> None:
    baseline = Baseline({entry(0): misses(step={"first call": 1, "shape batch['x']": 1})})

    (new,) = Judge(baseline).judge(entry(0), misses(step={"first call": 1, "dtype batch['x']": 1})).new
    assert new == New("step", 1, ("dtype batch['x']",))
    assert not Judge(baseline).judge(entry(0), misses(step={"first call": 1, "shape batch['y']": 1})).new
    assert not Judge(baseline).judge(entry(0), misses(step={"new function": 2})).new, "of order, not of what differs"


def test_a_second_run_of_a_failed_test_finds_warm_caches_and_fails_all_the_same() -> None:
    judge = Judge(Baseline({entry(0): misses(step={"first call": 1})}))

    assert judge.judge(entry(0), misses(step={"first call": 1, "shape x": 2})).new
    assert judge.judge(entry(0), {}).new
    twice = Judge(Baseline({entry(0): misses(inner={"first call": 1})}))
    assert not twice.judge(entry(0), misses(inner={"first call": 1})).new
    assert not twice.judge(entry(0), misses(inner={"new function": 1})).new, "jitted anew in each run"


def test_a_test_that_is_not_listed_is_told_as_that_and_lends_nothing() -> None:
    judge = Judge(Baseline({entry(0): misses(step={"first call": 1})}))

    verdict = judge.judge(entry(1), misses(step={"first call": 5}))
    assert (verdict.new, verdict.listed) == ((), False)
    assert not judge.judge(entry(0), misses(step={"first call": 1})).new


# ------------------------------------------------------------------ counts


def miss(function: str = "step", *changes: Change, **fields: object) -> CacheMiss:
    values: dict[str, object] = {
        "id": 1,
        "origin": Origin(unix_seconds=0.0, pid=1, process_index=None, thread_name="MainThread"),
        "function": function,
        "definition": "/src/train.py:3",
        "site": "/src/train.py:9",
        "call": 2,
        "layer": "compile",
        "traces": 1,
        "lowerings": 1,
        "compiles": 1,
        "persistent_cache": None,
        "seconds": PhaseSeconds(backend_compile=0.5),
        "reasons": tuple(dict.fromkeys(change.reason for change in changes)) or ("first_call",),
        "changes": changes,
        "compared_with": None,
        "fingerprint": None,
        "signature": "s1",
        "abstract": "",
        "advice": (),
    }
    return CacheMiss(**{**values, **fields})  # type: ignore[arg-type]  # by name


def shape(path: str) -> Change:
    return Change(reason="shape", path=path, before="float32[2]", after="float32[3]")


def test_causes_have_paths_and_no_values_and_stay_few() -> None:
    assert causes_of(miss()) == ("first call",)
    assert causes_of(miss("step", shape("batch['x']"), shape("batch['y']"))) == ("shape batch['x']", "shape batch['y']")
    assert causes_of(miss("step", *(shape(f"params[{n}]") for n in range(20)))) == ("shape params…",)
    assert causes_of(miss("step", shape("\x1b[31m\ud800"))) == (r"shape \x1b[31m\ud800",)
    assert len(causes_of(miss("step", shape("x" * 10**6)))[0]) < 300
    assert kind_of("weak type state[0].count") == "weak type state"
    assert kind_of("shape params…") == kind_of("shape params['w']") == "shape params"
    assert kind_of("first call") == "first call"
    assert kind_of("config jax_enable_x64") == "config jax_enable_x64"


def test_functions_and_causes_beyond_the_bounds_are_counted_as_others() -> None:
    ledger = Ledger()
    for number in range(_limits.FUNCTIONS_PER_TEST + 5):
        ledger(miss(f"f{number}"))
    for number in range(_limits.CAUSES_PER_TEST + 7):
        ledger(miss("f0", shape(f"x{number}.a")))

    (tally,) = ledger.take().values()
    assert tally.by_cause["other"].misses == 5
    assert tally.by_cause["f0"].causes["other"] == 8  # its first call is a cause too
    assert tally.misses == sum(counts.misses for counts in tally.by_cause.values())
    assert len(tally.seen) == _limits.MISSES_PER_TEST


names = st.text(min_size=1, max_size=8)
counted = st.builds(
    lambda number, causes: Counts(number, Counter(causes)),
    st.integers(1, 9),
    st.dictionaries(names, st.integers(1, 9), max_size=3),
)
all_misses = st.dictionaries(names, counted, max_size=3)


@given(found=all_misses)
def test_counts_come_back_from_plain_data(found: Misses) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(found)))) == found


# ------------------------------------------------------------------ the ledger


def eager(seconds: float) -> EagerCompile:
    return EagerCompile(
        origin=miss().origin, function="add", site="a.py:1", seconds=seconds, persistent_cache=None, count=1
    )


def test_what_is_compiled_is_counted_for_what_is_under_way() -> None:
    ledger = Ledger()
    test, fixture = Owner("call", "t"), Owner("fixture", "model")
    with ledger.within(test):
        ledger(miss())
        with ledger.within(fixture):
            ledger(miss("init"))
            ledger(eager(0.25))
        ledger(miss("step", shape("x")))
    ledger(miss("late"))
    found = ledger.take()

    assert {owner: (tally.misses, tally.eager) for owner, tally in found.items()} == {
        test: (2, 0),
        fixture: (1, 1),
        Owner("rest", ""): (1, 0),
    }
    assert found[test].seconds == 1.0
    assert ledger.take() == {}


def test_what_clearing_the_caches_makes_compile_again_is_no_tests_own() -> None:
    ledger = Ledger()
    ledger(miss("step", Change(reason="cache_lost", note="gone: jax.clear_caches() was called")))
    ledger(miss("step", Change(reason="cache_lost", note="gone")))
    ledger(miss("step", Change(reason="fast_path"), layer="dispatch"))

    (tally,) = ledger.take().values()
    assert (tally.misses, tally.by_cause["step"].misses) == (2, 1)


def test_two_ledgers_listen_side_by_side_and_leave() -> None:
    first, second = Ledger(), Ledger()
    for ledger in (first, second, first):
        ledger.begin()
    HUB.publish(miss())
    for ledger in (first, second, first):
        ledger.end()
    HUB.publish(miss())

    assert [tally.misses for ledger in (first, second) for tally in ledger.take().values()] == [1, 1]


# ------------------------------------------------------------------ the file

entries = st.builds(Entry, st.sampled_from(["test", "fixture", "collection"]), names)


@given(found=st.dictionaries(entries, all_misses, max_size=4))
def test_a_baseline_comes_back_from_its_text_in_its_order(found: dict[Entry, Misses]) -> None:
    text = baselines.dumped(Baseline(found))

    assert list(baselines.parsed(text, "b.json").entries.items()) == list(found.items())
    assert baselines.dumped(baselines.parsed(text, "b.json")) == text
    assert text.replace("\n", "").isprintable()


def test_the_file_has_a_line_for_each_test_and_each_function_that_misses() -> None:
    found = {
        Entry("test", "tests/test_train.py::test_epoch"): misses(
            step={"shape batch['x']": 3, "first call": 1}, _mean={"first call": 1}
        ),
        Entry("test", "tests/test_train.py::test_nothing"): {},
    }
    assert baselines.dumped(Baseline(found)).splitlines()[3:] == [
        '  {"test": "tests/test_train.py::test_epoch", "misses": {',
        '   "_mean": {"misses": 1, "causes": {"first call": 1}},',
        """   "step": {"misses": 4, "causes": {"first call": 1, "shape batch['x']": 3}}""",
        "  }},",
        '  {"test": "tests/test_train.py::test_nothing"}',
        " ]",
        "}",
    ]


def _text(*entries: str) -> str:
    return f'{{"schema": "{baselines.SCHEMA}", "entries": [{", ".join(entries)}]}}'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "cannot be read: Expecting value"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "it has no list of entries"),
        ('{"schema": "jaxwatch.baseline/9", "entries": []}', "its schema is 'jaxwatch.baseline/9'"),
        (_text('{"tests": "a"}'), "entry 1 is {'tests': 'a'}"),
        (_text('{"test": "a", "seconds": 1}'), "entry 1 is"),
        (_text('{"test": "a"}', '{"test": "a"}'), "test 'a' is in it twice"),
        (_text('{"test": "a", "misses": 3}'), "in 'a', misses are 3"),
        (_text('{"test": "a", "misses": {"f": {"misses": 1}}}'), "'f' has {'misses': 1}"),
        (_text('{"test": "a", "misses": {"f": {"misses": true, "causes": {}}}}'), "no whole number from 1"),
        (_text('{"test": "a", "misses": {"f": {"misses": 1, "causes": {"x": -1}}}}'), "no whole number from 1"),
        ('{"schema":\n<<<<<<< HEAD\n', "marks of a merge conflict"),
    ],
)
def test_a_damaged_file_is_told_with_what_is_wrong_and_the_way_out(text: str, told: str) -> None:
    with pytest.raises(BaselineError) as raised:
        baselines.parsed(text, "b.json")

    assert told in str(raised.value)
    assert "--jaxwatch-update-baseline" in str(raised.value)
    assert len(str(raised.value)) < 600


def test_a_file_is_written_as_a_whole_and_left_alone_where_it_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    first = Baseline({entry(0): misses(step={"first call": 1})})
    baselines.write(str(path), first)
    os.utime(path, (1, 1))
    path.chmod(0o640)
    baselines.write(str(path), first)
    assert path.stat().st_mtime == 1
    link = tmp_path / "link.json"
    link.symlink_to(path)
    baselines.write(str(link), Baseline({}))

    assert baselines.read(str(path)) == Baseline({})
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["b.json", "link.json"]


def test_a_file_that_is_not_there_or_cannot_be_is_told(tmp_path: Path) -> None:
    missing = str(tmp_path / "no" / "b.json")
    assert baselines.read(missing, may_be_missing=True) == Baseline({})
    with pytest.raises(BaselineError, match="There is no baseline at"):
        baselines.read(missing)
    with pytest.raises(BaselineError, match="cannot be written: No such file or directory"):
        baselines.write(missing, Baseline({}))
    with pytest.raises(BaselineError, match="cannot be read: Is a directory"):
        baselines.read(str(tmp_path))
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(BaselineError, match="it is no UTF-8"):
        baselines.read(str(tmp_path / "b.json"))


# ------------------------------------------------------------------ bringing it up to date


def test_a_part_of_the_tests_changes_only_what_is_new_in_them() -> None:
    old = Baseline({entry(n): misses(step={"first call": 2}) for n in range(4)})
    paid = misses(step={"first call": 6})  # for the tests that did not run, too
    more = misses(step={"first call": 2, "shape x": 3})
    ran = {
        entry(1): Ran(paid),
        entry(2): Ran(more, (New("step", 1, ("shape x",)),)),
        entry(9): Ran(misses(step={"first call": 1})),
    }
    after = updated(old, [entry(1), entry(2), entry(9), entry(3)], ran, gone=[], whole=False)

    assert list(after.entries) == [entry(0), entry(1), entry(2), entry(9), entry(3)]
    assert after.entries[entry(1)] == old.entries[entry(1)]
    assert after.entries[entry(2)] == {"step": Counts(3, Counter({"first call": 2, "shape x": 3}))}
    assert vars_of(changes(old, after)) == (1, 1, 0)
    assert old.entries[entry(2)] == misses(step={"first call": 2}), "the old one is as it was"


def vars_of(found: object) -> tuple[int, ...]:
    return tuple(getattr(found, name) for name in ("added", "changed", "dropped"))


def test_a_new_test_stands_where_it_was_collected_and_a_whole_run_sets_the_order() -> None:
    old = Baseline({entry(n): {} for n in (2, 1, 3)})
    order = [entry(n) for n in (1, 9, 2, 3)]

    assert list(updated(old, order, {entry(9): Ran({})}, [], whole=False).entries) == [entry(n) for n in (2, 1, 9, 3)]
    assert list(updated(old, order, {entry(9): Ran({})}, [], whole=True).entries) == order


def test_exact_figures_are_taken_and_failed_tests_keep_what_they_had() -> None:
    old = Baseline({entry(n): misses(step={"first call": 4}) for n in range(3)})
    ran = {entry(0): Ran({}, exact=True), entry(1): Ran(misses(new={"first call": 1}), failed=True)}
    after = updated(old, [entry(0), entry(1), entry(2)], ran, gone=[entry(2)], whole=True)

    assert after.entries == {
        entry(0): {},
        entry(1): merged([old.entries[entry(1)], misses(new={"first call": 1})]),
    }
    assert vars_of(changes(old, after)) == (0, 2, 1)


@given(old=st.lists(entries, unique=True, max_size=8), new=st.lists(entries, unique=True, max_size=8))
def test_all_entries_are_kept_in_the_new_order_and_behind_their_old_neighbours(
    old: list[Entry], new: list[Entry]
) -> None:
    found = in_order(old, new)

    assert sorted(found) == sorted({*old, *new})
    assert [each for each in found if each in new] == new
    assert in_order(found, new) == found


def gathered(*tests: str, order: Sequence[str] | None = None) -> runs.Gathered:
    files = list(dict.fromkeys(map(ids.file_of, tests)))
    return runs.Gathered(list(tests), files, list(tests if order is None else order))


def gone(collected: runs.Gathered, arguments: Sequence[str], there: Sequence[str], *, in_full: bool = True) -> set[str]:
    baseline = Baseline(
        {Entry("test", name): {} for name in ("a.py::old", "a.py::kept", "b.py::kept", "c.py::deleted")}
    )
    found = runs.gone(baseline, collected, arguments, lambda file: file in there, in_full=in_full)
    return {each.name for each in found}


def test_a_test_is_gone_with_its_file_or_where_its_file_was_collected_without_it() -> None:
    there = ["a.py", "b.py"]
    collected = gathered("a.py::kept", "a.py::new")

    assert gone(collected, ["a.py"], there) == {"a.py::old", "c.py::deleted"}
    assert gone(collected, ["a.py::kept", "a.py::new"], there) == {"c.py::deleted"}, "the others were not asked for"
    assert gone(collected, ["a.py"], there, in_full=False) == {"c.py::deleted"}, "--last-failed"
    assert gone(gathered(), ["b.py"], there) == {"c.py::deleted"}


def told(test: str, *parts: dict[str, object], late: bool = False) -> dict[str, object]:
    return {"test": test, "parts": list(parts), "late": late, "watched_again": False}


def part(kind: str, name: str, number: int = 1, **more: object) -> dict[str, object]:
    by_cause = to_plain(misses(step={"first call": number})) if number else {}
    figures = {"misses": number, "seconds": 0.5 * number, "eager": 0, "eager_seconds": 0.0, "by_cause": by_cause}
    return {"kind": kind, "name": name, **figures, **more}


def added(sums: Sums, test: str, outcome: str, *parts: dict[str, object]) -> None:
    if outcome == "skipped before":
        sums.add(told(test), when="setup", outcome="skipped", seconds=0.1)
        return
    sums.add(told(test), when="setup", outcome="passed", seconds=0.1)
    sums.add(told(test, *parts), when="call", outcome=outcome, seconds=1.0)
    sums.add(told(test), when="teardown", outcome="passed", seconds=0.1)


def test_figures_are_exact_up_to_the_first_test_that_ended_early() -> None:
    sums = Sums()
    for name, outcome in (("a", "passed"), ("b", "xfailed"), ("c", "failed"), ("d", "passed")):
        added(sums, name, outcome, part("test", name, phase="call"))
    found = runs.ran(sums, Baseline(), gathered("a", "b", "c", "d"), [], alone=True)

    assert [(found[Entry("test", name)].exact, found[Entry("test", name)].failed) for name in "abcd"] == [
        (True, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert not any(each.exact for each in runs.ran(sums, Baseline(), gathered(*"abcd"), [], alone=False).values())
    deselected = runs.ran(sums, Baseline(), gathered(*"abcd", order="ab"), [], alone=True)
    assert not any(each.exact for each in deselected.values())


def test_a_skipped_test_that_would_have_compiled_makes_what_follows_inexact() -> None:
    baseline = Baseline({Entry("test", "a"): misses(step={"first call": 1}), Entry("test", "b"): {}})
    sums = Sums()
    added(sums, "a", "skipped before")
    added(sums, "b", "passed")

    assert not runs.ran(sums, baseline, gathered("a", "b"), [], alone=True)[Entry("test", "b")].exact
    assert runs.ran(sums, Baseline(), gathered("a", "b"), [], alone=True)[Entry("test", "b")].exact


def test_a_test_that_is_run_again_counts_by_its_fullest_run_and_its_last_outcome() -> None:
    sums = Sums()
    added(sums, "a", "rerun", part("test", "a", 3, phase="call"))
    added(sums, "a", "passed", part("test", "a", 1, phase="call"))

    found = sums.entries[Entry("test", "a")]
    assert (found.outcome, found.by_cause["step"].misses, found.seconds) == ("passed", 3, 2.0)


# ------------------------------------------------------------------ what is said


def test_the_summary_names_the_slowest_first() -> None:
    sums = Sums()
    sums.add(told("t::quick", part("test", "t::quick", phase="call")), when="call", outcome="passed", seconds=1.0)
    slow = part("test", "t::slow", 4, phase="call", eager=3, eager_seconds=0.3)
    sums.add(told("t::slow", slow, part("fixture", "::model", 2)), when="call", outcome="passed", seconds=4.0)
    sums.add(told("t::none", part("rest", "")), when="call", outcome="passed", seconds=1.0)

    title, lines = summary.slowest(sums, 3)
    assert title == "jaxwatch: 3 slowest to compile"
    assert lines == [
        "  2.3 s   4 misses      0.3 s eager   t::slow",
        "  1.0 s   2 misses                    ::model (fixture)",
        "  0.5 s   1 miss                      (between tests)",
        "In all 4.3 s (72 % of the tests' 6.0 s): 8 misses, 3 eager ops; 2 of 3 tests compiled.",
    ]
    assert len(summary.slowest(sums, 0)[1]) == 5
    assert summary.slowest(Sums(), 3) == ("jaxwatch: nothing was compiled", [])
    assert REST in sums.entries


def test_the_summary_names_the_tests_that_have_more_than_their_baseline() -> None:
    sums = Sums()
    new = [{"function": "step", "misses": 3, "causes": ["shape batch['x']", "shape batch['y']"]}]
    sums.add(
        told("t::test_epoch", part("test", "t::test_epoch", 5, new=new, listed=True)),
        when="call",
        outcome="failed",
        seconds=1,
    )
    sums.add(told("t::fresh", part("test", "t::fresh", 1, listed=False)), when="call", outcome="passed", seconds=1)
    sums.add(told("t::well", part("test", "t::well", 1, listed=True)), when="call", outcome="passed", seconds=1)

    assert summary.verdicts(sums, strict=False) == [
        "1 test compiles more than its baseline: test_epoch +3 (step: shape batch['x'] …)",
        "1 test not in the baseline yet, 1 of them with misses, which passed: --jaxwatch-update-baseline adds them",
    ]
    assert "which failed" in summary.verdicts(sums, strict=True)[1]


def test_fewer_misses_are_told_where_a_function_has_fewer_in_all() -> None:
    baseline = Baseline({entry(0): misses(step={"first call": 3}), entry(1): misses(step={"first call": 1})})
    moved = {entry(0): misses(step={"first call": 2}), entry(1): misses(step={"first call": 2})}
    less = {entry(0): misses(step={"first call": 1}), entry(1): misses(step={"first call": 1})}

    assert summary.fewer(baseline, moved) is None
    assert summary.fewer(baseline, less) == (
        "1 test compiles less than its baseline: test_0 -2; --jaxwatch-update-baseline tightens it"
    )


def test_a_failure_says_what_is_new_what_differed_and_how_to_accept_it() -> None:
    seen = [
        Seen("step", "/src/train.py:3", ("shape x",), f"x: float32[4] → float32[{n}]", "/src/train.py:9", n, 0.5)
        for n in range(7)
    ]
    text = texts.exceeded("t.py::test_it[a b]", [New("step", 2, ("shape x",))], seen, "/src", "b.json")

    assert text.splitlines() == [
        "Compiles more than its baseline: step +2. What differed, in all 7:",
        *(f"  step: x: float32[4] → float32[{n}]; train.py:9, call {n}, 0.5 s" for n in range(5)),
        "  and 2 more",
        (
            "Mend it; or accept it: pytest --jaxwatch-baseline b.json --jaxwatch-update-baseline 't.py::test_it[a b]'"
            " [baseline-exceeded]"
        ),
    ]
