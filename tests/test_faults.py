"""Faults brought into jaxwatch on purpose: the program gets what it would get without, and what is lost is counted."""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import cores
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import records, run
from prometheus_client import CollectorRegistry, generate_latest
from test_events import MISS

import jaxwatch
from jaxwatch import metrics
from jaxwatch._frames import THREAD, under_way
from jaxwatch._history import HISTORY
from jaxwatch._hub import HUB, Hub
from jaxwatch._registry import REGISTRY
from jaxwatch.exporters.jsonl import LogFile

OWN = str(Path(jaxwatch.__file__).parent) + os.sep
TWIN = str(Path(jaxwatch.__file__).parent / "_wrap.py")
GENERATOR = 0x20  # of co_flags: what is raised in one that is closed goes nowhere
X = np.ones(3, np.float32)


@pytest.fixture(params=cores.CORES)
def core(request: pytest.FixtureRequest) -> Iterator[str]:
    with cores.in_use(request.param), cores.told():
        yield request.param


def lost() -> int:
    """Return how much is counted as lost, in any way."""
    found = REGISTRY.snapshot()
    return sum(found.dropped.values()) + sum(found.exporter_errors.values())


# ------------------------------------------------------------------ an exception at any place of the slow path


class Injected:
    """A trace function that raises where a function of jaxwatch's begins: at the n-th beginning, or nowhere."""

    def __init__(self, place: int = 0, error: BaseException | None = None) -> None:
        self.place, self.error = place, error
        self.count = 0
        self.first: dict[CodeType, int] = {}  # the first beginning of each function

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or not code.co_filename.startswith(OWN) or code.co_flags & GENERATOR:
            return
        if caller is None or not caller.f_code.co_filename.startswith(OWN) or caller.f_code.co_filename == TWIN:
            return  # by which JAX or the core enters: what is raised there, nothing of ours can catch
        self.count += 1
        self.first.setdefault(code, self.count)
        if self.count == self.place and self.error is not None:
            raise self.error


def traced(function: Any, tracer: Injected) -> Any:
    """Call a function whose cache is cleared, with a trace function."""
    function.clear_cache()
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        return function(X)
    finally:
        sys.settrace(before)


def function() -> Any:
    """Return a watched function that has missed, so that a further miss has something to be compared with."""

    def add_one(x: Any) -> Any:
        return x + 1

    made = jaxwatch.jit(add_one)
    made(X)
    return made


def places(made: Any) -> list[int]:
    """Return, of each of jaxwatch's functions that a miss runs, a place where it begins."""
    tracer = Injected()
    traced(made, tracer)
    return sorted(tracer.first.values())


@pytest.mark.parametrize("kind", [MemoryError, RecursionError])
def test_wherever_it_fails_the_result_comes_and_the_loss_is_counted(kind: type[Exception], core: str) -> None:
    del core
    made = function()
    all_places = places(made)
    assert len(all_places) > 50
    for place in all_places[:: 3 if kind is MemoryError else 6]:
        before, misses = lost(), jaxwatch.stats(made).misses
        result = traced(made, Injected(place, kind("injected")))

        assert np.asarray(result).tolist() == [2.0] * 3
        assert jaxwatch.stats(made).misses > misses or lost() > before, place
        assert not HUB.busy
    misses = jaxwatch.stats(made).misses
    made.clear_cache()
    made(X)
    assert jaxwatch.stats(made).misses == misses + 1


def test_wherever_it_is_interrupted_the_interrupt_is_the_programs_and_nothing_is_left_locked(core: str) -> None:
    del core
    made = function()
    for place in places(made)[1::6]:
        try:
            result = traced(made, Injected(place, KeyboardInterrupt()))
        except KeyboardInterrupt:
            result = made(X)

        assert np.asarray(result).tolist() == [2.0] * 3
        assert not HUB.busy
        assert cores.at_once(lock_all, 1) == []
    misses = jaxwatch.stats(made).misses
    made.clear_cache()
    made(X)
    assert jaxwatch.stats(made).misses == misses + 1
    assert not under_way()
    assert THREAD.open == []


