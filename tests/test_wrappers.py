"""Which of the user's arguments a wrapper's own parameter is; told only where it is the very object."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import cores
import jax.numpy as jnp
import numpy as np
import pytest
from published import Events

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
    assert change.note == "argument x of step"
    assert miss.advice[0].text == "Pad x to 8 rows and mask, or drop the remainder."
    assert miss.site.startswith(f"{__file__}:")
    assert miss.via is not None
    assert miss.via.startswith(library.__file__ or "?")


def test_a_leaf_of_an_argument_is_told_with_its_path(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(lambda batch: batch["x"].sum())
    for rows in (8, 3):
        wrapped({"x": ones(rows), "y": ones(2)})

    assert [change.note for change in found.last().changes] == ["argument batch['x'] of <lambda>"]


def test_keywords_are_told_by_name(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(made_step())
    for rows in (8, 3):
        wrapped(PARAMS, ones(4), scale=ones(rows, 1))

    assert [change.note for change in found.last().changes] == ["argument scale of step"]


def test_a_librarys_function_that_wraps_nothing_is_told_by_its_own_parameters(
    library: ModuleType, found: Events
) -> None:
    jitted = library.rename(lambda pair: pair[0].sum() + pair[1].sum())
    for rows in (8, 3):
        library.solve(jitted, ones(rows), ones(2))
    assert [(change.path, change.note) for change in found.last().changes] == [("pair[0]", "argument y0 of solve")]

    library.solve(jitted, ones(8), ones(5))
    assert [(change.path, change.note) for change in found.last().changes] == [("pair[1]", "argument more[0] of solve")]


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
        ("dynamic[1]", "argument args[1] of __call__")
    ]


def test_where_the_tree_changes_too_nothing_is_claimed_of_a_flat_list(library: ModuleType, found: Events) -> None:
    wrapped = library.Wrapped(lambda rest, x: x.sum() + (0 if rest is None else rest[0].sum()))
    rest = (ones(2), ones(3))
    wrapped(rest, ones(8))
    wrapped(None, ones(8))

    assert all("argument" not in (change.note or "") for change in found.last().changes)
