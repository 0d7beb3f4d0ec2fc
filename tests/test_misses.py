"""What a miss tells: where, why, compared with what, at which price; and what is no miss."""

# ruff: noqa: ARG005, PLW0108 -- functions of the user's take what they do not use, and are functions of their own

import dataclasses
import functools
import gc
import os
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import run
from published import Events

import jaxwatch
from jaxwatch import Watch, _compat, _limits, _listeners, _misses
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.events import Event, TraceError

X = np.arange(4, dtype=np.float32)


def step() -> Any:
    return jaxwatch.jit(lambda x, n=1: x + n, watch=Watch(name="step"))


# ------------------------------------------------------------------ where and how much


def test_a_first_call_is_told_in_full(events: Events) -> None:
    @jaxwatch.jit
    def train(x: Any) -> Any:
        return x + 1

    train(X)
    miss = events.last()
    here = train.__wrapped__.__code__.co_firstlineno

    assert (miss.function, miss.definition) == ("train", f"{__file__}:{here}")
    assert miss.site == f"{__file__}:{here + 4}"
    assert (miss.call, miss.layer) == (1, "compile")
    assert (miss.traces, miss.lowerings, miss.compiles) == (1, 1, 1)
    assert (miss.reasons, miss.changes, miss.compared_with, miss.advice) == (("first_call",), (), None, ())
    assert (miss.persistent_cache, len(miss.fingerprint or "")) == (None, 16)
    assert min(miss.seconds.trace, miss.seconds.lower, miss.seconds.backend_compile) > 0
    assert miss.abstract == "(x: float32[4])"
    assert (miss.origin.pid, miss.origin.thread_name) == (os.getpid(), "MainThread")
    assert not miss.is_recompile


def test_a_later_miss_is_compared_with_the_nearest_earlier_one(events: Events) -> None:
    train = step()
    train(X)
    train(X, 2.0)
    train(X)
    train(X[:3], 2.0)

    first, second, third = events.misses
    assert [miss.call for miss in events.misses] == [1, 2, 4]
    assert second.compared_with == first.id
    assert third.compared_with == second.id
    assert third.reasons == ("shape",)
    assert third.advice[0].code == "pad_or_bucket"
    assert third.is_recompile


def test_ids_rise_by_one() -> None:
    train = step()
    before = next(_misses.IDS.numbers)
    for size in range(1, 4):
        train(np.zeros(size))

    assert next(_misses.IDS.numbers) == before + 4


def test_the_site_is_the_users_line_through_jax_and_other_callers(events: Events) -> None:
    train = step()

    def call(use: Callable[[], Any]) -> int:
        use()
        return use.__code__.co_firstlineno

    line = call(lambda: jax.vmap(train)(np.ones((3, 2))))
    assert events.last().site == f"{__file__}:{line}"
    line = call(lambda: jax.tree_util.tree_map(train, {"a": X[:1]}))
    assert events.last().site == f"{__file__}:{line}"
    line = call(lambda: functools.partial(train, X[:3])())
    assert events.last().site == f"{__file__}:{line}"


def test_the_seconds_are_added_to_the_function_and_to_our_own_price(events: Events) -> None:
    train = step()
    train(X)
    found = REGISTRY.snapshot()

    assert jaxwatch.stats(train).seconds == events.last().seconds
    assert found.overhead_seconds["miss"] > 0
    assert found.overhead_seconds["export"] > 0
    assert found.functions[0].last_miss_unix_seconds > 1.7e9


def test_what_an_exporter_takes_is_counted_as_its_price_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    clock = types.SimpleNamespace(perf_counter=lambda: now[0], time=time.time)
    for module in (_misses, _listeners):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(HUB, "_clock", clock.perf_counter)

    def slow(event: Event, /) -> None:
        del event
        now[0] += 5.0

    train = step()
    REGISTRY.reset()
    HUB.add("slow", slow)
    train(X)
    HUB.remove("slow")

    assert REGISTRY.snapshot().overhead_seconds == {"miss": 0.0, "export": 5.0, "call": REGISTRY.call_seconds}


# ------------------------------------------------------------------ why


def told(events: Events, *calls: tuple[Any, ...], **options: Any) -> tuple[str, ...]:
    train = jaxwatch.jit(lambda x, n=1: x, **options)
    for arguments in calls:
        train(*arguments)
    return events.last().reasons


@dataclasses.dataclass(frozen=True)
class Config:
    width: int


class Identity: ...


