"""What a miss tells of its program: equations, constants, the jits within; on both cores."""

# ruff: noqa: PLW0108 -- functions of the user's take what they do not use

import gc
import types
import weakref
from collections.abc import Iterator
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cores import told

import jaxwatch
from jaxwatch import _compat, _limits, _listeners
from jaxwatch._content import content_of
from jaxwatch._frames import Frame
from jaxwatch.events import Inner, Program

X = np.arange(4, dtype=np.float32)
TABLE = jnp.arange(300, dtype=jnp.float32)


@pytest.fixture(autouse=True, params=cores.CORES)
def _core(request: pytest.FixtureRequest) -> Iterator[None]:
    if not _compat.HAS_LOWERED_JAXPR:
        pytest.skip("this JAX does not show what it lowers")
    with cores.in_use(request.param):
        yield


def program(function: Any, *args: Any, **options: Any) -> Program:
    """Return what the first call of a function is told to be made of."""
    with told() as events:
        jaxwatch.jit(function, **options)(*args)
    found = events.last().program
    assert found is not None
    return found


def inner_of(found: Program) -> Inner:
    (inner,) = found.inner
    return inner


# ------------------------------------------------------------------ equations


def test_equations_are_counted() -> None:
    assert program(lambda x: x * 2 + 1, X).equations == 2


def test_a_shared_inner_jit_is_counted_once() -> None:
    inner = jax.jit(lambda x: x * 2 + 1)

    assert program(lambda x: inner(x), X).equations == 1 + 2
    assert program(lambda x: inner(inner(inner(x))), X).equations == 3 + 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.lax.scan(lambda carry, _: (jnp.sin(jnp.cos(carry)), None), x, None, length=3)[0],
        lambda x: jax.lax.cond(x[0] > 0, lambda x: jnp.sin(jnp.cos(x)), lambda x: x, x),
        lambda x: jax.lax.cond(x[0] > 0, lambda x: x, lambda x: jnp.sin(jnp.cos(x)), x),
        lambda x: jax.lax.while_loop(lambda x: x[0] < 0, lambda x: jnp.sin(jnp.cos(x)), x),
    ],
    ids=["scan", "cond", "cond, other branch", "while"],
)
def test_bodies_are_looked_into(function: Any) -> None:
    jaxpr = jax.make_jaxpr(function)(X)

    assert program(lambda x: function(x), X).equations >= len(jaxpr.eqns) + 2


def test_beyond_the_bound_it_says_that_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = jax.jit(lambda x: x * 2 + 1)
    whole = program(lambda x: inner(x) + 1, X)
    monkeypatch.setattr(_limits, "PROGRAM_EQUATIONS", 2)
    part = program(lambda x: inner(x) + 1, X)

    assert (whole.equations, whole.partial) == (4, False)
    assert (part.equations, part.partial) == (2, True)


