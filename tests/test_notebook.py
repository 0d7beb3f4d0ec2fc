"""``%load_ext jaxwatch`` in a shell of IPython's, and once in a real kernel."""

import atexit
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs import ROOT, run

pytest.importorskip("IPython")
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jaxwatch import _cells, _core, _install
from jaxwatch._hub import HUB
from jaxwatch._notebook import CellReport, Extension, Shown, parsed
from jaxwatch.events import CacheMiss

STEP = "@jax.jit\ndef step(x):\n    return x * 2 + 1\n"


class Notebook:
    """A shell with the extension loaded, and what it displayed."""

    def __init__(self) -> None:
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        self.shell: Any = InteractiveShell.instance(config=config)
        self.shown: list[CellReport] = []
        self.events: list[Any] = []
        self.now = 0.0
        HUB.add("test", self.events.append)
        self.extension: Extension | None = Extension(self.shell, self.shown.append, UsageError, lambda: self.now)

    def load(self) -> None:
        assert self.extension is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the twin's: it attaches nothing, and other tests have jitted functions
            self.extension.load()
        self.run("import jax, jax.numpy as jnp, numpy as np")

    def run(self, cell: str, *, fails: bool = False) -> Any:
        result = self.shell.run_cell(cell, store_history=True)
        assert result.success is not fails
        return result.result

    def text(self) -> str:
        """Return what was displayed last, as plain text."""
        return repr(self.shown[-1])

    @property
    def misses(self) -> list[CacheMiss]:
        return [event for event in self.events if isinstance(event, CacheMiss) and event.layer != "dispatch"]

    def unload(self) -> None:
        if self.extension is not None:
            self.extension.unload()
        self.extension = None

    def close(self) -> None:
        self.unload()
        HUB.remove("test")
        self.shell.atexit_operations()  # which ends its history
        self.shell.restore_sys_module_state()
        atexit.unregister(self.shell.atexit_operations)
        InteractiveShell.clear_instance()


@pytest.fixture
def notebook(fresh: None) -> Iterator[Notebook]:
    del fresh
    made = Notebook()
    try:
        made.load()
        yield made
    finally:
        made.close()


# ------------------------------------------------------------------ a cell under the magic


def test_its_report_tells_the_cell_the_cause_and_what_to_do(notebook: Notebook) -> None:
    notebook.run(STEP)
    notebook.run("%%jaxwatch\nfor n in (3, 4, 5):\n    step(np.ones(n, 'float32'))")

    told = notebook.text()
    assert re.search(r"jaxwatch · cell \[3\] · .* of it compiling", told)
    assert re.search(r"step +3 +3 +3 ", told)
    assert "step: x float32[3] → 2 other lengths (4, 5)" in told
    assert "cell [3], line 3, calls 2, 3; each compared with call 1" in told
    assert "Pad x along axis 0 to 5" in told


def test_the_cell_is_one_as_without(notebook: Notebook) -> None:
    value = notebook.run("%%jaxwatch\nanswer = 41\nanswer + 1")

    assert value == 42
    assert notebook.shell.user_ns["answer"] == 41
    assert notebook.shell.user_ns["Out"][2] == 42
    assert notebook.shell.history_manager.input_hist_raw[2] == "%%jaxwatch\nanswer = 41\nanswer + 1"
    assert notebook.text().endswith("nothing compiled in it.")


def test_await_works(notebook: Notebook) -> None:
    assert notebook.run("%%jaxwatch\nimport asyncio\nawait asyncio.sleep(0, 'value')") == "value"
    assert len(notebook.shown) == 1


