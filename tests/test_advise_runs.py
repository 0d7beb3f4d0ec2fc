"""``jaxwatch advise`` on real programs, in processes of their own, as people call it."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import programs
import pytest

import jaxwatch
from jaxwatch._advise import api, spawn
from jaxwatch._advise.outcome import Outcome, Workload
from jaxwatch._advise.search import Search
from jaxwatch.errors import BadOptionError, WorkloadError

TWO = """
    import os
    import jax, jax.numpy as jnp

    @jax.jit
    def f(x):
        return 2 * x + jnp.sin(x)

    @jax.jit
    def g(x):
        for _ in range(4):
            x = f(x)
        return x / 16

    def main():
        x = jnp.ones(100)
        for _ in range(300):
            x = g(x)
        return x

    if __name__ == "__main__":
        with open("ran", "a") as file:
            print(os.environ["JAXWATCH_ADVISE"], os.environ.get("JAXWATCH_JIT_SCOPE", "-"), file=file)
        print("the program's own output", main()[0])
"""


def written(folder: Path, text: str, name: str = "program.py") -> Path:
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def command(*arguments: str, folder: Path, **variables: str) -> programs.Ended:
    done = subprocess.run(
        [sys.executable, "-m", "jaxwatch", "advise", *arguments],
        cwd=folder,
        env=programs.environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return programs.Ended(done.returncode, done.stdout, done.stderr)


def once(path: Path | Workload, jitted: list[str] | None = None, **more: Any) -> Outcome:
    workload = path if isinstance(path, Workload) else Workload(argv=(str(path),))
    options = {"number": 1, "look": True, "calls": None, "limit_seconds": 60.0, **more}
    return spawn.run(workload, jitted, **options)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.setenv("PYTHONPATH", str(programs.ROOT))
    monkeypatch.chdir(tmp_path)


# ------------------------------------------------------------------ the whole command


def test_a_program_is_compared_and_its_jits_are_told(tmp_path: Path) -> None:
    written(tmp_path, TWO)

    done = command("--yes", "--budget", "45", "--json", "advice.json", "program.py", folder=tmp_path)

    assert done.code == 0, done.err
    assert "the program's own output" not in done.out + done.err
    assert "4 scopes: " in done.err
    assert "will run once to find its functions" in done.err
    assert done.out.startswith("jaxwatch advise · program.py · 300 calls of watched functions, 4 scopes")
    found = json.loads((tmp_path / "advice.json").read_text())
    by_jit = {tuple(sorted(scope["jit"])): scope for scope in found["scopes"]}
    assert set(by_jit) == {("f", "g"), ("f",), ("g",), ()}
    assert found["calls"] == 300
    for jitted, scope in by_jit.items():
        assert sorted([*scope["jit"], *scope["bypassed"]]) == ["f", "g"]
        assert scope["total_seconds"] > 0
        assert scope["misses"] == (1 if jitted else 0)
        assert scope["results_differ"] is None
        assert not scope["error"]
    assert found["scopes"][0]["as_written"]
    assert found["recommended"] is None or "g" in found["scopes"][found["recommended"]]["jit"]
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert [number for number, _ in ran] == [str(n + 1) for n in range(found["runs"])]
    assert {tuple(sorted(scope.split(","))) for _, scope in ran} == {("-",), ("f", "g"), ("f",), ("g",), ("none",)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere.py"], r"cannot run nowhere\.py.*\[no-program\]"),
        (["--budget", "0", "program.py"], r"0\.0 seconds allows no run.*\[bad-option\]"),
        (["--functions", " ,", "program.py"], r"No function is named.*\[bad-option\]"),
        (["--functions", "h", "program.py"], r"names 'h', which is no watched function.*f, g.*\[bad-option\]"),
        (["--json", "no/where.json", "program.py"], r"no/where\.json cannot be written.*\[bad-option\]"),
        (
            ["fails.py"],
            r"fails\.py fails by itself: ZeroDivisionError: division by zero.*fails\.py\", line 2.*\[workload\]",
        ),
        (["exits.py"], r"exits\.py fails by itself: SystemExit: 3.*\[workload\]"),
        (["plain.py"], r"plain\.py called nothing that is jitted.*\[workload\]"),
        (["program:nothing"], r"The module program has no function nothing.*\[bad-option\]"),
        (["nomodule:main"], r"nomodule:main cannot be imported: ModuleNotFoundError.*\[bad-option\]"),
        (["-m", "nomodule"], r"no module named nomodule.*\[no-program\]"),
    ],
)
def test_what_cannot_be_compared_is_said_with_the_way_out(tmp_path: Path, arguments: list[str], says: str) -> None:
    written(tmp_path, TWO)
    written(tmp_path, "import jax\n1 / 0\n", "fails.py")
    written(tmp_path, "raise SystemExit(3)\n", "exits.py")
    written(tmp_path, "print(1)\n", "plain.py")

    done = command("--yes", *arguments, folder=tmp_path)

    assert done.code == 2
    assert done.out == ""
    assert re.search(says, done.err, re.DOTALL), done.err


def test_nothing_runs_where_the_answer_on_a_terminal_is_no(tmp_path: Path) -> None:
    import pty

    written(tmp_path, TWO)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "jaxwatch", "advise", "program.py"],
        cwd=tmp_path,
        env=programs.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, b"n\n")

    assert process.wait(60) == 1
    os.close(ours)
    assert not (tmp_path / "ran").exists()


def test_ctrl_c_tells_what_is_known_and_leaves_no_process(tmp_path: Path) -> None:
    written(tmp_path, TWO)
    process = subprocess.Popen(
        [sys.executable, "-c", programs.HEARS_CTRL_C, "advise", "--yes", "program.py"],
        cwd=tmp_path,
        env=programs.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ran = tmp_path / "ran"
    for _ in range(600):
        if ran.exists() and len(ran.read_text().splitlines()) >= 4:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130, err
    assert "Interrupted: it tells what was known by then." in " ".join(out.split())
    assert "Traceback" not in err


# ------------------------------------------------------------------ one run


def test_a_run_is_ended_after_so_many_calls(tmp_path: Path) -> None:
    found = once(written(tmp_path, TWO), calls=7)

    assert (found.ended, found.calls) == ("calls", 7)


def test_a_run_is_ended_in_time_and_tells_how_far_it_came(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import time, jax, jax.numpy as jnp
        f = jax.jit(lambda x: x + 1)
        for _ in range(10_000):
            f(jnp.ones(3))
            time.sleep(0.05)
        """,
    )

    found = once(path, limit_seconds=6.0)

    assert found.ended == "time"
    assert 0 < found.calls < 10_000
    assert found.total_seconds > 0
    assert found.steady is not None


