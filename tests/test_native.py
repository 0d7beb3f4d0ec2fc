"""The native core: exact counts, no leak, nothing left behind by whatever ends a call; the same answers as the twin."""

# ruff: noqa: ARG001, ARG005, PLW0108 -- functions of the user's take what they do not use

import functools
import gc
import importlib.util
import itertools
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cores import CORES
from fidelity import outcome
from hypothesis import given, settings
from hypothesis import strategies as st
from published import Events

import jaxwatch
from jaxwatch import _histogram
from jaxwatch._frames import THREAD
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.events import Event

X = jnp.float32(1)
MIB = 1024 * 1024
SANITIZED = os.environ.get("JAXWATCH_SANITIZED") == "1"  # .ci/sanitize says so


@pytest.fixture(params=CORES)
def core(request: pytest.FixtureRequest) -> Iterator[str]:
    with cores.in_use(request.param):
        yield request.param


@pytest.fixture
def native() -> Iterator[Any]:
    gc.collect()  # what earlier tests left dies now, and not under a test that counts
    with cores.in_use("native"):
        yield cores.hooks().native


@pytest.fixture(autouse=True)
def _no_call_is_active() -> Iterator[None]:
    yield
    assert THREAD.top is None
    assert THREAD.open == []
    assert cores.hooks().native.current() is None


def identity(x: Any) -> Any:
    return x


# ------------------------------------------------------------------ counts


def test_calls_of_16_threads_are_counted_exactly(core: str) -> None:
    threads, calls = 16, 20_000
    step = jaxwatch.jit(lambda x: x)
    step(X)
    before = jaxwatch.stats(step)

    def work() -> None:
        for _ in range(calls):
            step(X)

    assert cores.at_once(work, threads) == []

    after = jaxwatch.stats(step)
    assert after.calls - before.calls == threads * calls
    assert sum(after.dispatch.values()) - sum(before.dispatch.values()) == threads * calls
    assert after.misses == before.misses == 1


def test_functions_made_called_and_dropped_by_8_threads_are_counted_and_gone(native: Any) -> None:
    before = native.hooked_count()

    def work() -> None:
        for _ in range(200):
            step = jaxwatch.jit(identity)
            step(X)
            step(X)
            assert jaxwatch.stats(step).calls == 2

    failures = cores.at_once(work, threads=8)

    gc.collect()
    assert failures == []
    assert native.hooked_count() == before


@given(st.integers(0, 2**64 - 1))
@settings(deadline=None)
def test_a_duration_falls_into_the_same_bucket_as_in_python(nanoseconds: int) -> None:
    cell = cores.hooks().native.Cell()
    cell.add(nanoseconds)

    assert cell.counts() == {_histogram.bucket(nanoseconds): 1}


def test_bucket_bounds_are_the_same_as_in_python(native: Any) -> None:
    cell, twin = native.Cell(), _histogram.Cell()
    for power in range(64):
        for nanoseconds in {max(0, (1 << power) + off) for off in (-1, 0, 1)}:
            cell.add(nanoseconds)
            twin.add(nanoseconds)

    assert cell.counts() == twin.counts()
    assert native.SIZE == _histogram.SIZE


def test_a_cell_refuses_what_is_no_duration(native: Any) -> None:
    cell = native.Cell()

    for wrong in (-1, 2**64, 1.5, "1"):
        with pytest.raises((OverflowError, TypeError)):
            cell.add(wrong)
    assert cell.counts() == {}


def test_the_clock_keeps_time_within_1_percent(native: Any) -> None:
    name, rate = native.clock()

    assert name in ("time-stamp counter", "clock_gettime")
    assert abs(rate - 1) < 0.01


# ------------------------------------------------------------------ memory


