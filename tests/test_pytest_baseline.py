"""``pytest --jaxwatch-baseline``: a test that compiles more than its file says fails, in every order."""

import json
from pathlib import Path

import inner
import pytest

TESTS = """
import jax, numpy as np, pytest

@jax.jit
def step(batch, lr):
    return batch["x"].sum() * lr + batch["y"].sum()

@jax.jit
def evaluate(x):
    return x.mean()

def batch(rows):
    return {"x": np.ones((rows, 2), np.float32), "y": np.ones(rows, np.float32)}

@pytest.fixture(scope="module")
def model():
    evaluate(np.ones(3))
    return evaluate

def test_epoch():
    for rows in EPOCH:
        step(batch(rows), 0.1)

def test_same():
    step(batch(4), 0.1), step(batch(5), 0.1)

def test_dtype():
    step(batch(4), np.float32(0.1))

@pytest.mark.parametrize("rows", [3, 4, 6])
def test_rows(rows, model):
    step(batch(rows), 0.1), model(np.ones(rows))

def test_jits_anew():
    for _ in range(2):
        jax.jit(lambda x: x - 1)(np.ones(2))

def test_nothing(): ...
"""
BASELINE = "--jaxwatch-baseline=b.json"
UPDATE = BASELINE, "--jaxwatch-update-baseline"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    inner.clean_environment(monkeypatch)