@pytest.mark.parametrize("core", ["native", "python"])
def test_both_cores_tell_the_same_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: str) -> None:
    monkeypatch.setenv("JAXWATCH_CORE", core)

    found = once(written(tmp_path, TWO), ["f"])

    assert (found.ended, found.calls, found.misses) == ("end", 300, 1)
    assert {f.name: (f.calls, f.outermost) for f in found.functions} == {"g": (300, 300), "f": (1200, 0)}
    assert found.steady is not None
    assert found.curve[-1][0] == 300
    assert sorted(map(int, found.samples)) == [1, 2, 4, 8, 16, 32, 64, 128, 256]


def test_the_environment_that_a_program_sets_before_jax_is_heeded(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import os
        os.environ["JAX_ENABLE_X64"] = "1"
        import jax, jax.numpy as jnp
        jax.jit(lambda x: x * 2)(jnp.ones(3))
        """,
    )

    assert once(path).samples["1"][0]["dtype"] == "float64"


def test_a_program_that_imports_jaxwatch_itself_is_measured_too(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import jaxwatch, jax.numpy as jnp
        step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
        step(jnp.ones(3)), step(jnp.ones(3))
        """,
    )

    assert [(f.name, f.outermost) for f in once(path).functions] == [("step", 2)]


def test_a_disk_cache_of_the_users_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    path = written(tmp_path, TWO)

    assert [once(path).disk_hits for _ in range(2)] == [0, 0]
    assert not (tmp_path / "cache").exists()


# ------------------------------------------------------------------ scopes that go wrong


