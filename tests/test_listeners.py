"""jax.monitoring → the active call: nothing lost, nothing twice, nothing put on the wrong account."""

import collections
import functools
import operator
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cores
import jax
import jax.monitoring
import jax.numpy as jnp
import numpy as np
import pytest
from programs import records, run
from published import Events

import jaxwatch
from jaxwatch import _compat, _listeners, _wrap
from jaxwatch._frames import THREAD
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.events import AheadOfTime, TraceError

X = np.arange(4, dtype=np.float32)
KINDS = ("event", "event_duration", "scalar")
monitoring: Any = vars(_compat)["_monitoring"]
public: Any = jax.monitoring  # mypy wants the very names of its protocols


@pytest.fixture(autouse=True)
def _listeners_are_put_back() -> Iterator[None]:
    names = "_event_listeners", "_event_duration_secs_listeners", "_scalar_listeners"
    before = {name: list(getattr(monitoring, name)) for name in names}
    yield
    for name, listeners in before.items():
        setattr(monitoring, name, listeners)
    left = [(phase.kind, phase.name) for phase in THREAD.open]
    THREAD.open.clear()
    assert left == []


def ours() -> dict[str, int]:
    mine = {_listeners._on_event, _listeners._on_duration, _listeners._on_scalar}
    return {
        kind: sum(listener in mine for listener in getattr(monitoring, f"get_{kind}_listeners")()) for kind in KINDS
    }


ONCE = dict.fromkeys(KINDS, 1)


# ------------------------------------------------------------------ JAX's side of it


def test_jax_tells_of_every_phase_by_the_names_that_we_listen_for() -> None:
    """Where this fails, JAX renamed its events, and jaxwatch would be silent."""
    started: collections.Counter[str] = collections.Counter()
    ended: collections.Counter[str] = collections.Counter()
    names = set()

    def scalar(event: str, value: float, **kwargs: Any) -> None:
        del value
        started[event] += 1
        names.add((event, kwargs.get("fun_name")))

    def duration(event: str, seconds: float, **kwargs: Any) -> None:
        del seconds
        ended[event] += 1
        names.add((event, kwargs.get("fun_name")))

    public.register_scalar_listener(scalar)
    public.register_event_duration_secs_listener(duration)

    def named(x: Any) -> Any:
        return x + 1

    jax.jit(named)(X)
    for event in (_compat.TRACE_EVENT, _compat.LOWER_EVENT, _compat.COMPILE_EVENT):
        assert (started[event], ended[event]) == (1, 1), event
    assert (_compat.TRACE_EVENT, "named") in names
    assert (_compat.COMPILE_EVENT, "jit(named)") in names


def test_the_name_in_jaxs_events_is_the_one_that_we_expect_for_every_kind_of_callable() -> None:
    seen: list[str] = []

    def scalar(event: str, value: float, **kwargs: Any) -> None:
        del value
        if event == _compat.TRACE_EVENT:
            seen.append(kwargs["fun_name"])

    class Model:
        def __call__(self, x: Any) -> Any:
            return x

        def apply(self, x: Any) -> Any:
            return x

    def named(x: Any) -> Any:
        return x

    odd = Model()
    odd.__name__ = "odd"  # type: ignore[attr-defined]  # as some do
    bad = Model()
    bad.__name__ = 3  # type: ignore[attr-defined]  # as nobody should
    public.register_scalar_listener(scalar)
    functions: list[Callable[..., Any]] = [
        named,
        lambda x: x,
        Model(),
        Model().apply,
        odd,
        functools.partial(named),
        functools.partial(functools.partial(Model().apply)),
        functools.partial(Model()),
        jax.grad(lambda x: x),
        jax.vmap(named),
        operator.pos,  # one that no other test jits
    ]
    for function in functions:
        seen.clear()
        jax.jit(function)(X if function is not functions[8] else 1.0)
        assert seen[:1] == [_compat.event_name(function)], function


# ------------------------------------------------------------------ registered once, and again where they were cleared


def test_there_is_one_of_each_kind_however_much_is_watched() -> None:
    for _ in range(3):
        jaxwatch.jit(lambda x: x)(X)
        _listeners.ensure()

    assert ours() == ONCE


@pytest.mark.parametrize("kinds", [KINDS, *((kind,) for kind in KINDS), ("public",)])
def test_a_program_that_clears_listeners_is_noticed_when_the_next_function_is_watched(
    kinds: tuple[str, ...], events: Events
) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    clear(kinds)
    jaxwatch.jit(lambda x: x)
    step(X[:2])

    assert ours() == ONCE
    assert [miss.reasons for miss in events.misses] == [("first_call",), ("shape",)]
    assert events.last().compiles == 1


