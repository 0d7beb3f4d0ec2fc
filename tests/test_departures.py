"""Calls that never stay on JAX's fast path are told once, with the cause; those that leave it now and then are not."""

# ruff: noqa: ARG001, PLW0108 -- functions of the user's take what they do not use

from collections.abc import Callable, Iterator
from typing import Any, cast

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from published import Events

import jaxwatch
from jaxwatch import _departures
from jaxwatch._registry import REGISTRY
from jaxwatch.events import CacheMiss

X = jnp.arange(4, dtype=jnp.float32)
ARRAY = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    with cores.in_use("native"):
        if not cores.hooks().exact:
            pytest.skip("this JAX does not show departures")
        yield


def departed(events: Events) -> list[tuple[int, tuple[str, ...], list[str]]]:
    """Return call, reasons and advice of what was told of the fast path."""
    return [(miss.call, miss.reasons, [advice.code for advice in miss.advice]) for miss in cores.departures(events)]


def nothing(*_: Any) -> None:
    """Take a callback."""


def answer(x: Any) -> Any:
    return x


CALLBACKS: dict[str, Callable[[Any], Any]] = {
    "debug.callback": lambda x: (jax.debug.callback(nothing, x), x)[1],
    "debug.print": lambda x: (jax.debug.print("{}", x), x)[1],
    "io_callback": lambda x: io_callback(answer, x, x),
    "io_callback, ordered": lambda x: io_callback(answer, x, x, ordered=True),
}


@pytest.mark.parametrize("kind", CALLBACKS)
def test_a_function_with_callbacks_is_told_once_with_its_effects(kind: str, events: Events) -> None:
    step = jaxwatch.jit(CALLBACKS[kind])
    for _ in range(12):
        step(X)

    assert departed(events) == [(4, ("fast_path",), ["remove_callback"])]
    (change,) = cores.departures(events)[0].changes
    assert change.note is not None
    assert "effects" in change.note
    assert jaxwatch.stats(step).misses == 2
    assert jaxwatch.stats(step).compiles == 1
    assert sum(jaxwatch.stats(step).dispatch.values()) == 11


