"""Callbacks of the user's: isolated, bounded, in order, gone when closed; never a matter of the program's calls."""

import asyncio
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from test_events import ALL, MISS

import jaxwatch
from jaxwatch import _limits
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch._subscribe import PUBLISHED, subscribe
from jaxwatch.errors import BadOptionError, JaxwatchWarning
from jaxwatch.events import CacheMiss, Event

pytestmark = pytest.mark.usefixtures("fresh")


def miss(number: int) -> CacheMiss:
    return dataclasses.replace(MISS, id=number)


def test_a_callback_gets_what_really_happens_in_order() -> None:
    seen: list[Event] = []
    step = jaxwatch.jit(lambda x: x * 2)
    with subscribe(seen.append, kinds=["cache_miss"]):
        for rows in range(1, 6):
            step(np.ones(rows, np.float32))
    step(np.ones(9, np.float32))

    assert [event.abstract for event in seen if isinstance(event, CacheMiss)] == [
        f"(x: float32[{rows}])" for rows in range(1, 6)
    ]


def test_it_is_called_on_a_thread_of_its_own_that_ends_with_it() -> None:
    seen: list[threading.Thread] = []
    with subscribe(lambda _: seen.append(threading.current_thread())):
        HUB.publish(MISS)
        HUB.publish(MISS)
    (thread,) = set(seen)

    assert thread is not threading.current_thread()
    assert thread.daemon
    assert not thread.is_alive()


def test_only_the_kinds_that_were_asked_for_come() -> None:
    for kind in PUBLISHED:
        seen: list[Event] = []
        with subscribe(seen.append, kinds={kind}):
            for event in ALL.values():
                HUB.publish(event)
        assert [event.kind for event in seen] == [kind]


def test_what_it_raises_is_counted_and_warned_of_once_and_it_goes_on() -> None:
    seen: list[Event] = []

    def failing(event: Event) -> None:
        seen.append(event)
        raise LookupError("a hook's own matter")

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with subscribe(failing):
            for number in range(3):
                HUB.publish(miss(number))

    assert len(seen) == 3
    assert REGISTRY.snapshot().exporter_errors == {"failing": 3}
    assert [warning.category for warning in told] == [JaxwatchWarning]
    assert "LookupError: a hook's own matter" in str(told[0].message)


def test_a_warning_that_is_an_error_does_not_end_its_thread() -> None:
    seen: list[Event] = []

    def failing(event: Event) -> None:
        seen.append(event)
        raise ValueError

    with subscribe(failing):
        for number in range(3):
            HUB.publish(miss(number))
    assert len(seen) == 3


def test_a_slow_one_holds_nobody_up_and_what_is_too_much_is_dropped_and_counted() -> None:
    go, seen = threading.Event(), []

    def slow(event: Event) -> None:
        go.wait(60)
        seen.append(event)

    with subscribe(slow, waiting=5):
        for number in range(50):
            HUB.publish(miss(number))
        dropped = REGISTRY.snapshot().dropped["hook_call"]
        go.set()

    assert len(seen) == 50 - dropped
    assert dropped in (44, 45), "five wait, and one may be with the callback"


def test_closing_gives_up_on_one_that_hangs_and_counts_what_is_lost() -> None:
    go = threading.Event()
    subscription = subscribe(lambda _: go.wait(60), waiting=5)
    for number in range(4):
        HUB.publish(miss(number))
    subscription.close(0.05)
    lost = REGISTRY.snapshot().dropped["hook_call"]
    go.set()

    assert lost >= 3
    subscription.close()
    assert REGISTRY.snapshot().dropped["hook_call"] == lost


def test_where_no_thread_can_be_had_the_next_event_tries_again_and_closing_does_not_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Event] = []
    subscription = subscribe(seen.append)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        HUB.publish(miss(1))
    HUB.publish(miss(2))
    subscription.close()

    assert seen == [miss(1), miss(2)]
    unlucky = subscribe(seen.append)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        HUB.publish(miss(3))
        unlucky.close()
    assert REGISTRY.snapshot().dropped["hook_call"] == 1


def test_what_a_callback_compiles_itself_is_no_event() -> None:
    seen: list[Event] = []
    inner = jaxwatch.jit(lambda x: x - 1)

    def computing(event: Event) -> None:
        seen.append(event)
        inner(np.ones(len(seen) + 40, np.float32))

    with subscribe(computing, kinds=["cache_miss"]):
        HUB.publish(MISS)
        HUB.publish(MISS)
    assert seen == [MISS, MISS]


