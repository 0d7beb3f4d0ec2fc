"""What a program's equations are and where they come from; which loops are told of it, and which must not be."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _compat, _limits
from jaxwatch._blocks import Run
from jaxwatch._content import content_of
from jaxwatch._makeup import OTHER, Makeup, Row, most, told
from jaxwatch._sources import Place
from jaxwatch.events import Loop

S = jnp.ones((4, 4))
W = [S] * 20


def makeup(function: Any, *args: Any) -> Makeup:
    if not _compat.HAS_TRACEBACKS:
        pytest.skip("this JAX does not show what made an equation")
    return content_of(jax.jit(function).trace(*args).jaxpr).makeup


def line(function: Any, below: int) -> str:
    return f"{__file__}:{function.__code__.co_firstlineno + below}"


def the_loop(function: Any, *args: Any) -> Loop:
    (loop,) = makeup(function, *args).loops
    return loop


# ------------------------------------------------------------------ composition


@given(st.dictionaries(st.text(min_size=1), st.integers(1, 1000), max_size=30))
def test_parts_add_up_and_the_largest_are_named(counts: dict[str, int]) -> None:
    parts = most(counts)
    named = parts[: _limits.PARTS_TOLD]

    assert sum(part.equations for part in parts) == sum(counts.values())
    assert len(parts) <= _limits.PARTS_TOLD + 1
    assert [part.equations for part in named] == sorted(counts.values(), reverse=True)[: _limits.PARTS_TOLD]
    assert all(part.name == OTHER for part in parts[_limits.PARTS_TOLD :])


def two_lines(x: Any) -> Any:
    x = jnp.sin(x) + jnp.cos(x)
    return jnp.where(x > 0, x, 0)


def test_equations_are_told_by_primitive_and_by_the_users_line_also_those_of_jaxs_own_jits() -> None:
    found = makeup(two_lines, S)
    lines = {part.name: part.equations for part in found.lines}

    assert {part.name for part in found.primitives} > {OTHER, "add", "cos"}
    assert lines.keys() == {line(two_lines, 1), line(two_lines, 2)}
    assert lines[line(two_lines, 1)] == 3


# ------------------------------------------------------------------ loops that are there


def rnn(xs: Any, h: Any, w: Any) -> Any:
    for t in range(20):
        h = jnp.tanh(h @ w * t + xs[t])
    return h


def layers(ws: Any, x: Any) -> Any:
    for w in ws:
        h = x @ w
        x = jnp.tanh(h)
    return x.sum()


@jax.jit
def inner(x: Any) -> Any:
    return jnp.sin(x) + 1


def inner_jits(x: Any) -> Any:
    for _ in range(30):
        x = inner(x)
    return x.sum()


def helper(w: Any, x: Any) -> Any:
    return jnp.where(x > 0, x @ w, 0)


def comprehension(ws: Any, x: Any) -> Any:
    return sum([helper(w, x) for w in ws])


def writes(x: Any) -> Any:
    y = jnp.zeros_like(x)
    for i in range(16):
        y = y.at[i].set(x[i] * 2)
    return y


@pytest.mark.parametrize(
    ("function", "args", "below", "blocks"),
    [
        (rnn, (jnp.ones((20, 4)), jnp.ones(4), S), 2, 20),
        (layers, (W, S), 2, 20),
        (inner_jits, (S,), 2, 30),
        (comprehension, (W, S), 1, 20),
        (writes, (jnp.ones((16, 3)),), 3, 16),
    ],
    ids=["carry and counter", "layers", "inner jits", "comprehension", "writes"],
)
def test_an_unrolled_loop_is_told_by_line_and_number_of_blocks(
    function: Any, args: tuple[Any, ...], below: int, blocks: int
) -> None:
    loop = the_loop(function, *args)

    assert (loop.line, loop.blocks) == (line(function, below), blocks)
    assert loop.share > 0.8


@pytest.mark.parametrize("function", [layers, lambda ws, x: rnn(jnp.ones((20, 4)), x[0], ws[0]).sum()])
def test_the_backward_pass_counts_for_the_loop_whose_equations_it_turns_round(function: Any) -> None:
    forward, backward = the_loop(function, W, S), the_loop(jax.grad(function), W, S)

    assert backward.line == forward.line
    assert backward.share > 0.8
    assert (forward.products, backward.products) == (1, 3)


def test_a_jit_within_is_traced_once_and_compiled_at_each_call() -> None:
    loop = the_loop(inner_jits, S)

    assert loop.equations == 1 + len(inner.trace(S).jaxpr.eqns)
    assert loop.share > loop.traced_share > 0


def nested(x: Any, outer: int, inside: int) -> Any:
    for i in range(outer):
        for j in range(inside):
            x = jnp.sin(x) * j
        x = x + i
    return x


@pytest.mark.parametrize(("outer", "inside", "below"), [(10, 3, 3), (2, 40, 3), (20, 9, 3)])
def test_of_nested_loops_one_is_told(outer: int, inside: int, below: int) -> None:
    loop = the_loop(lambda x: nested(x, outer, inside), S)

    assert loop.line == line(nested, below)
    assert loop.blocks in (outer, inside)


# ------------------------------------------------------------------ loops that are not


def straight(x: Any) -> Any:
    # fmt: off
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    x = jnp.sin(x) + jnp.cos(x) + jnp.tan(x) + x
    return x  # noqa: RET504 -- nine equal lines
    # fmt: on


def growing(x: Any) -> Any:
    for _ in range(20):
        x = jnp.concatenate([x, jnp.sin(x[:1]) * 2])
    return x


def powers(x: Any) -> Any:
    for n in range(2, 40):
        x = x + x**n
    return x


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (straight, (S,)),
        (growing, (jnp.ones(3),)),
        (powers, (S,)),
        (layers, ([jnp.ones((4 + n, 5 + n)) for n in range(20)], S)),
        (layers, (W[: _limits.LOOP_BLOCKS - 1], S)),
        (lambda ws: jax.tree.map(lambda w: w * 2 + 1, ws), (W,)),
        (lambda x: jax.lax.scan(lambda c, _: (jnp.sin(jnp.cos(c)), None), x, None, length=50)[0], (S,)),
    ],
    ids=["equal lines", "growing shapes", "other powers", "other shapes", "few layers", "tree.map", "scan"],
)
def test_what_no_loop_of_equal_blocks_made_is_not_told_as_one(function: Any, args: tuple[Any, ...]) -> None:
    assert makeup(function, *args).loops == ()


# ------------------------------------------------------------------ which of several

CODE = straight.__code__
places = st.builds(lambda n: Place(f"a.py:{n}", (CODE, n, n)), st.integers(1, 5))
rows = st.builds(
    lambda place, jaxpr, start, period, blocks: Row(place, jaxpr, Run(start, period, blocks), float(period), 0),
    places, st.integers(0, 1), st.integers(0, 50), st.integers(1, 5), st.integers(8, 20),
)  # fmt: skip


@given(st.lists(rows, max_size=12))
def test_no_share_is_told_twice(found: list[Row]) -> None:
    whole = sum(row.block * row.run.blocks for row in found)
    loops = told(found, whole, int(whole))

    assert len({loop.line for loop in loops}) == len(loops) <= _limits.LOOPS_TOLD
    assert sum(loop.share for loop in loops) <= 1.001
    assert [loop.share for loop in loops] == sorted((loop.share for loop in loops), reverse=True)


def test_parts_of_one_line_are_counted_over_all_jaxprs() -> None:
    counts = Counter({line(straight, 2): 3})

    assert most(counts)[0].equations == 3


def test_without_frames_the_primitives_are_told_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, "HAS_TRACEBACKS", False)
    found = content_of(jax.jit(two_lines).trace(S).jaxpr).makeup

    assert found.primitives
    assert (found.lines, found.loops) == ((), ())
