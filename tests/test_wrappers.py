"""Which of the user's arguments a wrapper's own parameter is; told only where it is the very object."""

import gc
import importlib.util
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from published import Events

from jaxwatch import _limits

LIBRARY = '''
import functools
import jax, jaxwatch

class Wrapped:
    """Flattens what it is given, as a library does that sorts arrays from the rest."""

    def __init__(self, fun, convert=lambda leaf: leaf):
        self.__wrapped__ = fun
        self.convert = convert
        def run(dynamic):
            args, kwargs = jax.tree.unflatten(self.tree, dynamic)
            return fun(*args, **kwargs)
        self.jitted = jaxwatch.jit(run)

    def __call__(self, /, *args, **kwargs):
        leaves, self.tree = jax.tree.flatten((args, kwargs))
        return self.jitted(tuple(self.convert(leaf) for leaf in leaves))

def solve(function, y0, *more):
    return function((y0, *more))

def swapped(function, x, y):
    x, y = y, x
    return function((x, y))

def made(function, make, batch=None):
    batch = make()
    return function((batch, batch.sum()))

def configured(function, x, scale=1.0):
    config = locals()
    del config["function"]
    out = function((x, x.sum()))
    return sorted(config)

def ignoring(function, x, other):
    return function((x, x.sum()))

class Reversed:
    def __init__(self, fun):
        self.__wrapped__ = fun
        self.jitted = jaxwatch.jit(lambda *args: fun(*args))

    def run(self, *args):
        return self.jitted(*args[::-1])

def rename(fun):
    jitted = jaxwatch.jit(fun)
    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        return jitted(*args, **kwargs)
    return wrapper
'''


@pytest.fixture
def library(tmp_path: Path) -> ModuleType:
    path = tmp_path / "site-packages" / "some_library.py"
    path.parent.mkdir()
    path.write_text(LIBRARY)
    spec = importlib.util.spec_from_file_location("some_library", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=cores.CORES)
def found(request: pytest.FixtureRequest) -> Iterator[Events]:
    with cores.in_use(request.param), cores.told() as events:
        yield events


def made_step() -> Any:
    """Return a function of the user's; another one each time, since JAX's caches are shared by the function."""

    def step(params: Any, x: Any, scale: Any = 1.0) -> Any:
        return (params["w"] * x).sum() * scale

    return step


PARAMS = {"w": np.float32(2)}


def told(note: str) -> str | None:
    """Return what is to be noted: before Python 3.13 nothing, since it cannot be found without a trace."""
    return note if sys.version_info >= (3, 13) else None


def ones(*shape: int) -> Any:
    return jnp.ones(shape)


def test_the_note_and_the_advice_name_the_users_argument_and_the_site_is_the_users_line(
    library: ModuleType, found: Events
) -> None:
    wrapped = library.Wrapped(made_step())
    for rows in (8, 8, 3):
        wrapped(PARAMS, ones(rows, 2))

    miss = found.last()
    (change,) = miss.changes
    assert (change.path, change.before, change.after) == ("dynamic[1]", "float32[8,2]", "float32[3,2]")
    assert change.note == told("argument x of step")
    name = "x" if told("x") else "dynamic[1]"
    assert miss.advice[0].text == f"Pad {name} to 8 rows and mask, or drop the remainder."
    assert miss.site.startswith(f"{__file__}:")
    assert miss.via is not None
    assert miss.via.startswith(library.__file__ or "?")