def grown(do: Callable[[int], object], times: int) -> int:
    """Return by how many bytes the process grew over ``times`` runs, after a tenth of them.

    Under a sanitizer the tenth is all: it keeps what is freed, and the question is whether anything is touched wrongly.
    """
    do(times // 10)
    if SANITIZED:
        return 0
    gc.collect()
    before = cores.resident()
    do(times)
    gc.collect()
    return cores.resident() - before


def test_a_million_calls_leave_nothing(native: Any) -> None:
    step = jaxwatch.jit(lambda x, y: x)

    def call(times: int) -> None:
        for _ in range(times // 2):
            step(X, X)
            step(X, y=X)

    assert grown(call, 1_000_000) < 4 * MIB


def test_ten_thousand_functions_made_called_and_dropped_leave_nothing(native: Any) -> None:
    hooked, cells = native.hooked_count(), cores.cells(collect=True)

    def make(times: int) -> None:
        for _ in range(times):
            jaxwatch.jit(identity)(X)

    assert grown(make, 10_000) < 4 * MIB
    assert native.hooked_count() == hooked
    assert cores.cells(collect=True) == cells


def test_calls_that_leave_the_fast_path_or_fail_leave_nothing(native: Any) -> None:
    other = np.ones(3, np.float32)
    step = jaxwatch.jit(lambda x: x)
    never = jaxwatch.jit(lambda x: (jax.debug.callback(identity, x), x)[1])

    def call(times: int) -> None:
        for _ in range(times):
            step(other)
            never(X)
            with pytest.raises(TypeError):
                step()

    assert grown(call, 3_000) < 4 * MIB


def test_threads_that_end_leave_nothing(native: Any) -> None:
    step = jaxwatch.jit(lambda x: x)
    step(X)

    def call(times: int) -> None:
        for _ in range(times):
            thread = threading.Thread(target=step, args=(X,))
            thread.start()
            thread.join()

    assert grown(call, 20_000) < MIB  # a frame kept for each would be 1.4 MiB


def test_arguments_and_results_live_no_longer_than_with_jax(core: str) -> None:
    class Static:
        pass

    step = jaxwatch.jit(lambda x, static: x, static_argnums=1)
    other = np.ones(17, np.float32)
    before = len(gc.get_referrers(other))
    step(other, 1)
    step(other, 1)

    gc.collect()
    assert len(gc.get_referrers(other)) == before
    del Static


def test_a_dead_function_frees_its_cell_without_the_collector(native: Any) -> None:
    hooked, cells = native.hooked_count(), cores.cells(collect=True)
    gc.disable()
    try:
        step = jaxwatch.jit(identity)
        step(X)
        assert (native.hooked_count(), cores.cells()) == (hooked + 1, cells + 1)
        del step
        assert (native.hooked_count(), cores.cells()) == (hooked, cells)
    finally:
        gc.enable()


# ------------------------------------------------------------------ lifetimes


def test_a_function_dropped_in_its_own_call_finishes_it(native: Any) -> None:
    hooked = native.hooked_count()
    box: list[Any] = []

    def body(x: Any) -> Any:
        box.clear()
        gc.collect()
        return x + 1

    box.append(jaxwatch.jit(body))
    assert float(box[0](X)) == 2
    gc.collect()
    assert native.hooked_count() == hooked


def test_a_finalizer_may_call_a_function_that_is_garbage_too(native: Any) -> None:
    """Its weak references are gone by then, and with them what is known of it: JAX's own call is made."""
    hooked, found = native.hooked_count(), []

    class Model:
        def __init__(self) -> None:
            self.step = jaxwatch.jit(lambda x: x + (self is not None))
            self.step(X)

        def __del__(self) -> None:
            found.append((native.is_hooked(self.step), float(self.step(X)), type(self.step)))

    for _ in range(3):
        Model()
        gc.collect()

    assert found == 3 * [(False, 2.0, type(jax.jit(identity)))]
    assert native.hooked_count() == hooked


def test_a_function_saved_by_a_finalizer_is_jaxs_own(native: Any) -> None:
    saved: list[Any] = []

    class Model:
        def __init__(self) -> None:
            self.step = jaxwatch.jit(lambda x: x + (self is not None))
            self.step(X)

        def __del__(self) -> None:
            saved.append(self.step)

    Model()
    gc.collect()

    assert float(saved[0](X)) == 2
    assert not native.is_hooked(saved[0])
    assert jaxwatch.attach(saved[0]) is saved[0]
    assert float(saved[0](X)) == 2
    assert jaxwatch.stats(saved[0]).calls == 1


def test_the_table_keeps_ten_thousand_functions_apart(native: Any) -> None:
    order = random.Random(5)  # noqa: S311 -- an order, no secret
    hooked = native.hooked_count()
    functions = [jaxwatch.jit(identity) for _ in range(10_000)]
    assert native.hooked_count() == hooked + 10_000

    for place in sorted(order.sample(range(10_000), 5_000), reverse=True):
        del functions[place]
    for step in order.sample(functions, 1_000):
        assert native.unhook(step)
        assert not native.unhook(step)
        native.hook(step, native.Cell(), REGISTRY.find(step))

    gc.collect()
    assert native.hooked_count() == hooked + 5_000
    assert all(map(native.is_hooked, functions))
    for step in order.sample(functions, 200):
        before = jaxwatch.stats(step).calls
        step(X)
        assert jaxwatch.stats(step).calls in (before, before + 1)  # those that were hooked anew count in another cell
    functions.clear()
    del step
    gc.collect()
    assert native.hooked_count() == hooked


# ------------------------------------------------------------------ what ends a call


def test_an_error_in_the_body_is_jaxs_and_leaves_nothing(core: str) -> None:
    def body(x: Any) -> Any:
        raise ValueError("no")

    kept: list[Any] = []

    def run(jit: Any) -> Any:
        kept.append(jit(body))
        return kept[-1](X)

    assert outcome(run, jaxwatch.jit) == outcome(run, jax.jit)
    assert jaxwatch.stats(kept[0]).trace_errors == 1


@pytest.mark.parametrize("method", ["__hash__", "__eq__"])
def test_an_error_of_a_static_argument_is_jaxs_and_leaves_nothing(core: str, method: str) -> None:
    class Static:
        broken = False

        def __hash__(self) -> int:
            return int(self.answer("__hash__", 7))

        def __eq__(self, other: object) -> bool:
            return bool(self.answer("__eq__", True))

        def answer(self, asked: str, value: Any) -> Any:
            if Static.broken and asked == method:
                raise RuntimeError(f"{asked} of the user's")
            return value

    def run(jit: Any) -> list[Any]:
        step = jit(lambda x, static: x, static_argnums=1)
        first, second = Static(), Static()
        found = [float(step(X, first))]
        Static.broken = True
        with pytest.raises((RuntimeError, ValueError)) as raised:  # ValueError: JAX's own, of the user's
            step(X, second)
        Static.broken = False
        return [*found, raised.type, float(step(X, second))]

    assert run(jaxwatch.jit) == run(jax.jit)


@pytest.fixture
def _heard() -> Iterator[None]:
    """Where tests run in the background, a shell has told all its children to ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_heard")
@pytest.mark.parametrize("place", ["in the trace", "in the slow path"])
def test_an_interrupt_goes_through_and_the_next_call_works(core: str, place: str) -> None:
    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    armed = [place == "in the trace"]

    def body(x: Any) -> Any:
        if armed[0]:
            interrupt()
        return x + 1

    step = jaxwatch.jit(body)
    if place == "in the slow path":
        HUB.add("interrupts", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            step(X)
    finally:
        HUB.remove("interrupts")
    armed[0] = False
    assert float(step(X)) == 2
    assert jaxwatch.stats(step).calls == 2


def test_endless_recursion_ends_as_with_jax(core: str) -> None:
    def run(jit: Any) -> Any:
        def body(x: Any) -> Any:
            return step(x)

        step = jit(body)
        with pytest.raises(RecursionError):
            step(X)
        return float(jit(lambda x: x + 1)(X))

    assert run(jaxwatch.jit) == run(jax.jit) == 2


def test_calls_within_calls_are_each_counted(core: str) -> None:
    step: Any = jaxwatch.jit(lambda x, n: x if n == 0 else step(x, n - 1) + 1, static_argnums=1)

    with cores.told() as events:
        assert float(step(X, 30)) == 31
        assert float(step(X, 30)) == 31

    assert jaxwatch.stats(step).calls == 32
    assert [(miss.call, miss.reasons) for miss in events.misses] == [(1, ("first_call",))]


def test_an_exporter_may_call_what_is_watched(core: str) -> None:
    step, other = jaxwatch.jit(lambda x: x + 1), jaxwatch.jit(lambda x: x * 3)
    found: list[float] = []

    def export(event: Event) -> None:
        found.extend((float(step(X)), float(other(X))))

    HUB.add("calls", export)
    try:
        assert float(step(X)) == 2
    finally:
        HUB.remove("calls")
    assert found == [2, 3]
    assert jaxwatch.stats(step).calls == 2


def test_a_static_argument_may_call_what_is_watched(core: str) -> None:
    other = jaxwatch.jit(lambda x: x * 3)
    found: list[float] = []

    class Static:
        def __hash__(self) -> int:
            found.append(float(other(X)))
            return 1

        def __eq__(self, other: object) -> bool:
            return True

    step = jaxwatch.jit(lambda x, static: x + 1, static_argnums=1)
    static = Static()
    for _ in range(3):
        assert float(step(X, static)) == 2
    assert set(found) == {3.0}
    assert jaxwatch.stats(other).calls == len(found)


def test_generators_may_take_turns_within_a_traced_body(core: str) -> None:
    inner = jaxwatch.jit(lambda x: x + 1)

    def numbers(x: Any) -> Generator[Any]:
        while True:
            x = inner(x)
            yield x

    def body(x: Any) -> Any:
        running = [numbers(x), numbers(x * 10)]
        turns = [next(running[turn % 2]) for turn in range(6)]
        running[0].close()
        return sum(turns)

    step = jaxwatch.jit(body)
    assert float(step(X)) == (2 + 3 + 4) + (11 + 12 + 13)
    assert jaxwatch.stats(inner).calls == 6
    assert jaxwatch.stats(step).calls == 1


@pytest.mark.skipif(SANITIZED, reason="the sanitizer takes for a fault that greenlet copies stacks")
@pytest.mark.skipif(importlib.util.find_spec("greenlet") is None, reason="needs greenlet: pip install greenlet")
def test_greenlets_may_end_their_calls_in_any_order(native: Any) -> None:
    from greenlet import getcurrent, greenlet  # type: ignore[import-not-found,import-untyped,unused-ignore]  # optional

    main, seen = getcurrent(), []

    class Switch:
        """A static argument that hands over in the midst of the call of a function that is compiled already."""

        armed = False

        def __hash__(self) -> int:
            if Switch.armed:
                main.switch()
            return 1

        def __eq__(self, other: object) -> bool:
            return True

    steps = [jaxwatch.jit(lambda x, s, k=k: x + k, static_argnums=1) for k in range(4)]
    static = Switch()
    for step in steps:
        step(X, static)

    def call(step: Any) -> None:
        seen.append(float(step(X, static)))

    Switch.armed = True
    orders = list(itertools.permutations(range(4)))
    for order in orders:
        running = [greenlet(functools.partial(call, step)) for step in steps]
        for task in running:
            task.switch()  # begins its call, and stands within
        for place in order:
            while not running[place].dead:
                running[place].switch()
    Switch.armed = False

    assert seen == [k + 1.0 for order in orders for k in order]
    assert [jaxwatch.stats(step).calls for step in steps] == 4 * [1 + len(orders)]
    assert native.current() is None


# ------------------------------------------------------------------ processes


def test_a_child_forked_within_a_call_has_that_call_alone(native: Any) -> None:
    done = cores.run(
        """
        import os, sys, threading, warnings
        import jax, jax.numpy as jnp, jaxwatch
        from jaxwatch import _core
        warnings.simplefilter("ignore")  # JAX's own, about fork
        native = _core.CORE.hooks.native
        x = jnp.float32(1)
        other = jaxwatch.jit(lambda x: x)
        other(x)
        busy = threading.Thread(target=lambda: [other(x) for _ in range(20_000)])
        child = []

        def body(x):
            frame = native.current()
            child.append(os.fork())
            if child[0]:
                return x + 1
            assert native.current() is frame and frame.subject.name == "body" and frame.call == 1
            raise LookupError("the child ends its call by an error: XLA's threads are not there")

        step = jaxwatch.jit(body)
        busy.start()
        try:
            value = float(step(x))
        except LookupError:
            counts = jaxwatch.stats(other).calls, jaxwatch.stats(step).trace_errors
            right = native.current() is None and counts == (0, 1)
            os._exit(7 if right else 1)
        busy.join()
        _, status = os.waitpid(child[0], 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        assert value == 2 and jaxwatch.stats(step).calls == 1 and jaxwatch.stats(other).calls == 20_001
        """
    )
    assert done.code == 0, done.err


def test_a_process_that_ends_while_daemon_threads_call_ends_as_with_jax(native: Any) -> None:
    """Up to CPython 3.13 a thread that waits for the interpreter within JAX's C++ ends in an abort, half of the time.

    With plain jax.jit 14 of 20 such processes did so, with jaxwatch.jit 8 of 20 (jax 0.10.2, CPython 3.11).
    """
    done = cores.run(
        """
        import threading
        import jax.numpy as jnp, jaxwatch
        x = jnp.float32(1)
        step = jaxwatch.jit(lambda x: x)
        step(x)
        begun = threading.Barrier(5)

        def work():
            begun.wait()
            while True:
                step(x)

        for _ in range(4):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
        print("the end", flush=True)
        """
    )
    assert done.out == "the end\n"
    aborted = done.code == -signal.SIGABRT and re.search("exception not rethrown|terminate called", done.err)
    assert aborted or (done.code, done.err) == (0, "")


def test_a_process_may_end_with_functions_in_cycles_and_globals(native: Any) -> None:
    done = cores.run(
        """
        import atexit, jax.numpy as jnp, jaxwatch
        jaxwatch.configure(console=False)
        x = jnp.float32(1)

        class Model:
            def __init__(self):
                self.step = jaxwatch.jit(lambda x: x + (self is not None))
                self.step(x)

        class Holder:
            step = jaxwatch.jit(lambda x: x)

        models, holder = [Model() for _ in range(20)], Holder()
        atexit.register(lambda: print(float(models[3].step(x))))
        """
    )
    assert (done.code, done.out, done.err) == (0, "2.0\n", "")


def test_a_core_that_does_not_load_is_done_without(native: Any) -> None:
    """As where no compiler was: the twin is used, and says why; who asks for the native core gets an error."""
    program = """
        import sys
        sys.modules["jaxwatch._native.core"] = None
        import jaxwatch, jax.numpy as jnp
        from jaxwatch import _core
        step = jaxwatch.jit(lambda x: x)
        print(float(step(jnp.float32(1))), jaxwatch.stats(step).calls, _core.CORE.name, _core.CORE.reason[:33])
    """
    done = cores.run(program, JAXWATCH_CORE="")
    assert done.out == "1.0 1 python the native core was not built: im\n", done.err
    done = cores.run(program)
    assert done.code != 0
    assert "[no-native-core]" in done.err


def test_the_core_is_loaded_once_in_a_process(native: Any) -> None:
    spec = importlib.util.spec_from_file_location("another.core", native.__file__)
    assert spec is not None
    assert spec.loader is not None

    with pytest.raises(ImportError, match="once"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ------------------------------------------------------------------ the same as the twin, and as jax.jit

ARGUMENTS: dict[str, Callable[[], Any]] = {
    "scalar": lambda: jnp.float32(2),
    "integer": lambda: jnp.int32(2),
    "vector": lambda: jnp.arange(3, dtype=jnp.float32),
    "numpy": lambda: np.arange(3, dtype=np.float32),
    "longer": lambda: np.arange(5, dtype=np.float32),
    "float": lambda: 2.0,
    "int": lambda: 2,
    "dict": lambda: {"a": jnp.float32(1), "b": [np.float32(2), 3.0]},
    "wrong": lambda: "text",
}


class Program:
    """A few functions jitted anew, since JAX's caches go by function object; each operation returns what came out."""

    def __init__(self, jit: Callable[..., Any]) -> None:
        def plain(x: Any) -> Any:
            return jax.tree.map(lambda leaf: leaf * 2, x)

        def static(x: Any, n: int, *, mode: str = "sum") -> Any:
            if n == 3:
                raise ValueError("three")
            return jax.tree.map(lambda leaf: leaf + n if mode == "sum" else leaf, x)

        def outer(x: Any) -> Any:
            return self.plain(self.static(x, 1))

        def loss(x: Any) -> Any:
            return sum(jnp.sum(leaf) ** 2 for leaf in jax.tree.leaves(self.plain(x)))

        self.jit, self.function = jit, plain
        self.plain, self.static = jit(plain), jit(static, static_argnums=1, static_argnames="mode")
        self.outer, self.loss = jit(outer), loss

    def again(self, x: Any) -> Any:
        return self.jit(self.function)(x)

    def do(self, step: tuple[str, str]) -> Any:
        operation, argument = step
        return outcome(lambda _: OPERATIONS[operation](self, ARGUMENTS[argument]()), None)


OPERATIONS: dict[str, Callable[[Program, Any], Any]] = {
    "call": lambda p, x: p.plain(x),
    "call static": lambda p, x: p.static(x, 1),
    "call static, by keyword": lambda p, x: p.static(x, n=2),
    "call static, another mode": lambda p, x: p.static(x, 2, mode="none"),
    "call that raises": lambda p, x: p.static(x, 3),
    "call with too many": lambda p, x: p.plain(x, x),
    "call outer": lambda p, x: p.outer(x),
    "jit again": lambda p, x: p.again(x),
    "grad": lambda p, x: jax.grad(p.loss)(x),
    "vmap": lambda p, x: jax.vmap(p.plain)(x),
    "grad of jit": lambda p, x: p.jit(jax.grad(p.loss))(x),
    "clear": lambda p, x: p.plain.clear_cache(),
    "clear static": lambda p, x: p.static.clear_cache(),
    "shape": lambda p, x: jax.tree.map(lambda s: (s.shape, str(s.dtype)), p.plain.eval_shape(x)),
    "lower": lambda p, x: p.plain.lower(x).as_text(),
    "compile": lambda p, x: p.plain.lower(x).compile()(x),
    "without jit": lambda p, x: _without_jit(p, x),
}


def _without_jit(program: Program, x: Any) -> Any:
    with jax.disable_jit():
        return program.plain(x)


steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.sampled_from(sorted(ARGUMENTS))), max_size=14)


@given(steps)
@settings(max_examples=20, deadline=None)
def test_both_cores_do_as_jax_does_and_tell_the_same(sequence: list[tuple[str, str]]) -> None:
    reference = Program(jax.jit)
    expected = [reference.do(step) for step in sequence]
    told_by = {}
    for name in CORES:
        with cores.in_use(name), cores.told() as events:
            program = Program(jaxwatch.jit)
            for step, right in zip(sequence, expected, strict=True):
                assert program.do(step) == right, (name, step)
            told_by[name] = (
                _alike(events),
                [jaxwatch.stats(f).calls for f in (program.plain, program.static, program.outer)],
            )

    assert told_by["native"] == told_by["python"]


def _alike(events: Events) -> list[Any]:
    """Return what both cores tell, without moments, and without what only the native core can see."""
    built = cores.built(events)
    calls = {miss.id: miss.call for miss in built}
    return [
        (
            miss.function,
            miss.site,
            miss.call,
            miss.layer,
            (miss.traces, miss.lowerings, miss.compiles),
            miss.reasons,
            miss.changes,
            miss.signature,
            miss.abstract,
            calls.get(miss.compared_with or 0),
            [advice.code for advice in miss.advice],
        )
        for miss in built
    ]


# ------------------------------------------------------------------ the price of a call


def test_what_a_call_pays_is_measured_at_the_start(core: str) -> None:
    del core
    assert 0 < REGISTRY.call_seconds < 1e-3


def test_pricing_leaves_the_function_as_it_was(native: Any) -> None:
    function = jax.jit(lambda x: x + 1)
    cell = native.Cell()
    native.hook(function, cell, None)
    price = native.price(function, 1_000)

    assert 0 < price < 1e6
    assert cell.calls == 1_000
    assert sum(cell.counts().values()) == 1_000
    assert function(1) == 2
    assert native.unhook(function)
    with pytest.raises(ValueError, match="not hooked"):
        native.price(function, 1_000)
    with pytest.raises(TypeError, match="not a jitted function"):
        native.price(len, 1_000)
