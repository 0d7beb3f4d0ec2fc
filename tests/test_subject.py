"""What the engine knows of a function when it begins to be watched; by either core."""

# ruff: noqa: ARG001 -- functions of the user's take what they do not use

import functools
from typing import Any

import jax
import pytest

from jaxwatch import Watch
from jaxwatch._histogram import Cell
from jaxwatch._subject import make_subject


def step(x: Any, n: int, *, mode: str = "sum") -> Any:
    return x


class Model:
    def apply(self, x: Any) -> Any:
        return x


def here(fun: Any) -> str:
    return f"{__file__}:{fun.__code__.co_firstlineno}"


def test_a_subject_names_the_function_its_definition_and_its_events() -> None:
    subject = make_subject(jax.jit(step, static_argnums=1), step, Watch(), {})

    assert (subject.name, subject.event_name) == ("step", "step")
    assert subject.definition == here(step)
    assert not subject.in_library
    assert subject.watch == Watch()
    assert subject.jitted() is None, "until it is registered"


def test_the_name_of_watch_comes_first_and_changes_neither_definition_nor_events() -> None:
    subject = make_subject(jax.jit(step), step, Watch(name="train"), {})

    assert (subject.name, subject.event_name, subject.definition) == ("train", "step", here(step))


@pytest.mark.parametrize(
    ("fun", "name", "event_name"),
    [
        (Model().apply, "Model.apply", "apply"),
        (functools.partial(step, n=1), "step", "step"),
        (functools.partial(functools.partial(step, n=1), mode="none"), "step", "step"),
        (lambda x: x, "<lambda>", "<lambda>"),
    ],
)
def test_names_are_told_through_methods_and_partials(fun: Any, name: str, event_name: str) -> None:
    subject = make_subject(jax.jit(fun), fun, Watch(), {})

    assert (subject.name, subject.event_name) == (name, event_name)


def test_a_function_of_an_installed_package_is_a_librarys() -> None:
    assert make_subject(jax.jit(pytest.approx), pytest.approx, Watch(), {}).in_library


def test_the_plan_knows_what_is_static() -> None:
    subject = make_subject(jax.jit(step, static_argnums=1, static_argnames="mode"), step, Watch(), {})

    assert [subject.plan.is_static(place, name) for place, name in ((0, "x"), (1, "n"), (None, "mode"))] == [
        False,
        True,
        True,
    ]


def test_counters_are_the_given_cells_or_the_twins() -> None:
    given = Cell()

    assert make_subject(jax.jit(step), step, Watch(), {}, given).counters.cell is given
    assert isinstance(make_subject(jax.jit(step), step, Watch(), {}).counters.cell, Cell)


def test_each_function_is_looked_at_for_departures_from_the_start() -> None:
    subject = make_subject(jax.jit(step), step, Watch(), {})

    assert subject.departures == {}
    assert subject.failed == set()
