"""The counters: bounded, weak, and never going down."""

import dataclasses
import gc
import threading
import weakref
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_events import MISS

from jaxwatch import _limits
from jaxwatch._counters import OTHER
from jaxwatch._options import Watch
from jaxwatch._registry import Registry, Subject
from jaxwatch.events import CacheMiss, PhaseSeconds


class Thing:
    """Stands for a watched object."""

    def method(self) -> None: ...


def subject(name: str = "step", definition: str = "train.py:3", event_name: str = "step") -> Subject:
    return Subject(name=name, definition=definition, event_name=event_name, in_library=False, watch=Watch(), plan=None)


def miss(signature: str = "s1", **values: Any) -> CacheMiss:
    return dataclasses.replace(MISS, signature=signature, **values)


def watched(registry: Registry, **values: Any) -> tuple[Thing, Subject]:
    thing, made = Thing(), subject(**values)
    registry.add(thing, made)
    return thing, made


# ------------------------------------------------------------------ watched objects


def test_a_watched_object_is_found_also_through_its_bound_methods_and_nothing_else_is() -> None:
    registry = Registry()
    thing, made = watched(registry)

    class Model:
        step = thing

    assert registry.find(thing) is made
    assert registry.find(thing.method.__func__) is None  # type: ignore[attr-defined]  # a method has it
    for other in (Thing(), None, 3, "step", print, Model, Model()):
        assert registry.find(other) is None


def test_a_bound_method_of_a_watched_function_is_found() -> None:
    registry = Registry()

    def step(self: object) -> None: ...

    made = subject()
    registry.add(step, made)
    bound = type("Model", (), {"step": step})().step

    assert registry.find(bound) is made


def test_nothing_watched_is_kept_alive() -> None:
    registry = Registry()
    thing, _ = watched(registry)
    alive = weakref.ref(thing)
    del thing
    gc.collect()

    assert alive() is None


def test_the_counts_of_the_dead_stay() -> None:
    registry = Registry()
    for number in range(3):
        thing, made = watched(registry)
        made.counters.cell.calls += 10
        made.counters.cell.dispatch[5] += 9
        registry.count_miss(made, miss(f"s{number}"), 100.0 + number)
        registry.count_error(made)
        registry.count_violation(made, "warn")
        del thing
    gc.collect()

    (found,) = registry.snapshot().functions
    assert (found.calls, found.misses, found.signatures, found.trace_errors) == (30, 3, 3, 3)
    assert sum(found.dispatch.values()) == 27
    assert found.violations == {"warn": 3}
    assert found.last_miss_unix_seconds == 102.0
    assert found.seconds.total == pytest.approx(3 * MISS.seconds.total)
    assert found.abstracts == dict.fromkeys(("s0", "s1", "s2"), MISS.abstract)


def test_objects_of_one_name_and_place_share_their_figures_and_others_do_not() -> None:
    registry = Registry()
    kept = [
        watched(registry),
        watched(registry),
        watched(registry, definition="train.py:9"),
        watched(registry, name="other"),
    ]
    for number, (_, made) in enumerate(kept, 1):
        made.counters.cell.calls = number

    assert [(f.function, f.definition, f.calls) for f in registry.snapshot().functions] == [
        ("step", "train.py:3", 3),
        ("step", "train.py:9", 3),
        ("other", "train.py:3", 4),
    ]
    assert [registry.stats(made).calls for _, made in kept] == [1, 2, 3, 4]


def test_what_was_never_called_is_not_told() -> None:
    registry = Registry()
    thing, made = watched(registry)

    assert registry.snapshot().functions == ()
    registry.count_error(made)
    assert len(registry.snapshot().functions) == 1
    del thing


@given(st.lists(st.sampled_from("newdie"), max_size=30))
def test_no_count_ever_goes_down_whatever_lives_and_dies(steps: list[str]) -> None:
    registry = Registry()
    alive: list[tuple[Thing, Subject]] = []
    last = 0
    for number, step in enumerate(steps):
        if step in "new" or not alive:
            alive.append(watched(registry))
        elif step in "di":
            alive[number % len(alive)][1].counters.cell.calls += 1
        else:
            alive.pop(number % len(alive))
        now = sum(f.calls for f in registry.snapshot().functions)
        assert now >= last
        last = now


def test_figures_that_were_read_do_not_change() -> None:
    registry = Registry()
    thing, made = watched(registry)
    made.counters.cell.calls = 1
    before = registry.stats(made)
    made.counters.cell.calls = 2
    registry.count_miss(made, miss(), 1.0)

    assert (before.calls, before.misses, before.misses_by_signature) == (1, 0, {})
    del thing


def test_reset_forgets_figures_and_goes_on_with_what_lives() -> None:
    registry = Registry()
    thing, made = watched(registry)
    made.counters.cell.calls = 5
    registry.count_dropped("event")
    registry.reset()

    assert registry.snapshot().functions == ()
    assert registry.snapshot().dropped == {}
    assert registry.find(thing) is made
    made.counters.cell.calls += 1
    assert registry.stats(made).calls == 1
    del thing
    gc.collect()
    assert registry.snapshot().functions[0].calls == 1


# ------------------------------------------------------------------ by the name of its events