def lock_all() -> None:
    for lock in (REGISTRY.lock, HISTORY.lock):
        assert lock.acquire(timeout=30)
        lock.release()


def deep(levels: int, call: Any) -> Any:
    return call() if levels == 0 else deep(levels - 1, call)


def missed_at(made: Any, levels: int) -> bool:
    """Return whether a call that compiles comes through, so many levels deep."""
    made.clear_cache()
    try:
        result = deep(levels, lambda: made(X))
    except RecursionError:
        return False
    assert np.asarray(result).tolist() == [2.0] * 3
    return True


def test_near_the_end_of_the_stack_a_call_comes_through_where_it_does_with_jax() -> None:
    with cores.in_use("native"), cores.told():
        plain, made = jax.jit(lambda x: x + 1), function()
        low, high = 0, sys.getrecursionlimit()
        while high - low > 1:  # the deepest level at which JAX itself comes through
            middle = (low + high) // 2
            low, high = (middle, high) if missed_at(plain, middle) else (low, middle)
        for levels in range(low, low - 100, -7):
            calls, misses, before = jaxwatch.stats(made).calls, jaxwatch.stats(made).misses, lost()
            assert missed_at(made, levels), levels
            assert jaxwatch.stats(made).calls == calls + 1
            assert jaxwatch.stats(made).misses > misses or lost() > before


# ------------------------------------------------------------------ exporters


@given(st.lists(st.sampled_from(["fine", "raises", "publishes"]), max_size=6))
@settings(max_examples=30)
def test_whatever_exporters_do_each_event_reaches_those_that_work(kinds: list[str]) -> None:
    got: list[int] = [0] * len(kinds)
    hub = Hub()

    def exporter(number: int, kind: str) -> Any:
        def export(_: object) -> None:
            got[number] += 1
            if kind == "raises":
                raise ValueError(number)
            if kind == "publishes":
                hub.publish(MISS)

        return export

    for number, kind in enumerate(kinds):
        hub.add(f"faulty {number}", exporter(number, kind))
    REGISTRY.reset()
    hub.publish(MISS)
    found = REGISTRY.snapshot()

    assert got == [1] * len(kinds)
    assert found.exporter_errors == {f"faulty {n}": 1 for n, kind in enumerate(kinds) if kind == "raises"}
    assert found.dropped.get("event", 0) == kinds.count("publishes")


@pytest.mark.parametrize("error", [ValueError("no"), MemoryError(), RecursionError()])
def test_a_tracing_system_that_fails_is_counted_as_that_exporter(error: Exception) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    from jaxwatch.exporters import otel

    class Failing(sdk.SpanProcessor):  # type: ignore[misc, name-defined]  # of a package that may be missing
        def on_start(self, span: object, parent_context: object = None) -> None:
            del span, parent_context
            raise error

    provider = sdk.TracerProvider()
    provider.add_span_processor(Failing())
    with cores.told() as events:
        instrumented = otel.instrument(tracer_provider=provider, metrics=False)
        try:
            made = function()
        finally:
            instrumented.close()
        assert np.asarray(made(X)).tolist() == [2.0] * 3
        assert len(events.misses) == 1
        assert list(REGISTRY.snapshot().exporter_errors.values()) == [1]


