"""The pytest plugin, in pytest's own processes."""

import sys

import cores
import pytest
from programs import ROOT, environment

HEAD = """
    import jax, numpy as np, pytest
    import jaxwatch

    step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
    ONE, TWO, THREE = (np.ones(size, np.float32) for size in (1, 2, 3))
"""


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER", "JAXWATCH", "JAXWATCH_LOG"):
        monkeypatch.delenv(name, raising=False)


def ended(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    lines = body.splitlines()
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    head = "\n".join(line[4:] for line in HEAD.splitlines())
    pytester.makepyfile(head + "\n".join(line[indent:] for line in lines))
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "error", *options)


# ------------------------------------------------------------------ marker


def test_the_marker_allows_each_function_one_miss_and_refuses_a_later_one(pytester: pytest.Pytester) -> None:
    result = ended(
        pytester,
        """
        other = jaxwatch.jit(lambda x: x * 2)

        @pytest.mark.no_retraces
        def test_one_each():
            step(ONE), step(ONE), other(ONE), other(ONE)

        @pytest.mark.no_retraces
        def test_another_shape():
            step(TWO), step(THREE)

        @pytest.mark.no_retraces(allow=2)
        def test_two_allowed():
            step(np.ones(4)), step(np.ones(5))

        @pytest.mark.no_retraces(allow=0)
        def test_none_allowed():
            step(np.ones(6))

        def test_not_marked():
            step(np.ones(7)), step(np.ones(8))

        @pytest.mark.no_retraces
        class TestAll:
            def test_a(self):
                step(np.ones(9)), step(np.ones(10))

            @pytest.mark.no_retraces(allow=5)
            def test_b(self):
                step(np.ones(11)), step(np.ones(12))
        """,
    )

    result.assert_outcomes(passed=4, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*RetraceError: step would be traced again at *_marker_allows*.py:* (call *).",
            "*x: float32[[]*] → float32[[]3]; compared with call *",
            "*Forbidden by the marker no_retraces of *.py::test_another_shape. Nothing was compiled;*",
            "*[[]retrace]",
        ]
    )
    result.stdout.no_fnmatch_line("*jaxwatch/_wrap.py*")


def test_a_marker_with_other_arguments_fails_the_test(pytester: pytest.Pytester) -> None:
    markers = {
        "(3)": "*takes allow=N and nothing else, got (3,) {}*",
        "(alow=3)": "*takes allow=N and nothing else, got () {'alow': 3}*",
        "(allow=-1)": "*no_retraces(allow=-1) is no number of misses*",
        "(allow='two')": "*no_retraces(allow='two') is no number of misses*",
        "(allow=True)": "*no_retraces(allow=True) is no number of misses*",
    }
    tests = (f"@pytest.mark.no_retraces{marker}\ndef test_{n}(): ...\n" for n, marker in enumerate(markers))
    pytester.makepyfile("import pytest\n" + "".join(tests))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")

    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(list(markers.values()))