def written(pytester: pytest.Pytester, epoch: tuple[int, ...] = (4, 4, 5), more: str = "") -> None:
    pytester.makepyfile(test_it=f"EPOCH = {epoch!r}\n{TESTS}\n{more}")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Tests with a baseline."""
    written(pytester)
    inner.here(pytester, *UPDATE).assert_outcomes(passed=8)
    return pytester


def entries(pytester: pytest.Pytester) -> dict[str, dict[str, int]]:
    """Return the misses of each function by test, of those that miss."""
    found = json.loads((pytester.path / "b.json").read_text())["entries"]
    names = {each.get("test") or each.get("fixture") or each.get("collection"): each for each in found}
    return {
        name.rpartition("::")[2]: {function: counts["misses"] for function, counts in each.get("misses", {}).items()}
        for name, each in names.items()
    }


def test_the_file_tells_who_misses_and_why_and_nothing_that_changes_by_itself(suite: pytest.Pytester) -> None:
    assert entries(suite) == {
        "test_epoch": {"step": 2},
        "test_same": {},
        "test_dtype": {"step": 1},
        "model": {"evaluate": 1},
        "test_rows[3]": {"step": 1},
        "test_rows[4]": {"evaluate": 1},
        "test_rows[6]": {"evaluate": 1, "step": 1},
        "test_jits_anew": {"<lambda>": 2},
        "test_nothing": {},
    }
    text = (suite.path / "b.json").read_text()
    assert (
        """"step": {"misses": 2, "causes": {"first call": 1, "shape batch['x']": 1, "shape batch['y']": 1}}""" in text
    )
    assert """"step": {"misses": 1, "causes": {"weak type lr": 1}}""" in text
    assert str(suite.path) not in text
    result = inner.here(suite, *UPDATE)
    assert (suite.path / "b.json").read_text() == text
    result.stdout.fnmatch_lines(["*= jaxwatch =*", "baseline b.json: 8 tests, nothing new"])


ORDERS = {
    "as it was": (),
    "one alone": ("-k", "test_rows and 6"),
    "another alone": ("-k", "test_dtype"),
    "some": ("-k", "same or rows or nothing"),
    "backwards": ("-p", "backwards"),
    "twice": ("-p", "twice"),
}


@pytest.mark.parametrize("options", ORDERS.values(), ids=ORDERS)
def test_the_same_tests_pass_in_every_order_and_selection(suite: pytest.Pytester, options: tuple[str, ...]) -> None:
    suite.makepyfile(backwards="def pytest_collection_modifyitems(items): items.reverse()")
    suite.makepyfile(twice="def pytest_collection_modifyitems(items): items[:] = items[::2] + items[1::2]")
    suite.syspathinsert()
    result = inner.here(suite, BASELINE, *options)

    assert result.ret == 0
    result.stdout.fnmatch_lines(["* within the baseline"])
    result.stdout.no_fnmatch_line("*than*baseline*")


def test_a_test_that_compiles_more_fails_with_what_differed(suite: pytest.Pytester) -> None:
    written(suite, (4, 4, 5, 9, 10))
    result = inner.here(suite, BASELINE)

    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*_ test_epoch _*",
            "Compiles more than its baseline: step +2. What differed, in all 3:",
            "  step: batch[[]'x']: float32[[]4,2] → float32[[]9,2]; batch*; test_it.py:*, call 4, *s",
            "Mend it; or accept it: pytest --jaxwatch-baseline b.json --jaxwatch-update-baseline test_it.py::test_epo*",
            "1 test compiles more than its baseline: test_epoch +2 (step: shape batch['x'] …)",
        ]
    )


def test_a_cause_that_is_new_fails_the_test_also_when_it_is_run_alone(suite: pytest.Pytester) -> None:
    text = (suite.path / "test_it.py").read_text()
    (suite.path / "test_it.py").write_text(text.replace("step(batch(5), 0.1)", 'step({**batch(5), "z": 1}, 0.1)'))
    result = inner.here(suite, BASELINE, "-k", "same")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*: step +1. What differed:", "  step: batch[[]'z']: (none) → *, call 2, *"])


def test_accepting_it_as_told_changes_that_test_alone(suite: pytest.Pytester) -> None:
    written(suite, (4, 4, 5, 9, 10))
    before = entries(suite)
    result = inner.here(suite, *UPDATE, "test_it.py::test_epoch")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["baseline b.json: 8 tests, 1 changed"])
    assert entries(suite) == {**before, "test_epoch": {"step": 4}}
    assert inner.here(suite, BASELINE).ret == 0


def test_fewer_misses_are_told_and_lower_the_baseline(suite: pytest.Pytester) -> None:
    written(suite, (4, 5))
    (suite.path / "test_it.py").write_text((suite.path / "test_it.py").read_text().replace("range(2)", "range(1)"))
    result = inner.here(suite, BASELINE)

    assert result.ret == 0
    result.stdout.fnmatch_lines(["1 test compiles less than its baseline: test_jits_anew -1; --jaxwatch-update*"])
    inner.here(suite, BASELINE, "-k", "anew").stdout.no_fnmatch_line("*less than*")
    inner.here(suite, *UPDATE)
    assert entries(suite)["test_jits_anew"] == {"<lambda>": 1}


def test_new_tests_are_told_and_pass_and_fail_when_it_is_strict(suite: pytest.Pytester) -> None:
    written(suite, more="def test_new(): evaluate(np.ones(9))\ndef test_new_and_idle(): ...")
    told = "2 tests not in the baseline yet, 1 of them with misses, which *ed: --jaxwatch-update-baseline adds them"

    result = inner.here(suite, BASELINE)
    result.assert_outcomes(passed=10)
    result.stdout.fnmatch_lines([told])
    result = inner.here(suite, BASELINE, "--jaxwatch-baseline-strict")
    result.assert_outcomes(passed=9, failed=1)
    result.stdout.fnmatch_lines(
        ["Not in the baseline, and has 1 miss.", "  evaluate: x: float* → float*[[]9]; *", told]
    )
    inner.here(suite, *UPDATE).stdout.fnmatch_lines(["baseline b.json: 10 tests, 2 added"])
    inner.here(suite, BASELINE, "--jaxwatch-baseline-strict").assert_outcomes(passed=10)


def test_updates_keep_what_did_not_run_and_drop_what_is_no_more(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_other="def test_other(): ...", test_old="def test_old(): ...")
    inner.here(suite, *UPDATE).stdout.fnmatch_lines(["baseline b.json: 10 tests, 2 added"])
    (suite.path / "test_old.py").unlink()
    text = (suite.path / "test_it.py").read_text()
    (suite.path / "test_it.py").write_text(text.replace("def test_same", "def test_renamed"))

    result = inner.here(suite, *UPDATE, "-k", "renamed", "test_it.py")
    result.stdout.fnmatch_lines(["baseline b.json: 9 tests, 1 added, 2 dropped"])
    assert {"test_epoch", "test_renamed", "test_other"} <= entries(suite).keys()
    assert not {"test_same", "test_old"} & entries(suite).keys()
    assert list(entries(suite))[:2] == ["test_epoch", "test_renamed"]


def test_no_update_is_made_of_a_run_that_collects_only_or_is_interrupted(suite: pytest.Pytester) -> None:
    before = (suite.path / "b.json").read_text()
    written(suite, (1, 2, 3), more="def test_it(): pytest.exit('enough')")

    assert inner.here(suite, *UPDATE, "--collect-only").ret == 0
    inner.here(suite, *UPDATE).stdout.fnmatch_lines(["baseline not written: the run did not come to its end"])
    inner.here(suite, *UPDATE, "-k", "none_of_them")
    assert (suite.path / "b.json").read_text() == before


def test_a_fixture_that_compiles_more_fails_the_run(suite: pytest.Pytester) -> None:
    text = (suite.path / "test_it.py").read_text()
    (suite.path / "test_it.py").write_text(
        text.replace("return evaluate\n", "evaluate(np.ones(33))\n    return evaluate\n")
    )
    result = inner.here(suite, BASELINE)

    result.assert_outcomes(passed=8)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["1 fixture or import compiles more than its baseline: model (fixture) +1 (evaluate: shape x)"]
    )


def test_the_ini_file_names_it_relative_to_itself(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.makeini("[pytest]\njaxwatch_baseline = b.json\n")
    folder = suite.mkdir("below")
    monkeypatch.chdir(folder)
    result = inner.here(suite, "..")

    assert result.ret == 0
    result.stdout.fnmatch_lines(["8 tests within the baseline"])


def test_what_is_wrong_with_the_file_stops_the_run_before_it_begins(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*options: str) -> str:
        result = inner.here(suite, *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert not (suite.path / "no.json").exists()
        return result.stderr.str()

    assert "There is no baseline at" in told("--jaxwatch-baseline=no.json")
    assert "needs a file: give --jaxwatch-baseline FILE." in told("--jaxwatch-update-baseline")
    (suite.path / "b.json").write_text("{")
    assert "cannot be read" in told(BASELINE)
    assert "cannot be read" in told(*UPDATE), "it may be a merge gone wrong"
    monkeypatch.setenv("JAXWATCH", "0")
    assert "so no baseline can be written. Unset it." in told(
        "--jaxwatch-baseline=no.json", "--jaxwatch-update-baseline"
    )


def test_a_file_that_cannot_be_written_fails_the_run(pytester: pytest.Pytester) -> None:
    written(pytester)
    result = inner.here(pytester, "--jaxwatch-baseline=no/b.json", "--jaxwatch-update-baseline")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["The baseline *no/b.json cannot be written: No such file or directory. *[[]baseline]"])


def test_workers_hold_to_it_and_one_of_them_all_writes_it(suite: pytest.Pytester) -> None:
    (suite.path / "b.json").unlink()
    written(suite, more="def test_added(): ...")
    inner.apart(suite, *UPDATE, "-n", "2").stdout.fnmatch_lines(["baseline b.json: 9 tests, 9 added"])

    assert list(entries(suite))[-1] == "test_added"
    assert Path(suite.path / "b.json").stat().st_size
    for options in ((), ("-k", "rows")):
        assert inner.here(suite, BASELINE, *options).ret == 0, "what workers paid each for itself is enough for one"
    written(suite, (4, 5, 20, 21, 22, 23, 24, 25, 26, 27, 28))
    inner.apart(suite, BASELINE, "-n", "2").assert_outcomes(passed=7, failed=1)