def test_values_are_left_out_where_the_user_asks_for_that(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH_REDACT", "1")
    step = jaxwatch.jit(lambda x, n: (len(n), CALLBACKS["debug.callback"](x))[1], static_argnames="n")
    for _ in range(4):
        step(X, n="a secret")

    (told,) = cores.departures(events)
    assert "secret" not in str(told)
    assert told.signature == events.misses[0].signature


def test_it_is_told_with_the_line_of_the_call(events: Events) -> None:
    step = jaxwatch.jit(lambda x: CALLBACKS["debug.callback"](x))
    for _ in range(4):
        step(X)

    told: CacheMiss = cores.departures(events)[0]
    assert told.site.rpartition(":")[0] == __file__
    assert told.signature == cores.built(events)[0].signature
    assert (told.traces, told.lowerings, told.compiles, told.seconds.total) == (0, 0, 0, 0)
    assert not told.is_recompile


def test_a_pure_callback_stays_on_the_fast_path_where_jax_lets_it(events: Events) -> None:
    def body(x: Any) -> Any:
        return jax.pure_callback(answer, x, x)

    step = jaxwatch.jit(body)
    for _ in range(8):
        step(X)
    try:
        with jax.no_tracing():  # refuses what leaves the fast path, though nothing is traced
            jax.jit(body)(X)
    except RuntimeError:  # 0.6.2
        assert departed(events) == [(4, ("fast_path",), [])]
    else:
        assert departed(events) == []


def test_a_key_whose_first_call_raised_is_told_with_the_way_out(events: Events) -> None:
    failing = [True]

    def body(x: Any) -> Any:
        if failing:
            raise ValueError("no")
        return x + 1

    step = jaxwatch.jit(body)
    with pytest.raises(ValueError, match="no"):
        step(X)
    failing.clear()
    for _ in range(8):
        step(X)
    assert departed(events) == [(5, ("fast_path",), ["clear_cache"])]

    step.clear_cache()
    before = cores.hooks().native, REGISTRY.find(step)
    assert before[1] is not None
    cell = before[1].counters.cell
    step(X)
    left = cell.left
    for _ in range(5):
        step(X)
    assert cell.left == left, "the advice is right"


def test_different_kinds_of_arrays_in_turns_are_never_told(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    for _ in range(10):
        step(ARRAY)
        step(X)
        step(jax.device_put(X, jax.devices()[0]))

    assert departed(events) == []


@pytest.mark.parametrize("value", [2, 2.0, True, np.float32(2), np.int32(2)])
def test_scalars_in_turns_with_arrays_are_never_told(value: Any, events: Events) -> None:
    step = jaxwatch.jit(lambda x: x)
    for _ in range(10):
        step(step(value))
        step(value)

    assert departed(events) == []


@pytest.mark.parametrize(
    "use",
    [
        lambda step: jax.grad(lambda x: step(x).sum()),
        lambda step: jax.vmap(step),
        lambda step: jax.grad(lambda x: jax.vmap(step)(x).sum()),
        lambda step: jax.jit(lambda x: step(x) * 2),
        lambda step: jax.checkpoint(step),
        lambda step: lambda x: jax.jvp(step, (x,), (x,)),
        lambda step: lambda x: jax.eval_shape(step, x),
        lambda step: lambda x: jax.lax.fori_loop(0, 2, lambda _, y: step(y), x),
    ],
)
def test_calls_under_a_transformation_are_never_told(use: Callable[[Any], Any], events: Events) -> None:
    step = jaxwatch.jit(lambda x: x * x)
    transformed = use(step)
    for _ in range(8):
        transformed(X)

    assert departed(events) == []


def test_under_a_transformation_no_key_is_read(monkeypatch: pytest.MonkeyPatch, events: Events) -> None:
    """With 100 leaves a key takes about a millisecond, and such calls leave the fast path each time."""
    step = jaxwatch.jit(lambda x: x * x)
    gradient = jax.grad(lambda x: step(x).sum())
    gradient(X)
    asked: list[Any] = []
    monkeypatch.setattr(_departures, "key_of", lambda *args: asked.append(args))
    for _ in range(5):
        gradient(X)

    assert asked == []


def test_calls_within_an_outer_trace_are_never_told(events: Events) -> None:
    step = jaxwatch.jit(lambda x, n: x + n, static_argnums=1)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        constant = jnp.float32(1)
        return sum(step(x, 1) for _ in range(8)) + step(constant, 1)

    for size in (1, 2, 3, 4):
        outer(np.ones(size, np.float32))

    assert departed(events) == []
    assert jaxwatch.stats(step).calls == 36


def test_shardings_made_anew_for_each_call_are_never_told(events: Events) -> None:
    spec: Any = PartitionSpec
    step = jaxwatch.jit(lambda x: x + 1)
    for _ in range(10):
        mesh = Mesh(np.array(jax.devices()[:1]), ("d",))
        step(jax.device_put(X, NamedSharding(mesh, spec("d"))))
        step(jax.device_put(X, NamedSharding(mesh, spec())))
        step(jax.device_put(X[None], NamedSharding(mesh, spec("d"))))
        step(jax.device_put(X[None], NamedSharding(mesh, spec("d", None))))

    assert departed(events) == []


def test_static_arguments_and_clear_cache_in_turns_are_never_told(events: Events) -> None:
    step = jaxwatch.jit(lambda x, n: x + n, static_argnums=1)
    for turn in range(6):
        step(X, turn % 2)
        step(X, n=turn % 2)
        step.clear_cache()

    assert departed(events) == []


def test_more_kinds_of_calls_than_are_looked_at_end_the_looking(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_departures, "_KEYS", 3)
    step = jaxwatch.jit(lambda x: x)
    subject = REGISTRY.find(step)
    assert subject is not None
    for size in range(1, 6):
        step(np.ones(size, np.float32))
        step(jnp.ones(size, jnp.float32))  # the key is the same: it leaves the fast path, and nothing is built

    assert subject.departures is None
    assert departed(events) == []


def test_a_fault_of_ours_is_counted_and_ends_the_looking(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("ours")

    step = jaxwatch.jit(CALLBACKS["debug.callback"])
    step(X)
    monkeypatch.setattr(_departures, "key_of", broken)
    for _ in range(5):
        step(X)

    assert departed(events) == []
    assert REGISTRY.snapshot().dropped == {"event": 1}


def test_a_guard_does_not_forbid_a_departure(events: Events) -> None:
    step = jaxwatch.jit(CALLBACKS["debug.callback"])
    step(X)
    with jaxwatch.no_retraces(step):
        for _ in range(6):
            step(X)

    assert len(departed(events)) == 1


def test_the_price_of_departures_ends_once_it_is_told(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    step = jaxwatch.jit(CALLBACKS["debug.callback"])
    for _ in range(4):
        step(X)
    asked: list[Any] = []
    monkeypatch.setattr(_departures, "key_of", lambda *args: asked.append(args))
    for _ in range(5):
        step(X)

    assert asked == []
    assert len(departed(events)) == 1


def test_the_body_does_not_run_again_where_a_callback_changes_an_argument(events: Events) -> None:
    given: dict[str, Any] = {"a": X}
    ran = []

    def body(tree: Any) -> Any:
        ran.append(1)
        jax.debug.callback(lambda: given.update(z=1.0))
        return tree["a"]

    step, settle = jaxwatch.jit(body), cast("Callable[[], None]", jax.effects_barrier)
    for _ in range(8):
        given.pop("z", None)
        step(given)
        settle()

    assert len(ran) == 1
    assert len(cores.built(events)) == 1


def test_what_such_a_call_takes_is_told_in_seconds(events: Events) -> None:
    step = jaxwatch.jit(lambda x: CALLBACKS["io_callback"](x))
    for _ in range(12):
        step(X)
    (built,), (told,) = cores.built(events), cores.departures(events)

    assert told.seconds_per_call is not None
    assert 0 < told.seconds_per_call < 1
    assert f"takes {told.seconds_per_call * 1e6:,.0f} µs" in told.advice[0].text
    assert built.seconds_per_call is None


def test_it_is_the_median_of_the_calls_that_were_seen(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    note = _departures._note
    times = iter([9_000_000, 1_000_000, 2_000_000])
    monkeypatch.setattr(_departures, "_note", lambda frame, seen, _nanoseconds: note(frame, seen, next(times)))
    step = jaxwatch.jit(lambda x: CALLBACKS["io_callback"](x))
    for _ in range(12):
        step(X)

    assert [miss.seconds_per_call for miss in cores.departures(events)] == [0.002]
