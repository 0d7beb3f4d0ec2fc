"""Work ahead of time on what the native core watches: found on the stack, told once, for the right function."""

import threading
from collections.abc import Iterator
from typing import Any

import cores
import jax
import numpy as np
import pytest
from published import Events

import jaxwatch
from jaxwatch import _ahead
from jaxwatch.events import AheadOfTime

X = np.arange(4, dtype=np.float32)


@pytest.fixture(autouse=True)
def _native() -> Iterator[None]:
    with cores.in_use("native"):
        yield


def told(events: Events) -> list[tuple[str, bool]]:
    return [(event.function, event.signature is not None) for event in events.of(AheadOfTime)]


@pytest.mark.parametrize("method", ["lower", "trace", "eval_shape"])
def test_each_is_told_once_with_the_key_of_its_arguments(method: str, events: Events) -> None:
    def step(x: Any, n: int, *, scale: float = 1.0) -> Any:
        return x * n * scale

    watched = jaxwatch.jit(step, static_argnums=1)
    getattr(watched, method)(X, 2, scale=3.0)

    (event,) = events.of(AheadOfTime)
    assert events.misses == []
    assert event.site == f"{__file__}:{step.__code__.co_firstlineno + 4}"
    assert event.seconds > 0
    watched(X, 2, scale=3.0)
    assert events.last().signature == event.signature


def test_what_is_found_in_the_cache_is_not_told_again(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step.trace(X)
    step.trace(X)

    assert len(told(events)) == 1


def test_one_after_the_other_each_has_its_own_seconds(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    for size in range(4):
        step.lower(X[:size])

    first, *others = (event.seconds for event in events.of(AheadOfTime))
    assert len(others) == 3
    assert sum(others) < 10 * first + 1
    assert len({event.signature for event in events.of(AheadOfTime)}) == 4


def test_one_that_raises_leaves_nothing_to_the_next(events: Events) -> None:
    fail = True

    def body(x: Any) -> Any:
        if fail:
            raise ZeroDivisionError
        return x

    step = jaxwatch.jit(body)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            step.lower(X)
    before = len(events.of(AheadOfTime))
    fail = False
    step.lower(X[:2])

    assert len(events.of(AheadOfTime)) == before + 1
    step(X[:2])
    assert events.of(AheadOfTime)[-1].signature == events.last().signature


def test_functions_that_nobody_watches_are_not_told(events: Events) -> None:
    jax.jit(lambda x: x + 1).lower(X)

    assert told(events) == []


def test_a_watched_function_called_within_is_no_miss_of_its_own(events: Events) -> None:
    inner = jaxwatch.jit(lambda x: x * 2)
    outer = jaxwatch.jit(lambda x: inner(x) + 1, watch=jaxwatch.Watch(name="outer"))
    outer.lower(X)

    assert told(events) == [("outer", True)]
    assert events.misses == []


def test_a_watched_function_lowered_within_a_trace_is_not_told(events: Events) -> None:
    inner = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="inner"))
    outer = jaxwatch.jit(lambda x: (inner.lower(X), x)[1])
    outer(X)

    assert told(events) == []
    assert len(events.misses) == 1


def test_jaxs_eval_shape_of_a_watched_function_is_told(events: Events) -> None:
    jax.eval_shape(jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="shaped")), X)

    assert {name for name, _ in told(events)} <= {"shaped"}
    assert events.misses == []


def test_threads_keep_theirs_apart(events: Events) -> None:
    steps = [jaxwatch.jit(lambda x, n=n: x + n, watch=jaxwatch.Watch(name=f"f{n}")) for n in range(4)]
    threads = [threading.Thread(target=step.lower, args=(X,)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(told(events)) == [(f"f{n}", True) for n in range(4)]


def test_nothing_of_the_users_is_kept() -> None:
    class Array(np.ndarray[Any, Any]):
        alive = 0

        def __del__(self) -> None:
            type(self).alive -= 1

    def made() -> Any:
        Array.alive += 1
        return X.view(Array)

    step = jaxwatch.jit(lambda x: x + 1)
    step.lower(made())
    step.trace(made()[:2])
    assert _ahead.under_way() is None
    assert Array.alive <= 0


def test_no_guard_forbids_it() -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    with jaxwatch.no_retraces(step):
        step.lower(X)
