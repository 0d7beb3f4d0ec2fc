"""``benchmarks.suites``: what it reads out of pytest's results, and what it calls a difference."""

import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import ROOT

from benchmarks.suites.environment import Prepared
from benchmarks.suites.outcomes import ABSENT, Difference, Outcome, Verdict, counts, differences, read, unequal
from benchmarks.suites.packages import PACKAGES, Package
from benchmarks.suites.running import Door, Runner
from benchmarks.suites.seen import Seen, seen, total
from benchmarks.suites.tables import Compared, details, table

PASSED, FAILED = Outcome("passed"), Outcome("failed", "ValueError")
SAW = Seen(misses=1_234, cores=("native",))
TESTS = """
import random, unittest, pytest

def test_passes(): pass
def test_draws(): raise type(f"Drew{random.random():.6f}".replace(".", "_"), (Exception,), {})
def test_fails(): raise ValueError("with: colons")
def test_compares(): assert 1 == 2
def test_skips(): pytest.skip("why")
@pytest.mark.xfail
def test_fails_as_expected(): raise KeyError(1)
@pytest.mark.xfail(strict=True)
def test_passes_unexpectedly(): pass
@pytest.fixture
def broken(): raise RuntimeError("no fixture")
def test_is_never_reached(broken): pass
@pytest.fixture
def breaks(): yield; raise OSError("too late")
def test_ends_badly(breaks): raise TypeError
@pytest.mark.parametrize("value", ["a::b", "\\x1b[31m", ""])
def test_has(value): pass
class Case(unittest.TestCase):
    def test_of_unittest(self): self.assertEqual(1, 2)
    def test_with_subtests(self):
        with self.subTest(number=1): self.skipTest("why")
        with self.subTest(number=2): self.assertEqual(1, 2)
"""
CAME = {
    "test_it::test_passes": PASSED,
    "test_it::test_draws": Outcome("failed", "Drew0_844422"),  # what Python draws after seed(0)
    "test_it::test_fails": FAILED,
    "test_it::test_compares": Outcome("failed", "assert"),
    "test_it::test_skips": Outcome("skipped"),
    "test_it::test_fails_as_expected": Outcome("xfailed"),
    "test_it::test_passes_unexpectedly": Outcome("failed", ""),
    "test_it::test_is_never_reached": Outcome("error", "RuntimeError"),
    "test_it::test_ends_badly": Outcome("failed", "TypeError"),
    "test_it::test_ends_badly #2": Outcome("error", "OSError"),
    "test_it.Case::test_of_unittest": Outcome("failed", "AssertionError"),
    "test_it.Case::test_with_subtests": Outcome("failed", "AssertionError"),
}


def tree(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def runner(folder: Path, *, resume: bool = False) -> Runner:
    results = folder / "results"
    (results / "plugins").mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "benchmarks" / "suites" / "conditions.py", results / "plugins")
    package = Package("any", ".", options=("-c", "/dev/null", "--rootdir=."))
    return Runner(Prepared(package, Path(sys.executable), folder, {}), results, core="python", resume=resume)


def test_each_outcome_is_read_as_pytest_writes_it_and_watched_runs_agree(tmp_path: Path) -> None:
    tree(tmp_path, test_it=TESTS, test_broken="import nothing_of_that_name")
    ours = runner(tmp_path)

    plain = ours.run(["test_it.py", "test_broken.py"], Door.PLAIN)
    alone = ours.run(["test_it.py"], Door.RUN)

    found = {test: outcome for test, outcome in plain.outcomes.items() if "test_has" not in test}
    broken = {test: outcome for test, outcome in found.items() if "test_broken" in test}
    assert {test: found[test] for test in found.keys() - broken.keys()} == CAME
    assert list(broken.values()) == [Outcome("error", "ModuleNotFoundError")]
    assert sum("test_has" in test for test in plain.outcomes) == 3
    assert unequal(plain.outcomes, alone.outcomes) == list(broken)
    assert not plain.log.exists()


def test_a_process_that_dies_is_an_outcome_and_is_run_again_only_if_asked(tmp_path: Path) -> None:
    tree(tmp_path, test_dies="import os\ndef test_it(): os._exit(3)")

    found = runner(tmp_path).run(["test_dies.py"], Door.PLAIN)
    tree(tmp_path, test_dies="def test_it(): pass")

    assert list(found.outcomes.values()) == [Outcome("crashed", "exit code 3")]
    assert runner(tmp_path, resume=True).run(["test_dies.py"], Door.PLAIN) == found
    assert list(runner(tmp_path).run(["test_dies.py"], Door.PLAIN).outcomes.values()) == [PASSED]


def test_what_jaxwatch_saw_of_a_suite_is_told(tmp_path: Path) -> None:
    tree(
        tmp_path,
        test_jits="import jax, numpy\ndef test_it():\n  step = jax.jit(lambda x: x + 1)\n  step(numpy.ones(2))",
    )

    watched = runner(tmp_path).run(["test_jits.py"], Door.PYTEST)

    found = seen([watched.log])
    assert watched.outcomes == {"test_jits::test_it": PASSED}
    assert (found.misses, found.unknown, found.cores, found.faults) == (1, 0, ("python",), ())
    assert found.compile_seconds > 0


