"""The line while something compiles; where it is shown is in test_progress_line.py."""

import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
from programs import run

from jaxwatch import _limits
from jaxwatch._frames import THREAD, Frame, OpenPhase, Phase
from jaxwatch._progress import Progress
from jaxwatch._registry import REGISTRY


class Shown:
    """A sink, and what it shows now."""

    def __init__(self) -> None:
        self.now: str | None = None
        self.jobs: list[int] = []
        self.left: list[str] = []

    def show(self, text: str, job: int) -> None:
        self.now = text
        self.jobs.append(job)

    def hide(self, text: str) -> None:
        self.now = None
        self.left.append(text)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(shown: Shown, clock: Clock) -> Iterator[Progress]:
    made = Progress(clock, threaded=False)
    made.switch(shown)
    yield made
    made.switch(None)
    THREAD.open.clear()


def begin(progress: Progress, name: str, kind: Phase = "compile", frame: Any = None, home: Any = None) -> None:
    """Begin a phase as ``_listeners`` does, held open by the caller's frame."""
    where: FrameType = home or sys._getframe(1)
    phase = OpenPhase(kind, name, frame, where, own=frame is not None)
    THREAD.open.append(phase)
    progress.begin(phase)


def end(progress: Progress) -> None:
    THREAD.open.pop()
    progress.end()


def test_a_short_compile_shows_nothing(progress: Progress, shown: Shown, clock: Clock) -> None:
    begin(progress, "f")
    clock.now += 1.9
    progress.tick()
    end(progress)

    assert (shown.now, shown.jobs, shown.left) == (None, [], [])


def test_a_long_one_is_told_with_its_name_its_seconds_and_its_phase(
    progress: Progress, shown: Shown, clock: Clock
) -> None:
    begin(progress, "train_step", "trace")
    clock.now += 1
    end(progress)
    begin(progress, "train_step", "lower")
    clock.now += 2
    progress.tick()
    assert shown.now == "jaxwatch · compiling train_step · 3 s (lowering)"
    end(progress)
    begin(progress, "train_step", "compile")
    clock.now += 11
    progress.tick()

    assert shown.now == "jaxwatch · compiling train_step · 14 s (backend compile)"
    assert set(shown.jobs) == {1}


def test_the_line_is_gone_before_the_program_goes_on(progress: Progress, shown: Shown, clock: Clock) -> None:
    begin(progress, "f")
    clock.now += 3
    progress.tick()
    assert shown.now is not None

    end(progress)

    assert shown.now is None
    assert shown.left == ["jaxwatch · compiling f took 3 s"]


def test_a_name_is_that_by_which_the_function_is_watched(progress: Progress, shown: Shown, clock: Clock) -> None:
    subject: Any = SimpleNamespace(name="named\x1b[31m" + "e" * 1_000_000, definition="a.py:1")
    begin(progress, "f", frame=Frame(subject, 1, (), {}))
    clock.now += 3
    progress.tick()

    assert shown.now is not None
    assert "compiling named\\x1b[31m" in shown.now
    assert len(shown.now) < 100


def test_what_is_compiled_within_a_trace_is_told_too(progress: Progress, shown: Shown, clock: Clock) -> None:
    begin(progress, "outer", "trace")
    clock.now += 2
    begin(progress, "inner", "trace")
    progress.tick()
    assert shown.now == "jaxwatch · compiling outer · 2 s (tracing)"
    end(progress)
    begin(progress, "inner", "compile")
    clock.now += 3
    progress.tick()

    assert shown.now == "jaxwatch · compiling outer · 5 s (tracing, within: backend compile of inner)"


def test_of_several_threads_the_longest_is_told_and_how_many_more(
    progress: Progress, shown: Shown, clock: Clock
) -> None:
    ready, over = threading.Barrier(3), threading.Event()

    def work() -> None:
        begin(progress, "other")
        ready.wait()
        over.wait()
        end(progress)

    begin(progress, "first")
    clock.now += 1
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    ready.wait()
    clock.now += 3
    progress.tick()
    told = shown.now
    end(progress)  # the others go on
    after = shown.now
    over.set()
    for thread in threads:
        thread.join()

    assert told == "jaxwatch · compiling first · 4 s (backend compile), +2 more"
    assert after == "jaxwatch · compiling other · 3 s (backend compile), +1 more"
    assert shown.now is None