def test_the_marker_is_declared(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.no_retraces(*, allow=1): each watched function may miss*"])

    pytester.makepyfile("import pytest\n@pytest.mark.no_retraces\ndef test_it(): ...")
    pytester.runpytest_subprocess("--strict-markers", "-p", "no:cacheprovider").assert_outcomes(passed=1)


# ------------------------------------------------------------------ fixture


def test_the_fixture_guards_a_block_or_the_whole_test(pytester: pytest.Pytester) -> None:
    result = ended(
        pytester,
        """
        from jaxwatch import RetraceError

        def test_block(no_retraces):
            step(ONE)
            with no_retraces(step):
                step(ONE)
            step(TWO), step(THREE)  # outside

        def test_block_fails(no_retraces):
            with no_retraces(step):
                step(np.ones(4))

        def test_block_with_options(no_retraces):
            with no_retraces(allow=1):
                step(np.ones(5))
            with no_retraces(step, action="record") as guard:
                step(np.ones(6))
            assert len(guard.broken) == 1

        def test_bare(no_retraces):
            step(np.ones(7)), step(np.ones(7))

        def test_bare_fails_at_its_end(no_retraces):
            step(np.ones(8))
            assert step(np.ones(9)).shape == (9,)
            step(np.ones(10))
            print("the end was reached")

        def test_bare_that_fails_anyway(no_retraces):
            step(np.ones(11)), step(np.ones(12))
            raise LookupError("mine")

        @pytest.fixture
        def model(no_retraces):
            return step

        def test_through_another_fixture(model):
            model(np.ones(13)), model(np.ones(14))

        @pytest.mark.no_retraces(allow=2)
        def test_with_a_marker_too(no_retraces):
            step(np.ones(15)), step(np.ones(16))
        """,
        "-rA",
    )

    result.assert_outcomes(passed=4, failed=4)
    text = result.stdout.str()
    assert "the end was reached" in text
    assert "LookupError: mine" in text
    tail = text[text.index("test_bare_fails_at_its_end") :]
    assert "step was compiled at" in tail
    assert "Forbidden by the fixture no_retraces of" in tail
    assert text.count("[retrace] [retrace]") == 0
    failed = {line.split("::")[1].split()[0] for line in result.outlines if line.startswith("FAILED")}
    assert failed == {
        "test_block_fails",
        "test_bare_fails_at_its_end",
        "test_bare_that_fails_anyway",
        "test_through_another_fixture",
    }


def test_no_guard_stays_in_force_after_a_test(pytester: pytest.Pytester) -> None:
    ended(
        pytester,
        """
        from jaxwatch import _guards

        @pytest.mark.no_retraces
        def test_a():
            step(ONE), step(TWO)

        @pytest.mark.no_retraces
        def test_b():
            pytest.skip("for a reason")

        @pytest.mark.no_retraces
        @pytest.mark.xfail(raises=jaxwatch.RetraceError, strict=True)
        def test_c():
            step(np.ones(4)), step(np.ones(5))

        def test_d():
            assert _guards.in_force() == 0
        """,
    ).assert_outcomes(passed=1, failed=1, skipped=1, xfailed=1)


def test_unittest_classes_can_be_marked(pytester: pytest.Pytester) -> None:
    result = ended(
        pytester,
        """
        import unittest

        class TestStep(unittest.TestCase):
            @pytest.mark.no_retraces
            def test_good(self):
                step(ONE), step(ONE)

            @pytest.mark.no_retraces
            def test_bad(self):
                step(TWO), step(THREE)

            @pytest.fixture(autouse=True)
            def _guard(self, no_retraces):
                self.no_retraces = no_retraces

            def test_block(self):
                with self.no_retraces(step):
                    with self.assertRaises(jaxwatch.RetraceError):
                        step(np.ones(9))
        """,
    )

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*RetraceError: step would be traced again at *"])


# ------------------------------------------------------------------ --jaxwatch

PLAIN = """
    @pytest.fixture
    def plain():
        return jax.jit(lambda x: x - 1)

    def test_it(plain, no_retraces):
        plain(ONE)
        with no_retraces():
            plain(ONE)
            with pytest.raises(jaxwatch.RetraceError):
                plain(TWO)
"""


def test_with_the_option_plain_jit_is_watched(pytester: pytest.Pytester) -> None:
    ended(pytester, PLAIN, "--jaxwatch").assert_outcomes(passed=1)


def test_without_it_plain_jit_is_not(pytester: pytest.Pytester) -> None:
    ended(pytester, PLAIN).assert_outcomes(failed=1)


def test_the_ini_value_does_as_the_option(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\njaxwatch = true\n")
    ended(pytester, PLAIN).assert_outcomes(passed=1)


def test_what_a_conftest_jits_is_watched_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import jax\nstep = jax.jit(lambda x: x + 1)")
    pytester.makepyfile("""
        import jaxwatch, conftest
        def test_it():
            conftest.step(1.0)
            assert jaxwatch.stats(conftest.step).misses == 1
    """)

    pytester.runpytest_subprocess("--jaxwatch", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_what_a_plugin_jitted_before_is_watched_too(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    cores.core("native")
    monkeypatch.delenv("JAXWATCH_CORE", raising=False)
    pytester.makepyfile(early="import jax\nstep = jax.jit(lambda x: x + 1)")
    pytester.makepyfile("""
        import jaxwatch, early
        def test_it():
            early.step(1.0)
            assert jaxwatch.stats(early.step).misses == 1
    """)
    pytester.syspathinsert()

    pytester.runpytest_subprocess("-p", "early", "--jaxwatch", "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_workers_of_xdist_guard_as_well(pytester: pytest.Pytester) -> None:
    body = PLAIN + "".join(
        f"""
    @pytest.mark.no_retraces
    def test_{name}():
        jitted = jax.jit(lambda x: x * 3)
        jitted(ONE), jitted({name})
"""
        for name in ("ONE", "TWO")
    )

    result = ended(pytester, body, "--jaxwatch", "-n", "2")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*RetraceError: * would be traced again at *", "*[[]retrace]"])


# ------------------------------------------------------------------ out of the way


def test_without_the_plugin_there_is_neither_option_nor_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.no_retraces\ndef test_it(): ...")
    options = "-p", "no:jaxwatch", "-p", "no:cacheprovider"

    result = pytester.runpytest_subprocess(*options, "--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'no_retraces' not found in `markers`*"])
    result = pytester.runpytest_subprocess(*options, "--jaxwatch")
    assert result.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("option", [(), ("--jaxwatch",)])
def test_the_plugin_itself_loads_no_jax_and_none_of_the_engine(
    option: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    pytester.makepyfile("""
        import sys
        def test_it():
            heavy = {"jax", "numpy", "structlog", "rich", "prometheus_client", "jaxwatch._core", "jaxwatch._guards"}
            assert not heavy & set(sys.modules)
    """)

    pytester.runpytest_subprocess("-p", "no:cacheprovider", *option).assert_outcomes(passed=1)


def test_it_is_found_by_its_entry_point() -> None:
    from importlib.metadata import entry_points

    (found,) = (entry for entry in entry_points(group="pytest11") if entry.name == "jaxwatch")
    assert found.value == "jaxwatch.pytest_plugin"
    assert sys.version_info >= (3, 11)
    assert (ROOT / "jaxwatch" / "pytest_plugin.py").exists()
