"""Functions that one program holds several times: which are told, and which must not be."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from jaxwatch import _compat, _limits
from jaxwatch._content import content_of
from jaxwatch.events import Body

X = jnp.ones((4, 4))


def bodies(function: Any, *args: Any) -> tuple[Body, ...]:
    if not _compat.HAS_TRACEBACKS:
        pytest.skip("this JAX does not show what made an equation")
    return content_of(jax.jit(function).trace(*args).jaxpr).makeup.bodies


def part(x: Any) -> Any:
    return jnp.cos(x) * 2


def layer(x: Any, scale: float = 2.0) -> Any:
    x = jnp.sin(part(x)) + jnp.where(x > 0, x, 0)
    return jnp.tanh(x) * scale


def by_several_lines(x: Any) -> Any:
    x = layer(x)
    y = layer(x.T)
    x = layer(x + y)
    return layer(x) + layer(y, 3.0)


def in_a_loop_of_other_things(x: Any) -> Any:
    for number in range(5):
        x = layer(x)
        for _ in range(number):
            x = x + 1
    return x


def by_a_map(x: Any) -> Any:
    return jax.tree.map(layer, [x] * 5)


def in_a_short_loop(x: Any) -> Any:
    for _ in range(5):
        x = layer(x)
    return x


@pytest.mark.parametrize(
    "function",
    [by_several_lines, in_a_loop_of_other_things, by_a_map, in_a_short_loop, jax.vmap(by_several_lines)],
)
def test_a_function_that_is_called_again_and_again_is_told(function: Any) -> None:
    (body,) = bodies(function, X)

    assert (body.function, body.calls) == ("layer", 5)
    assert body.definition == f"{__file__}:{layer.__code__.co_firstlineno}"
    assert body.equations * 4 / 100 < body.share < 1


def test_what_is_told_is_left_out_by_a_jit_around_it() -> None:
    def run(function: Any) -> Any:
        return lambda x: function(function(x).T) + function(x) + function(x.T + 1)

    plain, shared = (content_of(jax.jit(run(f)).trace(X).jaxpr) for f in (layer, jax.jit(layer)))
    (body,) = bodies(run(layer), X)

    assert shared.makeup.bodies == ()
    assert plain.equations - shared.equations == round(body.share * plain.equations) - body.calls


class Dense:
    def __init__(self, w: Any) -> None:
        self.w = w

    def __call__(self, x: Any) -> Any:
        return jnp.tanh(x @ self.w) + 1


def methods(x: Any) -> Any:
    layers = [Dense(X + number) for number in range(5)]
    y = layers[0](x) + layers[1](x.T)
    return layers[2](y) - layers[3](x) * layers[4](y)


def closures(x: Any) -> Any:
    def made(w: Any) -> Any:
        def dense(x: Any) -> Any:
            return jnp.tanh(x @ w) + 1

        return dense

    a, b, c, d = (made(X + number) for number in range(4))
    return a(b(x)) + c(d(x)) + b(a(x.T))


def by_shapes(x: Any) -> Any:
    return layer(x).sum() + layer(x[1:]).sum() + layer(x[2:]).sum() + layer(x[3:]).sum()


def other_body(x: Any, often: int) -> Any:
    for _ in range(often):
        x = jnp.sin(x) * jnp.cos(x) + often
    return x


def other_bodies(x: Any) -> Any:
    return other_body(x, 2) + other_body(x, 3) * other_body(x, 5) - other_body(x, 7)


def one_call_with_a_loop(x: Any) -> Any:
    return other_body(x, 7) * 2


def calls_with_a_loop_in_a_loop(x: Any) -> Any:
    for number in range(3):
        x = other_body(x, 2) + number
    return x


def maps_within(x: Any) -> Any:
    return sum(jax.tree.map(part, [x] * 7))


def one_call_with_a_loop_of_jaxs(x: Any) -> Any:
    def stacked(x: Any) -> Any:
        return jnp.atleast_3d(*[x] * 7)

    return [stacked(x) for _ in range(1)]


def one_call_with_a_map(x: Any) -> Any:
    return maps_within(x) * 2


def has_a_jit(x: Any) -> Any:
    inner = jax.jit(layer)
    return inner(x) + inner(x.T) * inner(x + 1) - inner(x * 2)


def rolls_up(x: Any) -> Any:
    for _ in range(20):
        x = layer(x)
    return x


def once(x: Any) -> Any:
    return layer(x)


def few(x: Any) -> Any:
    for _ in range(_limits.BODY_CALLS - 1):
        x = layer(x)
    return x


@pytest.mark.parametrize("function",
    [
        methods, closures, by_shapes, other_bodies, one_call_with_a_loop, calls_with_a_loop_in_a_loop,
        one_call_with_a_loop_of_jaxs, has_a_jit, rolls_up, once, few,
    ],
)  # fmt: skip
def test_what_a_jit_would_not_share_or_another_advice_is_for_is_not_told(function: Any) -> None:
    assert bodies(function, X) == ()


def test_what_recurs_within_one_call_is_no_call_of_that_function() -> None:
    (body,) = bodies(one_call_with_a_map, X)

    assert (body.function, body.calls) == ("part", 7)


def test_of_gradients_both_passes_of_a_call_count_for_it() -> None:
    (forward,) = bodies(in_a_loop_of_other_things, X)
    (both,) = bodies(jax.grad(lambda x: in_a_loop_of_other_things(x).sum()), X)

    assert (both.function, both.definition) == (forward.function, forward.definition)
    assert both.equations > forward.equations
    assert both.calls in (forward.calls - 1, forward.calls)