@pytest.mark.parametrize(
    ("calls", "options", "reasons"),
    [
        ([(X,), (X[:2],)], {}, ("shape",)),
        ([(X,), (X.astype(np.int32),)], {}, ("dtype",)),
        ([(1.0,), (np.float32(1),)], {}, ("weak_type",)),
        ([(X,), (None,)], {}, ("structure",)),
        ([({"a": 1},), ({"a": 1, "b": 2},)], {}, ("structure",)),
        ([(X, 1), (X, 2)], {"static_argnums": 1}, ("static",)),
        ([(X, 1), (X, True)], {"static_argnums": 1}, ("static",)),
        ([(X, Config(1)), (X, Config(2))], {"static_argnums": 1}, ("static",)),
        ([(X, Identity()), (X, Identity())], {"static_argnums": 1}, ("static",)),
        ([(X, float("nan")), (X, float("nan"))], {"static_argnums": 1}, ("static",)),
        ([(X,), (X, 1)], {}, ("call_form",)),
        ([(X, 1), (X[:2], 2.0)], {}, ("shape", "dtype")),
    ],
)
def test_the_reason_is_what_differs(
    calls: list[tuple[Any, ...]], options: dict[str, Any], reasons: tuple[str, ...], events: Events
) -> None:
    assert told(events, *calls, **options) == reasons


def test_a_value_that_jax_finds_equal_is_not_blamed(events: Events) -> None:
    train = jaxwatch.jit(lambda x, n: x, static_argnums=1)
    train(X, (1, 0.0))
    train(X[:2], (1.0, -0.0))

    assert events.last().reasons == ("shape",)


def test_position_against_keyword_is_a_call_form(events: Events) -> None:
    train = step()
    train(X)
    train(x=X)

    assert events.changes() == [("call_form", "x", "positional", "keyword")]


def test_configuration_is_told_by_its_name(events: Events) -> None:
    train = step()
    train(X)
    with jax.default_matmul_precision("float32"):
        train(X)

    assert events.changes() == [("config", "jax_default_matmul_precision", "None", "float32")]


def test_a_cleared_cache_is_told_as_lost(events: Events) -> None:
    train = step()
    train(X)
    train.clear_cache()
    train(X)

    assert events.last().reasons == ("cache_lost",)
    assert events.last().compared_with == events.misses[0].id


def test_other_options_of_the_same_function_are_told(events: Events) -> None:
    def body(x: Any) -> Any:
        return x + 1

    jaxwatch.jit(body)(jnp.asarray(X))
    jaxwatch.jit(body, donate_argnums=0)(jnp.asarray(X))

    assert events.last().reasons == ("options",)
    assert ("options", "donate_argnums", None, "(0,)") in events.changes()


def test_the_transformation_around_is_told(events: Events) -> None:
    train = step()
    train(1.0)
    jax.grad(train)(1.0)

    assert ("transform", None, "no transform", "grad") in events.changes()


@pytest.mark.parametrize(
    "make",
    [
        lambda: jaxwatch.jit(lambda x: x + 1),
        lambda: jaxwatch.jit(functools.partial(lambda n, x: x + n, 1)),
        lambda: jaxwatch.jit(Model().apply),
        lambda: jaxwatch.jit(Model()),
    ],
)
def test_the_same_code_as_another_function_is_told(make: Callable[[], Any], events: Events) -> None:
    kept = [make() for _ in range(2)]  # alive at once
    for function in kept:
        function(X)

    assert events.reasons == [("first_call",), ("new_function",)]


class Model:
    def apply(self, x: Any) -> Any:
        return x + 1

    def __call__(self, x: Any) -> Any:
        return x + 1


def test_two_lambdas_of_one_line_have_nothing_to_do_with_each_other(events: Events) -> None:
    one, two = jaxwatch.jit(lambda x: x + 1), jaxwatch.jit(lambda x: x * 2)
    one(X)
    two(X)

    assert events.reasons == [("first_call",), ("first_call",)]


def test_the_same_function_jitted_again_finds_its_key(events: Events) -> None:
    def body(x: Any) -> Any:
        return x + 1

    jaxwatch.jit(body)(X)
    jaxwatch.jit(body)(X[:2])

    assert events.reasons == [("first_call",), ("shape",)]


class ByValue:
    def __init__(self) -> None:
        self.ran: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.ran.append(1)
        return x + 1

    def apply(self, x: Any) -> Any:
        return self(x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue)

    def __hash__(self) -> int:
        return 1