@pytest.mark.parametrize("order", [("small", "large"), ("large", "small")], ids="-".join)
def test_of_several_programs_of_one_call_the_largest_is_told(
    order: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    jaxprs = {"small": jax.make_jaxpr(lambda x: x * 2)(X), "large": jax.make_jaxpr(lambda x: x * 2 + 1 - x)(X)}
    lowered = iter(order)

    def both(frame: Frame, where: Any) -> None:
        for name in lowered:
            monkeypatch.setattr(_compat, "lowered_jaxpr", lambda _where, name=name: jaxprs[name])
            read(frame, where)

    read = _listeners._read_program
    monkeypatch.setattr(_listeners, "_read_program", both)

    assert program(lambda x: x, X).equations == 3


# ------------------------------------------------------------------ constants


@pytest.mark.parametrize("kind", ["global", "closed over", "numpy"])
def test_bytes_of_constants_are_exact(kind: str) -> None:
    mine, plain = jnp.ones((300, 4), jnp.float32), np.ones(5, np.int16)
    functions = {
        "global": (lambda x: x + TABLE[:4] * TABLE.sum(), 1200, ("float32[300]",)),
        "closed over": (lambda x: x + mine[0], 4800, ("float32[300,4]",)),
        "numpy": (lambda x: x + jnp.asarray(plain)[:4], 10, ("int16[5]",)),
    }
    function, size, texts = functions[kind]
    found = program(function, X)

    assert (found.constant_bytes, found.constants) == (size, texts)


def test_the_largest_constants_are_told_first_and_the_small_ones_not() -> None:
    large, middle, small = (jnp.ones(size, jnp.float32) for size in (1000, 500, 1))
    found = program(lambda x: x + large.sum() + middle.sum() + small.sum(), X)

    assert found.constants == ("float32[1000]", "float32[500]")
    assert found.constant_bytes == 4 * 1501


def test_an_array_used_twice_is_one_constant() -> None:
    mine = jnp.ones(100, jnp.float32)

    assert program(lambda x: x + mine[0] + mine.sum(), X).constant_bytes == 400


def test_arrays_that_are_handed_over_are_no_constants() -> None:
    assert program(lambda x, y: x + y, X, X).constant_bytes == 0


@pytest.mark.skipif(
    not hasattr(jax.config, "jax_use_simplified_jaxpr_constants"), reason="this JAX has no such configuration"
)
def test_constants_that_jax_hands_to_the_program_are_not_part_of_it() -> None:
    mine = jnp.ones(100, jnp.float32)
    before = jax.config.jax_use_simplified_jaxpr_constants  # type: ignore[attr-defined]  # not in JAX's stubs
    jax.config.update("jax_use_simplified_jaxpr_constants", True)  # type: ignore[no-untyped-call]  # as above
    try:
        found = program(lambda x: x + mine[0], X)
    finally:
        jax.config.update("jax_use_simplified_jaxpr_constants", before)  # type: ignore[no-untyped-call]  # as above

    assert (found.constant_bytes, found.constants) == (0, ())


def test_constants_are_left_out_where_they_are_no_part_of_what_is_compiled() -> None:
    jaxpr = jax.jit(lambda x: x + TABLE[0]).trace(X).jaxpr

    assert content_of(jaxpr).constants[0].size == 1200
    assert content_of(jaxpr, constants=False).constants == ()


# ------------------------------------------------------------------ jits within


def test_jits_of_jaxs_own_library_are_left_out() -> None:
    def mine(x: Any) -> Any:
        return jnp.where(x > 0, x, 0)  # a jit

    found = inner_of(program(lambda x: jax.jit(mine)(jnp.where(x > 1, x, 2)), X))

    assert (found.function, found.calls) == ("mine", 1)
    assert found.definition == f"{__file__}:{mine.__code__.co_firstlineno}"


def test_one_signature_called_many_times_is_one_variant() -> None:
    inner = jax.jit(lambda x: x * 2)
    found = inner_of(program(lambda x: inner(inner(inner(x))), X))

    assert (found.calls, found.variants) == (3, 1)


def test_a_static_that_is_not_read_makes_variants() -> None:
    inner = jax.jit(
        lambda x, layer: x * 2,  # noqa: ARG005 -- that is the point
        static_argnames="layer",
    )
    found = inner_of(program(lambda x: inner(inner(inner(x, layer=0), layer=1), layer=2), X))

    assert (found.calls, found.variants) == (3, 3)


def test_a_key_of_a_dictionary_that_changes_makes_variants() -> None:
    inner = jax.jit(lambda tree: sum(tree.values()) * 2)
    found = inner_of(program(lambda x: inner({"a": x}) + inner({"b": x}) + inner({"b": x}), X))

    assert (found.calls, found.variants) == (3, 2)


# ------------------------------------------------------------------ duck-typed


def test_a_jaxpr_that_is_not_closed_has_no_constants() -> None:
    closed = jax.make_jaxpr(lambda x: x + 1)(X)

    assert content_of(closed.jaxpr) == content_of(closed)


class Odd:
    """A parameter that is no jaxpr, though it has equations."""

    eqns = 5


class Unhashable(type):
    def __eq__(cls, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # just that


class Strange(metaclass=Unhashable):
    """A parameter whose type cannot be looked up."""


@pytest.mark.parametrize("params", [{"odd": Odd()}, {"odd": Strange()}, {"odd": (Strange(),)}])
def test_a_primitive_of_the_users_may_hold_anything(params: dict[str, Any]) -> None:
    equation = types.SimpleNamespace(params=params, primitive=types.SimpleNamespace(name="mine"))
    known = types.SimpleNamespace(params={}, primitive=types.SimpleNamespace(name="add"))

    assert content_of(types.SimpleNamespace(eqns=[equation, known], consts=())).equations == 2


def test_a_primitive_that_is_named_as_a_jit_and_is_none_makes_the_rest_partial() -> None:
    jaxpr = jax.jit(lambda x: x + 1).trace(jnp.ones(3)).jaxpr
    equation = types.SimpleNamespace(params={"mine": jaxpr}, primitive=types.SimpleNamespace(name="jit"))
    found = content_of(types.SimpleNamespace(eqns=[equation], consts=()))

    assert (found.equations, found.called, found.partial) == (2, (), True)


def test_no_class_of_the_users_is_kept_alive() -> None:
    class Local:
        pass

    equation = types.SimpleNamespace(params={"one": Local()}, primitive=types.SimpleNamespace(name="mine"))
    content_of(types.SimpleNamespace(eqns=[equation], consts=()))
    gone = weakref.ref(Local)
    del Local, equation
    gc.collect()

    assert gone() is None