def test_what_is_no_xml_raises() -> None:
    with pytest.raises(ET.ParseError):
        read("<testsuites><testsuite>")


# ------------------------------------------------------------------ comparing

outcomes = st.sampled_from([PASSED, FAILED, Outcome("failed", "KeyError"), Outcome("skipped")])
runs = st.dictionaries(st.sampled_from("abcde"), outcomes)


@given(plain=runs, watched=runs)
def test_what_is_unlike_is_found_and_nothing_else(plain: dict[str, Outcome], watched: dict[str, Outcome]) -> None:
    expected = {t for t in plain.keys() | watched.keys() if plain.get(t) != watched.get(t)}

    assert unequal(plain, watched) == sorted(expected)


@given(plain=st.lists(runs, min_size=1), watched=st.lists(runs, min_size=1))
def test_a_verdict_clears_jaxwatch_only_where_the_plain_runs_waver_too(
    plain: list[dict[str, Outcome]], watched: list[dict[str, Outcome]]
) -> None:
    (found,) = differences(["a"], plain, watched)
    of_plain, of_watched = ({run.get("a", ABSENT) for run in these} for these in (plain, watched))

    assert sum(count for _, count in found.plain) == len(plain)
    assert {outcome for outcome, _ in found.watched} == of_watched
    assert (found.verdict is Verdict.FLAKY) == (len(of_plain) > 1 and not of_plain.isdisjoint(of_watched))
    assert (found.verdict is Verdict.DIFFERS) == of_plain.isdisjoint(of_watched)


# ------------------------------------------------------------------ what is printed


def compared(*found: Difference, watched: Outcome = PASSED, saw: Seen = SAW) -> Compared:
    versions = {"python": "3.11.7", "jax": "0.10.2", "chex": "0.1.92"}
    return Compared(
        "chex", versions, (2, 3), {"a": PASSED, "b": FAILED}, {"a": watched, "b": FAILED}, found, (10.0, 11.0), saw
    )


def difference(plain: list[Outcome], watched: list[Outcome]) -> Difference:
    (found,) = differences(["a"], [{"a": outcome} for outcome in plain], [{"a": outcome} for outcome in watched])
    return found


def test_a_row_has_both_counts_where_they_are_not_the_same() -> None:
    same, other = table([compared()]), table([compared(watched=FAILED)])

    assert "| chex 0.1.92 | 2 of 3 | 2 | 1 | 1 | 0 | 0 | 0 | 10 → 11 | 1.10 | 1,234 | 0 |" in same
    assert "| 1 → 0 | 1 → 2 |" in other


@pytest.mark.parametrize(
    ("plain", "watched", "verdict", "agrees"),
    [
        ([PASSED] * 4, [FAILED] * 4, Verdict.DIFFERS, False),
        ([PASSED] * 4, [FAILED, PASSED, PASSED, PASSED], Verdict.UNSTEADY, False),
        ([PASSED, FAILED, PASSED, PASSED], [FAILED, PASSED, PASSED, PASSED], Verdict.FLAKY, True),
    ],
)
def test_packages_agree_unless_jaxwatch_may_have_changed_a_test(
    plain: list[Outcome], watched: list[Outcome], verdict: Verdict, agrees: bool
) -> None:
    row = compared(difference(plain, watched))

    assert row.agrees is agrees
    assert details(row)[0].startswith(f"chex: {verdict}: a: plain: ")
    assert "failed (ValueError)" in details(row)[0]


def test_agreement_without_jaxwatch_in_it_is_none() -> None:
    assert compared().agrees
    assert not compared(saw=Seen()).agrees
    assert not compared(saw=Seen(misses=1, faults=(("malformed events", 2),))).agrees
    assert any("two plain runs were compared" in line for line in details(compared(saw=Seen())))


def test_what_jaxwatch_saw_is_read_out_of_its_logs_and_its_faults_with_it(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text('{"schema": "jaxwatch.event/1", "event": "cache_miss"}\nno event\n')

    found = seen([log, tmp_path / "missing.jsonl"])

    assert found.misses == 0
    assert dict(found.faults)["log lines not read"] == 1
    assert total([found, found]).faults == tuple((what, 2 * count) for what, count in found.faults)


def test_files_are_left_out_by_default_and_those_that_cannot_run_always(tmp_path: Path) -> None:
    (tmp_path / "tests" / "deeper").mkdir(parents=True)
    for name in ("a_test.py", "test_b.py", "deeper/c_test.py", "slow_test.py", "never_test.py", "helper.py"):
        (tmp_path / "tests" / name).touch()
    package = Package(
        "any", "tests", left_out={"tests/slow_test.py": "slow"}, never={"tests/never_test.py": "needs a network"}
    )

    assert package.files(tmp_path) == ["tests/a_test.py", "tests/deeper/c_test.py", "tests/test_b.py"]
    assert set(package.files(tmp_path, whole=True)) - set(package.files(tmp_path)) == {"tests/slow_test.py"}


def test_what_is_left_out_has_a_reason() -> None:
    assert all(why for p in PACKAGES.values() for why in (*p.left_out.values(), *p.never.values()))


def test_kinds_are_counted() -> None:
    assert counts([PASSED, FAILED, PASSED]) == {"passed": 2, "failed": 1}
