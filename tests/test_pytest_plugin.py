"""The pytest plugin: its markers, its fixture, its options; most runs of pytest are in this process."""

import sys

import cores
import inner
import pytest
from programs import ROOT


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    inner.clean_environment(monkeypatch)


def ended(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(inner.body(body))
    return inner.here(pytester, *options)


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
    result = inner.here(pytester)

    result.assert_outcomes(failed=5)
    result.stdout.fnmatch_lines(list(markers.values()))


def test_the_marker_is_declared(pytester: pytest.Pytester) -> None:
    result = inner.here(pytester, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.no_retraces(*, allow=1): each watched function may miss*"])

    pytester.makepyfile("import pytest\n@pytest.mark.no_retraces\ndef test_it(): ...")
    inner.here(pytester, "--strict-markers").assert_outcomes(passed=1)


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


# ------------------------------------------------------------------ limits


def test_max_traces_holds_each_function_to_so_many_misses_in_the_call(pytester: pytest.Pytester) -> None:
    result = ended(
        pytester,
        """
        other = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="Model.other"))

        @pytest.fixture
        def warm():
            for size in (21, 22, 23):
                step(np.ones(size))

        @pytest.mark.max_traces(2)
        def test_two_each():
            step(ONE), step(TWO), step(TWO), other(ONE), other(TWO)

        @pytest.mark.max_traces(1)
        def test_one_too_many():
            step(np.ones(4)), step(np.ones(5)), step(np.ones(6)), other(np.ones(4))

        @pytest.mark.max_traces(0)
        def test_a_fixture_may(warm, request):
            step(np.ones(21))

        @pytest.fixture
        def late():
            return step(np.ones(30))

        @pytest.mark.max_traces(0)
        @pytest.mark.no_retraces(allow=0)
        def test_a_fixture_asked_for_late_may_too(request):
            request.getfixturevalue("late")

        @pytest.mark.max_traces(1, "step")
        def test_of_one_name():
            step(np.ones(7)), other(np.ones(7)), other(np.ones(8))

        @pytest.mark.max_traces(1, "other")
        def test_of_the_last_part_of_a_name():
            other(np.ones(9)), other(np.ones(10))

        @pytest.mark.max_traces(1, "stpe")
        def test_of_a_name_that_is_none():
            step(np.ones(11))

        @pytest.mark.max_traces(2)
        def test_jitted_anew():
            for _ in range(3):
                jaxwatch.jit(lambda x: x - 1)(ONE)

        @pytest.mark.max_traces(1)
        def test_that_fails_anyway():
            step(np.ones(12)), step(np.ones(13))
            raise LookupError("mine")
        """,
    )

    failed = {line.split("::")[1].split()[0] for line in result.outlines if line.startswith("FAILED")}
    assert failed == {
        "test_one_too_many",
        "test_of_the_last_part_of_a_name",
        "test_of_a_name_that_is_none",
        "test_jitted_anew",
        "test_that_fails_anyway",
    }
    result.assert_outcomes(passed=4, failed=5)
    result.stdout.fnmatch_lines(
        [
            "Compiles too often: step 3 times, more than 1.",
            "  step: x: *[[]5]; *.py:*, call *",
            "Limited by the marker max_traces of *::test_one_too_many. [[]max-compiles]",
            "*names stpe: no watched function that was called is named so (there is: *step*",
            "Compiles too often: <lambda> 3 times, more than 2.",
            "*LookupError: mine",
        ]
    )


def test_max_compiles_holds_all_functions_together_and_the_marker_goes_before_the_option(
    pytester: pytest.Pytester,
) -> None:
    body = """
        other = jaxwatch.jit(lambda x: x * 2)

        def test_three():
            step(ONE), step(TWO), other(ONE)

        @pytest.mark.max_compiles(3)
        def test_three_allowed():
            step(np.ones(4)), step(np.ones(5)), other(np.ones(5))

        @pytest.mark.max_compiles(0)
        @pytest.mark.xfail(strict=True)
        def test_none_allowed():
            step(np.ones(6))
        """
    ended(pytester, body).assert_outcomes(passed=2, xfailed=1)
    result = ended(pytester, body, "--jaxwatch-max-compiles=2")
    result.assert_outcomes(passed=1, failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "Compiles too much: 3 misses of watched functions, more than 2.",
            "Limited by --jaxwatch-max-compiles 2. [[]max-compiles]",
        ]
    )
    pytester.makeini("[pytest]\njaxwatch_max_compiles = 2\n")
    ended(pytester, body).assert_outcomes(passed=1, failed=1, xfailed=1)
    ended(pytester, body, "--jaxwatch-max-compiles=9").assert_outcomes(passed=2, xfailed=1)


def test_the_option_watches_plain_jit_and_ends_with_the_run(pytester: pytest.Pytester) -> None:
    import jax

    from jaxwatch import _install

    before = jax.jit
    result = ended(pytester, "def test_it():\n    jax.jit(lambda x: x + 1)(ONE)", "--jaxwatch-max-compiles=0")

    result.assert_outcomes(failed=1)
    assert (jax.jit, _install.installed()) == (before, False)


def test_limits_that_mean_nothing_are_told(pytester: pytest.Pytester) -> None:
    markers = {
        "max_traces": "*max_traces got () {}. Give a number of misses from 0*",
        "max_traces(-1)": "*max_traces got (-1,) {}*",
        "max_traces(True)": "*max_traces got (True,) {}*",
        "max_traces(1, step)": "*max_traces got (1, <*>) {}*",
        "max_traces(n=1)": "*max_traces got () {'n': 1}*",
        "max_compiles(1, 'step')": "*max_compiles takes one number, got (1, 'step')*",
    }
    tests = (f"@pytest.mark.{marker}\ndef test_{n}(): ...\n" for n, marker in enumerate(markers))
    result = ended(pytester, "\n".join(tests))
    result.assert_outcomes(failed=6)
    result.stdout.fnmatch_lines(list(markers.values()))

    result = ended(pytester, "def test_it(): ...", "--jaxwatch-max-compiles=few")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*'few' is no whole number. Give 0 or more. [[]bad-option]*"])
    pytester.makeini("[pytest]\njaxwatch_max_compiles = few\n")
    result = ended(pytester, "def test_it(): ...")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*jaxwatch_max_compiles in *tox.ini: 'few' is no whole number*"])


def test_unittests_and_doctests_have_limits_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
        import pytest
        def pytest_collection_modifyitems(items):
            for item in items:
                if "doctest" in type(item).__name__.lower():
                    item.add_marker(pytest.mark.max_traces(1))
    """)
    result = ended(
        pytester,
        '''
        import unittest

        def doubled(x):
            """Twice x.

            >>> step(np.ones(31)).shape, step(np.ones(32)).shape
            ((31,), (32,))
            """

        class TestStep(unittest.TestCase):
            @pytest.mark.max_traces(1)
            def test_it(self):
                step(np.ones(33)), step(np.ones(34))

        ''',
        "--doctest-modules",
    )

    result.assert_outcomes(failed=2)
    assert result.stdout.lines.count("Compiles too often: step 2 times, more than 1.") == 2


def test_async_tests_have_limits_too(pytester: pytest.Pytester) -> None:
    pytest.importorskip("anyio")
    result = ended(
        pytester,
        """
        @pytest.fixture
        async def warm():
            step(np.ones(34))

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        class TestAsync:
            @pytest.mark.max_traces(1)
            async def test_too_many(self, anyio_backend, warm):
                step(np.ones(35)), step(np.ones(36))

            @pytest.mark.max_traces(1)
            @pytest.mark.no_retraces
            async def test_good(self, anyio_backend, warm):
                step(np.ones(37)), step(np.ones(37))
        """,
    )

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["Compiles too often: step 2 times, more than 1."])


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

    pytester.makepyfile(inner.body(body))
    result = inner.apart(pytester, "--jaxwatch", "-n", "2")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*RetraceError: * would be traced again at *", "*[[]retrace]"])


# ------------------------------------------------------------------ out of the way


def test_without_the_plugin_there_is_neither_option_nor_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.no_retraces\ndef test_it(): ...")
    options = "-p", "no:jaxwatch"

    result = inner.apart(pytester, *options, "--strict-markers")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'no_retraces' not found in `markers`*"])
    result = inner.here(pytester, *options, "--jaxwatch")
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
