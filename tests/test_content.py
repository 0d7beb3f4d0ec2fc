"""What a miss tells of its program: equations, constants, the jits within; on both cores."""

# ruff: noqa: PLW0108 -- functions of the user's take what they do not use

import gc
import re
import subprocess
import sys
import types
import weakref
from collections.abc import Iterator
from pathlib import Path
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


# ------------------------------------------------------------------ fingerprints

PRINTS_ITS_FINGERPRINT = """
import jax, numpy as np, jaxwatch
from jaxwatch import _hub, _misses

@jaxwatch.jit
def step(x, names):
    return (jax.numpy.tanh(x) + {constant}).sum(), names

_hub.HUB.add("print", lambda event: event.kind == "cache_miss" and print(event.fingerprint, event.signature))
step(np.ones({rows}, np.float32), {{"b": 1, "a": 2}})
"""


def fingerprint(function: Any, *args: Any) -> str | None:
    with told() as events:
        jaxwatch.jit(function)(*args)
    return events.last().fingerprint


def in_another_process(folder: Path, *, constant: int = 1, rows: int = 3, above: str = "") -> list[str]:
    folder.mkdir()
    script = folder / "train.py"
    script.write_text(above + PRINTS_ITS_FINGERPRINT.format(constant=constant, rows=rows))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_a_fingerprint_is_equal_wherever_the_same_is_compiled(tmp_path: Path) -> None:
    first = in_another_process(tmp_path / "a")
    elsewhere = in_another_process(tmp_path / "b", above="\n\nprint\n")  # other paths, other lines
    other = in_another_process(tmp_path / "c", constant=2)

    assert re.fullmatch("[0-9a-f]{16}", first[0])
    assert first == elsewhere
    assert first[1] == other[1], "the key is the same"
    assert first[0] != other[0], "and the program is not"


def test_a_program_that_is_compiled_again_has_the_fingerprint_that_it_had() -> None:
    def step(x: Any) -> Any:
        return x * 2

    before = fingerprint(step, X)
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's own

    assert fingerprint(step, X) == before
    assert fingerprint(step, X[:2]) != before


def test_a_call_that_calls_back_has_a_fingerprint_without_addresses() -> None:
    def made() -> str | None:
        return fingerprint(lambda x: jax.pure_callback(lambda y: y, x, x) + 1, X)

    assert made() == made()


@pytest.mark.parametrize("size", [10, 5_000])
def test_constants_are_part_of_it_up_to_a_bound(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "FINGERPRINT_ELEMENTS", 1_000)
    tables = [np.arange(size, dtype=np.float32) + step for step in (0, 1)]
    found = [fingerprint(lambda x, table=table: x[0] + table, X) for table in tables]

    assert (found[0] == found[1]) is (size > _limits.FINGERPRINT_ELEMENTS)


@pytest.mark.parametrize("missing", ["HAS_LOWERED_MODULE"])
def test_a_jax_that_shows_no_module_has_none(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, missing, False)

    assert fingerprint(lambda x: x + 1, X) is None
