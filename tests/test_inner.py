"""Jits within a jit: what moved between their calls, what was compiled meanwhile; bounded, nothing kept alive."""

# ruff: noqa: ARG001 -- functions of the user's take what they do not use

import functools
import gc
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from published import Events

import jaxwatch
from jaxwatch import Watch, _compat, _inner, _limits, _listeners
from jaxwatch._content import Content
from jaxwatch._frames import OpenPhase
from jaxwatch._keys import Key, Leaf, Param, Static
from jaxwatch.events import Inner, Program

X = np.arange(4, dtype=np.float32)
SIZES = itertools.count(770)  # an eager op of another size is compiled anew


@pytest.fixture(autouse=True, params=cores.CORES)
def _core(request: pytest.FixtureRequest) -> Iterator[None]:
    if not _compat.HAS_LOWERED_JAXPR:
        pytest.skip("this JAX does not show what it lowers")
    with cores.in_use(request.param):
        yield


def layer(x: Any, index: Any = 0) -> Any:
    return x * 2


def inners(events: Events) -> tuple[Inner, ...]:
    found = events.last().program
    assert found is not None
    return found.inner


def told_of(events: Events) -> list[tuple[str, str | None, str | None, str | None, str | None]]:
    """Return what is told to have moved between the calls of the one inner function."""
    (inner,) = inners(events)
    return [(each.reason, each.path, each.before, each.after, each.note) for each in inner.changes]


# ------------------------------------------------------------------ calls within traces


def inlined(function: Any) -> tuple[dict[str, int], int, int]:
    """Return what is counted of the calls of a function within traces: by outer function, looked at, different keys."""
    stats = jaxwatch.stats(function)
    return dict(stats.inlined), stats.inlined_read, stats.inlined_keys


def named(name: str, body: Any, **options: Any) -> Any:
    return jaxwatch.jit(body, watch=Watch(name=name), **options)


def test_calls_within_traces_are_counted_by_the_outer_function_and_no_hit_is() -> None:
    inner = jaxwatch.jit(layer)
    step = named("step", lambda x: inner(inner(x)) + inner(x[:2]).sum())
    evaluate = named("evaluate", lambda x: inner(x).sum())
    for _ in range(3):
        step(X)
        evaluate(X)

    assert inlined(inner) == ({"step": 3, "evaluate": 1}, 4, 2)
    assert jaxwatch.stats(inner).calls == 4
    assert inlined(step) == ({}, 0, 0)


def test_a_call_alone_is_no_call_within_a_trace() -> None:
    inner = jaxwatch.jit(layer)
    inner(X)
    named("step", lambda x: inner(x))(X)  # noqa: PLW0108 -- a function of its own
    inner(X)

    assert inlined(inner) == ({"step": 1}, 1, 1)
    assert jaxwatch.stats(inner).calls == 3


def test_calls_under_a_transform_or_in_a_trace_that_is_not_watched_are_not_counted_as_within_one() -> None:
    inner = jaxwatch.jit(layer)
    jax.grad(lambda x: inner(x).sum())(X)
    jax.make_jaxpr(inner)(X)
    jax.jit(lambda x: inner(x))(X)  # noqa: PLW0108 -- as above

    assert inlined(inner) == ({}, 0, 0)
    assert jaxwatch.stats(inner).calls == 3


def test_within_the_outer_functions_own_grad_or_scan_they_are() -> None:
    inner = jaxwatch.jit(layer)
    named("step", jax.grad(lambda x: inner(x).sum()))(X)
    named("loop", lambda x: jax.lax.scan(lambda c, _: (inner(c), None), x, None, length=3)[0])(X)

    assert set(inlined(inner)[0]) == {"step", "loop"}


def test_calls_of_a_function_with_options_are_counted_and_not_looked_at() -> None:
    inner = jaxwatch.jit(layer, donate_argnums=0)
    static = jaxwatch.jit(layer, static_argnames="index")
    named("step", lambda x: inner(inner(x)) + static(x, index=3))(X)

    assert inlined(inner) == ({"step": 2}, 0, 0)
    if _compat.HAS_JIT_INFO:
        assert inlined(static) == ({"step": 1}, 1, 1)


def test_calls_beyond_the_bound_are_counted_and_not_looked_at() -> None:
    inner, calls = jaxwatch.jit(layer), _limits.INNER_CALLS + 6

    def step(x: Any) -> Any:
        for _ in range(calls):
            x = inner(x)
        return x

    named("step", step)(X)
    assert inlined(inner) == ({"step": calls}, _limits.INNER_CALLS, 1)


