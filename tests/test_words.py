"""Differences in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._words import change_text, changes_text
from jaxwatch.events import REASONS, Change

sides = st.none() | st.text(max_size=8)
changes = st.builds(Change, reason=st.sampled_from(REASONS), path=sides, before=sides, after=sides, note=sides)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            Change(reason="shape", path="x", before="float32[4]", after="float32[5]"),
            "x: float32[4] → float32[5]",
        ),
        (
            Change(reason="weak_type", path="lr", before="~float32[]", after="float32[]"),
            "lr: ~float32[] → float32[] (weak type)",
        ),
        (Change(reason="structure", path="x['b']", after="int32[]"), "x['b']: (none) → int32[]"),
        (
            Change(reason="call_form", path="x", before="positional", after="keyword"),
            "x: positional → keyword (call form)",
        ),
        (Change(reason="cache_lost", note="its entry is gone"), "its entry is gone"),
        (Change(reason="cache_lost"), "cache lost"),
        (Change(reason="mesh", before="no mesh", after="mesh(d=2)"), "no mesh → mesh(d=2)"),
        (
            Change(reason="config", path="jax_enable_x64", before="False", after="True"),
            "jax_enable_x64: False → True (config)",
        ),
    ],
)
def test_a_change_is_a_line(change: Change, text: str) -> None:
    assert change_text(change) == text


@given(st.lists(changes, max_size=8), st.integers(1, 5))
def test_a_few_are_told_and_the_rest_counted(made: list[Change], most: int) -> None:
    distinct = len({change_text(change) for change in made})
    text = changes_text(made, most)

    assert (text == "") is (not made or text == changes_text([], most))
    assert text.endswith(f"; and {distinct - most} more") is (distinct > most)


def test_a_leaf_that_differs_in_shape_and_dtype_is_told_once() -> None:
    both = [Change(reason=reason, path="x", before="int32[4]", after="int8[5]") for reason in ("shape", "dtype")]

    assert changes_text(both) == "x: int32[4] → int8[5]"
