"""Which Python loop made equations: the user's, and none where there is none."""

import ast
import types
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxwatch import _compat
from jaxwatch._sources import Sources, frames_of, loops_in

X = jnp.ones(3)


@pytest.fixture(autouse=True)
def _with_tracebacks() -> None:
    if not _compat.HAS_TRACEBACKS:
        pytest.skip("this JAX does not show what made an equation")


def equations(function: Any, *args: Any) -> list[Any]:
    return list(jax.jit(function).trace(*(args or (X,))).jaxpr.eqns)


def loop_of(function: Any, *args: Any) -> str | None:
    """Return the line of the loop that made all equations, counted from the function's own."""
    sources = Sources()
    place = sources.loop({sources.number(equation) for equation in equations(function, *args)})
    return None if place is None else str(int(place.line.rpartition(":")[2]) - function.__code__.co_firstlineno)


def test_equations_by_one_instruction_have_one_number_and_others_not() -> None:
    def f(x: Any) -> Any:
        for _ in range(3):
            x = jnp.sin(x)
        return jnp.sin(jnp.sin(x))

    sources = Sources()
    numbers = [sources.number(equation) for equation in equations(f)]

    assert len(set(numbers[:3])) == 1
    assert len(set(numbers)) == 3


def test_the_line_is_the_users_also_where_jax_binds_far_below() -> None:
    def f(x: Any) -> Any:
        return jax.nn.softmax(x)

    sources = Sources()
    lines = {sources.line(sources.number(equation)) for equation in equations(f)}

    assert lines == {f"{__file__}:{f.__code__.co_firstlineno + 1}"}


def for_loop(x: Any) -> Any:
    for _ in range(3):
        x = jnp.sin(x)
    return x


def while_loop(x: Any) -> Any:
    left = 3
    while left:
        x = jnp.sin(x)
        left -= 1
    return x


def comprehension(x: Any) -> Any:
    return [jnp.sin(x) for _ in range(3)]


def generator(x: Any) -> Any:
    return tuple(jnp.sin(x) for _ in range(3))


def helper(x: Any) -> Any:
    return jnp.cos(jnp.sin(x))


def calls_a_helper(x: Any) -> Any:
    for _ in range(3):
        x = helper(x)
    return x


def in_a_nest(x: Any) -> Any:
    for _ in range(2):
        for _ in range(3):
            x = jnp.sin(x)
    return x


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (for_loop, "2"),
        (while_loop, "3"),
        (comprehension, "1"),
        (generator, "1"),
        (calls_a_helper, "2"),
        (in_a_nest, "3"),
    ],
)
def test_a_loop_is_found_by_the_line_of_its_body(function: Any, line: str) -> None:
    assert loop_of(function) == line


def without(x: Any) -> Any:
    return jnp.sin(jnp.sin(jnp.sin(x)))


def by_tree_map(x: Any) -> Any:
    return jax.tree.map(jnp.sin, [x, x, x])


def after_a_loop(x: Any) -> Any:
    for _ in range(3):
        assert x is not None
    return jnp.sin(x)


@pytest.mark.parametrize("function", [without, by_tree_map, after_a_loop])
def test_where_no_loop_of_the_users_made_them_there_is_none(function: Any) -> None:
    assert loop_of(function) is None


def test_a_loop_around_the_call_of_the_program_is_none_of_it() -> None:
    for _ in range(2):
        assert loop_of(without) is None


def test_equations_without_frames_have_no_line_and_no_loop() -> None:
    bare = types.SimpleNamespace(source_info=types.SimpleNamespace(traceback=None))
    sources = Sources()

    assert sources.line(sources.number(bare)) is None
    assert sources.loop({sources.number(bare)}) is None


def test_frames_end_where_the_trace_begins() -> None:
    (equation,) = equations(lambda x: jnp.sin(x))  # noqa: PLW0108 -- a frame of its own
    names = [code.co_name for code, _ in frames_of(equation.source_info.traceback)]

    assert "<lambda>" in names
    assert "equations" not in names


@pytest.mark.parametrize("padding", [0, 200])
def test_the_loops_of_code_are_those_of_its_source(padding: int) -> None:
    body = "\n".join(["        y = x"] * padding) or "        pass"
    source = f"def f(x):\n    y = 1\n    for i in x:\n{body}\n        g(i)\n    while y:\n        g(y)\n    return y\n"
    space: dict[str, Any] = {}
    exec(compile(ast.parse(source), "made.py", "exec"), space)  # noqa: S102 -- our own text
    code = space["f"].__code__
    lines = {
        tuple(
            sorted(
                {line for _, start, line in ((0, s, n) for s, _, n in code.co_lines()) if low <= start <= high and line}
            )
        )
        for low, high in loops_in(code)
    }

    last = 4 + max(padding, 1)
    assert {(min(found), max(found)) for found in lines} >= {(3, last), (last + 1, last + 2)} or {
        max(found) for found in lines
    } == {last, last + 2}
