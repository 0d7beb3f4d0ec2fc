"""The table of what JAX's explainer says beside what jaxwatch says."""

import importlib.util
import sys
from typing import Any

import pytest
from programs import ROOT, Ended, run_file

TOOL = ROOT / "tools" / "side_by_side.py"
STDERR = """\
TRACING CACHE MISS at /home/someone/cases/102_some.py:9:12 (run):
  never seen function:
    update id=140581968282784 defined at /home/someone/cases/102_some.py:6
a line of the program's own
  and one that is indented
TRACING CACHE MISS at /home/someone/cases/102_some.py:11 (run):
  for update defined at /home/someone/cases/102_some.py:6
  all previously seen cache keys differ. For the closest previous key:
  different input types:
  * at state, now f32[] and before f32[]{weak_type=True}; see https://docs.jax.dev/en/latest/page.html
TRACING CACHE MISS at /home/someone/cases/102_some.py:12 (run):
  never seen function:
    multiply id=1 defined at /opt/lib/jax/_src/numpy/ufuncs.py:6
"""


@pytest.fixture(scope="module")
def tool() -> Any:
    """Return the tool as a module; it finds the cases' scorer by a path that it adds."""
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("side_by_side", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def test_of_jaxs_explanations_those_of_the_case_are_kept_and_the_others_counted(tool: Any) -> None:
    assert tool.explanations(STDERR.splitlines(), "102_some.py") == (
        [
            "update: never seen function",
            (
                "update: different input types: * at state, now f32[] and before f32[]{weak_type=True}; "
                "see https://docs.jax.dev/en/latest/page.html"
            ),
        ],
        1,
    )
    assert tool.explanations([], "102_some.py") == ([], 0)


def test_what_a_case_expects_is_told_in_short(tool: Any) -> None:
    miss = {"function": "f", "call": 2, "reasons_any": [["shape"], ["shape", "dtype"]], "paths": ["x"]}
    told = tool.expected({"misses": [miss, {**miss, "values": [["a", "b"]], "optional": True}], "eager": []})

    assert told == ["f call 2: shape or shape+dtype x", "f call 2: shape or shape+dtype (or nothing) x a → b"]
    assert tool.expected({"misses": []}) == []
    assert tool.expected({"eager": []}) == ["which misses is not stated"]


def test_a_cell_is_bounded_and_cannot_break_the_table(tool: Any) -> None:
    assert tool.cell([]) == "nothing"
    assert tool.cell(["a | `b`\nc"]) == "`a \\| 'b' c`"
    assert tool.cell(["x"] * (tool.ENTRIES + 3)).endswith("`x`<br>and 3 more")
    assert len(tool.cell(["x" * 1_000])) < 1_000


def run(*arguments: str) -> Ended:
    return run_file(TOOL, *arguments)


def test_a_case_is_run_both_ways(tmp_path: Any) -> None:
    file = tmp_path / "table.md"
    ended = run("--markdown", str(file), "102_")

    assert (ended.code, ended.out) == (0, ""), ended.err
    *_, line = file.read_text().splitlines()
    case, happens, of_jax, of_us = line.strip("| ").split(" | ")
    assert case == "102 weak type feedback"
    assert "weak_type state ~float32[] → float32[]" in happens
    assert "update: never seen function" in of_jax
    assert "weak_type=True" in of_jax
    assert "update call 2: weak_type state ~float32[] → float32[]" in of_us


def test_a_word_that_no_case_has_is_bad_use() -> None:
    ended = run("no_such_case")

    assert ended.code == 2
    assert "no case's name contains no_such_case" in ended.err