def test_a_function_that_jax_finds_equal_to_an_earlier_one_is_not_traced_and_misses_nothing(events: Events) -> None:
    """JAX tells of a trace then, but no body runs and nothing is compiled."""
    one, two = ByValue(), ByValue()
    kept = [jaxwatch.jit(one.apply), jaxwatch.jit(one.apply), jaxwatch.jit(one), jaxwatch.jit(two)]
    for function in kept:
        assert function(X).tolist() == [1, 2, 3, 4]

    assert (len(one.ran), len(two.ran)) == (2, 0)
    assert events.reasons == [("first_call",), ("first_call",)]


@pytest.mark.parametrize("core", cores.CORES)
def test_a_call_that_finds_its_trace_and_builds_nothing_is_one_from_the_cache(core: str) -> None:
    """JAX tells of a trace in which no body runs, off the fast path, once another function's cache was cleared."""
    with cores.in_use(core), cores.told():
        bodies = []

        def chatty(x: Any) -> Any:
            bodies.append(1)
            jax.debug.callback(lambda _: None, x)
            return x + 1

        made, other = jaxwatch.jit(chatty), jaxwatch.jit(lambda x: x)
        made(X), other(X)
        for _ in range(3):
            other.clear_cache()
            made(X)
        found = jaxwatch.stats(made)

        assert len(bodies) == 1
        assert (found.calls, found.compiles, sum(found.dispatch.values())) == (4, 1, 3)


def test_a_function_whose_history_was_dropped_is_not_said_to_be_new(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, "OBJECTS_PER_DEFINITION", 2)

    def made() -> Any:
        return jaxwatch.jit(lambda x: x + 1)

    old = made()
    old(X)
    kept = [made() for _ in range(3)]
    for function in kept:
        function(X)
    old(X[:2])

    assert events.last().reasons == ("unknown",)