def test_a_callback_that_can_be_closed_is_closed_after_its_last_event() -> None:
    told: list[object] = []

    class Sink:
        def __call__(self, event: Event) -> None:
            told.append(event)

        def close(self) -> None:
            told.append(threading.current_thread().name)

    with subscribe(Sink()) as subscription:
        HUB.publish(MISS)
    assert told == [MISS, f"jaxwatch {subscription.name}"]


def test_two_of_one_name_both_get_all() -> None:
    first: list[Event] = []
    second: list[Event] = []
    with subscribe(first.append) as one, subscribe(second.append) as two:
        HUB.publish(MISS)
        assert one.name != two.name
    assert (len(first), len(second)) == (1, 1)


def test_it_may_be_closed_by_its_own_callback() -> None:
    subscription: Any = None
    seen: list[Event] = []

    def once(event: Event) -> None:
        seen.append(event)
        subscription.close()

    subscription = subscribe(once)
    HUB.publish(miss(1))
    until = threading.Event()
    while subscription.name in HUB.names:
        until.wait(0.01)
    HUB.publish(miss(2))
    assert seen == [miss(1)]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_an_exception_that_is_none_does_not_end_its_thread_either(error: BaseException) -> None:
    seen: list[Event] = []

    def failing(event: Event) -> None:
        seen.append(event)
        raise error

    with subscribe(failing):
        for number in range(3):
            HUB.publish(miss(number))
    assert len(seen) == 3
    assert REGISTRY.snapshot().exporter_errors == {"failing": 3}
    assert "hook_call" not in REGISTRY.snapshot().dropped


def test_an_exception_whose_own_text_fails_does_not_end_its_thread() -> None:
    class Shy(Exception):  # noqa: N818 -- a test's
        def __str__(self) -> str:
            raise ValueError

    seen: list[Event] = []

    def failing(event: Event) -> None:
        seen.append(event)
        raise Shy

    with subscribe(failing):
        HUB.publish(MISS)
        HUB.publish(MISS)
    assert len(seen) == 2


def test_where_warnings_are_errors_its_failure_is_told_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    def failing(event: Event) -> None:
        raise LookupError("\x1b[31m" + event.kind)

    with subscribe(failing):
        HUB.publish(MISS)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("jaxwatch: the subscribed failing raised LookupError: \\x1b[31mcache_miss.")


def test_closed_by_its_own_callback_it_still_gets_what_waits_and_ends_in_order() -> None:
    told: list[object] = []
    go = threading.Event()

    class Sink:
        def __call__(self, event: Event) -> None:
            go.wait(60)
            told.append(event)
            subscription.close()

        def close(self) -> None:
            told.append("closed")

    subscription = subscribe(Sink(), name="sink")
    for number in range(3):
        HUB.publish(miss(number))
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "jaxwatch sink")
    go.set()
    thread.join(60)

    assert told == [miss(0), miss(1), miss(2), "closed"]
    assert not thread.is_alive()
    assert "hook_call" not in REGISTRY.snapshot().dropped


def test_what_was_counted_as_lost_does_not_come_after_all() -> None:
    go, seen = threading.Event(), []

    def hanging(event: Event) -> None:
        go.wait(60)
        seen.append(event)

    subscription = subscribe(hanging, name="hanging")
    for number in range(5):
        HUB.publish(miss(number))
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "jaxwatch hanging")
    subscription.close(0.05)
    lost = REGISTRY.snapshot().dropped["hook_call"]
    go.set()
    thread.join(60)

    assert len(seen) + lost == 5
    assert not thread.is_alive()


def test_at_a_huge_rate_from_many_threads_each_event_is_delivered_or_counted() -> None:
    seen: list[Event] = []
    subscription = subscribe(seen.append, waiting=8)
    (export,) = (export for name, export in HUB._exporters.items() if name == subscription.name)

    def work() -> None:
        for _ in range(2_000):
            export(MISS)  # as a publish does, also one that was under way when it was closed

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()
    subscription.close(60)  # while the others still publish
    for thread in threads[2:]:
        thread.join()
    export(MISS)

    assert len(seen) + REGISTRY.snapshot().dropped["hook_call"] == 8_001
    assert subscription.name not in HUB.names


def test_a_callback_may_subscribe_and_close_others() -> None:
    seen: list[str] = []

    def outer(_: Event) -> None:
        with subscribe(lambda _: seen.append("inner"), name="inner"):
            seen.append("outer")

    with subscribe(outer):
        HUB.publish(MISS)
        HUB.publish(MISS)
    assert seen.count("outer") == 2
    assert not [name for name in HUB.names if "inner" in name]


