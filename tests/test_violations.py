"""What a broken guard leaves: an event, a count, a warning or a line, and never more than was asked for."""

import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import cores
import numpy as np
import pytest
from programs import environment, records, run
from published import Events

import jaxwatch
from jaxwatch import Watch, _policy, no_retraces, stance
from jaxwatch._steady import steady
from jaxwatch.errors import JaxwatchWarning
from jaxwatch.events import Violation

X = np.arange(4, dtype=np.float32)
LENGTHS = iter(range(5, 10_000))


def new() -> Any:
    """Return an argument of a signature that was not there before."""
    return np.zeros(next(LENGTHS), np.float32)


@pytest.fixture(params=cores.CORES, autouse=True)
def core(request: pytest.FixtureRequest, fresh: None) -> Iterator[str]:
    """Run each test with both cores."""
    del fresh
    with cores.in_use(request.param):
        yield request.param


def jitted(**values: Any) -> Any:
    return jaxwatch.jit(lambda x: x + 1, watch=Watch(name="step", **values))


# ------------------------------------------------------------------ after the warm-up


def test_after_so_many_seconds_each_miss_is_a_violation_that_warns_nobody_by_python(events: Events) -> None:
    clock = [0.0]
    _policy.Process.steady = steady("300 s", by="{}", clock=lambda: clock[0])
    step, late = jitted(), jaxwatch.jit(lambda x: x * 2)
    step(X)
    clock[0] = 299.0
    step(new())
    assert events.of(Violation) == []
    clock[0] = 300.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(new())
        late(X)  # a first call, too
        late(X)

    found = events.of(Violation)
    assert [(each.action, each.by, each.limit) for each in found] == [("warn", "steady_after='300 s'", None)] * 2
    assert [each.miss for each in found] == [miss.id for miss in events.misses[2:]]
    assert [miss.steady for miss in events.misses] == [False, False, True, True]
    assert [each.site for each in found] == [miss.site for miss in events.misses[2:]]
    assert jaxwatch.stats(step).violations == {"warn": 1}


def test_after_so_many_calls_of_a_function_and_of_no_other(events: Events) -> None:
    _policy.Process.steady = steady("3 calls", by="{}")
    step, late = jitted(), jaxwatch.jit(lambda x: x * 2)
    for _ in range(2):
        step(X)
    step(new())
    late(X)
    assert events.of(Violation) == []
    step(new())

    assert [each.function for each in events.of(Violation)] == ["step"]


def test_a_lambda_that_is_jitted_anew_at_each_call_becomes_steady_too(events: Events) -> None:
    _policy.Process.steady = steady("3 calls", by="{}")
    for _ in range(5):
        jitted()(X)

    assert [miss.steady for miss in events.misses] == [False, False, False, True, True]


def test_a_function_that_says_what_it_may_and_a_block_that_expects_it_are_left_alone(events: Events) -> None:
    _policy.Process.steady = steady("0 s", by="{}")
    jitted(max_signatures=2)(X)
    jitted(on_retrace="record")(X)
    with stance("record"):
        jitted()(X)
    with stance("warn"), pytest.warns(JaxwatchWarning):
        jitted()(X)
    assert [each.by.partition(" ")[0] for each in events.of(Violation)] == ["stance('warn')"]

    assert not any(miss.steady for miss in events.misses)


def test_a_guard_and_the_warm_up_are_both_counted(events: Events) -> None:
    _policy.Process.steady = steady("0 s", by="{}")
    with no_retraces(action="record") as guard:
        jitted()(X)

    assert [each.action for each in events.of(Violation)] == ["record", "warn"]
    assert len(guard.broken) == 1


# ------------------------------------------------------------------ limits of the process


def test_limits_of_the_process_are_of_every_function_that_has_none(events: Events) -> None:
    jaxwatch.configure(max_signatures=1, on_retrace="raise")
    one, two = jitted(), jitted(max_signatures=2, on_retrace="warn")
    for function in (one, two):
        function(X)
    two(new())
    with pytest.raises(jaxwatch.RetraceError, match=r"Forbidden by configure\(max_signatures=1\)"):
        one(new())
    with pytest.warns(JaxwatchWarning, match=r"Forbidden by Watch\(max_signatures=2\)"):
        two(new())

    assert [(each.action, each.limit) for each in events.of(Violation)] == [("raise", 1), ("warn", 2)]


def test_the_first_call_is_free_and_a_lambda_jitted_anew_is_no_first_call() -> None:
    jaxwatch.configure(on_retrace="raise")
    made = [jitted() for _ in range(2)]
    made[0](X)
    made[0](X)
    with pytest.raises(jaxwatch.RetraceError, match="Forbidden by configure"):
        made[1](X)
    jaxwatch.jit(lambda x: x * 3)(X)


# ------------------------------------------------------------------ Python's warnings


def test_a_warning_goes_to_logging_where_the_program_captures_them(caplog: pytest.LogCaptureFixture) -> None:
    step = jitted(on_retrace="warn")
    step(X)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=True)
        try:
            step(new())
        finally:
            logging.captureWarnings(capture=False)

    (record,) = (record for record in caplog.records if record.name == "py.warnings")
    assert "JaxwatchWarning: step was compiled at" in record.getMessage()


@pytest.mark.parametrize("core", ["native"], indirect=True)
def test_the_environment_sets_the_warm_up_of_an_unchanged_program(tmp_path: Any, core: str) -> None:
    del core
    script, log = tmp_path / "train.py", tmp_path / "run.jsonl"
    script.write_text(
        "import jax, numpy as np\nstep = jax.jit(lambda x: x + 1)\n"
        "for n in (1, 1, 1, 2):\n    print(step(np.ones(n))[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "jaxwatch", "run", "--log", str(log), str(script)],
        env=environment(JAXWATCH_STEADY_AFTER="3 calls"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert (done.returncode, done.stdout) == (0, "2.0\n" * 4), done.stderr
    assert "[warning  ] compiled after warm-up" in done.stderr
    (told,) = records(log, "violation")
    assert (told["action"], told["by"], told["site"]) == ("warn", "steady_after='3 calls'", f"{script}:4")
    assert [miss["steady"] for miss in records(log, "cache_miss")] == [False, True]


@pytest.mark.parametrize("core", ["native"], indirect=True)
def test_a_bad_variable_is_one_warning_and_the_program_goes_on(core: str) -> None:
    del core
    ended = run("import jaxwatch; print(jaxwatch.jit(lambda x: x + 1)(1.0))", JAXWATCH_STEADY_AFTER="300")

    assert (ended.code, ended.out) == (0, "2.0\n")
    assert ended.err.count("JAXWATCH_STEADY_AFTER='300' says neither seconds nor calls.") == 1