def test_a_leaf_of_an_argument_is_told_with_its_path(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(lambda batch: batch["x"].sum())
    for rows in (8, 3):
        wrapped({"x": ones(rows), "y": ones(2)})

    assert [change.note for change in found.last().changes] == [told("argument batch['x'] of <lambda>")]


def test_keywords_are_told_by_name(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(made_step())
    for rows in (8, 3):
        wrapped(PARAMS, ones(4), scale=ones(rows, 1))

    assert [change.note for change in found.last().changes] == [told("argument scale of step")]


def test_a_librarys_function_that_wraps_nothing_is_told_by_its_own_parameters(
    library: ModuleType, found: Events
) -> None:
    jitted = library.rename(lambda pair: pair[0].sum() + pair[1].sum())
    for rows in (8, 3):
        library.solve(jitted, ones(rows), ones(2))
    assert [(change.path, change.note) for change in found.last().changes] == [
        ("pair[0]", told("argument y0 of solve"))
    ]

    library.solve(jitted, ones(8), ones(5))
    assert [(change.path, change.note) for change in found.last().changes] == [
        ("pair[1]", told("argument more[0] of solve"))
    ]


def test_another_object_is_never_claimed_to_be_the_users(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(made_step(), convert=lambda leaf: leaf + 0)
    for rows in (8, 3):
        wrapped(PARAMS, ones(rows))

    assert [(change.path, change.note) for change in found.last().changes] == [("dynamic[1]", None)]


def test_scalars_are_not_looked_for_since_one_object_may_be_many_arguments(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(made_step())
    for scale in (1.0, np.float32(1)):
        wrapped(PARAMS, ones(8), scale)

    assert [change.note for change in found.last().changes] == [None]


def test_a_path_that_is_the_users_own_name_has_no_note(library: ModuleType, found: Events) -> None:
    renamed = library.rename(made_step())
    for rows in (8, 3):
        renamed(PARAMS, x=ones(rows))

    assert [(change.path, change.note) for change in found.last().changes] == [("x", None)]


def test_without_a_library_between_nothing_is_looked_for(found: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    import jaxwatch
    from jaxwatch import _misses

    monkeypatch.setattr(_misses, "users_arguments", lambda *_args: pytest.fail("looked for"))
    jitted = jaxwatch.jit(made_step())
    for rows in (8, 3):
        jitted(PARAMS, ones(rows))

    assert [change.note for change in found.last().changes] == [None]
    assert found.last().via is None


def test_a_wrapper_whose_attribute_raises_leaves_the_path_alone(library: ModuleType, found: Events) -> None:
    class Hostile(library.Wrapped):  # type: ignore[misc, name-defined]  # a class of a module made here
        @property
        def __wrapped__(self) -> Any:
            raise RuntimeError("not now")

        @__wrapped__.setter
        def __wrapped__(self, value: Any) -> None: ...

    wrapped = Hostile(made_step())
    for rows in (8, 3):
        wrapped(PARAMS, ones(rows))

    assert [(change.path, change.note) for change in found.last().changes] == [
        ("dynamic[1]", told("argument args[1] of __call__"))
    ]


def test_where_the_tree_changes_too_nothing_is_claimed_of_a_flat_list(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(lambda rest, x: x.sum() + (0 if rest is None else rest[0].sum()))
    rest = (ones(2), ones(3))
    wrapped(rest, ones(8))
    wrapped(None, ones(8))

    assert all("argument" not in (change.note or "") for change in found.last().changes)


def pair() -> Any:
    return lambda pair: pair[0].sum() + pair[1].sum()


def test_an_array_that_stands_twice_on_either_side_is_not_claimed(library: ModuleType, found: Events) -> None:
    jitted = library.rename(pair())
    library.solve(jitted, ones(3), ones(4))
    twice = ones(9)
    library.solve(jitted, twice, twice)

    assert [change.note for change in found.last().changes] == [None, None]


def test_an_argument_that_the_library_bound_anew_is_not_claimed(library: ModuleType, found: Events) -> None:
    jitted = library.rename(pair())
    library.swapped(jitted, ones(3), ones(4))
    library.swapped(jitted, ones(3), ones(5))
    assert [change.note for change in found.last().changes] == [None]

    library.made(jitted, lambda: ones(7))
    assert all(change.note is None for change in found.last().changes)


def test_a_method_is_not_told_by_the_parameters_of_what_it_wraps(library: ModuleType, found: Events) -> None:
    wrapped = library.Reversed(lambda params, x: params.sum() + x.sum())
    wrapped.run(ones(3), ones(4))
    wrapped.run(ones(3), ones(5))

    assert [change.note for change in found.last().changes] == [told("argument args[1] of run")]


def test_what_locals_returned_to_the_library_stays_as_it_was(library: ModuleType, found: Events) -> None:
    del found
    jitted = library.rename(pair())
    for size in (3, 4):
        assert library.configured(jitted, ones(size)) == ["scale", "x"]


def test_nothing_of_the_users_that_jax_does_not_see_is_run_or_gone_through(library: ModuleType, found: Events) -> None:
    class Node:
        pass

    def flatten(_node: Node) -> Any:
        raise SystemExit

    jax.tree_util.register_pytree_node(Node, flatten, lambda _aux, _children: Node())
    jitted = library.rename(pair())
    for size in (3, 4):
        library.ignoring(jitted, ones(size), [Node(), dict.fromkeys(range(_limits.GIVEN_LEAVES + 1))])

    assert [(change.path, change.note) for change in found.last().changes] == [
        ("pair[0]", told("argument x of ignoring"))
    ]


def test_arguments_that_the_library_lets_go_are_let_go(library: ModuleType, found: Events) -> None:
    del found
    jitted = library.rename(pair())
    library.ignoring(jitted, ones(2), None)
    kept = np.ones(5, np.float32)
    gone = weakref.ref(kept)
    library.ignoring(jitted, kept, None)
    del kept
    gc.collect()

    assert gone() is None
