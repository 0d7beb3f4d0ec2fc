"""The examples: the report finds each mistake of ``digits.py`` and no other, and changes none of its numbers."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

pytest.importorskip("optax", reason="needs the extra: pip install 'jaxwatch[examples]'")
pytest.importorskip("sklearn", reason="needs the extra: pip install 'jaxwatch[examples]'")


def watched(name: str, log: Path) -> tuple[bytes, str, list[dict[str, Any]]]:
    """Return what the example printed, the report, and the events."""
    command = [sys.executable, "-m", "jaxwatch", "run", "--log", str(log), str(EXAMPLES / name)]
    done = subprocess.run(command, check=True, capture_output=True, timeout=300)
    return done.stdout, done.stderr.decode(), [json.loads(line) for line in log.read_text().splitlines()]


def recompiles(events: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    misses = [event for event in events if event["event"] == "cache_miss" and event["reasons"] != ["first_call"]]
    return Counter(
        (miss["function"], *miss["reasons"], *(change["path"] for change in miss["changes"])) for miss in misses
    )


def test_the_mistakes_are_found_with_their_arguments_and_the_numbers_stay(tmp_path: Path) -> None:
    plain = subprocess.run([sys.executable, str(EXAMPLES / "digits.py")], check=True, capture_output=True, timeout=300)
    out, report, events = watched("digits.py", tmp_path / "log")

    assert out == plain.stdout
    assert recompiles(events) == {
        ("step", "weak_type", "lr"): 1,
        ("step", "shape", "batch['x']", "batch['y']"): 1,
        ("blur", "static", "strength"): 7,
        ("<lambda>", "new_function", None): 7,
    }
    for told in (
        "step: lr ~float32[] → float32[] (weak type)",
        "step: batch['x'] float32[64,64] → float32[28,64]",
        "blur: strength 0.4 → 7 other values (static)",
        "<lambda>: the same code as another function object",
        "outside jit, at digits.py:56",
    ):
        assert told in report
    assert report.count("\n6  ") == 0, "a sixth finding blames something else"


def test_mended_each_function_compiles_once(tmp_path: Path) -> None:
    _, report, events = watched("digits_fixed.py", tmp_path / "log")

    assert recompiles(events) == {}
    assert "each of 4 functions once" in report
    assert "Nothing to improve." in report


def test_both_have_the_same_number_of_lines() -> None:
    lengths = {len((EXAMPLES / name).read_text().splitlines()) for name in ("digits.py", "digits_fixed.py")}

    assert len(lengths) == 1