def test_a_cell_that_raises_does_and_is_told_all_the_same(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run("%%jaxwatch\njax.jit(lambda x: x + 1)(np.ones(3))\n1 / 0", fails=True)

    assert "ZeroDivisionError" in capsys.readouterr().out
    assert "<lambda>" not in notebook.text()  # once, so nothing to improve
    assert "1 function once" in notebook.text()


@pytest.mark.parametrize(
    "cell",
    [
        "%%time\n%%jaxwatch\nstep(np.ones(3))",
        "%%jaxwatch\n%%time\nstep(np.ones(3))",
        "%%jaxwatch\n\n# a comment\nfrom __future__ import annotations\nstep(np.ones(3))",
        "\n\n%%jaxwatch   --all\nstep(np.ones(3))",
        "%%capture\n%%jaxwatch\nstep(np.ones(3))",
    ],
)
def test_it_stands_beside_other_magics(notebook: Notebook, cell: str) -> None:
    notebook.run(STEP)
    notebook.run(cell)

    assert len(notebook.shown) == 1
    assert "1 function once" in notebook.text()


def test_as_a_script_calls_it(notebook: Notebook) -> None:
    notebook.run(STEP)
    notebook.run("get_ipython().run_cell_magic('jaxwatch', '--quiet', 'step(np.ones(3))')")
    assert "1 function once" in notebook.text()

    notebook.run("get_ipython().run_cell_magic('jaxwatch', '', '1 / 0')", fails=True)


@pytest.mark.parametrize("options", ["--everything", "step", "'", "--all=1"])
def test_what_means_nothing_is_said_and_the_cell_does_not_run(
    notebook: Notebook, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.run(f"%%jaxwatch {options}\nran = True", fails=True)

    said = capsys.readouterr()
    assert "means nothing. Give --all or --quiet, or nothing. [bad-option]" in said.out + said.err
    assert "ran" not in notebook.shell.user_ns
    assert notebook.shown == []


def test_options_are_read_off_the_line() -> None:
    assert parsed("") == Shown()
    assert parsed(" --all  --quiet # both") == Shown(everything=True, quiet=True)
    assert parsed("--all x --y") == "x"


@pytest.mark.parametrize(
    ("typed", "complete"),
    [("%%jaxwatch\n", False), ("%%jaxwatch\nx = 1", False), ("%%jaxwatch\nx = 1\n\n", True)],
)
def test_a_terminal_waits_for_the_rest_of_the_cell(notebook: Notebook, typed: str, complete: bool) -> None:
    assert (notebook.shell.check_complete(typed)[0] == "complete") is complete
    assert notebook.shown == []


# ------------------------------------------------------------------ cells that are run again


def test_a_cell_that_is_run_again_is_the_cause_and_one_finding(notebook: Notebook) -> None:
    notebook.run(STEP)
    notebook.run("step(np.ones(3))")
    for edit in ("", "# edited\n\n"):
        notebook.run(edit + STEP)
        notebook.run("step(np.ones(3))")
    notebook.run("%jaxwatch")

    assert [miss.reasons for miss in notebook.misses] == [("first_call",), ("new_function",), ("new_function",)]
    assert {miss.definition for miss in notebook.misses} == {"cell [2]:1"}
    assert [miss.site for miss in notebook.misses] == ["cell [3]:1", "cell [5]:1", "cell [7]:1"]
    assert re.search(r"1  step: defined again by a cell, as another function object +2 × ", notebook.text())  # noqa: RUF001
    assert "→ Define and jit step in a cell of its own" in notebook.text()


def test_a_loop_is_a_loop_also_in_a_cell_that_is_run_again(notebook: Notebook) -> None:
    loop = "for _ in range(2):\n    jax.jit(lambda x: x + 1)(np.ones(3))"
    notebook.run(loop)
    notebook.run(loop)

    notes = [miss.changes[0].note or "" for miss in notebook.misses[1:]]
    assert [note.partition(":")[0] for note in notes] == [
        "the same code as another function object",
        "defined again by a cell",
        "the same code as another function object",
    ]


def test_functions_of_one_name_at_one_line_of_two_cells_are_two(notebook: Notebook) -> None:
    for number in (1, 2):
        notebook.run(f"@jax.jit\ndef f(x):\n    return x * {number}")
        notebook.run("f(np.ones(3))")

    assert [miss.reasons for miss in notebook.misses] == [("first_call",), ("first_call",)]
    assert len({miss.definition for miss in notebook.misses}) == 2


def test_a_method_of_a_class_whose_cell_is_run_again_is_defined_again(notebook: Notebook) -> None:
    model = "class Model:\n    @jax.jit\n    def __call__(x):\n        return x + 1\n"
    for _ in range(2):
        notebook.run(model)
        notebook.run("Model.__call__(np.ones(3))")

    assert [miss.reasons for miss in notebook.misses] == [("first_call",), ("new_function",)]


def test_the_number_is_that_of_the_cell_also_under_time(notebook: Notebook) -> None:
    notebook.run("%%time\njax.jit(lambda x: x + 1)(np.ones(3))")

    assert notebook.misses[0].site == "cell [2]:1"


# ------------------------------------------------------------------ the line magic; loading


def test_percent_jaxwatch_tells_all_and_the_seconds_of_the_cells_alone(notebook: Notebook) -> None:
    notebook.run(STEP)
    notebook.run("step(np.ones(3))")
    notebook.now += 3600  # of thought
    notebook.shell.user_ns["pass_seconds"] = lambda seconds: setattr(notebook, "now", notebook.now + seconds)
    notebook.run("pass_seconds(5); step(np.ones(4))")
    notebook.now += 3600
    notebook.run("%jaxwatch")

    report = notebook.shown[-1].report
    assert report.wall_seconds == 5
    assert "jaxwatch · this notebook · 5.0 s" in notebook.text()
    assert (report.functions[0].calls, report.functions[0].misses) == (2, 2)


def test_what_earlier_cells_jitted_is_watched_and_is_not_afterwards(fresh: None) -> None:
    del fresh
    if _core.CORE.hooks is None:
        pytest.skip("the twin attaches nothing")
    notebook = Notebook()
    try:
        notebook.run("import jax, numpy as np")
        notebook.run(STEP + "step(np.ones(3))")
        notebook.load()
        notebook.run("%%jaxwatch --quiet\nstep(np.ones(4))")
        told, names = notebook.text(), HUB.names
        notebook.unload()
        notebook.run("step(np.ones(5))")
        notebook.run("%jaxwatch", fails=True)
    finally:
        notebook.close()

    assert "step" in told
    assert "notebook" in names
    assert "notebook" not in HUB.names
    assert not _install.installed()
    assert len(notebook.shown) == len(notebook.misses) == 1


def test_unloading_leaves_an_install_of_the_programs_own(notebook: Notebook) -> None:
    notebook.unload()
    _install.install()
    notebook.extension = Extension(notebook.shell, notebook.shown.append, UsageError)
    notebook.load()
    notebook.unload()

    assert _install.installed()
    _install.uninstall()
    assert notebook.shell.input_transformers_cleanup == [
        one for one in notebook.shell.input_transformers_cleanup if not isinstance(one, Extension)
    ]


def test_both_forms_are_there_and_the_page_is_escaped(notebook: Notebook) -> None:
    notebook.run("f = jax.jit(lambda **given: list(given.values())[0])")
    notebook.run("%%jaxwatch\nfor n in (3, 4):\n    f(**{'<script>alert(1)</script>': np.ones(n)})")

    bundle = notebook.shown[-1]._repr_mimebundle_()
    assert bundle["text/plain"] == notebook.text()
    assert "<script" not in bundle["text/html"]
    assert "&lt;script&gt;alert(1)" in bundle["text/html"]


def test_importing_jaxwatch_imports_no_ipython() -> None:
    done = run("import sys, jaxwatch; jaxwatch.load_ipython_extension; print('IPython' in sys.modules)")

    assert done.out.strip() == "False"


def test_switched_off_it_says_so_and_runs_the_cell(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH", "0")
    notebook.run("%%jaxwatch\nran = True")

    assert notebook.shell.user_ns["ran"]
    assert notebook.shown == []


def test_a_shell_is_found_only_while_there_is_one(notebook: Notebook) -> None:
    assert _cells.shell() is notebook.shell


# ------------------------------------------------------------------ a real kernel

RUNS_IT = """
import json, sys
import nbclient, nbformat

notebook = nbformat.read(sys.argv[1], 4)
code = [cell for cell in notebook.cells if cell.cell_type == "code"]
assert not any(cell.outputs for cell in code), "the example is kept without outputs"
step, loop = (cell.source for cell in code if "step" in cell.source and "--quiet" not in cell.source)
more = [step, loop, "%%jaxwatch\\nimport asyncio\\nawait asyncio.sleep(0, 'value')", "%%jaxwatch\\n1 / 0"]
notebook.cells += map(nbformat.v4.new_code_cell, more)
nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120, allow_errors=True).execute()
print(json.dumps([cell.outputs for cell in notebook.cells if cell.cell_type == "code"]))
"""


def test_the_example_runs_in_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    done = run(
        RUNS_IT, str(ROOT / "examples" / "notebook.ipynb"), folder=tmp_path, IPYTHONDIR=str(tmp_path), PYTHONWARNINGS=""
    )
    outputs = [{output["output_type"]: output for output in cell} for cell in done.data()]

    def told(cell: int, kind: str = "text/plain") -> str:
        return "".join(outputs[cell]["display_data"]["data"][kind])

    load, setup, define, loop, again, everything, define_again, loop_again, waits, raises = range(10)
    assert outputs[load] == outputs[setup] == outputs[define] == outputs[define_again] == {}
    assert "execute_result" in outputs[loop]  # the value of its last line, as ever
    assert "step: rows float32[32,8] → float32[4,8]" in told(loop)
    assert "cell [4], line 4, call 4; compared with call 1" in told(loop)
    assert "<b" not in told(loop, "text/html").partition("</style>")[2].partition("jaxwatch ·")[0]
    assert told(again).endswith("nothing compiled in it.")
    assert "jaxwatch · this notebook" in told(everything)
    assert "step: defined again by a cell" in told(loop_again)
    assert "ipykernel" not in str(outputs[loop]["display_data"])
    assert outputs[waits]["execute_result"]["data"]["text/plain"] == "'value'"
    assert outputs[raises]["error"]["ename"] == "ZeroDivisionError"
    assert told(raises).startswith("jaxwatch · cell [10] · ")
