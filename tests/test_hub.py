"""Events are handed to every exporter, and what one raises stays there."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from test_events import ALL, MISS

from jaxwatch import _hub
from jaxwatch._hub import Hub
from jaxwatch._registry import Registry
from jaxwatch.events import Event


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """Count in a registry of the test's own."""
    own = Registry()
    monkeypatch.setattr(_hub, "REGISTRY", own)
    yield own
    gc.collect()


def test_every_exporter_gets_every_event_in_order(registry: Registry) -> None:
    del registry
    hub = Hub()
    one: list[Event] = []
    two: list[Event] = []
    hub.add("one", one.append)
    hub.add("two", two.append)
    for event in ALL.values():
        hub.publish(event)

    assert one == two == list(ALL.values())
    assert hub.names == ("one", "two")


def test_an_exporter_of_a_name_replaces_the_earlier_one(registry: Registry) -> None:
    del registry
    hub = Hub()
    old: list[Event] = []
    new: list[Event] = []
    hub.add("mine", old.append)
    hub.add("mine", new.append)
    hub.publish(MISS)

    assert (old, new) == ([], [MISS])


def test_a_removed_exporter_gets_nothing_and_an_unknown_name_is_passed_over(registry: Registry) -> None:
    del registry
    hub = Hub()
    got: list[Event] = []
    kept: list[Event] = []
    hub.add("mine", got.append)
    hub.add("other", kept.append)
    hub.remove("mine")
    hub.remove("nobody")
    hub.publish(MISS)

    assert (got, kept) == ([], [MISS])
    assert hub.names == ("other",)


@pytest.mark.parametrize("error", [ValueError("no"), RecursionError(), MemoryError(), AssertionError()])
def test_what_an_exporter_raises_is_counted_by_its_name_and_the_others_get_their_event(
    registry: Registry, error: Exception
) -> None:
    hub = Hub()
    got: list[Event] = []

    def failing(event: Event, /) -> None:
        del event
        raise error

    hub.add("failing", failing)
    hub.add("mine", got.append)
    hub.publish(MISS)
    hub.publish(MISS)

    assert got == [MISS, MISS]
    assert registry.snapshot().exporter_errors == {"failing": 2}
    assert not hub.busy


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_goes_through_and_leaves_the_hub_ready(registry: Registry, error: type[BaseException]) -> None:
    del registry
    hub = Hub()

    def interrupted(event: Event, /) -> None:
        del event
        raise error

    hub.add("interrupted", interrupted)
    with pytest.raises(error):
        hub.publish(MISS)
    assert not hub.busy


def test_what_an_exporter_does_itself_is_no_event_but_counted(registry: Registry) -> None:
    hub = Hub()
    got: list[Event] = []

    def busy(event: Event, /) -> None:
        assert hub.busy
        got.append(event)
        hub.publish(event)

    hub.add("busy", busy)
    hub.publish(MISS)

    assert got == [MISS]
    assert registry.snapshot().dropped == {"event": 1}


def test_another_thread_is_not_held_up_by_a_busy_one(registry: Registry) -> None:
    hub = Hub()
    entered, leave = threading.Event(), threading.Event()
    got: list[str] = []

    def slow(event: Event, /) -> None:
        del event
        got.append(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait(30)

    hub.add("slow", slow)
    thread = threading.Thread(target=hub.publish, args=(MISS,), name="other")
    thread.start()
    assert entered.wait(30)
    hub.publish(MISS)
    leave.set()
    thread.join()

    assert got == ["other", "MainThread"]
    assert not registry.snapshot().dropped


def test_an_exporter_may_remove_itself_or_add_others_while_events_are_handed_on(registry: Registry) -> None:
    hub = Hub()
    late: list[Event] = []

    def once(event: Event, /) -> None:
        del event
        hub.remove("once")
        hub.add("late", late.append)

    hub.add("once", once)
    hub.publish(MISS)
    hub.publish(MISS)

    assert late == [MISS]
    assert not registry.snapshot().exporter_errors


def test_exporters_that_come_and_go_on_many_threads_are_neither_lost_nor_left(registry: Registry) -> None:
    del registry
    hub = Hub()

    def work(number: int) -> None:
        for turn in range(300):
            hub.add(f"{number} {turn}", lambda _: None)
            hub.publish(MISS)
            if turn:
                hub.remove(f"{number} {turn - 1}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(hub.names) == [f"{number} 299" for number in range(4)]


def test_within_an_exporter_a_block_of_ones_own_ends_nothing(registry: Registry) -> None:
    hub = Hub()

    def export(event: Event) -> None:
        with hub.exporting():
            pass
        hub.publish(event)

    hub.add("mine", export)
    hub.publish(MISS)
    assert registry.snapshot().dropped == {"event": 1}
    assert not hub.busy


def test_the_time_that_exporters_take_is_added_up_by_the_clock(registry: Registry) -> None:
    ticks = iter([10.0, 12.5, 20.0, 21.0])
    hub = Hub(clock=lambda: next(ticks))
    hub.publish(MISS)
    hub.publish(MISS)

    assert registry.snapshot().overhead_seconds == {"export": 3.5, "call": 0.0}


def test_any_callable_is_an_exporter(registry: Registry) -> None:
    class Mine:
        got: Any = None

        def __call__(self, event: Event, /) -> None:
            self.got = event

    del registry
    hub = Hub()
    mine = Mine()
    hub.add("mine", mine)
    hub.publish(MISS)

    assert mine.got is MISS
