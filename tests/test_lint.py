"""``jaxwatch lint``: which files, which findings are left out, what is printed, and the exit code."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxwatch import _cli
from jaxwatch._lint import notebooks, output
from jaxwatch._lint.check import check
from jaxwatch._lint.run import lint
from jaxwatch.errors import BadOptionError, LintPathError

BAD = "import jax\n\n\n@jax.jit\ndef f(x):\n    print(x)\n    return x\n"
GOOD = "import jax\n\n\n@jax.jit\ndef f(x):\n    return x\n"


def put(folder: Path, **sources: str) -> Path:
    for name, source in sources.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return folder


def names(*paths: Path, exclude: tuple[str, ...] = ()) -> list[str]:
    found = lint([str(path) for path in paths], exclude=exclude).findings
    return [Path(path).name for path, _, _ in found]


def codes(source: str, *, pedantic: bool = False) -> list[tuple[int, str]]:
    return [(finding.line, finding.code) for finding in check(source, pedantic=pedantic)]


# ------------------------------------------------------------------ files


def test_a_folder_is_searched_but_for_what_is_not_the_users(tmp_path: Path) -> None:
    put(tmp_path, a=BAD, sub__b=BAD, build__c=BAD, node_modules__d=BAD, _hidden=BAD)
    put(tmp_path / ".venv", lib=BAD)
    (tmp_path / "notes.txt").write_text(BAD)

    assert names(tmp_path) == ["_hidden.py", "a.py", "b.py"]


def test_a_file_that_is_named_is_looked_at_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(BAD)

    assert names(tmp_path / "script") == ["script"]


def test_a_file_that_is_given_twice_is_told_once(tmp_path: Path) -> None:
    put(tmp_path, a=BAD)

    assert names(tmp_path, tmp_path / "a.py", tmp_path) == ["a.py"]


@pytest.mark.parametrize("pattern", ["b.py", "sub", "sub/", "sub/*", "*/b.py", "**/sub/b.py"])
def test_a_pattern_leaves_out_files_and_folders(tmp_path: Path, pattern: str) -> None:
    put(tmp_path, a=BAD, sub__b=BAD)

    assert names(tmp_path, exclude=(pattern,)) == ["a.py"]


def test_a_path_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LintPathError, match="does not exist"):
        lint([str(tmp_path / "none.py")])


def test_a_path_that_is_neither_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")

    with pytest.raises(LintPathError, match="neither a file nor a folder"):
        lint([str(tmp_path / "pipe.py")])


def test_a_pipe_or_a_link_that_leads_nowhere_or_round_stops_no_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "none.py")
    (tmp_path / "round").symlink_to(tmp_path)
    put(tmp_path, a=BAD)

    assert names(tmp_path) == ["a.py"]


@pytest.mark.parametrize("form", output.FORMATS)
def test_a_name_that_is_no_text_is_printed(tmp_path: Path, form: str) -> None:
    name = os.fsdecode(b"\xff.py")
    (tmp_path / name).write_text(BAD)
    text = output.rendered(lint([str(tmp_path)]), form)

    assert "JW101" in text.encode("utf-8", "backslashreplace").decode()


# ------------------------------------------------------------------ choice


def test_codes_are_chosen_by_their_beginnings(tmp_path: Path) -> None:
    put(tmp_path, a=BAD.replace("return x", "return float(x)"))
    found = {
        options: [
            finding.code for _, _, finding in lint([str(tmp_path)], select=options[0], ignore=options[1]).findings
        ]
        for options in [("", ""), ("JW1", ""), ("JW101,jw4", "JW401"), ("", "JW101")]
    }

    assert list(found.values()) == [["JW101", "JW401"], ["JW101"], ["JW101"], ["JW401"]]


@pytest.mark.parametrize("wrong", ["JW999", "X", "JW101,JW7"])
def test_a_code_that_is_none_is_an_error(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(BadOptionError, match="is no code"):
        lint([str(put(tmp_path, a=GOOD))], select=wrong)


def test_what_may_be_right_is_told_when_asked_for() -> None:
    source = BAD.replace("print(x)", "if x.training: return x")

    assert codes(source) == []
    assert codes(source, pedantic=True) == [(6, "JW301")]


# ------------------------------------------------------------------ ignores


@pytest.mark.parametrize(
    "comment",
    [
        "# jaxwatch: ignore",
        "#jaxwatch:ignore",
        "# jaxwatch: ignore[JW101]",
        "# jaxwatch: ignore[JW401, jw101]",
        "# noqa: T201 # jaxwatch: ignore[JW101]  -- meant so",
    ],
)
def test_a_comment_leaves_what_is_on_its_line(comment: str) -> None:
    assert codes(BAD.replace("print(x)", f"print(x)  {comment}")) == []


def test_a_comment_for_another_code_or_line_leaves_nothing() -> None:
    assert codes(BAD.replace("print(x)", "print(x)  # jaxwatch: ignore[JW102]")) == [(6, "JW101")]
    assert codes(BAD.replace("return x", "return x  # jaxwatch: ignore")) == [(6, "JW101")]
    assert codes(BAD.replace("print(x)", 'print("# jaxwatch: ignore")')) == [(6, "JW101")]


@pytest.mark.parametrize("line", [6, 8])
def test_of_a_statement_of_many_lines_the_first_and_the_findings_own_count(line: int) -> None:
    source = BAD.replace("print(x)", "y = (\n        1 +\n        float(x)\n    )")
    lines = source.splitlines()
    lines[line - 1] += "  # jaxwatch: ignore"

    assert codes(source) == [(8, "JW401")]
    assert codes("\n".join(lines)) == []


def test_a_comment_at_an_if_is_not_for_its_body() -> None:
    source = BAD.replace("    print(x)", "    if x.ndim:  # jaxwatch: ignore\n        print(x)")

    assert codes(source) == [(7, "JW101")]


def test_a_file_can_be_left_as_a_whole_or_for_a_code() -> None:
    both = BAD.replace("return x", "return float(x)")

    assert codes(f"# jaxwatch: ignore-file\n{both}") == []
    assert codes(f"# jaxwatch: ignore-file[JW101]\n{both}") == [(8, "JW401")]


def test_an_unknown_code_in_an_ignore_is_told_and_leaves_nothing() -> None:
    assert codes(BAD.replace("print(x)", "print(x)  # jaxwatch: ignore[JW77]")) == [(6, "JW101"), (6, "JW001")]


# ------------------------------------------------------------------ notebooks


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]})


def test_a_notebook_is_told_by_cell_and_line(tmp_path: Path) -> None:
    cells = ["%matplotlib inline\nimport jax\n!ls", "%%bash\nif [ ]; then", "@jax.jit\ndef f(x):\n    print(x)\n"]
    (tmp_path / "a.ipynb").write_text(notebook(*cells))
    report = lint([str(tmp_path)])

    assert [(cell, finding.line, finding.code) for _, cell, finding in report.findings] == [(3, 3, "JW101")]
    assert ":cell 3:3:5: JW101 " in output.text(report)
    assert json.loads(output.as_json(report))["findings"][0]["cell"] == 3


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code", "source": 3}]}', "nan"]
)
def test_what_is_no_notebook_is_told_so(text: str) -> None:
    with pytest.raises(SyntaxError, match="no notebook"):
        notebooks.source_of(text)


# ------------------------------------------------------------------ output


def test_the_text_has_a_line_for_each_finding_and_one_for_all(tmp_path: Path) -> None:
    path = put(tmp_path, a=BAD) / "a.py"

    assert output.text(lint([str(path)])) == (
        f"{path}:6:5: JW101 `print` runs while tracing and in no later call: use jax.debug.print\n"
        "Found 1 finding in 1 file.\n"
    )
    path.write_text(GOOD)
    assert output.text(lint([str(path)])) == "Found nothing in 1 file.\n"


def test_columns_count_characters_from_one() -> None:
    source = BAD.replace("print(x)", 's = "é€𝄞"; print(x)')

    assert check(source)[0].column == source.splitlines()[5].index("print") + 1


def test_a_name_that_a_terminal_would_obey_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m.py").write_text(BAD)

    assert "\x1b" not in output.text(lint([str(tmp_path)]))


def test_sarif_has_what_its_readers_ask_for(tmp_path: Path) -> None:
    (tmp_path / "a b.py").write_text(BAD)
    log = json.loads(output.rendered(lint([str(tmp_path)]), "sarif"))
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    result = run["results"][0]

    assert log["version"] == "2.1.0"
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "JW101"
    assert result["level"] == "warning"
    where = result["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"].endswith("/a%20b.py")
    assert where["region"] == {"startLine": 6, "startColumn": 5}


# ------------------------------------------------------------------ the command


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    checkout = str(Path(__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-m", "jaxwatch", "lint", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": checkout, "PATH": ""},
    )


def test_the_exit_code_is_0_for_none_1_for_findings_2_for_errors(tmp_path: Path) -> None:
    put(tmp_path, good=GOOD, bad=BAD, broken="def f(:\n")

    assert run("good.py", cwd=tmp_path).returncode == 0
    found = run("bad.py", "broken.py", cwd=tmp_path)
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        "bad.py:6:5: JW101 `print` runs while tracing and in no later call: use jax.debug.print",
        "broken.py:1:1: JW000 cannot be checked: invalid syntax",
        "Found 2 findings in 2 files.",
    ]
    for wrong in (["none.py"], ["good.py", "--select", "JW9"], ["good.py", "--output-format", "xml"], []):
        failed = run(*wrong, cwd=tmp_path)
        assert failed.returncode == 2
        assert failed.stdout == ""
    assert run("none.py", cwd=tmp_path).stderr == (
        "jaxwatch: none.py does not exist. Give files or folders of Python. [lint-path]\n"
    )


def test_neither_jax_nor_the_code_is_imported(tmp_path: Path) -> None:
    put(tmp_path, code=f"{BAD}\nraise SystemExit('was run')\n")
    program = (
        "import sys; from jaxwatch._cli import main; code = main(['lint', 'code.py']);"
        " assert 'jax' not in sys.modules and 'numpy' not in sys.modules and 'code' not in sys.modules; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[1])},
    )

    assert done.returncode == 1, done.stderr
    assert done.stderr == ""


def test_the_choices_of_the_format_are_those_that_there_are() -> None:
    option = next(p for p in _cli.command.commands["lint"].params if p.name == "output_format")

    assert tuple(getattr(option.type, "choices", ())) == output.FORMATS


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    put(tmp_path, **{f"m{number}": BAD for number in range(300)})
    command = f"{sys.executable} -m jaxwatch lint . --output-format json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin"},
    )

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["{", "1"]