# ------------------------------------------------------------------ what moved


def test_the_argument_that_moved_is_named_with_the_number_of_its_values(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")
    jaxwatch.jit(lambda x: inner(inner(inner(inner(x, index=0), index=1), index=2), index=1))(X)

    (found,) = inners(events)
    assert (found.function, found.calls, found.variants) == ("layer", 4, 3)
    assert found.definition == f"{__file__}:{layer.__code__.co_firstlineno}"
    assert told_of(events) == [("static", "index", "0", "1", "3 values")]
    (advice,) = events.last().advice
    assert advice.text.startswith("<lambda> holds 3 versions of layer, each lowered for itself: let index not vary, ")


def test_two_values_are_told_by_before_and_after_alone(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")
    jaxwatch.jit(lambda x: inner(inner(x, index=0), index=1))(X)

    assert told_of(events) == [("static", "index", "0", "1", None)]
    assert events.last().advice == ()


def test_other_shapes_within_one_program_are_told_without_advice(events: Events) -> None:
    inner = jaxwatch.jit(layer)
    jaxwatch.jit(lambda x: inner(x)[:3].sum() + inner(x[:3]).sum() + inner(x[:2]).sum())(X)

    assert [change[:2] for change in told_of(events)] == [("shape", "x")]
    assert events.last().advice == ()


def test_calls_with_equal_keys_have_moved_nothing(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")
    jaxwatch.jit(lambda x: inner(inner(x, index=1), index=1))(X)

    (found,) = inners(events)
    assert (found.calls, found.variants, found.changes) == (2, 1, ())


def test_of_a_function_that_is_not_watched_nothing_is_claimed(events: Events) -> None:
    inner = jax.jit(layer, static_argnames="index")
    jaxwatch.jit(lambda x: inner(inner(x, index=0), index=1))(X)

    (found,) = inners(events)
    assert (found.function, found.variants, found.changes) == ("layer", 2, ())


def test_two_functions_of_one_name_are_told_apart_by_their_definition(events: Events) -> None:
    first = jaxwatch.jit(layer, static_argnames="index")

    def other(x: Any, index: int) -> Any:
        return x + 3

    other.__name__ = "layer"
    second = jaxwatch.jit(other, static_argnames="index")
    jaxwatch.jit(lambda x: first(second(first(second(x, index=7), index=0), index=8), index=1))(X)

    assert {found.variants for found in inners(events)} == {2}
    moved = {found.definition: [(each.before, each.after) for each in found.changes] for found in inners(events)}
    assert moved == {
        f"{__file__}:{layer.__code__.co_firstlineno}": [("0", "1")],
        f"{__file__}:{other.__code__.co_firstlineno}": [("7", "8")],
    }


def test_a_function_that_is_not_watched_is_not_told_by_a_watched_ones_calls(events: Events) -> None:
    def watched(x: Any, rate: float) -> Any:
        return x * rate

    watched.__name__ = watched.__qualname__ = "layer"
    mine, theirs = jaxwatch.jit(watched, static_argnames="rate"), jax.jit(layer, static_argnames="index")

    def train(x: Any) -> Any:
        x = mine(mine(x, rate=0.1), rate=0.2)
        for index in range(5):
            x = theirs(x, index=index)
        return x

    jaxwatch.jit(train)(X)
    told = {found.definition: (found.variants, found.signatures, len(found.changes)) for found in inners(events)}
    assert told == {
        f"{__file__}:{layer.__code__.co_firstlineno}": (5, 0, 0),
        f"{__file__}:{watched.__code__.co_firstlineno}": (2, 2, 1),
    }
    assert events.last().advice == ()


def test_calls_that_are_not_in_the_program_are_not_told_as_if_they_were(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")

    def step(x: Any) -> Any:
        for index in range(10, 15):
            jax.eval_shape(functools.partial(inner, index=index), x)
        return inner(inner(x, index=1), index=2)

    jaxwatch.jit(step)(X)
    assert [(found.variants, found.signatures, found.changes) for found in inners(events)] == [(2, 0, ())]


def test_under_grad_the_versions_are_those_of_the_calls_and_not_of_their_parts(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")
    jaxwatch.jit(jax.grad(lambda x: inner(inner(x, index=0), index=1).sum()))(X)

    assert {found.signatures for found in inners(events)} == {2}
    assert events.last().advice == (), "two are not many, though there are four parts"


def test_the_reason_that_tells_most_comes_first_and_places_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(size: int, number: int) -> Key:
        number_given = Param("n", "positional", Static(str(number), f"int:{number}"))
        return Key(params=(number_given, Param("x", "positional", Leaf((size,), "float32"))))

    keys = [key(1, 1), key(2, 2), key(3, 2)]
    found = [(change.reason, change.path, change.note) for change in _inner.moved(keys)]
    assert found == [("static", "n", None), ("shape", "x", "3 values")]
    monkeypatch.setattr(_limits, "CHANGES_NAMED", 1)
    assert len(_inner.moved(keys)) == 1
    assert _inner.moved(keys[:1]) == _inner.moved([]) == ()


def test_values_are_left_out_where_they_are_to_be(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH_REDACT", "1")
    inner = jaxwatch.jit(layer, static_argnames="index")
    jaxwatch.jit(lambda x: inner(inner(inner(x, index="one secret"), index="two secret"), index="one secret"))(X)

    (inner_told,) = inners(events)
    assert inner_told.changes
    assert "secret" not in str(events)


# ------------------------------------------------------------------ compiled within a trace


def test_what_compiles_while_a_function_is_traced_is_counted_apart(events: Events) -> None:
    size = next(SIZES)

    def step(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            table = jnp.cumsum(jnp.arange(size, dtype=jnp.float32))
        return x + table[0]

    jaxwatch.jit(step)(X)
    miss = events.last()
    within = [eager.seconds for eager in events.eager]

    assert miss.compiled_within == len(within) >= 1
    assert miss.compiled_within_seconds == pytest.approx(sum(within))
    assert miss.compiled_within_seconds > 0


def test_seconds_of_what_compiled_within_are_not_in_those_of_the_trace(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _listeners._end

    def slow(opened: OpenPhase, seconds: float) -> Any:
        """Have each compile within take an hour, and the trace around them as long and a second."""
        if opened.kind == "compile" and not opened.own:
            return told(opened, 3600.0)
        return told(opened, opened.elsewhere + 1.0 if opened.own and opened.kind == "trace" else seconds)

    monkeypatch.setattr(_listeners, "_end", slow)
    size = next(SIZES)

    def step(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            table = jnp.cumsum(jnp.arange(size, dtype=jnp.float32))
        return x + table[0]

    jaxwatch.jit(step)(X)
    miss = events.last()

    assert miss.compiled_within_seconds >= 3600
    assert miss.seconds.trace == pytest.approx(1.0)


def test_nothing_compiled_within_is_told_as_nothing(events: Events) -> None:
    jaxwatch.jit(lambda x: x * 2 + 1)(X)

    assert (events.last().compiled_within, events.last().compiled_within_seconds) == (0, 0.0)


# ------------------------------------------------------------------ bounds


class Mark:
    """A static that can be followed."""


def test_no_argument_of_an_inner_call_is_kept_alive(events: Events) -> None:
    inner = jaxwatch.jit(layer, static_argnames="index")
    mark, array = Mark(), jnp.ones(4)
    followed: list[weakref.ref[Any]] = [weakref.ref(mark), weakref.ref(array)]

    def step(x: Any, y: Any, layer: Any, marks: Any) -> Any:
        return layer(layer(x, index=marks[0]), index=0) + y

    outer = jaxwatch.jit(step, static_argnums=(2, 3))
    outer(X, array, inner, (mark,))
    assert [found.calls for found in inners(events)] == [2]
    del outer, inner, mark, array, step
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's
    gc.collect()

    assert [ref() for ref in followed] == [None] * len(followed)


def test_ten_thousand_inner_calls_keep_no_more_than_the_bounds(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    keep = _inner.program

    def program(content: Content | None, within: Any) -> Program | None:
        noted.append(within)
        return keep(content, within)

    monkeypatch.setattr(_inner, "program", program)
    inner = jaxwatch.jit(layer, static_argnames="index")
    many = [
        jaxwatch.jit(lambda x: x + 1, watch=Watch(name=f"f{number}")) for number in range(_limits.INNER_FUNCTIONS + 3)
    ]

    def step(x: Any) -> Any:
        for number in range(10_000):
            inner(x, index=number % 100)
        for other in many:
            other(x)
        return x

    jaxwatch.jit(step)(X)
    (within,) = noted

    assert len(within) == _limits.INNER_FUNCTIONS
    assert max(each.calls for each in within.values()) == 10_000
    assert max(len(each.keys) for each in within.values()) == _limits.INNER_CALLS
    assert len(inners(events)) <= _limits.INNER_TOLD