def test_a_function_is_named_where_there_is_one_of_that_event_name() -> None:
    registry = Registry()
    one, made = watched(registry, event_name="f")

    assert registry.named("f") is made
    assert registry.named("g") is None
    two, _ = watched(registry, event_name="f")  # the same definition again
    assert registry.named("f") is not None
    three, _ = watched(registry, event_name="f", definition="train.py:99")
    assert registry.named("f") is None
    del one, two, three


# ------------------------------------------------------------------ bounds


def test_definitions_are_bounded_and_the_rest_shares_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "DEFINITIONS", 2)
    registry = Registry()
    kept = [watched(registry, name=f"f{number}") for number in range(5)]
    for _, made in kept:
        made.counters.cell.calls = 1

    found = registry.snapshot()
    assert [(f.function, f.calls) for f in found.functions] == [("f0", 1), ("f1", 1), (OTHER, 3)]
    assert found.label_overflows == {"function": 3}
    kept.clear()
    gc.collect()
    assert [f.calls for f in registry.snapshot().functions] == [1, 1, 3]


def test_signatures_are_bounded_and_the_rest_counted_as_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "SIGNATURES_PER_FUNCTION", 2)
    registry = Registry()
    thing, made = watched(registry)
    for signature in ("s1", "s2", "s3", "s1", "s4"):
        registry.count_miss(made, miss(signature), 1.0)

    found = registry.stats(made)
    assert found.misses_by_signature == {"s1": 2, "s2": 1, OTHER: 2}
    assert set(found.abstracts) == {"s1", "s2"}
    assert found.misses == 5
    assert registry.snapshot().label_overflows == {"signature": 2}
    del thing


def test_sites_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "EAGER_SITES", 2)
    registry = Registry()
    counts = [registry.count_eager(site, 0.5, None) for site in ("a.py:1", "b.py:2", "c.py:3", "a.py:1", "d.py:4")]

    found = registry.snapshot()
    assert counts == [1, 1, 1, 2, 2]
    assert {site: stats.count for site, stats in found.eager.items()} == {"a.py:1": 2, "b.py:2": 1, OTHER: 2}
    assert found.label_overflows == {"site": 2}


def test_look_ups_on_disk_are_counted_of_calls_and_eager_ops() -> None:
    registry = Registry()
    thing, made = watched(registry)
    registry.count_miss(made, miss(persistent_cache="hit"), 1.0)
    registry.count_miss(made, miss(persistent_cache=None), 1.0)
    registry.count_eager("a.py:1", 0.1, "miss")

    assert registry.snapshot().disk == {"hit": 1, "miss": 1}
    del thing


# ------------------------------------------------------------------ reading


def test_a_reader_sees_figures_while_others_count() -> None:
    registry = Registry()
    done = threading.Event()

    def count(number: int) -> None:
        while not done.is_set():
            thing, made = watched(registry, name=f"f{number}")
            made.counters.cell.calls += 1
            registry.count_miss(made, miss(), 1.0)
            registry.count_eager(f"a.py:{number}", 0.1, None)
            del thing

    threads = [threading.Thread(target=count, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    last = 0
    for _ in range(200):
        now = sum(f.calls for f in registry.snapshot().functions)
        assert now >= last
        last = now
    done.set()
    for thread in threads:
        thread.join()
    functions = registry.snapshot().functions
    assert sum(f.misses for f in functions) == sum(f.calls for f in functions)


# ------------------------------------------------------------------ what calls cost, and what was compiled


def test_calls_cost_their_number_times_the_price_of_one_of_the_dead_too() -> None:
    registry = Registry()
    registry.call_seconds = 2e-6
    living, one = watched(registry)
    dying, two = watched(registry, name="other")
    one.counters.cell.calls, two.counters.cell.calls = 300, 200
    del dying
    gc.collect()

    assert registry.snapshot().overhead_seconds["call"] == pytest.approx(1e-3)
    registry.reset()
    assert registry.call_seconds == 2e-6
    assert registry.snapshot().overhead_seconds == {"call": 0}
    del living


def test_the_last_program_of_a_signature_counts_and_the_last_miss_is_named() -> None:
    registry = Registry()
    thing, made = watched(registry)
    made.counters.cell.calls = 4
    registry.count_miss(made, miss("s1", id=1, fingerprint="aa", seconds=PhaseSeconds(lower=1.0)), 10.0)
    registry.count_miss(made, miss("s2", id=2, fingerprint="bb", seconds=PhaseSeconds(lower=2.0)), 30.0)
    registry.count_miss(made, miss("s1", id=3, fingerprint="cc", seconds=PhaseSeconds(lower=3.0)), 20.0)
    registry.count_miss(made, miss("s2", id=4, fingerprint=None), 25.0)

    stats = registry.stats(made)
    assert stats.fingerprints == {"s1": ("cc",), "s2": ("bb",)}
    assert (stats.last_miss_id, stats.last_miss_seconds, stats.last_miss_unix_seconds) == (2, 2.0, 30.0)
    del thing
    gc.collect()
    (after,) = registry.snapshot().functions
    assert (after.fingerprints, after.last_miss_id) == ({"s1": ("cc",), "s2": ("bb",)}, 2)