def test_how_long_it_took_the_last_time_is_told(progress: Progress, shown: Shown, clock: Clock) -> None:
    for seconds in (12, 2):
        begin(progress, "f")
        clock.now += seconds
        progress.tick()
        told = shown.now
        end(progress)

    assert told == "jaxwatch · compiling f · 2 s (backend compile), last time 12 s"


def test_names_and_threads_are_bounded(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "PROGRESS_NAMES", 3)
    monkeypatch.setattr(_limits, "PROGRESS_THREADS", 3)

    def work() -> None:
        for name in "abcdefgh":
            begin(progress, name)
            end(progress)

    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert len(progress._last) == 3
    assert len(progress._jobs) <= 4


def test_a_phase_whose_frame_is_gone_is_not_told(progress: Progress, shown: Shown, clock: Clock) -> None:
    def raises_in_the_midst() -> None:  # where another's listener raised, JAX tells no end
        begin(progress, "gone", home=sys._getframe())

    raises_in_the_midst()
    clock.now += 5
    progress.tick()

    assert shown.now is None


def test_a_phase_of_a_thread_that_ended_is_not_told(progress: Progress, shown: Shown, clock: Clock) -> None:
    thread = threading.Thread(target=begin, args=(progress, "f"))
    thread.start()
    thread.join()
    clock.now += 5
    progress.tick()

    assert shown.now is None


def test_it_says_when_to_look_again(progress: Progress, clock: Clock) -> None:
    assert progress.tick() is None  # nothing compiles: not at all
    begin(progress, "f")
    clock.now += 0.5
    assert progress.tick() == 1.5
    clock.now += 1.5
    assert progress.tick() == _limits.PROGRESS_EVERY_SECONDS
    end(progress)
    assert progress.tick() is None


def test_a_sink_that_fails_is_counted_and_nothing_else(clock: Clock) -> None:
    class Failing:
        def show(self, text: str, job: int) -> None:
            raise BrokenPipeError(text, job)

        def hide(self, text: str) -> None:
            raise BrokenPipeError(text)

    progress = Progress(clock, threaded=False)
    progress.switch(Failing())
    before = REGISTRY.snapshot().exporter_errors.get("progress", 0)
    begin(progress, "f")
    clock.now += 3
    progress.tick()
    end(progress)

    assert REGISTRY.snapshot().exporter_errors["progress"] > before


def test_its_thread_begins_with_the_first_phase_and_shows_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "PROGRESS_AFTER_SECONDS", 0.0)
    seen = threading.Event()

    class Seen(Shown):
        def show(self, text: str, job: int) -> None:
            super().show(text, job)
            seen.set()

    progress, sink = Progress(), Seen()
    progress.switch(sink)
    assert progress._thread is None

    for _ in range(2):  # also from its sleep
        seen.clear()
        begin(progress, "f")
        assert seen.wait(20)
        end(progress)
        assert sink.now is None
    assert progress._thread is not None
    assert progress._thread.daemon
    progress.switch(None)


FORKS = """
import os, sys
from jaxwatch._frames import THREAD, OpenPhase
from jaxwatch._progress import PROGRESS

class Sink:
    def show(self, text, job): print("shown", flush=True)
    def hide(self, text): pass

PROGRESS.switch(Sink())
phase = OpenPhase("compile", "f", None, sys._getframe(), own=False)
THREAD.open.append(phase)
PROGRESS.begin(phase)
if not os.fork():
    print([PROGRESS.on, PROGRESS._thread, PROGRESS._jobs], flush=True)
    PROGRESS.end()
    os._exit(0)
os.wait()
print(PROGRESS.on, PROGRESS._thread.is_alive())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_in_a_forked_child_nothing_is_shown_and_nothing_waits() -> None:
    done = run(FORKS)

    assert done.out.splitlines() == ["[False, None, {}]", "True True"], done.err
