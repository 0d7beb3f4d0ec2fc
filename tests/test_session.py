"""What a process has running: its log, its lines, and what is written when it ends, in whatever way."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import records, run, run_file
from test_events import MISS

import jaxwatch
from jaxwatch import _policy, _session
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch._session import SESSION
from jaxwatch.errors import BadOptionError, LogUnwritableError

PROGRAM = """
import sys
import jaxwatch
step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
for value in (1.0, 2.0, 3):
    step(value)
{end}
"""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Start from a session without a log, and put things back."""
    console = HUB._exporters.get("console")
    monkeypatch.setattr(SESSION, "log", None)
    monkeypatch.setattr(SESSION, "ticker", threading.Event())  # so that no thread is started
    yield
    if SESSION.log is not None:
        SESSION.log.close()
    HUB.remove("log")
    HUB.remove("console")
    if console is not None:
        HUB.add("console", console)


# ------------------------------------------------------------------ start and end


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("", 0),
        ("sys.exit(3)", 3),
        ("1 // 0", 1),
        ("import threading; threading.Thread(target=step, args=(4,)).start()", 0),
    ],
)
def test_a_run_is_told_at_its_start_and_its_end_with_the_figures_of_each_function(
    end: str, code: int, tmp_path: Path, fresh_log: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(PROGRAM.format(end=end))
    ended = run_file(program, "--epochs", "3", JAXWATCH_LOG=str(fresh_log))
    assert ended.code == code, ended.err

    found = records(fresh_log)
    assert (found[0]["event"], found[0]["phase"]) == ("run", "start")
    assert (found[-1]["event"], found[-1]["phase"]) == ("run", "end")
    assert found[0]["argv"] == [str(program), "--epochs", "3"]
    assert found[0]["program"] == str(program)
    assert found[0]["jax_version"]
    assert found[-1]["wall_seconds"] > found[0]["wall_seconds"] >= 0
    (stats,) = records(fresh_log, "function_stats")
    calls = 4 if "Thread" in end else 3
    assert (stats["function"], stats["calls"], stats["misses"], stats["signatures"]) == ("step", calls, 2, 2)
    assert sum(stats["dispatch"].values()) == calls - 2
    assert len({record["pid"] for record in found}) == 1


def test_figures_are_written_now_and_then_and_are_there_after_sigkill(fresh_log: Path) -> None:
    ended = run(
        """
        import os, signal
        import jaxwatch
        from jaxwatch import _limits
        _limits.STATS_EVERY_SECONDS = 0.02
        step = jaxwatch.jit(lambda x: x + 1)
        calls = 0
        while open(os.environ["JAXWATCH_LOG"]).read().count("function_stats") < 3:
            step(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        JAXWATCH_LOG=str(fresh_log),
    )
    assert ended.code == -signal.SIGKILL

    calls = [record["calls"] for record in records(fresh_log, "function_stats")]
    assert calls == sorted(calls)
    assert calls[-1] > 0
    assert [record["phase"] for record in records(fresh_log, "run")] == ["start"]


@pytest.mark.parametrize("path", ["nowhere/run.jsonl", "."])
def test_a_log_that_cannot_be_written_is_one_warning_and_the_program_goes_on(path: str, tmp_path: Path) -> None:
    ended = run(
        """
        import jaxwatch
        step = jaxwatch.jit(lambda x: x + 1)
        print(step(1.0), step(2))
        """,
        folder=tmp_path,
        JAXWATCH_LOG=path,
    )

    assert (ended.code, ended.out) == (0, "2.0 3\n")
    assert ended.err.count("cannot write the log to") == 1
    assert ended.err.count("[log-unwritable]") == 1


def test_without_a_log_there_is_no_thread_and_no_word() -> None:
    ended = run("""
        import threading
        import jaxwatch
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0)
        print([thread.name for thread in threading.enumerate()])
    """)

    assert (ended.out, ended.err) == ("['MainThread']\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_writes_under_its_own_number(fresh_log: Path) -> None:
    ended = run(
        """
        import os, sys, warnings
        import jaxwatch
        warnings.simplefilter("ignore")  # jax's and Python's, that fork and threads do not go together
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0)
        child = os.fork()
        if not child:
            step(2.0)
            jaxwatch._session._end()  # what atexit runs; jax itself hangs in a child that exits so
            os._exit(0)
        os.waitpid(child, 0)
        """,
        JAXWATCH_LOG=str(fresh_log),
    )
    assert ended.code == 0, ended.err

    ends = [record for record in records(fresh_log, "run") if record["phase"] == "end"]
    stats = {record["pid"]: record["calls"] for record in records(fresh_log, "function_stats")}
    assert len({record["pid"] for record in ends}) == 2
    assert list(stats.values()) == [1, 1], "a call is counted in the process that made it"


def test_a_fault_at_the_end_is_counted_and_not_seen(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    del fresh

    def failing() -> None:
        raise RuntimeError

    monkeypatch.setattr(_session, "write_stats", failing)
    _session._end()

    assert REGISTRY.snapshot().dropped == {"log_line": 1}


# ------------------------------------------------------------------ configure


def test_a_log_may_be_chosen_in_the_program(session: None, fresh_log: Path) -> None:
    del session
    jaxwatch.configure(log=fresh_log)
    HUB.publish(MISS)

    assert _session.log_in_use() == str(fresh_log)
    assert [record["event"] for record in records(fresh_log)] == ["run", "cache_miss"]


def test_another_log_takes_the_place_of_the_first(session: None, tmp_path: Path) -> None:
    del session
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    jaxwatch.configure(log=one)
    first = SESSION.log
    assert first is not None
    jaxwatch.configure(log=str(two))
    HUB.publish(MISS)

    assert first._fd == -1, "it is closed"
    assert [record["event"] for record in records(one)] == ["run"]
    assert [record["event"] for record in records(two)] == ["run", "cache_miss"]
    assert _session.log_in_use() == str(two)


def test_a_log_that_cannot_be_opened_leaves_the_first_in_use(session: None, tmp_path: Path) -> None:
    del session
    jaxwatch.configure(log=tmp_path / "one.jsonl")
    with pytest.raises(LogUnwritableError):
        jaxwatch.configure(log=tmp_path)
    HUB.publish(MISS)

    assert len(records(tmp_path / "one.jsonl", "cache_miss")) == 1


def test_the_console_is_switched_off_and_on(session: None) -> None:
    del session
    for _ in range(2):
        jaxwatch.configure(console=False)
        assert "console" not in HUB.names
        jaxwatch.configure(console=True)
        assert "console" in HUB.names
    jaxwatch.configure()
    assert "console" in HUB.names


@pytest.mark.parametrize(
    "values",
    [
        *({"log": wrong} for wrong in (3, True)),
        {"log": ["a"]},
        *({"console": wrong} for wrong in (1, "yes")),
        *({"max_signatures": wrong} for wrong in (0, True)),
        {"on_retrace": "explode"},
        {"progress": 1},
        {"on_retrace": []},
        *({"steady_after": wrong} for wrong in (300, "300")),
    ],
)
def test_bad_values_are_named_and_change_nothing(session: None, values: dict[str, Any]) -> None:
    del session
    (name,) = values
    before = HUB.names
    with pytest.raises(BadOptionError, match=rf"configure\({name}=.*\[bad-option\]"):
        jaxwatch.configure(**values)

    assert HUB.names == before
    assert _session.log_in_use() is None


def test_each_rule_stays_as_it_is_until_another_one_is_given(session: None) -> None:
    del session
    jaxwatch.configure(steady_after="300 s", max_signatures=4, on_retrace="warn")
    jaxwatch.configure(console=True)
    process: Any = _policy.Process
    assert process.steady is not None
    assert (process.steady.text, process.max_signatures, process.on_retrace) == ("300 s", 4, "warn")
    jaxwatch.configure(steady_after="never", on_retrace="record")
    assert (process.steady, process.max_signatures, process.on_retrace) == (None, 4, "record")


def test_a_bad_value_beside_a_good_one_opens_nothing(session: None, fresh_log: Path) -> None:
    del session
    bad: Any = 1
    with pytest.raises(BadOptionError):
        jaxwatch.configure(log=fresh_log, console=bad)

    assert not fresh_log.exists()


def test_configure_before_anything_is_watched_imports_no_jax(fresh_log: Path) -> None:
    ended = run(
        """
        import sys
        import jaxwatch
        jaxwatch.configure(log=sys.argv[1])
        assert "jax" not in sys.modules
        """,
        str(fresh_log),
    )
    assert ended.code == 0, ended.err

    start, end = records(fresh_log, "run")
    assert (start["jax_version"], end["jax_version"]) == (None, None)


def test_the_log_of_the_program_comes_before_that_of_the_environment(tmp_path: Path) -> None:
    ended = run(
        """
        import jaxwatch
        jaxwatch.configure(log="mine.jsonl")
        jaxwatch.jit(lambda x: x)(1.0)
        """,
        folder=tmp_path,
        JAXWATCH_LOG=str(tmp_path / "theirs.jsonl"),
    )
    assert ended.code == 0, ended.err

    assert len(records(tmp_path / "mine.jsonl", "cache_miss")) == 1
    assert not (tmp_path / "theirs.jsonl").exists()
