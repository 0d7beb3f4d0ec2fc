"""One concrete sentence for each reason."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys_made import keys_and_changes

from jaxwatch._advisor import DEFINED_AGAIN, Sizes, Varying, advise, and_more, megabytes
from jaxwatch._explain import compare
from jaxwatch._keys import Key, Leaf, Param, Shape
from jaxwatch.events import AdviceCode, Change, Reason


def key(**arguments: Any) -> Key:
    return Key(params=tuple(Param(name, "positional", tree) for name, tree in arguments.items()))


def shaped(*shape: int) -> Leaf:
    return Leaf(shape, "float32")


def seen(*keys: Key) -> Callable[[str], Varying | None]:
    """Return what tells along which axis a leaf varies in those keys."""

    def varying(path: str) -> Varying | None:
        sizes = Sizes()
        for made in keys:
            if (shape := made.shape_at(path)) is not None:
                sizes.count(shape, 1)
        return sizes.varying()

    return varying


def shape_advice(*shapes: tuple[int, ...]) -> str:
    made = [key(x=shaped(*shape)) for shape in shapes]
    (advice,) = advise("step", compare(made[0], made[-1]), seen(*made))
    assert advice.code == "pad_or_bucket"
    return advice.text


def one(reason: Reason, path: str | None = "x", **values: Any) -> tuple[str, str]:
    (advice,) = advise(values.pop("function", "step"), [Change(reason=reason, path=path, **values)], seen())
    return advice.code, advice.text


@given(keys_and_changes())
def test_every_code_is_of_the_closed_list_and_every_text_a_sentence(
    case: tuple[Key, Key, set[tuple[str, str | None]]],
) -> None:
    before, after, _ = case
    for advice in advise("step", compare(before, after), seen(before, after)):
        assert advice.code in get_args(AdviceCode)
        assert advice.text[0].isupper()
        assert advice.text.rstrip("…").endswith(".")
        assert "\n" not in advice.text


@given(keys_and_changes())
def test_there_is_one_advice_for_each_reason(case: tuple[Key, Key, set[tuple[str, str | None]]]) -> None:
    before, after, told = case
    reasons = {reason for reason, _ in told} - {"axis_env"}  # nothing to change: the axis names are the program's

    assert len(advise("step", compare(before, after), seen(before, after))) == len(reasons)


@pytest.mark.parametrize("reason", ["first_call", "cache_lost", "unknown", "fast_path", "axis_env"])
def test_where_nothing_can_be_said_nothing_is(reason: Reason) -> None:
    assert advise("step", [Change(reason=reason)], seen()) == ()


# ------------------------------------------------------------------ shapes


def padded(axis: str, left: str, lengths: int, more: int) -> str:
    kept = f"{left} in place of {lengths}, {more} % more elements over the lengths seen"
    return f"Pad x along axis {axis} and mask: {kept}."


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ([(32, 64), (5, 64)], "Pad x to 32 rows and mask, or drop the remainder."),
        ([(8, 32), (8, 5)], "Pad x to length 32 along axis 1 and mask, or drop the remainder."),
        ([(8,), (16,), (24,)], padded("0 to a multiple of 16", "2 signatures", 3, 33)),
        ([(5,), (6,), (7,), (8,)], padded("0 to 8", "1 signature", 4, 23)),
        ([(8, n) for n in (12, 1302, 1583)], padded("1 to a power of two", "2 signatures", 3, 42)),
        ([(2, 3), (3, 2)], "Give x one shape: pad to the largest and mask, or round sizes up to a few."),
        ([(2,), (2, 2)], "Give x one number of dimensions."),
    ],
)
def test_shapes_that_vary_are_padded(shapes: list[tuple[int, ...]], text: str) -> None:
    assert shape_advice(*shapes) == text


@given(st.lists(st.lists(st.integers(1, 3) | st.just("n"), max_size=3).map(tuple), max_size=8), st.integers(0, 8))
def test_sizes_vary_along_the_one_axis_along_which_those_that_are_counted_differ(shapes: list[Shape], out: int) -> None:
    sizes = Sizes()
    for shape in shapes:
        sizes.count(shape, 1)
    for shape in shapes[:out]:
        sizes.count(shape, -1)

    left = set(shapes[out:])
    one_rank = len({len(shape) for shape in left}) == 1
    columns = [set(column) for column in zip(*left, strict=True)] if one_rank else []
    varying = [(axis, found) for axis, found in enumerate(columns) if len(found) > 1]
    assert sizes.varying() == (varying[0] if len(varying) == 1 and "n" not in varying[0][1] else None)


def test_several_leaves_are_named_and_many_counted() -> None:
    def text(number: int) -> str:
        names = [f"p{n}" for n in range(number)]
        before = key(**{name: shaped(8) for name in names})
        after = key(**{name: shaped(4) for name in names})
        (advice,) = advise("step", compare(before, after), seen(before, after))
        return advice.text

    assert "Pad p0 and p1 to" in text(2)
    assert "Pad p0, p1, p2 and 2 more to" in text(5)


def test_a_symbolic_size_is_no_number_to_pad_to() -> None:
    made = [key(x=Leaf((size,), "float32")) for size in ("n", "m")]
    (advice,) = advise("step", compare(*made), seen(*made))

    assert advice.text.startswith("Give x one shape")


# ------------------------------------------------------------------ the other reasons


@pytest.mark.parametrize(
    ("found", "code", "words"),
    [
        (one("dtype", before="float32[3]", after="int32[3]"), "pin_dtype", ["x", "float32"]),
        (one("weak_type", before="~float32[]", after="float32[]"), "pin_dtype", ["jnp.float32(x)"]),
        (one("weak_type", before="~int32[3]", after="int32[3]"), "pin_dtype", ["x.astype(jnp.int32)"]),
        (one("structure", before="None", after="float32[3]"), "fix_structure", ["x", "None"]),
        (one("structure", path="x['b']", after="int32[]"), "fix_structure", ["x['b']", "always"]),
        (one("metadata", before="1", after="2"), "fix_structure", ["x", "static fields"]),
        (one("static", before="1", after="2"), "unmark_static", ["x", "array argument"]),
        (one("static", before="M()", after="M()", note="the class has no __eq__: …"), "make_hashable", ["x", "__eq__"]),
        (one("call_form", before="positional", after="keyword"), "same_call_form", ["x", "by position"]),
        (one("call_form", before="keyword", after="positional"), "same_call_form", ["x", "by name"]),
        (one("call_form", before="given", after="left out"), "same_call_form", ["x", "default"]),
        (one("new_function", path=None), "jit_once", ["step", "outside the loop"]),
        (one("new_function", path=None, function="<lambda>"), "hoist_function", ["lambda"]),
        (one("new_function", path=None, note=f"{DEFINED_AGAIN}: …"), "jit_once", ["step", "in a cell of its own"]),
        (one("config", path="jax_enable_x64", before="False", after="True"), "set_config_once", ["jax_enable_x64"]),
        (one("mesh", path=None, before="no mesh", after="mesh(d=2)"), "set_config_once", ["mesh"]),
        (one("sharding", before="one device", after="P('d')"), "commit_inputs", ["x", "device_put"]),
        (one("placement", before="a", after="b"), "commit_inputs", ["x"]),
        (one("layout", before="a", after="b"), "commit_inputs", ["x"]),
        (one("transform", path=None, before="no transform", after="grad"), "jit_outer", ["jax.jit(jax.grad(step))"]),
        (one("options", path="donate_argnums", before=None, after="(0,)"), "jit_once", ["step", "options"]),
    ],
)
def test_a_reason_has_a_code_and_names_what_to_change(found: tuple[str, str], code: str, words: list[str]) -> None:
    assert found[0] == code
    assert all(word in found[1] for word in words), found[1]


def test_two_weak_leaves_are_told_in_one_sentence() -> None:
    changes = [Change(reason="weak_type", path=name, before="~float32[]", after="float32[]") for name in ("a", "b")]
    (advice,) = advise("step", changes, seen())

    assert "a and b" in advice.text
    assert "float32" in advice.text


# ------------------------------------------------------------------ words


def test_texts_beyond_the_first_are_counted() -> None:
    assert [and_more(["a", "b", "c", "d"][:number]) for number in range(5)] == [
        "", "a", "a and b", "a and b and c", "a, b, c and 1 more",
    ]  # fmt: skip
    assert (megabytes(1_400_000), megabytes(2_000_000_000)) == ("1.4 MB", "2,000.0 MB")


def test_a_value_that_becomes_weakly_typed_is_to_be_mended_where_it_is_made() -> None:
    change = Change(reason="weak_type", path="s", before="float32[]", after="~float32[]")
    (advice,) = advise("step", [change], lambda _: None)

    assert advice.code == "pin_dtype"
    assert advice.text.startswith("Give s its dtype where it is made, by jnp.float32(…)")


def test_another_type_of_container_is_not_one_that_is_missing() -> None:
    change = Change(reason="structure", path="d", before="list([0]: int32[])", after="tuple([0]: int32[])")
    (advice,) = advise("step", [change], lambda _: None)

    assert (advice.code, advice.text) == ("fix_structure", "Pass d as one type of container each time.")


def test_a_method_that_is_jitted_anew_is_to_be_jitted_once() -> None:
    lost = Change(reason="cache_lost", note="an equal key was compiled before; its entry is gone from JAX's cache")

    assert [advice.code for advice in advise("M.f", [lost], lambda _: None, new=True)] == ["jit_once"]
    assert advise("M.f", [lost], lambda _: None) == ()
