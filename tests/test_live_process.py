"""This process as a live state."""

import gc
import threading
import tracemalloc
from collections.abc import Iterator

import pytest

from jaxwatch import _live_process
from jaxwatch._hub import HUB
from jaxwatch._live_process import EXPORTER, WAITING, WAKE_AT, LiveProcess
from jaxwatch._registry import REGISTRY
from jaxwatch.events import CacheMiss, EagerCompile, Origin, PhaseSeconds

Clock = list[float]


def origin(at: float = 1_777_636_800.0) -> Origin:
    return Origin(unix_seconds=at, pid=1, process_index=None, thread_name="MainThread")


def eager(function: str = "add") -> EagerCompile:
    return EagerCompile(
        origin=origin(), function=function, site="train.py:3", seconds=0.1, persistent_cache=None, count=1
    )


def miss(number: int) -> CacheMiss:
    return CacheMiss(
        id=number,
        origin=origin(),
        function="step",
        definition="train.py:1",
        site="train.py:9",
        call=number,
        layer="compile",
        traces=1,
        lowerings=1,
        compiles=1,
        persistent_cache=None,
        seconds=PhaseSeconds(backend_compile=0.5),
        reasons=("shape",),
        changes=(),
        compared_with=None,
        fingerprint=None,
        signature=f"s{number}",
        abstract="",
        advice=(),
    )


@pytest.fixture
def wakings() -> list[int]:
    return []


@pytest.fixture
def live(fresh: None, wakings: list[int]) -> Iterator[LiveProcess]:
    del fresh
    found = LiveProcess(lambda: wakings.append(1))
    yield found
    found.close()


def test_events_of_the_hub_are_in_the_next_frame(live: LiveProcess) -> None:
    HUB.publish(miss(1))
    HUB.publish(eager())

    frame = live.frame()

    assert [(one.function, one.kind) for one in frame.happened] == [("step", "recompile")]
    assert [(one.site, one.count) for one in frame.eager] == [("train.py:3", 1)]
    assert frame.processes >= 1
    assert frame.overhead["export"] > 0


def test_figures_of_functions_are_read_when_somebody_asks(live: LiveProcess) -> None:
    import jax
    import jax.numpy as jnp

    from jaxwatch import jit

    ones = jnp.ones(3)
    add = jit(lambda x: x + 1)
    for _ in range(5):
        jax.block_until_ready(add(ones))  # type: ignore[no-untyped-call]  # JAX's own

    (line,) = live.frame().functions

    assert (line.calls, line.calls_exact, line.misses) == (5, True, 1)
    assert line.p50 is not None


def test_an_event_costs_an_append_and_nothing_is_computed_until_somebody_asks(
    live: LiveProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live_process, "to_record", pytest.fail)

    for number in range(10 * WAITING):
        live.export(miss(number + 1))

    assert len(live._waiting) == WAITING


def test_what_waits_is_bounded_and_what_is_lost_is_counted(live: LiveProcess) -> None:
    for number in range(WAITING + 7):
        live.export(miss(number + 1))

    assert REGISTRY.snapshot().dropped["event"] == 7
    frame = live.frame()
    assert frame.happened[0].call == WAITING + 7 - len(frame.happened) + 1
    assert frame.dropped == WAITING - len(frame.happened) + 7


def test_somebody_is_woken_before_anything_is_lost(live: LiveProcess, wakings: list[int]) -> None:
    for number in range(WAKE_AT - 1):
        live.export(miss(number + 1))
    assert wakings == []
    live.export(miss(WAKE_AT))
    assert wakings == [1]

    live.take_in()
    assert not live._waiting
    assert len(live.frame().happened) == WAKE_AT


def test_however_many_ask_a_frame_is_made_only_now_and_then(fresh: None) -> None:
    del fresh
    now = [1_777_636_800.0]
    live = LiveProcess(lambda: None, clock=lambda: now[0])
    first = live.frame()
    HUB.publish(miss(1))

    assert live.frame() is first
    now[0] += 1.0
    assert live.frame().happened
    now[0] -= 3600.0  # the clock was set back
    assert live.frame().time == now[0]
    live.close()


def test_asking_is_counted_as_jaxwatchs_own_cost(live: LiveProcess) -> None:
    live.frame()

    assert REGISTRY.snapshot().overhead_seconds["scrape"] > 0


def test_a_closed_one_takes_no_event(live: LiveProcess) -> None:
    live.close()
    HUB.publish(miss(1))

    assert EXPORTER not in HUB.names
    assert live.frame().happened == ()


def test_threads_may_publish_while_others_ask(live: LiveProcess) -> None:
    def publish() -> None:
        for number in range(300):
            live.export(miss(number + 1))

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        live.take_in()
    for thread in threads:
        thread.join()

    live.take_in()
    frame = live.frame()
    assert frame.happened[-1].number == 1_200


def test_memory_is_bounded_though_nobody_asks(live: LiveProcess) -> None:
    for number in range(2 * WAITING):
        live.export(miss(number + 1))
    gc.collect()
    tracemalloc.start()
    for number in range(2 * WAITING):
        live.export(miss(number + 1))
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert grown < WAITING * 2_000  # the events that wait now; as many old ones went