def searched(path: Path, **more: Any) -> Any:
    search = Search(Workload(argv=(str(path),)), spawn.run, budget_seconds=30.0, **more)
    return api.completed(search, search.look)


def test_a_scope_that_fails_is_told_and_not_taken(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import jax, jax.numpy as jnp
        @jax.jit
        def traced_only(x):
            return x if isinstance(x, jax.core.Tracer) else x.no_such_attribute
        for _ in range(3):
            traced_only(jnp.ones(3))
        """,
    )

    found = searched(path)

    failed = next(scope for scope in found.scopes if not scope.jit)
    assert "no_such_attribute" in failed.error
    assert found.scopes[found.recommended].jit == ("traced_only",)


def test_a_scope_with_other_results_is_told_and_not_taken(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import jax, jax.numpy as jnp
        count = 0
        @jax.jit
        def counted(x):
            global count
            count += 1
            return x * count
        for _ in range(4):
            counted(jnp.ones(3))
        """,
    )

    found = searched(path)

    apart = next(scope for scope in found.scopes if not scope.jit).difference
    assert apart is not None
    assert (apart.call, apart.early) == (2, True)
    assert found.recommended != next(n for n, scope in enumerate(found.scopes) if not scope.jit)


def test_results_that_vary_from_run_to_run_are_not_compared(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        import os, jax, jax.numpy as jnp, numpy as np
        scaled = jax.jit(lambda x, s: x * s)
        for _ in range(4):
            scaled(jnp.ones(3), int.from_bytes(os.urandom(3), "big"))
        """,
    )

    found = searched(path)

    assert all(scope.difference is None for scope in found.scopes)
    assert any("vary from run to run" in note for note in found.notes)


def test_a_budget_that_is_spent_tells_what_it_did_not_allow(tmp_path: Path) -> None:
    path = written(tmp_path, TWO)
    clock = iter([0.0, 0.0, 2.0] + [199.0] * 1000)
    search = Search(Workload(argv=(str(path),)), spawn.run, budget_seconds=200.0, clock=lambda: next(clock))

    found = api.completed(search, search.look)

    assert found.recommended is None
    assert any(note.startswith("The budget of 200 s did not allow: ") for note in found.notes)
    assert str(found)


# ------------------------------------------------------------------ functions as workloads


def test_a_function_of_a_module_is_a_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, TWO, "workload_of_mine.py")
    monkeypatch.syspath_prepend(str(tmp_path))

    found = jaxwatch.advise("workload_of_mine:main", ["f"], calls=20, budget_seconds=30)

    assert {scope.jit for scope in found.scopes} == {("f",), ()}
    assert found.calls == 20
    assert found.workload == "workload_of_mine:main"


@pytest.mark.parametrize(
    ("workload", "says"),
    [
        (lambda: None, "has no function <lambda>"),
        (3, "is a int, and no function of a module"),
        ("no function", "names no function"),
        ("json:nothing", "has no function nothing"),
        ("json:decoder", "has no function decoder"),
        (len, "is a builtin_function_or_method"),
    ],
)
def test_what_no_other_process_can_import_is_no_workload(workload: Any, says: str) -> None:
    with pytest.raises(BadOptionError, match=says):
        jaxwatch.advise(workload)


def test_a_function_of_the_program_itself_is_no_workload() -> None:
    done = programs.run("import jaxwatch\ndef work(): pass\njaxwatch.advise(work)\n")

    assert "is of __main__, the program that runs" in done.err


@pytest.mark.parametrize("bounds", [{"budget_seconds": 0}, {"budget_seconds": "x"}, {"calls": 0}, {"calls": 1.5}])
def test_bounds_that_mean_nothing_are_refused(bounds: Any) -> None:
    with pytest.raises(BadOptionError):
        jaxwatch.advise("json:dumps", **bounds)


def test_one_text_is_no_list_of_functions() -> None:
    with pytest.raises(BadOptionError, match="is one text"):
        jaxwatch.advise("json:dumps", "f")


def test_a_function_that_jits_nothing_is_no_workload() -> None:
    with pytest.raises(WorkloadError, match="called nothing that is jitted"):
        jaxwatch.advise("gc:collect")
