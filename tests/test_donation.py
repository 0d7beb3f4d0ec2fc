"""Which arguments could be donated: only where each array has an output of its own; and what is told comes true."""

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cores import told as events_told

import jaxwatch
from jaxwatch import _compat
from jaxwatch.events import CacheMiss

N = 1024 * 1024 // 4  # float32 of 1 MiB


@pytest.fixture(autouse=True)
def _with_donated_inputs() -> None:
    if not _compat.HAS_DONATED_INPUTS:
        pytest.skip("this JAX does not show what is donated")


def state(size: int = N) -> dict[str, Any]:
    return {"m": jnp.zeros(size), "n": jnp.zeros((), jnp.int32), "w": jnp.ones((size // 4, 4))}


def arrays() -> dict[str, Any]:
    return {"m": jnp.zeros(N), "w": jnp.ones((N // 4, 4))}


def training_step(state: Any, x: Any) -> Any:
    new = {"m": state["m"] * 0.9 + x.sum(), "n": state["n"] + 1, "w": state["w"] - x.mean()}
    return new, (new["w"] ** 2).sum()


def fresh(function: Any) -> Any:
    """Return the function as another object, of which JAX has nothing yet."""
    return types.FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)


def misses(call: Callable[[], Any]) -> list[CacheMiss]:
    with events_told() as events:
        call()
    return [each for each in events if isinstance(each, CacheMiss)]


def told(function: Any, *args: Any, **options: Any) -> list[tuple[str, int]]:
    """Return what is told of the last miss of one call, and hold it against the advice."""
    *_, miss = misses(lambda: jaxwatch.jit(fresh(function), **options)(*args))
    assert miss.program is not None
    found = [(each.argument, each.bytes) for each in miss.program.donatable]
    assert bool(found) is ("donate_argument" in [advice.code for advice in miss.advice])
    return found


def test_a_state_that_comes_back_anew_is_told_with_its_bytes() -> None:
    (miss,) = misses(lambda: jaxwatch.jit(fresh(training_step))(state(), jnp.ones(3)))
    (advice,) = [each for each in miss.advice if each.code == "donate_argument"]

    assert advice.text == (
        "state (2.1 MB) is not donated, though each of its arrays has an output of the same shape and dtype: if it is "
        "not needed after the call, donate it (donate_argnames, donate_argnums), and the outputs can take its memory."
    )
    assert miss.program is not None
    assert miss.program.advice == (advice.text,)


def two(params: Any, moments: Any, x: Any) -> Any:
    return jax.tree.map(lambda p, m: p - m * x, params, moments), jax.tree.map(lambda m: m * 0.9 + x, moments)


def keyword(x: Any, *, params: Any) -> Any:
    return jax.tree.map(lambda p: p * x, params)


def part_unchanged(state: Any) -> Any:
    return {**state, "m": state["m"] + 1}


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (training_step, (state(), jnp.ones(3)), {}),
        (two, (arrays(), arrays(), 2.0), {}),
        (lambda *states: [jax.tree.map(lambda s: s + 1, each) for each in states], (state(), state()), {}),
        (keyword, (2.0,), {"params": arrays()}),
        (part_unchanged, (state(),), {}),
        (training_step, ({**state(), "n": 0}, jnp.ones(3)), {}),
    ],
    ids=["step", "two arguments", "variadic", "keyword", "part returned as it is", "counter from 0"],
)
def test_what_is_told_comes_true_once_it_is_donated(function: Any, args: Any, kwargs: Any) -> None:
    *_, miss = misses(lambda: jaxwatch.jit(fresh(function))(*args, **kwargs))
    assert miss.program is not None
    names = [each.argument for each in miss.program.donatable]
    positions = [n for n in range(len(args)) if not kwargs and isinstance(args[n], dict)]
    options: dict[str, Any] = {"donate_argnames": names} if kwargs else {"donate_argnums": positions}
    memory: Any = jax.jit(function, **options).lower(*args, **kwargs).compile().memory_analysis()

    assert len(names) == max(len(positions), len(kwargs)) > 0
    assert memory.alias_size_in_bytes >= sum(each.bytes for each in miss.program.donatable) >= N * 4


def test_what_is_returned_as_it_is_saves_nothing_and_is_not_counted() -> None:
    assert told(part_unchanged, state(N)) == [("state", N * 4)]


def forward(params: Any, x: Any) -> Any:
    return x @ params


def unused(state: Any, x: Any) -> Any:
    return jnp.zeros(N) + x, jnp.zeros((N // 4, 4)) * x, state["n"] + 1


def one_leaf_lacks(state: Any) -> Any:
    return state["m"] * 2, state["n"] + 1


def one_output_for_both(x: Any, y: Any) -> Any:
    return x + y


shared = arrays()


@pytest.mark.parametrize(
    ("function", "args", "options"),
    [
        (forward, (jnp.ones((4, 300_000)), jnp.ones((8, 4))), {}),
        (training_step, (state(1000), jnp.ones(3)), {}),
        (training_step, (state(), jnp.ones(3)), {"donate_argnums": 0}),
        (training_step, (state(), jnp.ones(3)), {"donate_argnames": "state"}),
        (lambda state: {**state}, (state(),), {}),
        (unused, (state(), 1.0), {}),
        (one_leaf_lacks, (state(),), {}),
        (two, (shared, shared, 2.0), {}),
        (lambda x: x * 2, (np.ones(N, np.float32),), {}),
        (lambda x: x.astype(jnp.int32), (jnp.ones(N),), {}),
        (lambda x: x > 0, (jnp.ones(N),), {}),
        (lambda x: (x.sum(), jnp.ones(N)), (jnp.ones(N - 1),), {}),
        (one_output_for_both, (jnp.ones(N), jnp.zeros(N)), {"donate_argnums": 1}),
    ],
    ids=[
        "forward", "small", "donated", "donated by name", "identity", "not used", "a leaf has none", "given twice",
        "numpy", "other dtype", "smaller dtype", "other shape", "taken by what is donated",
    ],
)  # fmt: skip
def test_where_nothing_would_be_gained_or_known_nothing_is_told(function: Any, args: Any, options: Any) -> None:
    if options:
        args = jax.tree.map(jnp.copy, args)  # they are gone after the call
    assert told(function, *args, **options) == []


def test_one_output_is_told_of_one_argument() -> None:
    assert told(one_output_for_both, jnp.ones(N), jnp.zeros(N)) == [("x", N * 4)]


def test_within_an_outer_trace_and_under_transforms_nothing_is_told() -> None:
    inner = jaxwatch.jit(lambda x: x * 2)
    outer = misses(lambda: jaxwatch.jit(lambda x: inner(x).sum())(jnp.ones(N)))
    mapped = misses(lambda: jax.vmap(inner)(jnp.ones((2, N))))

    assert [each.program.donatable for each in outer + mapped if each.program is not None] == [(), ()]


@pytest.mark.parametrize("transform", [jax.grad, jax.value_and_grad, lambda f: jax.vmap(jax.grad(f))])
def test_gradients_are_no_advice_to_donate_what_they_are_of(transform: Any) -> None:
    misses_of = misses(lambda: jaxwatch.jit(transform(lambda x: (x**2).sum()))(jnp.ones((2, N))))

    assert [advice.code for miss in misses_of for advice in miss.advice] == []


def test_of_a_program_that_is_there_for_its_shapes_no_advice_is_given() -> None:
    step = jaxwatch.jit(lambda x: x * 2)
    first, second = misses(lambda: (step(jnp.ones(N)), step(jnp.ones(N + 1))))

    assert [advice.code for advice in first.advice] == ["donate_argument"]
    assert "donate_argument" not in [advice.code for advice in second.advice]


def test_where_donation_cannot_be_read_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, "HAS_DONATED_INPUTS", False)

    assert told(training_step, state(), jnp.ones(3)) == []
