"""``jaxwatch doctor``: the whole chain is tried, and whatever is broken is told with what to do."""

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cores
import pytest
from cores import CORES
from programs import ROOT, Ended, environment, run

import jaxwatch
from jaxwatch import _compat, _doctor
from jaxwatch._doctor import Check

PACKAGES = str(Path(jaxwatch.__file__).parents[1])


def doctor(*arguments: str, folder: Path | None = None, **variables: str) -> Ended:
    done = subprocess.run(
        [sys.executable, "-m", "jaxwatch", "doctor", *arguments],
        cwd=folder,
        env=environment(**{"PYTHONPATH": PACKAGES, **variables}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def checks(ended: Ended) -> dict[str, Any]:
    """Return what --json told, by name."""
    found: dict[str, Any] = json.loads(ended.out)
    assert found["schema"] == "jaxwatch.doctor/1"
    assert found["well"] is (ended.code == 0)
    assert (ended.code == 1) is any(check["mend"] for check in found["checks"].values())
    by_name: dict[str, Any] = found["checks"]
    return by_name


def row(text: str, name: str) -> str:
    """Return what stands behind a name, lines joined."""
    (found,) = re.findall(rf"^  {re.escape(name)} +(\S.*(?:\n {{5,}}.*)*)", text, re.MULTILINE)
    return " ".join(str(found).split())


# ------------------------------------------------------------------ all is well


@pytest.mark.parametrize("core", CORES)
def test_where_all_is_well_it_says_so_and_what_was_tried(core: str) -> None:
    cores.core(core)
    told = doctor("--json", JAXWATCH_CORE=core)
    found = checks(told)

    assert (told.code, told.err) == (0, "")
    assert found["core"]["data"]["name"] == core
    assert found["watching"]["data"]["on"]
    assert set(found["watching"]["data"]["miss"]) == {"trace", "lower", "compile"}
    assert all(0 < seconds < 60 for seconds in found["watching"]["data"]["miss"].values())
    assert found["clock"]["data"]["rate"] == pytest.approx(1, abs=0.01)
    assert found["backend"]["data"] == "cpu"
    assert found["disk cache"]["data"] is None
    assert found["JAXWATCH_CORE"]["data"] == core
    packages = ("jaxwatch", "jax", "jaxlib", "prometheus-client", "structlog")
    assert [found[name]["data"] for name in packages] == [metadata.version(name) for name in packages]
    assert {name: found[name]["data"] for name in found if name.startswith("HAS_")} == _compat.flags()


def test_people_get_aligned_lines_of_80_columns() -> None:
    told = doctor(JAXWATCH_CORE="python")

    assert told.code == 0
    first, blank, *rows = told.out.splitlines()
    assert (first, blank) == ("jaxwatch doctor · all is well.", "")
    assert max(len(line) for line in rows if "/" not in line) <= 80  # a path is not cut
    assert {re.match(r"  \S.*?(?:  +)|  +", line).end() for line in rows} == {  # type: ignore[union-attr]  # it matches
        re.match(r"  Python +", rows[0]).end()  # type: ignore[union-attr]  # as above
    }
    assert row(told.out, "core") == "the Python twin: JAXWATCH_CORE=python asks for it"
    assert row(told.out, "watching").startswith("works: a first call was told with trace ")


def test_a_persistent_cache_is_told(tmp_path: Path) -> None:
    told = doctor(JAXWATCH_CORE="python", JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"))

    assert told.code == 0
    assert row(told.out, "disk cache") == f"{tmp_path}/cache; compiles from 1 s on are stored"


def test_switched_off_it_says_so() -> None:
    told = doctor(JAXWATCH="0")

    assert told.code == 0
    assert row(told.out, "watching") == "nothing: JAXWATCH=0 is set, jaxwatch.jit is plain jax.jit"
    assert row(told.out, "JAXWATCH") == "'0': 0 turns all of jaxwatch into plain jax.jit"


# ------------------------------------------------------------------ what is to mend


@pytest.fixture
def without_native_core(tmp_path: Path) -> Path:
    shutil.copytree(
        Path(jaxwatch.__file__).parent, tmp_path / "jaxwatch", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    return tmp_path


def test_a_native_core_that_was_not_built(without_native_core: Path) -> None:
    told = doctor(folder=without_native_core, PYTHONPATH=str(without_native_core))

    assert told.code == 1
    assert told.out.startswith("jaxwatch doctor · 1 thing to mend: core.\n")
    assert row(told.out, "core") == (
        f"the Python twin: the native core was not built: No module named 'jaxwatch._native.core' → {_doctor._BUILD}"
    )
    assert "pip install" in _doctor._BUILD
    assert row(told.out, "watching").startswith("works: ")


def test_a_core_that_is_asked_for_and_not_there(without_native_core: Path) -> None:
    folder = str(without_native_core)
    told = doctor("--json", folder=without_native_core, PYTHONPATH=folder, JAXWATCH_CORE="native")

    found = checks(told)
    assert found["core"]["mend"].endswith("or install jaxwatch with a C compiler. [no-native-core]")
    assert "watching" not in found
    assert found["HAS_JIT_INFO"]["data"] is _compat.HAS_JIT_INFO
    assert told.err == ""


def test_a_core_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAXWATCH_CORE", raising=False)
    engine = SimpleNamespace(CORE=SimpleNamespace(name="python", reason="the native core does not fit this JAX: x"))

    assert _doctor._core(engine).mend == "Update jaxwatch, or report this text as an issue."


def test_a_clock_that_goes_wrong() -> None:
    def engine(rate: float) -> Any:
        native = SimpleNamespace(clock=lambda: ("time-stamp counter", rate))
        return SimpleNamespace(CORE=SimpleNamespace(hooks=SimpleNamespace(native=native)))

    assert _doctor._clock(engine(1.0001)).text == "time-stamp counter, 0.01 % off the system's clock"
    assert _doctor._clock(engine(1.0001)).mend is None
    assert _doctor._clock(engine(0.98)).mend is not None


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ("sys.modules['jax'] = None", "cannot be imported: it is not there. → pip install jax"),
        (
            "sys.modules['jaxlib'] = None",
            "cannot be imported: ModuleNotFoundError: jax requires jaxlib to be installed.",
        ),
        (
            "import jax._src; sys.modules['jax._src.xla_bridge'] = None; del jax._src.xla_bridge",
            "jaxwatch does not fit this JAX: ",
        ),
    ],
)
def test_a_jax_that_cannot_be_imported(before: str, told: str) -> None:
    program = f"import sys; {before}; from jaxwatch._cli import main; sys.exit(main(['doctor']))"
    ended = run(program, PYTHONPATH=PACKAGES)

    assert ended.code == 1
    assert ended.out.startswith("jaxwatch doctor · 1 thing to mend: import jax.\n")
    found = row(ended.out, "import jax")
    assert found.startswith(told)
    assert re.search(r"[^.]\. → (pip install (-U jax jaxlib|jax)|Update jaxwatch, .*)$", found)
    assert ended.err == ""


def test_a_jax_that_fails_itself() -> None:
    told = doctor(JAX_PLATFORMS="nonsense", JAXWATCH_CORE="python")

    assert told.code == 1
    assert re.fullmatch(
        r"JAX itself fails: RuntimeError: .*nonsense.* → Mend JAX first: jaxwatch has no part in it\.",
        row(told.out, "watching"),
    )


def test_a_jax_that_does_not_jit() -> None:
    told = doctor(JAX_DISABLE_JIT="1", JAXWATCH_CORE="python")

    assert told.code == 1
    assert row(told.out, "watching") == (
        "nothing: jax_disable_jit is on, and JAX compiles nothing. → Unset JAX_DISABLE_JIT."
    )


@pytest.mark.parametrize(
    ("breaking", "told"),
    [
        (
            "from jaxwatch import _compat; _compat.register_missing = lambda *listeners: []",
            "of 2 calls of a new function 2 were counted, and 0 misses told in place of 1. → Update jaxwatch",
        ),
        (
            "from jaxwatch import _compat; _compat.LOWER_EVENT = '/gone'",
            "a miss was told without the seconds of lower. → Update jaxwatch",
        ),
        (
            "from jaxwatch import _core; del _core.stats",
            "failed: AttributeError: module 'jaxwatch._core' has no attribute 'stats'. → Update jaxwatch",
        ),
    ],
)
@pytest.mark.parametrize("core", CORES)
def test_a_chain_that_is_broken_is_told(breaking: str, told: str, core: str) -> None:
    cores.core(core)
    ended = run(
        f"{breaking}; import sys; from jaxwatch._cli import main; sys.exit(main(['doctor']))",
        PYTHONPATH=PACKAGES,
        JAXWATCH_CORE=core,
    )

    assert ended.code == 1, ended.err
    assert row(ended.out, "watching").startswith(told)


def test_a_package_that_is_not_installed() -> None:
    assert _doctor._version("jaxwatch-of-no-index").mend == "pip install jaxwatch-of-no-index"


# ------------------------------------------------------------------ the environment


def test_the_log_of_the_environment_is_looked_at_and_not_written(tmp_path: Path) -> None:
    told = doctor(JAXWATCH_LOG=str(tmp_path / "run.jsonl"), JAXWATCH_REDACT="1", JAXWATCH_CORE="python")

    assert told.code == 0
    assert row(told.out, "JAXWATCH_LOG").endswith("': the file that events are appended to")
    assert row(told.out, "JAXWATCH_REDACT") == "'1': 1 keeps values of static arguments out of events"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/no/such/folder/run.jsonl", "."])
def test_a_log_that_cannot_be_written(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH_LOG", path)

    assert _doctor._variable("JAXWATCH_LOG").mend == (
        "It cannot be written: give a file in a folder that you may write to."
    )


def test_a_variable_that_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH_LOGS", "\x1b[31m")
    found = _doctor._variable("JAXWATCH_LOGS")

    assert found.text == r"'\x1b[31m': no variable of jaxwatch's."
    assert found.mend == f"Give one of {', '.join(_doctor.VARIABLES)}."


def test_the_variables_are_those_that_the_code_reads() -> None:
    sources = [path.read_text() for path in (ROOT / "jaxwatch").rglob("*.py")]
    read = {name for text in sources for name in re.findall(r'"(JAXWATCH\w*)"', text)}

    assert read == set(_doctor.VARIABLES)


# ------------------------------------------------------------------ flags


def test_each_flag_has_a_text_that_says_what_is_lost_without() -> None:
    texts = _doctor.flag_texts()

    assert {name for name in _compat.flags() if " Without: " not in texts.get(name, "")} == set()


def test_a_flag_is_told_by_what_it_gives_or_what_is_lost() -> None:
    assert _doctor._flag("HAS_X", "It can. Without: it cannot.", there=True) == Check("HAS_X", "yes. It can.", True)
    assert _doctor._flag("HAS_X", "It can. Without: it cannot.", there=False) == Check("HAS_X", "no: it cannot.", False)


# ------------------------------------------------------------------ where it is written


@pytest.mark.parametrize(("redirect", "code"), [(">&-", 0), ("> /dev/full", 2), ("| true", 0)])
def test_a_stdout_that_is_closed_full_or_left_early(redirect: str, code: int) -> None:
    command = f"{{ {sys.executable} -m jaxwatch doctor; echo $? >&2; }} {redirect}"
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(PYTHONPATH=PACKAGES, JAXWATCH_CORE="python"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stderr.splitlines()[-1] == str(code), done.stderr
    assert "Traceback" not in done.stderr
