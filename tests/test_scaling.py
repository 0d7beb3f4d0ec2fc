"""``jaxwatch scaling``: sizes, time that runs out, and what is said; and once with real processes."""

import json
import re
import sys
from pathlib import Path

import pytest
from programs import ROOT

from jaxwatch import _cli, _scaling
from jaxwatch._growth import Growth
from jaxwatch._scaling import REPEATS, Sample, Scaling, growth_text, measure, sizes_of
from jaxwatch.errors import BadScalingError

PROGRAM = """
import jax.numpy as jnp

def make(size):
    def step(x):
        for _ in range(size):
            x = jnp.sin(x)
        return x
    return step, (jnp.ones(3),)

def fails(size):
    raise KeyError(size)
"""


def cubic(_target: str, size: int, _seconds: float) -> Sample:
    return {"equations": size, "trace": size * 1e-4, "lower": size * 1e-4, "compile": size**3 * 1e-6}


@pytest.mark.parametrize("text", ["", "8", "8,16", "8,8,8", "0,1,2", "-1,2,3", "a,b,c", "1.5,2,3"])
def test_sizes_that_mean_nothing_are_said_with_a_way_out(text: str) -> None:
    with pytest.raises(BadScalingError, match=r"is no list .* Give for instance --sizes 8,16,32,64\. \[bad-scaling\]"):
        sizes_of(text)


def test_sizes_are_told_apart_and_sorted() -> None:
    assert sizes_of("32,8, 16,8") == (8, 16, 32)


def test_each_size_is_measured_several_times_and_the_growth_is_found() -> None:
    found = measure("m:f", (10, 20, 40, 80, 160), 60, cubic)

    assert [each.repeats for each in found.measured] == [REPEATS] * 5
    assert found.growth["compile"].exponent == pytest.approx(3, abs=0.05)
    assert found.growth["compile"].low > 2


def test_what_takes_longer_than_there_is_time_for_is_left_out_and_the_larger_ones_too() -> None:
    asked: list[int] = []

    def slow(target: str, size: int, seconds: float) -> Sample | None:
        asked.append(size)
        return cubic(target, size, seconds) if size < 30 else None

    found = measure("m:f", (10, 20, 40, 80), 60, slow)

    assert found.left_out == (40, 80)
    assert 80 not in asked
    assert asked.count(40) == 1
    assert found.growth == {}
    assert any("Not measured for want of time: 40, 80" in line for line in rendered(found))


def test_without_any_time_it_says_so() -> None:
    with pytest.raises(BadScalingError, match=r"was not compiled within --budget 1 seconds\. Give more of them"):
        measure("m:f", (1, 2, 3), 1, lambda *_: None)


def rendered(found: Scaling) -> list[str]:
    from jaxwatch.renderers.scaling import lines

    return list(lines(found))


def test_what_is_shown_has_each_size_once_in_the_table_and_once_in_the_plot() -> None:
    shown = rendered(measure("m:f", (10, 20, 40, 80, 160), 60, cubic))

    for size in (10, 20, 40, 80, 160):
        assert sum(bool(re.match(rf" +{size}\b", line)) for line in shown) == 2
    assert shown[0].startswith("jaxwatch scaling · m:f")
    assert all(len(line) <= 110 for line in shown)


def test_a_program_of_as_many_equations_at_each_size_is_said_not_to_grow() -> None:
    def flat(_target: str, size: int, _seconds: float) -> Sample:
        return {"equations": 7.0, "trace": 0.01, "lower": 0.01, "compile": 0.02 * size}

    told = rendered(measure("m:f", (8, 16, 32), 60.0, flat))

    assert [line for line in told if "as many equations at each size" in line]
    assert [line for line in told if "Too few" in line] == []


def test_a_growth_is_called_one_only_where_it_is_certain() -> None:
    assert growth_text("compile", Growth(1.6, 1.4, 1.8, 0.0)).endswith("(1.40 to 1.80): it outgrows the program")
    assert "uncertain" in growth_text("compile", Growth(2.7, 1.2, 4.0, 0.02))
    assert growth_text("trace", Growth(1.0, 0.9, 1.1, 0.02)).endswith("beside 20 ms that do not grow")


def test_the_command_measures_in_fresh_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the process that measures is to find this very jaxwatch
    monkeypatch.setattr(_scaling, "REPEATS", 1)
    arguments = ["scaling", "mine:make", "--sizes", "2,4,8", "--budget", "200", "--json", "found.json"]

    assert _cli.main(arguments) == 0
    record = json.loads((tmp_path / "found.json").read_text())
    assert record["schema"] == "jaxwatch.scaling/1"
    assert [each["equations"] for each in record["measured"]] == [2, 4, 8]
    assert all(seconds > 0 for each in record["measured"] for seconds in each["seconds"].values())
    assert "compile ∝ equations" in capsys.readouterr().out
    assert "mine" not in sys.modules


def test_a_function_that_fails_is_named_once_with_what_it_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the process that measures is to find this very jaxwatch

    assert _cli.main(["scaling", "mine:fails", "--sizes", "2,4,8"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("jaxwatch: mine:fails at size 2 raised KeyError: 2. ")
    assert said.count("[bad-scaling]") == 1


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    found = measure("m:f", (1, 2, 3), 60, cubic)

    with pytest.raises(BadScalingError, match=r"cannot write .* Give --json another file"):
        _scaling.write_json(found, str(tmp_path / "no" / "file.json"))
