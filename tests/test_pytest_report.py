"""``pytest --jaxwatch-report``: what each test and fixture compiled."""

import re
import xml.etree.ElementTree as ET

import inner
import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    inner.clean_environment(monkeypatch)


BODY = """
    import threading

    step = jax.jit(lambda x: x + 1)
    evaluate = jax.jit(lambda x: x * 2)
    at_import = jaxwatch.jit(lambda x: x * 3)(np.ones(3))

    @pytest.fixture(scope="module")
    def model():
        evaluate(ONE)
        return evaluate

    @pytest.fixture
    def params():
        step(np.ones(9))

    def test_three(model, params):
        step(ONE), step(TWO), model(TWO)

    def test_thread():
        worker = threading.Thread(target=step, args=(THREE,))
        worker.start(), worker.join()

    class TestAll:
        def setup_method(self):
            step(np.ones(10))

        def test_warm(self):
            step(ONE)

        def teardown_method(self):
            step(np.ones(11))

    def test_eager():
        jax.numpy.ones((4, 17)) @ jax.numpy.ones((17, 5))

    def test_nothing():
        pass
    """


def rows(result: pytest.RunResult) -> dict[str, str]:
    """Return the misses of each row of the report, by name."""
    found = {}
    for line in result.outlines:
        if match := re.match(r" *[\d.,]+ (?:s|ms|µs)   (\d+ miss(?:es)?|\u2013) +(?:[\d.]+ \w+ eager +)?(\S.*)", line):
            found[match[2].split(",")[0].rpartition("::")[2]] = match[1]
    return found


def test_each_test_fixture_and_import_has_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=inner.body(BODY))
    result = inner.here(pytester, "--jaxwatch-report=0", "--junitxml=out.xml")

    result.assert_outcomes(passed=5)
    assert rows(result) == {
        "test_three": "4 misses",
        "model (fixture)": "1 miss",
        "test_it.py (import)": "1 miss",
        "test_thread": "1 miss",
        "test_warm": "2 misses",
        "test_eager": "\u2013",
    }
    result.stdout.fnmatch_lines(
        [
            "*= jaxwatch: 6 slowest to compile =*",
            "In all * of the tests' *: 9 misses, * eager ops; 4 of 5 tests compiled.",
        ]
    )
    (warm,) = (line for line in result.outlines if "test_warm" in line)
    assert warm.endswith("in its setup")
    properties = {
        case.get("name"): {each.get("name"): each.get("value") for each in case.iter("property")}
        for case in ET.parse(pytester.path / "out.xml").iter("testcase")  # noqa: S314 -- pytest's own
    }
    assert properties["test_three"]["jaxwatch_misses"] == "4"
    assert float(properties["test_three"]["jaxwatch_compile_seconds"] or 0) > 0
    assert properties["test_eager"]["jaxwatch_misses"] == "0"
    assert int(properties["test_eager"]["jaxwatch_eager_compiles"] or 0) > 0
    assert properties["test_nothing"] == {}


def test_a_number_bounds_the_rows_and_a_run_that_compiles_nothing_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=inner.body(BODY))
    assert len(rows(inner.here(pytester, "--jaxwatch-report=2"))) == 2
    pytester.makeini("[pytest]\njaxwatch_report = 3\n")
    assert len(rows(inner.here(pytester))) == 3

    result = inner.here(pytester, "--jaxwatch-report", "-k", "nothing", "-p", "no:randomly")
    result.stdout.fnmatch_lines(["*= jaxwatch: 1 slowest to compile =*", "*test_it.py (import)*"])
    pytester.makepyfile(test_it="def test_it(): ...")
    inner.here(pytester, "--jaxwatch-report").stdout.fnmatch_lines(["*= jaxwatch: nothing was compiled =*"])
    collected = inner.here(pytester, "--jaxwatch-report", "--collect-only")
    collected.stdout.no_fnmatch_line("*= jaxwatch*")
    assert collected.ret == 0


def test_a_path_in_the_place_of_the_number_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it(): ...")
    result = inner.here(pytester, "--jaxwatch-report", "test_it.py")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*'test_it.py' is no whole number. Write --jaxwatch-report=10, or put the option last.*"]
    )


def test_what_tests_do_to_jax_and_to_us_is_no_matter(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it=inner.body("""
        def test_uninstall():
            jaxwatch.uninstall()

        def test_listeners():
            jax.monitoring.clear_event_listeners()

        def test_after_these():
            jax.jit(lambda x: x + 5)(ONE)

        def test_clear():
            step(ONE)
            jax.clear_caches()
            step(ONE)
        """)
    )
    result = inner.here(pytester, "--jaxwatch-report")

    result.assert_outcomes(passed=4)
    assert rows(result) == {"test_after_these": "1 miss", "test_clear": "2 misses"}
    result.stdout.fnmatch_lines(["jaxwatch.uninstall() was called before *::test_listeners: *is not counted"])


def test_a_run_within_a_test_and_a_second_run_count_for_themselves(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it=inner.body("""
        pytest_plugins = ["pytester"]

        def test_it(pytester):
            pytester.makepyfile(test_in="import jax, numpy\\ndef test_in(): jax.jit(lambda x: x + 4)(numpy.ones(3))")
            pytester.runpytest_inprocess("--jaxwatch-report", "-p", "no:cacheprovider").assert_outcomes(passed=1)
            jax.jit(lambda x: x + 6)(ONE)
        """)
    )
    for _ in range(2):
        result = inner.here(pytester, "--jaxwatch-report")
        assert [line for line in result.outlines if "test_it" in line and "misses" in line]
        result.assert_outcomes(passed=1)


def test_an_interrupted_run_tells_what_it_has(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it=inner.body("""
        def test_a():
            step(ONE)

        def test_b():
            raise KeyboardInterrupt
        """)
    )
    result = pytester.runpytest_inprocess(*inner.OPTIONS, "--jaxwatch-report", no_reraise_ctrlc=True)

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert rows(result) == {"test_a": "1 miss"}


def test_switched_off_says_so(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH", "0")
    pytester.makepyfile(test_it=inner.body("@pytest.mark.max_compiles(0)\ndef test_a(): step(ONE)"))
    result = inner.here(pytester, "--jaxwatch-report")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["JAXWATCH=0 in the environment switches jaxwatch off: nothing is counted"])


def test_workers_send_their_figures_also_when_one_of_them_crashes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_it=inner.body("""
        import os

        @pytest.fixture(scope="session")
        def model():
            jaxwatch.jit(lambda x: x * 7, watch=jaxwatch.Watch(name="model"))(ONE)

        def test_a(model): step(ONE), step(TWO)
        def test_b(model): step(THREE)
        def test_crash(): os._exit(3)
        def test_d(): step(np.ones(7))
        """)
    )
    result = inner.apart(pytester, "--jaxwatch-report", "-n", "1")

    result.assert_outcomes(passed=3, failed=1)
    assert rows(result) == {
        "test_a": "2 misses",
        "model (fixture)": "1 miss",
        "test_b": "1 miss",
        "test_d": "1 miss",
    }
