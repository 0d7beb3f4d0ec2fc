"""Bounds of label values, and that a value once given stays."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from figures import hostile, made
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._labels import Labels, clean, shortened
from jaxwatch._stats import FunctionStats

functions = st.builds(
    lambda name, line, in_library: made(function=name, definition=f"{name}.py:{line}", in_library=in_library),
    st.sampled_from(["step", "other", "a@a.py:1", "a", "s" * 300]) | hostile,
    st.integers(1, 3),
    st.booleans(),
)


def one(number: int, **changes: object) -> FunctionStats:
    return made(function=f"f{number}", definition=f"m.py:{number}", **changes)


@given(st.lists(functions, max_size=40), st.randoms())
def test_a_label_stays_with_its_function_and_is_no_other_functions(
    found: list[FunctionStats], random: st.DataObject
) -> None:
    labels = Labels()
    first = {(f.function, f.definition): labels.function(f) for f in found}
    random.shuffle(found)  # type: ignore[attr-defined]  # hypothesis gives a random.Random

    assert {(f.function, f.definition): labels.function(f) for f in found} == first
    assert len(set(first.values())) == len(first)
    assert "other" not in first.values()


def test_the_second_function_of_a_name_is_told_by_its_place() -> None:
    labels = Labels()

    assert labels.function(made(definition="a.py:1")) == "step"
    assert labels.function(made(definition="b.py:2")) == "step@b.py:2"
    assert labels.function(made(function="step@c.py:3", definition="d.py:4")) == "step@c.py:3"
    assert labels.function(made(definition="c.py:3")) == "step@c.py:3#2"


def test_a_function_called_other_is_not_taken_for_the_rest() -> None:
    labels = Labels()

    assert labels.function(made(function="other", definition="a.py:1")) == "other@a.py:1"
    assert labels.function(made(function="other", definition="<other>")) == "other"
    assert labels.folded()["function"] == 0, "the registry has counted those"


def test_functions_are_bounded_and_libraries_leave_room_for_the_user() -> None:
    labels = Labels()
    given_out = [labels.function(one(n, in_library=True)) for n in range(70)]
    given_out += [labels.function(one(n)) for n in range(70, 170)]

    assert given_out[:50] == [f"f{n}" for n in range(50)]
    assert given_out[50:70] == ["other"] * 20
    assert given_out[70:120] == [f"f{n}" for n in range(70, 120)]
    assert given_out[120:] == ["other"] * 50
    assert labels.folded()["function"] == 70


def test_the_user_may_have_all_functions() -> None:
    labels = Labels()

    assert "other" not in {labels.function(one(n)) for n in range(_limits.LABEL_FUNCTIONS)}
    assert labels.function(one(1000, in_library=True)) == "other"


def test_what_was_folded_stays_folded_and_is_counted_once() -> None:
    labels = Labels()
    for n in range(51):
        labels.function(one(n, in_library=True))

    assert [labels.function(one(50)) for _ in range(3)] == ["other"] * 3, "its figures are in there"
    assert labels.folded()["function"] == 1


def test_signatures_are_bounded_for_a_function_and_in_all() -> None:
    labels = Labels()
    kept = [[labels.signature(f"f{f}", f"s{s}") for s in range(12)] for f in range(25)]

    assert kept[0] == [f"s{s}" for s in range(10)] + ["other"] * 2
    assert kept[19] == kept[0]
    assert kept[20] == ["other"] * 12, "200 are given out"
    assert [labels.signature("f0", f"s{s}") for s in range(12)] == kept[0]
    assert labels.folded()["signature"] == 20 * 2 + 5 * 12


def test_signatures_of_functions_that_are_other_are_counted_and_the_count_never_goes_down() -> None:
    labels = Labels()
    for number in (3, 5, 4):
        labels.fold_signatures(number)

    assert labels.folded()["signature"] == 5


@pytest.mark.parametrize(("function", "signature", "folded"), [("f", "other", 0)])
def test_a_signature_of_the_rest_is_no_label(function: str, signature: str, folded: int) -> None:
    labels = Labels()

    assert labels.signature(function, signature) == "other"
    assert labels.folded()["signature"] == folded


def test_sites_are_bounded() -> None:
    labels = Labels()
    given_out = [labels.site(f"m.py:{n}") for n in [*range(103), *range(103), 0]]

    assert given_out == [*(f"m.py:{n}" for n in range(100)), *["other"] * 3] * 2 + ["m.py:0"]
    assert labels.site("other") == "other"
    assert labels.folded()["site"] == 3


def test_a_site_is_told_relative_to_the_programs_folder() -> None:
    labels = Labels(str(Path("/home/me")))

    assert labels.site(f"{Path('/home/me/data/load.py')}:3") == f"{Path('data/load.py')}:3"
    assert labels.site(f"{Path('/home/mean.py')}:3") == f"{Path('/home/mean.py')}:3"
    assert Labels("").site("/train.py:3") == "/train.py:3"


def test_the_folder_is_that_of_the_program_that_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels = Labels()
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__file__=str(tmp_path / "train.py")))
    assert labels.site(f"{tmp_path / 'train.py'}:3") == "train.py:3"


@given(hostile)
def test_a_clean_value_can_be_encoded_and_cleaning_changes_nothing_else(value: str) -> None:
    assert "\0" not in clean(value)
    assert clean(clean(value)) == clean(value)
    assert [a for a, b in zip(value, clean(value).encode().decode(), strict=True) if b not in (a, "?")] == []


@given(hostile, st.integers(1, 20))
def test_a_shortened_value_is_no_longer_than_allowed(value: str, characters: int) -> None:
    text = shortened(value, characters)

    assert len(text) <= characters
    assert text == clean(value) or text.endswith("…")
