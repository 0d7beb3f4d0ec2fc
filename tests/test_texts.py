"""Texts of the user's values: short, guarded, the same in every process."""

import functools
import json
import math
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import run

from jaxwatch import _limits
from jaxwatch._texts import digest, equal_text, is_plain, label_text, nans, shortened, value_text, whole_text

scalars = st.one_of(
    st.integers(),
    st.floats(),
    st.booleans(),
    st.complex_numbers(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.none(),
)
plain = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3), max_leaves=5
)


class Raising:
    def __repr__(self) -> str:
        raise RuntimeError("no")


class NoText:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]  # as the wild has it


class Meta(type):
    def __getattr__(cls, name: str) -> NoReturn:
        raise RuntimeError(name)


class Evil(metaclass=Meta):
    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


@given(st.text(), st.integers(1, 100))
def test_a_text_is_cut_with_an_ellipsis_where_it_is_longer(text: str, characters: int) -> None:
    cut = shortened(text, characters)

    assert len(cut) <= characters
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


@given(plain)
def test_plain_values_are_told_short(value: Any) -> None:
    assert is_plain(value)
    assert 0 < len(value_text(value)) <= _limits.REPR_CHARACTERS


@given(scalars.filter(lambda value: not isinstance(value, tuple)))
def test_a_scalar_is_told_as_python_writes_it(value: Any) -> None:
    assert whole_text(value) == repr(value)


def test_sets_are_told_in_one_order_in_every_process() -> None:
    program = """
        import json
        from jaxwatch._texts import digest, equal_text, whole_text
        values = frozenset({"a", "b", "c", "d"}), (1, frozenset({("x", 1), ("y", 2)})), frozenset()
        print(json.dumps([[whole_text(value), digest(equal_text(value))] for value in values]))
    """
    one, two = (run(program, PYTHONHASHSEED=seed).out for seed in ("1", "2"))

    assert one == two
    assert json.loads(one)[0][0] == "frozenset({'a', 'b', 'c', 'd'})"
    assert json.loads(one)[2][0] == "frozenset()"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((), "()"),
        ((1,), "(1,)"),
        ((1, "a"), "(1, 'a')"),
        (Raising(), "<Raising, whose repr raises RuntimeError>"),
        (NoText(), "<NoText, whose repr raises TypeError>"),
        (shortened, "<function shortened>"),
        (functools.partial(shortened, characters=9), "partial(<function shortened>, …)"),
        (object(), "<object object>"),
        pytest.param(10**5000, "<int, whose repr raises ValueError>", id="huge int"),
        (np.float32(1.5), "np.float32(1.5)"),
    ],
)
def test_odd_values_have_a_text_without_addresses(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_what_an_array_holds_is_never_told() -> None:
    text = value_text(np.full((3, 4), 123.0))

    assert "123" not in text
    assert "float64" in text


def test_an_object_whose_every_attribute_raises_has_a_text() -> None:
    assert "Evil" in value_text(Evil())


def test_a_huge_value_is_told_short_and_told_apart_by_its_digest() -> None:
    one, two = "a" * 10**6 + "1", "a" * 10**6 + "2"

    assert value_text(one) == value_text(two)
    assert len(value_text(one)) == _limits.REPR_CHARACTERS
    assert digest(equal_text(one)) != digest(equal_text(two))


@given(plain, plain)
def test_the_text_of_equality_is_equal_where_python_finds_values_equal(one: Any, two: Any) -> None:
    same = equal_text(one) + nans(one) == equal_text(two) + nans(two)

    assert same == (one == two or one is two) or _holds_nan(one)


@given(plain)
def test_a_value_equals_itself_by_its_text(value: Any) -> None:
    assert equal_text(value) + nans(value) == equal_text(value) + nans(value)


def _holds_nan(value: Any) -> bool:
    return any(map(_holds_nan, value)) if isinstance(value, tuple | frozenset) else bool(nans(value))


@pytest.mark.parametrize(
    ("one", "two"),
    [(1, 1.0), (True, 1), (0.0, -0.0), (1 + 0j, 1), (2**70, float(2**70)), (1 - 0j, 1.0), (0.0 + 1j, -0.0 + 1j)],
)
def test_numbers_that_are_equal_have_one_text(one: Any, two: Any) -> None:
    assert one == two
    assert equal_text(one) == equal_text(two)
    assert equal_text((one, "a")) == equal_text((two, "a"))
    assert equal_text(frozenset({one})) == equal_text(frozenset({two}))


@pytest.mark.parametrize(
    ("one", "two"), [("1", 1), (b"a", "a"), (math.inf, -math.inf), (None, ...), ((1,), 1), ((), frozenset())]
)
def test_values_that_are_not_equal_have_not(one: Any, two: Any) -> None:
    assert equal_text(one) != equal_text(two)


def test_a_nan_is_equal_to_itself_alone() -> None:
    one, two = float("nan"), float("nan")

    assert nans(one)
    assert nans(one) != nans(two)
    assert nans((1, one)) == nans((2, one))
    assert not nans((1, "nan", None, math.inf))


def test_containers_of_the_users_own_kinds_are_not_plain() -> None:
    class Named(tuple[int, ...]):
        __slots__ = ()

    assert not is_plain(Named((1,)))
    assert not is_plain((1, Named((1,))))
    assert not is_plain([1])
    assert not is_plain(np.float64(1.0))
    assert is_plain((1, (2, frozenset({None}))))


@given(st.text(max_size=10), st.integers(1, 500))
def test_labels_are_bounded_and_still_told_apart(end: str, length: int) -> None:
    one, two = "k" * length + end + "1", "k" * length + end + "2"

    assert label_text(one) != label_text(two)
    assert len(label_text(one)) <= _limits.NAME_CHARACTERS + 10


def test_labels_hold_no_address() -> None:
    assert label_text(f"[{object()!r}]") == "[<object object>]"
