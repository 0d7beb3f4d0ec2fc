"""Cells of a notebook: where code is from. What a shell makes of it is in test_notebook.py."""

import sys
from types import CodeType
from typing import Any

import pytest

from jaxwatch import _cells, _limits

ONE = "def f(x):\n    return [x + 1 for _ in range(3)]\n"


def compiled(source: str, file: str) -> CodeType:
    """Return the code of the function ``f`` that the source defines."""
    names: dict[str, Any] = {}
    exec(compile(source, file, "exec"), names)  # noqa: S102 -- as a shell does
    code: CodeType = names["f"].__code__
    return code


class Compiler:
    numbers: dict[str, int]

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{self.numbers[name]}]") if name in self.numbers else None


class Shell:
    compile = Compiler()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Compiler:
    monkeypatch.setattr(_cells, "shell", Shell)
    monkeypatch.setattr(_cells, "_seen", type(_cells._seen)())
    Shell.compile.numbers = {}
    return Shell.compile


def test_without_a_shell_a_place_is_a_file_and_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython.core.interactiveshell", None)

    assert _cells.shell() is None
    assert _cells.place("ipykernel_1/2.py", 3) == "ipykernel_1/2.py:3"
    assert _cells.place("<timed exec>", 1) == "<timed exec>:1"
    assert _cells.running() is None
    assert _cells.definition(compiled(ONE, "a.py")) == "a.py:1"


def test_a_shell_that_fails_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        @property
        def compile(self) -> Any:
            raise RuntimeError

    monkeypatch.setattr(_cells, "shell", Broken)

    assert _cells.place("ipykernel_1/2.py", 3) == "ipykernel_1/2.py:3"


def test_a_place_in_a_cell_is_told_by_its_number(shell: Compiler) -> None:
    shell.numbers["ipykernel_1/2.py"] = 7

    assert _cells.place("ipykernel_1/2.py", 3) == "cell [7]:3"
    assert _cells.place("train.py", 3) == "train.py:3"
    assert _cells.place("<ipython-input-4-0123abcd>", 1) == "cell [4]:1"  # as older ones name it, without a map
    assert _cells.place("ipython-input-5-12.py", 1) == "cell [5]:1"  # and Colab


def test_the_cell_that_runs_is_the_outermost_one_on_the_stack(shell: Compiler) -> None:
    shell.numbers.update(first=1, second=2)
    names: dict[str, Any] = {"running": _cells.running}
    exec(compile("def helper():\n    return running()", "first", "exec"), names)  # noqa: S102 -- as a shell does
    exec(compile("found = helper()", "second", "exec"), names)  # noqa: S102

    assert names["found"] == 2


def test_a_functions_place_stays_when_its_cell_is_run_again_or_edited_elsewhere(shell: Compiler) -> None:
    shell.numbers.update(first=1, again=4, edited=5, other=6)

    assert _cells.definition(compiled(ONE, "first")) == "cell [1]:1"
    assert _cells.definition(compiled(ONE, "again")) == "cell [1]:1"
    assert _cells.definition(compiled("y = 3\n\n" + ONE, "edited")) == "cell [1]:1"
    assert _cells.definition(compiled(ONE.replace("+ 1", "+ 2"), "other")) == "cell [6]:1"


@pytest.mark.parametrize(
    "other",
    [
        ONE.replace("+ 1", "+ 1.0"),  # equal, and another type
        ONE.replace("+", "-"),
        ONE.replace("range(3)", "range(4)"),  # within the comprehension's own code, up to 3.11
        ONE.replace("(x)", "(x, y)"),
        ONE.replace("def f(x)", "def f(*x)"),
        ONE.replace("x + 1", "_ + 1"),
    ],
)
def test_code_that_does_something_else_has_another_fingerprint(other: str) -> None:
    assert _cells.fingerprint(compiled(ONE, "a")) == _cells.fingerprint(compiled("\n\n" + ONE, "b"))
    assert _cells.fingerprint(compiled(ONE, "a")) != _cells.fingerprint(compiled(other, "a"))


def test_what_was_seen_is_bounded(shell: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "DEFINITIONS", 3)
    shell.numbers.update({str(number): number for number in range(10)})

    for number in range(10):
        _cells.definition(compiled(ONE.replace("+ 1", f"+ {number}"), str(number)))

    assert len(_cells._seen) == 3