def test_a_sink_that_got_no_event_is_closed_too() -> None:
    closed: list[int] = []

    class Sink:
        def __call__(self, event: Event) -> None:
            raise AssertionError(event)

        def close(self) -> None:
            closed.append(1)

    subscribe(Sink()).close()
    assert closed == [1]


def test_the_contextvars_of_the_call_are_there_where_they_are_asked_for() -> None:
    request: ContextVar[str] = ContextVar("request", default="none")
    seen: list[str] = []
    for context in (True, False):
        with subscribe(lambda _: seen.append(request.get()), context=context):
            token = request.set("r-1")
            HUB.publish(MISS)
            request.reset(token)
    assert seen == ["r-1", "none"]


def test_nothing_of_an_event_is_kept_once_it_was_delivered() -> None:
    class Held:
        """Stands for what a program keeps in a context variable."""

    request: ContextVar[Any] = ContextVar("request")
    held = Held()
    gone = weakref.ref(held)
    delivered = threading.Event()
    with subscribe(lambda _: delivered.set(), context=True, name="keeper"):
        token = request.set(held)
        HUB.publish(MISS)
        request.reset(token)
        del held, token
        delivered.wait(60)
        until = threading.Event()
        for _ in range(500):  # the thread lets go of it a moment after the callback
            gc.collect()
            if gone() is None:
                break
            until.wait(0.01)
        assert gone() is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: subscribe(3), "cannot be called"),  # type: ignore[arg-type]
        (lambda: subscribe(print, kinds=["no_such"]), "no_such"),
        (lambda: subscribe(print, kinds="cache_miss"), "kinds"),
        (lambda: subscribe(print, kinds=[]), "kinds"),
        (lambda: subscribe(print, name=""), "name"),
        (lambda: subscribe(print, waiting=0), "waiting=0"),
        (lambda: subscribe(print, waiting=True), "waiting=True"),
        (lambda: subscribe(print, context=1), "context=1"),  # type: ignore[arg-type]
    ],
)
def test_what_is_wrong_is_named(wrong: Callable[[], object], named: str) -> None:
    with pytest.raises(BadOptionError, match=named):
        wrong()


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=240)


def test_at_the_programs_end_what_waits_is_delivered() -> None:
    done = run("""
import time, jaxwatch, numpy as np

def slow(event):
    time.sleep(0.05)
    print(event.call, flush=True)

jaxwatch.subscribe(slow, kinds=["cache_miss"])
step = jaxwatch.jit(lambda x: x + 1)
for rows in range(1, 5):
    step(np.ones(rows))
""")
    assert (done.stdout.split(), done.returncode) == (["1", "2", "3", "4"], 0), done.stderr


def test_one_that_hangs_does_not_keep_the_program_from_ending() -> None:
    done = run("""
import threading, jaxwatch, numpy as np
from jaxwatch import _limits
_limits.FLUSH_SECONDS = 0.2
jaxwatch.subscribe(lambda event: threading.Event().wait())
jaxwatch.jit(lambda x: x + 1)(np.ones(3))
print("done")
""")
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_delivers_its_own_events_and_not_its_parents() -> None:
    done = run("""
import os, threading, warnings
import jaxwatch
from jaxwatch._hub import HUB
from jaxwatch._origin import origin
from jaxwatch.events import TraceError
warnings.simplefilter("ignore")
go, seen = threading.Event(), []

def take(event):
    go.wait(60)
    seen.append(event.call)

def publish(call):
    HUB.publish(TraceError(origin=origin(), function="f", definition="", site="", call=call, error="E", seconds=0.0))

subscription = jaxwatch.subscribe(take)
publish(1)
publish(2)
child = os.fork()
if not child:
    go.set()
    publish(3)
    subscription.close()
    os._exit(0 if seen == [3] else 1)
_, status = os.waitpid(child, 0)
go.set()
subscription.close()
print(os.waitstatus_to_exitcode(status), seen)
""")
    assert done.stdout == "0 [1, 2]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_its_callback_forked_ends_with_the_callback() -> None:
    done = run("""
import os, warnings
import jaxwatch
from jaxwatch._hub import HUB
from jaxwatch._origin import origin
from jaxwatch.events import TraceError
warnings.simplefilter("ignore")
children = []

def take(event):
    if child := os.fork():
        children.append(child)

subscription = jaxwatch.subscribe(take)
HUB.publish(TraceError(origin=origin(), function="f", definition="", site="", call=1, error="E", seconds=0.0))
subscription.close()
print(*[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children], flush=True)
""")
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr


def test_the_bound_on_the_end_is_as_documented() -> None:
    assert f"({_limits.FLUSH_SECONDS:.0f} s)" in (subscribe.__doc__ or "")