def test_a_chart_that_fails_is_counted_and_told_once() -> None:
    pytest.importorskip("tensorboardX")
    from jaxwatch.exporters import tensorboard

    class Failing:
        def add_scalar(self, *_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        add_text = flush = add_scalar

    def charted() -> Any:
        with jaxwatch.subscribe(tensorboard.tensorboard_exporter(Failing()), name="chart"):
            made = function()
        return made(X)

    with cores.told():
        with pytest.warns(jaxwatch.JaxwatchWarning, match=r"chart raised OSError: .*\[hook-failed\]"):
            result = charted()
        assert np.asarray(result).tolist() == [2.0] * 3
        assert REGISTRY.snapshot().exporter_errors == {"chart": 1}


# ------------------------------------------------------------------ clocks


def test_clocks_that_are_set_back_make_no_figure_go_down(monkeypatch: pytest.MonkeyPatch, core: str) -> None:
    del core
    for name in ("time", "perf_counter", "monotonic"):
        steps = iter(range(10_000_000))
        monkeypatch.setattr(time, name, lambda steps=steps: 1e9 - 1000.0 * next(steps))
    made = function()
    made.clear_cache()
    made(X)
    monkeypatch.undo()
    found = jaxwatch.stats(made)
    registry = CollectorRegistry()
    metrics.register(registry)

    assert (found.calls, found.misses) == (2, 2)
    assert found.seconds.total >= 0
    assert all(seconds >= 0 for seconds in REGISTRY.snapshot().overhead_seconds.values())
    assert b"jaxwatch_calls_total" in generate_latest(registry)


# ------------------------------------------------------------------ debuggers and profilers of the user's


@pytest.mark.parametrize("setter", ["settrace", "setprofile"])
def test_under_a_debugger_or_profiler_the_same_is_told(setter: str, core: str) -> None:
    del core
    seen: list[str] = []

    def tool(frame: FrameType, event: str, argument: object) -> Any:
        del argument
        if event == "call":
            seen.append(frame.f_code.co_name)
        return tool

    before = sys.gettrace(), sys.getprofile()
    getattr(sys, setter)(tool)
    getattr(threading, setter)(tool)
    try:
        made = function()
        failures = cores.at_once(lambda: made(np.ones(4, np.float32)), 2)
    finally:
        getattr(threading, setter)(None)
        sys.settrace(before[0])
        sys.setprofile(before[1])
    found = jaxwatch.stats(made)

    assert (failures, found.calls) == ([], 3)
    assert found.misses == found.signatures + (found.misses - 2)
    assert "add_one" in seen


# ------------------------------------------------------------------ processes


CLOSES_ALL = """
    import os, socket, sys, threading
    import numpy as np
    import jaxwatch
    step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
    jaxwatch.configure(log=sys.argv[1], console=False)
    server = jaxwatch.serve(port=0)
    got = []
    jaxwatch.subscribe(got.append)
    step(np.ones(1, np.float32))
    highest = max(map(int, os.listdir("/proc/self/fd")))
    os.closerange(3, highest + 1)
    mine = [open(os.path.join(sys.argv[2], str(n)), "w") for n in range(highest)]
    sockets = [socket.socketpair() for _ in range(4)]
    for n in range(2, 5):
        print(step(np.ones(n, np.float32)).sum())
    for _ in range(600):
        server._server.wake()
    server.close()
    for n, file in enumerate(mine):
        file.write(f"mine {n}")
        file.close()
    for one, other in sockets:
        for each in (one, other):
            each.settimeout(0)
            try:
                print("got", each.recv(10))
            except BlockingIOError:
                pass
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_program_that_closes_all_descriptors_keeps_what_it_opens_then(tmp_path: Path, fresh_log: Path) -> None:
    (tmp_path / "mine").mkdir()
    ended = run(CLOSES_ALL, str(fresh_log), str(tmp_path / "mine"))
    assert (ended.code, ended.out, ended.err) == (0, "4.0\n6.0\n8.0\n", "")

    assert all(path.read_text() == f"mine {path.name}" for path in (tmp_path / "mine").iterdir())
    assert len(records(fresh_log, "cache_miss")) == 4
    assert records(fresh_log)[-1]["phase"] == "end"


FORKS_IN_A_THREAD = """
    import os, sys, threading, warnings
    import numpy as np
    import jaxwatch
    warnings.simplefilter("ignore")
    step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
    x = np.ones(1, np.float32)
    got = []
    subscription = jaxwatch.subscribe(got.append)
    server = jaxwatch.serve(port=0)
    step(x)

    def child():
        step(x), step(x)
        try:
            step("text")
        except TypeError:
            pass
        from jaxwatch._session import write_stats
        write_stats()
        os._exit(int(jaxwatch.stats(step).calls))

    def work():
        pid = os.fork()
        if pid == 0:
            child()
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    step(x)
    print(jaxwatch.stats(step).calls)
    subscription.close()
    server.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_that_another_thread_forks_counts_for_itself(fresh_log: Path) -> None:
    ended = run(FORKS_IN_A_THREAD, JAXWATCH_LOG=str(fresh_log))
    assert (ended.code, ended.out) == (0, "3\n3\n3\n2\n"), ended.err

    calls = [(record["pid"], record["calls"]) for record in records(fresh_log, "function_stats")]
    assert sorted(number for _, number in calls) == [2, 3, 3, 3]
    assert len({pid for pid, _ in calls}) == 4


TERMINATED = "without an active exception|recursively|after throwing an instance of '.*'"
ABORTS = re.compile(rf"(FATAL: exception not rethrown|terminate called ({TERMINATED})|\n)+")
ENDS_WHILE_IT_COMPILES = """
    import threading, time
    import numpy as np
    import jaxwatch
    step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
    begun = threading.Semaphore(0)
    jaxwatch.configure(console=False)
    jaxwatch.subscribe(lambda event: time.sleep(0.01))

    def work():
        n = 0
        while True:
            n += 1
            step(np.ones(n, np.float32))
            begun.release()

    threading.Thread(target=work, daemon=True).start()
    for _ in range(3):
        begun.acquire()
    print("done")
"""


def test_a_program_that_ends_while_a_daemon_thread_compiles_ends_in_silence(fresh_log: Path) -> None:
    ended = run(ENDS_WHILE_IT_COMPILES, JAXWATCH_LOG=str(fresh_log))
    # with jax.jit alone it aborts now and then too: CPython ends the thread within XLA's C++
    aborted = ended.code == -signal.SIGABRT and ABORTS.fullmatch(ended.err)
    assert aborted or (ended.code, ended.err) == (0, "")
    assert ended.out == "done\n"

    ids = [record["id"] for record in records(fresh_log, "cache_miss")]
    assert ids == list(range(1, len(ids) + 1))
    assert len(ids) >= 3


@pytest.mark.parametrize("gone", ["sys.stderr = None", "sys.stderr.close()"])
def test_without_stderr_what_would_be_said_there_harms_nothing(gone: str) -> None:
    ended = run(
        f"""
        import os, sys, warnings
        {gone}
        warnings.simplefilter("always")
        import jaxwatch
        import numpy as np
        step = jaxwatch.jit(lambda x: x + 1)
        for n in range(1, 4):
            print(step(np.ones(n, np.float32)).sum())
        with jaxwatch.no_retraces(step, action="record"):
            step(np.ones(4, np.float32))
        print(jaxwatch.stats(step).misses)
        """,
        JAXWATCH_LOG="/nowhere/run.jsonl",
    )
    assert (ended.code, ended.out) == (0, "2.0\n4.0\n6.0\n4\n"), ended.err


def test_a_log_never_gets_the_number_of_a_stream_that_the_program_has_closed(fresh_log: Path, tmp_path: Path) -> None:
    """What the program prints there later would land in the log."""
    before = [os.dup(number) for number in range(3)]
    try:
        os.close(0)
        log = LogFile(fresh_log)
        descriptor = log._fd
        with (tmp_path / "first").open("w") as first:
            number = first.fileno()
        log(MISS)
        log.close()
    finally:
        for number_before, saved in enumerate(before):
            os.dup2(saved, number_before)
            os.close(saved)

    assert descriptor > 2
    assert number == 0
    assert len(records(fresh_log)) == 1
