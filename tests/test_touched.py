"""How many numbers a program touches: never fewer than it does, and nothing where that is not known."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cores import told
from hypothesis import given, settings
from hypothesis import strategies as st

import jaxwatch
from jaxwatch import _compat, _limits
from jaxwatch._content import content_of

X = np.arange(16, dtype=np.float32)
SQUARE = X.reshape(4, 4)


def touched(function: Callable[..., Any], *args: Any) -> int | None:
    return content_of(jax.make_jaxpr(function)(*args)).touched


def test_operands_and_results_of_each_operation_are_counted_and_one_for_the_operation() -> None:
    assert touched(lambda x: x + x, X) == 3 * 16 + 1
    assert touched(lambda x: jnp.sin(jnp.cos(x)), X) == 2 * (2 * 16 + 1)
    assert touched(lambda x: x.sum(), X) == 16 + 1 + 1
    assert touched(lambda x: x, X) == 0


def test_a_matrix_product_counts_each_of_its_products() -> None:
    assert touched(lambda x: x @ x, SQUARE) == 3 * 16 + 4 * 16 + 1


@settings(max_examples=25)
@given(length=st.integers(1, 20), inner=st.integers(1, 5))
def test_what_is_in_a_loop_counts_as_often_as_it_runs(length: int, inner: int) -> None:
    def body(carry: Any, _: Any) -> tuple[Any, None]:
        return jax.lax.scan(lambda y, _: (y * 2, None), carry, None, length=inner)[0], None

    found = touched(lambda x: jax.lax.scan(body, x, None, length=length)[0], X[:1])

    assert found is not None
    assert found >= length * inner * 3
    assert found <= length * (inner * 4 + 1) + 1


def test_a_function_that_is_called_counts_at_each_call() -> None:
    inner = jax.jit(lambda x: x * 2)

    once, thrice = touched(inner, X), touched(lambda x: inner(inner(inner(x))), X)
    assert once is not None
    assert thrice == 3 * once


def test_all_branches_count() -> None:
    def branches(x: Any) -> Any:
        return jax.lax.cond(x[0] > 0, jnp.sin, lambda y: jnp.cos(jnp.cos(y)), x)

    found = touched(branches, X)
    assert found is not None
    assert found >= 3 * 32


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.lax.while_loop(lambda y: y.sum() < 100, lambda y: y + 1, x),
        lambda x: jnp.sort(x),  # noqa: PLW0108 -- as the others
        lambda x: jnp.linalg.cholesky(x.reshape(4, 4)),
        lambda x: jnp.fft.fft(x).real,
        lambda x: jnp.convolve(x, x),
        lambda x: jax.pure_callback(np.sin, x, x),
        lambda x: jnp.tile(x, 10_000),
        lambda x: jax.lax.fori_loop(0, 10_000, lambda _, y: y * 2, x),
        lambda x: x.reshape(-1, 1) * jnp.ones(5_000),
    ],
    ids=["while", "sort", "cholesky", "fft", "convolution", "callback", "large", "long loop", "outer product"],
)
def test_of_what_is_large_or_not_counted_nothing_is_said(function: Callable[..., Any]) -> None:
    assert touched(function, X) is None


def test_a_random_number_is_more_work_than_a_sum() -> None:
    found = touched(lambda key: jax.random.uniform(key, (4,)), jax.random.key(0))

    assert found is None or found > 10 * 4


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5)])
def test_it_is_never_fewer_than_its_arguments_and_results(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    found = touched(lambda x, y: (x * y, x - y), np.ones(shape, np.float32), np.ones(shape, np.float32))

    assert found is not None
    assert found >= 4 * size


def test_primitives_that_hold_something_else_than_expected_say_nothing() -> None:
    class Odd:
        """An equation whose parts are not those of JAX's own."""

        primitive = type("primitive", (), {"name": "scan"})
        params = {"length": None, "jaxpr": jax.make_jaxpr(jnp.sin)(X)}  # noqa: RUF012 -- as JAX has it

    odd = type("jaxpr", (), {"eqns": [Odd], "consts": ()})

    assert content_of(odd()).touched is None


def test_a_miss_tells_it_and_the_figures_have_the_most_of_all_programs() -> None:
    if not _compat.HAS_LOWERED_JAXPR:
        pytest.skip("this JAX does not show what it lowers")
    double = jaxwatch.jit(lambda x: x * 2)
    with told() as events:
        double(X)
        double(X[:3])
    found = events.last().program
    assert found is not None
    assert found.touched == 3 + 3 + 1 + 1
    assert jaxwatch.stats(double).touched == 16 + 16 + 1 + 1

    double(np.ones(_limits.TOUCHED_TOLD, np.float32))
    assert jaxwatch.stats(double).touched is None, "one of its programs is large"


def test_what_was_compiled_ahead_makes_it_unknown() -> None:
    double = jaxwatch.jit(lambda x: x * 2)
    double(X)
    double.lower(np.ones((300, 300), np.float32)).compile()

    assert jaxwatch.stats(double).touched is None