def test_an_unreadable_key_is_unknown_and_no_error(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError((args, kwargs))

    train = step()
    train(X)
    monkeypatch.setattr(_misses, "key_of", failing)
    assert train(X[:2]).tolist() == [1, 2]

    assert events.last().reasons == ("unknown",)
    assert REGISTRY.snapshot().dropped == {"key": 1}


def test_a_fault_of_ours_is_counted_and_the_result_goes_through(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError((args, kwargs))

    monkeypatch.setattr(_misses, "_miss", failing)
    assert step()(X).tolist() == [1, 2, 3, 4]

    monkeypatch.setattr(_misses, "origin", failing)
    with pytest.raises(ZeroDivisionError):
        jaxwatch.jit(lambda x: 1 // 0)(X)
    jaxwatch.jit(lambda x: x).lower(X)
    assert list(events) == []
    assert REGISTRY.snapshot().dropped == {"event": 3}


# ------------------------------------------------------------------ what is no miss


def test_a_call_from_the_cache_is_none(events: Events) -> None:
    train = step()
    for _ in range(3):
        train(X)
        train(X + 1)

    assert len(events) == 1


@pytest.mark.parametrize(
    ("fail", "error"),
    [
        (lambda x: 1 // 0, "ZeroDivisionError"),
        (lambda x: x + 1 if x else x, "TracerBoolConversionError"),
        (lambda x: "text", "TypeError"),
        (lambda x: jnp.zeros(2) + jnp.zeros(3), "TypeError"),
    ],
)
def test_a_call_that_raised_while_traced_is_an_error_and_no_miss(fail: Any, error: str, events: Events) -> None:
    train = jaxwatch.jit(fail)
    for call in (1, 2):
        with pytest.raises(Exception):  # noqa: B017, PT011 -- of several kinds
            train(1.0)
        (event,) = events.of(TraceError)
        assert event.call == call
        assert error in event.error
        assert event.site.startswith(__file__)
        assert event.seconds >= 0
        events.clear()
    assert jaxwatch.stats(train).trace_errors == 2
    assert jaxwatch.stats(train).misses == 0


def test_the_calls_after_a_failed_one_are_told_as_the_first(events: Events) -> None:
    fail = [True]

    def body(x: Any) -> Any:
        if fail:
            raise ValueError("once")
        return x

    train = jaxwatch.jit(body)
    with pytest.raises(ValueError, match="once"):
        train(X)
    fail.clear()
    train(X)

    assert events.reasons == [("first_call",)]
    assert events.last().call == 2


def test_a_call_with_arguments_that_jax_refuses_is_no_miss(events: Events) -> None:
    train = step()
    for arguments in ((), ("text",), (1, 2, 3)):
        with pytest.raises(TypeError):
            train(*arguments)

    assert events.misses == []
    assert jaxwatch.stats(train).calls == 3


def test_calls_within_an_outer_trace_are_none_of_their_own(events: Events) -> None:
    inner = step()

    def outer(x: Any) -> Any:
        return inner(x) + inner(x[:2]).sum()

    jax.jit(outer)(X)
    jax.make_jaxpr(outer)(X)
    jax.eval_shape(outer, X)
    jax.lax.scan(lambda carry, x: (inner(carry), x), 0.0, X)

    assert events.misses == []
    assert events.of(TraceError) == []


def test_an_error_within_an_outer_trace_is_told_once(events: Events) -> None:
    inner = jaxwatch.jit(lambda x: 1 // 0, watch=Watch(name="inner"))
    outer = jaxwatch.jit(lambda x: inner(x), watch=Watch(name="outer"))
    with pytest.raises(ZeroDivisionError):
        outer(X)

    assert [event.function for event in events.of(TraceError)] == ["outer"]


def test_inner_keys_compile_alone_later_as_misses_of_their_own(events: Events) -> None:
    inner = step()
    jax.jit(lambda x: inner(x) * 2)(X)
    inner(X)

    (miss,) = events.misses
    assert (miss.function, miss.compiles, miss.reasons) == ("step", 1, ("first_call",))


# ------------------------------------------------------------------ threads, death, fork


def test_ids_grow_in_the_order_in_which_keys_are_compared(events: Events) -> None:
    train = step()
    barrier = threading.Barrier(4)

    def work(start: int) -> None:
        barrier.wait()
        for size in range(start, start + 40, 4):
            train(np.zeros(size + 1, np.float32))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({miss.id for miss in events.misses}) == 40
    for miss in events.misses:
        assert miss.compared_with is None or miss.compared_with < miss.id
    assert events.reasons.count(("first_call",)) == 1
    assert jaxwatch.stats(train).signatures == 40


def test_a_bound_method_whose_instance_died_is_another_function(events: Events) -> None:
    for _ in range(3):
        jaxwatch.jit(Model().apply)(X)
        gc.collect()

    assert events.reasons == [("first_call",), ("new_function",), ("new_function",)]


FORK = """
    import json, os, warnings
    import numpy as np
    import jaxwatch
    from jaxwatch import _misses
    from jaxwatch._frames import Frame
    from jaxwatch._guards import subject_of
    from jaxwatch._hub import HUB

    warnings.simplefilter("ignore")  # jax's and Python's, that fork and threads do not go together
    step = jaxwatch.jit(lambda x: x + 1)
    events = []
    HUB.add("test", lambda event: events.append(event))
    step(np.zeros(1)), step(np.zeros(2))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # without jax, which may hang in a child
        events.clear()
        frame = Frame(subject_of(step), 3, (np.zeros(3),), {})
        _misses.begin(frame, "trace")
        frame.traces = frame.compiles = 1
        _misses.finish(frame)
        (miss,) = events
        told = [miss.id, miss.compared_with, list(miss.reasons), miss.origin.pid == os.getpid()]
        os.write(write, json.dumps(told).encode())
        os._exit(0)
    os.waitpid(child, 0)
    print(os.read(read, 1000).decode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_in_a_forked_child_ids_start_anew_and_history_is_known() -> None:
    assert run(FORK).data() == [1, None, ["shape"], True]


def test_without_fork_in_the_system_all_can_be_imported() -> None:
    """As on Windows."""
    ended = run("import jax, os; del os.register_at_fork; import jaxwatch; jaxwatch.jit; jaxwatch.serve; print('well')")

    assert ended.out == "well\n", ended.err


def test_the_disk_cache_is_on_where_there_is_a_folder_for_it() -> None:
    assert not _compat.disk_cache_on()


@pytest.mark.skipif(not _compat.HAS_CACHE, reason="this JAX does not show that its caches were cleared")
def test_a_cleared_cache_is_told_by_who_cleared_it(events: Events) -> None:
    train = step()
    train(X)
    train.clear_cache()
    train(X)
    own = events.last().changes[0].note
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's
    train(X)

    assert events.reasons == [("first_call",), ("cache_lost",), ("cache_lost",)]
    assert events.last().changes[0].note == f"{own}: jax.clear_caches() was called"


def test_a_method_jitted_anew_gets_advice_and_a_cleared_cache_none(events: Events) -> None:
    class Model:
        def apply(self, x: Any) -> Any:
            return x + 1

    model = Model()
    for _ in range(2):
        jaxwatch.jit(model.apply)(X)
        gc.collect()
    assert events.last().reasons == ("cache_lost",)
    assert [advice.code for advice in events.last().advice] == ["jit_once"]

    step = jaxwatch.jit(lambda x: x - 1)
    step(X)
    jax.clear_caches()  # type: ignore[no-untyped-call]
    step(X)
    assert events.last().reasons == ("cache_lost",)
    assert events.last().advice == ()