@pytest.mark.parametrize("kinds", [("event_duration",), ("event",), ("public",)])
def test_and_at_the_next_phase_where_the_scalar_one_was_left(kinds: tuple[str, ...], events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    clear(kinds)
    step(X[:2])
    step(X[:1])

    assert ours() == ONCE
    assert len(events.misses) == 3
    assert events.last().compiles == 1


@pytest.mark.parametrize("core", cores.CORES)
def test_and_at_a_call_that_is_slow_where_all_were_cleared(
    core: str, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The native core looks at each that leaves the fast path, as one that compiles must."""
    monkeypatch.setattr(_wrap, "_SLOW_NANOSECONDS", 0)
    with cores.in_use(core):
        step = jaxwatch.jit(lambda x: x + 1)
        step(X)
        clear(KINDS)
        step(X[:2])  # not seen
        step(X[:1])

    assert ours() == ONCE
    assert [miss.call for miss in events.misses] == [1, 3]


def clear(kinds: tuple[str, ...]) -> None:
    if kinds == ("public",):
        public.clear_event_listeners()
        return
    names = {
        "event": "_event_listeners",
        "event_duration": "_event_duration_secs_listeners",
        "scalar": "_scalar_listeners",
    }
    for kind in kinds:
        getattr(monitoring, names[kind]).clear()


def test_removed_listeners_hear_nothing(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    _listeners.remove()
    _listeners.remove()
    assert ours() == dict.fromkeys(KINDS, 0)

    step(X)
    assert list(events) == []


# ------------------------------------------------------------------ the user's own listeners


def heard(jit: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []

    def event(name: str, **kwargs: Any) -> None:
        found.append((name, sorted(kwargs)))

    def duration(name: str, seconds: float, **kwargs: Any) -> None:
        del seconds
        found.append((name, sorted(kwargs), kwargs.get("fun_name")))

    def scalar(name: str, value: float, **kwargs: Any) -> None:
        del value
        found.append((name, sorted(kwargs), kwargs.get("fun_name")))

    public.register_event_listener(event)
    public.register_event_duration_secs_listener(duration)
    public.register_scalar_listener(scalar)

    def step(x: Any) -> Any:
        return x + 1

    jitted = jit(step)
    jitted(X)
    jitted(X)
    jitted(X[:2])
    for name, listener in (
        ("_event_listeners", event),
        ("_event_duration_secs_listeners", duration),
        ("_scalar_listeners", scalar),
    ):
        getattr(monitoring, name).remove(listener)
    return found


def test_a_listener_of_the_users_hears_the_same_with_and_without_us() -> None:
    assert heard(jaxwatch.jit) == heard(jax.jit)


@pytest.mark.parametrize("register", ["scalar", "duration"])
def test_a_listener_of_the_users_that_raises_does_so_in_his_call_and_later_calls_are_told(
    register: str, events: Events
) -> None:
    """One that guards against compiles in its own way, say."""

    def raising(event: str, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        if event == _compat.COMPILE_EVENT:
            raise LookupError("no compiles, please")

    step = jaxwatch.jit(lambda x: x + 1)
    plain = jax.jit(lambda x: x - 1)
    name = "_scalar_listeners" if register == "scalar" else "_event_duration_secs_listeners"
    getattr(monitoring, name).append(raising)
    for call in (step, plain):
        with pytest.raises(LookupError):
            call(X)
    getattr(monitoring, name).remove(raising)
    events.clear()

    step(X[:2])
    step(X[:2])
    plain(X[:1])
    assert [miss.call for miss in events.misses] == [2]
    assert (events.last().traces, events.last().compiles) == (1, 1)
    assert [eager.function for eager in events.eager] == ["<lambda>"]
    assert sum(jaxwatch.stats(step).dispatch.values()) == 1


@pytest.mark.parametrize("phase", ["TRACE_EVENT", "LOWER_EVENT", "COMPILE_EVENT"])
def test_a_phase_that_never_ended_hides_nothing_that_comes_later(phase: str, events: Events) -> None:
    def raising(event: str, *args: Any, **kwargs: Any) -> None:
        del args, kwargs
        if event == getattr(_compat, phase):
            raise KeyboardInterrupt

    monitoring._scalar_listeners.append(raising)  # after ours
    with pytest.raises(KeyboardInterrupt):
        jax.jit(lambda x: x - 1)(X)
    monitoring._scalar_listeners.remove(raising)

    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    step(X)
    assert events.reasons == [("first_call",)]
    assert sum(jaxwatch.stats(step).dispatch.values()) == 1
    with pytest.raises(ZeroDivisionError):
        jaxwatch.jit(lambda x: x + 1 // 0)(X)
    assert len(events.of(TraceError)) == 1


def test_a_fault_of_ours_is_counted_and_not_seen(events: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> None:
        raise RuntimeError(args)

    monkeypatch.setattr(_listeners, "_start", failing)
    monkeypatch.setattr(_listeners, "_ended", failing)
    assert jaxwatch.jit(lambda x: x + 1)(X).tolist() == [1, 2, 3, 4]

    assert list(events) == []
    assert REGISTRY.snapshot().dropped["event"] == 6


# ------------------------------------------------------------------ what is done outside of watched calls


def test_eager_ops_are_told_by_site_and_counted(events: Events) -> None:
    def made(size: int) -> Any:
        return jnp.zeros(size + 700) * 3  # two programs of a new shape: in one line

    for size in range(3):
        made(size)

    line = f"{__file__}:{made.__code__.co_firstlineno + 1}"
    assert {event.site for event in events.eager} == {line}
    assert [event.count for event in events.eager] == list(range(1, len(events.eager) + 1))
    assert {"multiply"} <= {event.function for event in events.eager}
    assert all(event.seconds > 0 and event.persistent_cache is None for event in events.eager)
    assert REGISTRY.snapshot().eager[line].count == len(events.eager)
    assert REGISTRY.snapshot().eager[line].seconds == pytest.approx(sum(event.seconds for event in events.eager))


def test_an_unwatched_jit_is_told_as_eager(events: Events) -> None:
    def unwatched(x: Any) -> Any:
        return x + 1

    jax.jit(unwatched)(X)

    assert [event.function for event in events.eager] == ["unwatched"]
    assert events.misses == []


def test_an_eager_compile_inside_a_trace_is_not_the_functions_own(events: Events) -> None:
    @jaxwatch.jit
    def step(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            made = jnp.arange(713) * 3
        return x + made.sum()

    step(1.0)

    (miss,) = events.misses
    assert (miss.traces, miss.lowerings, miss.compiles) == (1, 1, 1)
    assert events.eager
    assert sum(event.seconds for event in events.eager) > 0
    assert all(event.site.startswith(__file__) for event in events.eager)


def test_an_eager_op_of_the_functions_own_name_inside_its_trace_is_not_the_function(events: Events) -> None:
    @jaxwatch.jit
    def multiply(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            made = jnp.zeros(717) * 3  # compiles a program named multiply
        return x + made.sum()

    multiply(1.0)

    (miss,) = events.misses
    assert (miss.traces, miss.lowerings, miss.compiles) == (1, 1, 1)
    assert "multiply" in {event.function for event in events.eager}


def test_seconds_are_told_once(events: Events) -> None:
    inner = jaxwatch.jit(lambda x: x + 1)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            made = inner(np.zeros(723, np.float32))
        return x + made.sum()

    started = time.perf_counter()
    outer(1.0)
    whole = time.perf_counter() - started
    told = sum(miss.seconds.total for miss in events.misses) + sum(event.seconds for event in events.eager)
    assert len(events.misses) == 2
    assert 0 < told <= whole


def test_what_an_exporter_compiles_is_no_event(events: Events) -> None:
    HUB.add("computing", lambda _event: print(jnp.zeros(731) * 3))
    jaxwatch.jit(lambda x: x + 1)(X)
    HUB.remove("computing")

    assert len(events) == 1


# ------------------------------------------------------------------ ahead of time


@pytest.mark.parametrize(
    "use",
    [
        lambda step: step.lower(X),
        lambda step: step.trace(X),
        lambda step: step.eval_shape(X),
    ],
)
def test_work_ahead_of_time_is_told_with_its_signature_and_is_no_miss(use: Any, events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    use(step)

    (event,) = events.of(AheadOfTime)
    assert events.misses == []
    assert event.site.startswith(__file__)
    step(X)
    assert events.last().signature == event.signature
    assert jaxwatch.stats(step).calls == 1


def test_compiling_ahead_of_time_is_told_and_the_next_call_builds_nothing(events: Events) -> None:
    def step(x: Any) -> Any:
        return x + 1

    watched = jaxwatch.jit(step)
    watched.lower(X).compile()
    watched(X)

    assert [type(event) for event in events] == [AheadOfTime, AheadOfTime]
    assert {event.function for event in events.of(AheadOfTime)} == {watched.__qualname__.rpartition("<locals>.")[2]}


# ------------------------------------------------------------------ the persistent cache

CACHED = """
    import jax, jax.numpy as jnp, jaxwatch
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    step = jaxwatch.jit(lambda x: x * 3 + 1)
    step(1.0)
    jnp.zeros(741) * 3
"""


def test_hits_and_misses_of_the_persistent_cache_are_told(tmp_path: Path) -> None:
    logs = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for log in logs:
        ended = run(CACHED, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "cache"), JAXWATCH_LOG=str(log))
        assert ended.code == 0, ended.err

    for log, expected in zip(logs, ("miss", "hit"), strict=True):
        (miss,) = records(log, "cache_miss")
        assert (miss["layer"], miss["persistent_cache"], miss["compiles"]) == ("compile", expected, 1)
        assert {event["persistent_cache"] for event in records(log, "eager_compile")} == {expected}
