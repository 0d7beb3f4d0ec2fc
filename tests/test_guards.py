"""``no_retraces`` and the limits of ``Watch``: what is refused, in which words, and that all is sound afterwards."""

# ruff: noqa: ARG001, ARG005, PLW0108 -- functions of the user's take what they do not use, and are functions of their own

import asyncio
import contextlib
import gc
import inspect
import os
import re
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fidelity import frames
from programs import ROOT
from published import Events

import jaxwatch
from jaxwatch import Watch, _guards, no_retraces
from jaxwatch._frames import THREAD
from jaxwatch._places import place_here
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, JaxwatchWarning, NotWatchedError, RetraceError
from jaxwatch.events import TraceError, Violation

X = np.arange(4, dtype=np.float32)
SHORT = X[:2]
HERE = place_here(__file__)


@pytest.fixture
def step(fresh: None) -> Any:
    """Return a watched function that was called once."""
    del fresh
    warm = jaxwatch.jit(lambda x: x + 1, watch=Watch(name="step"))
    warm(X)
    return warm


@pytest.fixture(autouse=True)
def _thread_is_clean() -> Iterator[None]:
    yield
    assert (THREAD.top, THREAD.open) == (None, [])


def line() -> int:
    """Return the number of the caller's line."""
    return sys._getframe(1).f_lineno


# ------------------------------------------------------------------ forms


def test_what_is_in_the_cache_may_be_called(step: Any) -> None:
    with no_retraces(step), no_retraces():
        assert step(X).tolist() == [1, 2, 3, 4]


def test_a_retrace_is_refused_before_the_body_runs(step: Any, events: Events) -> None:
    ran = []

    @jaxwatch.jit
    def body(x: Any) -> Any:
        ran.append(1)
        return x + 1

    body(X)
    with no_retraces(body), pytest.raises(RetraceError):
        body(SHORT)

    assert ran == [1]
    assert [event.action for event in events.of(Violation)] == ["raise"]
    assert events.of(Violation)[0].miss is None
    assert len(events.misses) == 1
    assert events.of(TraceError) == []
    assert jaxwatch.stats(body).violations == {"raise": 1}
    del step


def test_none_named_means_all_watched_functions() -> None:
    with no_retraces(), pytest.raises(RetraceError):
        jaxwatch.jit(lambda x: x)(X)


def test_other_functions_are_not_guarded(step: Any) -> None:
    with no_retraces(step):
        assert jaxwatch.jit(lambda x: x)(X).tolist() == X.tolist()


def test_several_functions_are_guarded(step: Any) -> None:
    other = jaxwatch.jit(lambda x: x)
    with no_retraces(step, other):
        for function in (step, other):
            with pytest.raises(RetraceError):
                function(SHORT)


def test_a_bound_method_guards_its_function() -> None:
    class Model:
        @jaxwatch.jit
        def apply(self: Any, x: Any) -> Any:
            return x

    jax.tree_util.register_pytree_node(Model, lambda model: ((), None), lambda aux, children: Model())
    with no_retraces(Model().apply), pytest.raises(RetraceError):
        Model().apply(X)


def test_the_guard_ends_with_the_block(step: Any) -> None:
    with no_retraces(step):
        pass
    step(SHORT)

    assert _guards.in_force() == 0


def test_an_exception_goes_through_as_it_is(step: Any) -> None:
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, no_retraces(step):
        raise error

    assert caught.value is error
    assert error.__context__ is None
    assert _guards.in_force() == 0


def test_blocks_may_be_nested_and_each_says_its_own(step: Any) -> None:
    with no_retraces(step, action="record") as outer, no_retraces(step, allow=1) as inner:
        step(SHORT)
        with pytest.raises(RetraceError):
            step(X[:1])
    with no_retraces(step), no_retraces(step):
        pass

    assert len(outer.broken) == 1
    assert len(inner.refusals) == 1


def test_one_object_may_be_entered_again(step: Any) -> None:
    guard = no_retraces(step)
    with guard:
        with guard, pytest.raises(RetraceError):
            step(SHORT)
        assert _guards.in_force() == 1
        with pytest.raises(RetraceError):
            step(X[:1])
    with guard:
        step(X)
    assert _guards.in_force() == 0


def test_it_goes_into_an_exit_stack(step: Any) -> None:
    with contextlib.ExitStack() as stack:
        here = line() + 1
        stack.enter_context(no_retraces(step))
        with pytest.raises(RetraceError, match=rf"no_retraces at {re.escape(HERE)}:{here}\."):
            step(SHORT)


# ------------------------------------------------------------------ as a decorator


def test_it_decorates_a_function(step: Any) -> None:
    @no_retraces(step)
    def work(x: Any, *, n: int = 1) -> Any:
        """Work."""
        return step(x)

    assert work(X, n=2).tolist() == [1, 2, 3, 4]
    with pytest.raises(RetraceError) as caught:
        work(SHORT)
    step(SHORT)
    assert (work.__name__, work.__doc__) == ("work", "Work.")
    place = f"no_retraces at {HERE}:{work.__wrapped__.__code__.co_firstlineno}."  # type: ignore[attr-defined]  # wraps sets it
    assert place in str(caught.value)


def test_each_call_of_a_decorated_function_has_its_own_allowance() -> None:
    step = jaxwatch.jit(lambda x: x)

    @no_retraces(step, allow=1)
    def work(x: Any) -> Any:
        return step(x)

    for size in (1, 2, 3):
        work(np.zeros(size))


def test_a_decorated_function_may_call_itself(step: Any) -> None:
    @no_retraces(step)
    def work(depth: int) -> int:
        step(X)
        return depth if depth == 0 else work(depth - 1)

    assert work(3) == 0
    assert _guards.in_force() == 0


def test_it_decorates_a_coroutine_function(step: Any) -> None:
    @no_retraces(step)
    async def work(x: Any) -> Any:
        await asyncio.sleep(0)
        return step(x)

    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work(X)).tolist() == [1, 2, 3, 4]
    with pytest.raises(RetraceError):
        asyncio.run(work(SHORT))
    assert _guards.in_force() == 0


def test_it_refuses_a_generator_function_for_its_body_would_not_be_guarded(step: Any) -> None:
    def batches() -> Iterator[Any]:
        yield step(X)

    async def later() -> AsyncIterator[Any]:
        yield step(X)

    for function in (batches, later):
        with pytest.raises(BadOptionError, match=r"generator function .*: its body runs after the call\. Put a with"):
            no_retraces(step)(function)


def test_on_a_method(step: Any) -> None:
    class Suite:
        @no_retraces(step)
        def run(self, x: Any) -> Any:
            return step(x)

    assert Suite().run(X).tolist() == [1, 2, 3, 4]
    with pytest.raises(RetraceError):
        Suite().run(SHORT)


# ------------------------------------------------------------------ allow and action


@pytest.mark.parametrize("allow", [0, 1, 3])
def test_so_many_misses_are_allowed_to_each_function(allow: int) -> None:
    functions = [jaxwatch.jit(lambda x: x), jaxwatch.jit(lambda x: x * 2)]
    with no_retraces(allow=allow):
        for function in functions:
            for size in range(allow):
                function(np.zeros(size + 1))
            with pytest.raises(RetraceError):
                function(np.zeros(9))


def test_a_function_that_died_gives_its_count_to_no_other() -> None:
    with no_retraces(allow=1):
        for _ in range(20):
            jaxwatch.jit(lambda x: x)(X)
            gc.collect()


def test_warn_lets_the_call_go_through_and_warns_at_the_users_line(step: Any, events: Events) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_retraces(step, action="warn"):
            here = line() + 1
            step(SHORT)

    (warning,) = caught
    assert issubclass(warning.category, JaxwatchWarning)
    assert (warning.filename, warning.lineno) == (__file__, here)
    text = str(warning.message)
    assert text.startswith(f"step was compiled at {HERE}:{here} (call 2): x: float32[4] → float32[2].")
    assert text.endswith("[retrace]")
    assert "Forbidden by no_retraces at" in text
    (violation,) = events.of(Violation)
    assert (violation.action, violation.limit, violation.miss) == ("warn", 0, events.last().id)


def test_a_warning_that_is_an_error_is_raised_to_the_user(step: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with no_retraces(step, action="warn"), pytest.raises(JaxwatchWarning):
            step(SHORT)
        step(SHORT)


def test_record_lets_the_call_go_through_and_keeps_what_happened(step: Any, events: Events) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with no_retraces(step, action="record") as guard:
            step(SHORT)
            step(SHORT)

    (text,) = guard.broken
    assert text.startswith("step was compiled at ")
    assert "would" not in text
    assert "Nothing was compiled" not in text
    assert "Pad x to 4 rows" in text
    assert [event.action for event in events.of(Violation)] == ["record"]
    assert jaxwatch.stats(step).violations == {"record": 1}


def test_a_call_that_only_leaves_the_fast_path_is_no_retrace() -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(jnp.asarray(X))
    with no_retraces(step):
        step(X)  # a numpy array in place of jax's
        step(jnp.asarray(X))


def test_work_ahead_of_time_is_not_guarded(step: Any) -> None:
    with no_retraces(step):
        step.lower(SHORT)
        step.eval_shape(X[:1])


def test_a_call_within_an_outer_trace_compiles_nothing_and_is_not_refused(step: Any) -> None:
    outer = jax.jit(lambda x: step(x) * 2)
    with no_retraces(step):
        assert outer(X[:3]).tolist() == [2, 4, 6]


# ------------------------------------------------------------------ bad use


@pytest.mark.parametrize("thing", [len, jax.jit(len), None, 3])
def test_what_is_not_watched_cannot_be_guarded(thing: Any) -> None:
    with pytest.raises(NotWatchedError, match="is not watched"):
        no_retraces(thing)


@pytest.mark.parametrize(
    "values", [{"action": "explode"}, {"action": None}, {"allow": -1}, {"allow": True}, {"allow": 1.0}]
)
def test_bad_values_are_named(values: dict[str, Any]) -> None:
    ((name, value),) = values.items()
    with pytest.raises(BadOptionError, match=rf"no_retraces\({name}={re.escape(repr(value))}\)"):
        no_retraces(**values)


# ------------------------------------------------------------------ the error


def refused(call: Callable[[], Any], **options: Any) -> RetraceError:
    with no_retraces(**options), pytest.raises(RetraceError) as caught:
        call()
    return caught.value


def test_the_error_says_where_what_why_and_the_way_out() -> None:
    step = jaxwatch.jit(lambda batch: batch["x"] * 2, watch=Watch(name="step"))
    step({"x": np.zeros((32, 64), np.float32)})
    call = line() + 2
    with pytest.raises(RetraceError) as caught, no_retraces(step):
        step({"x": np.zeros((5, 64), np.float32)})

    assert str(caught.value) == (
        f"step would be traced again at {HERE}:{call} (call 2).\n"
        "  batch['x']: float32[32,64] → float32[5,64]; compared with call 1\n"
        "  Pad batch['x'] to 32 rows and mask, or drop the remainder.\n"
        f"  Forbidden by no_retraces at {HERE}:{call - 1}. "
        "Nothing was compiled; other keys of step are untouched;\n"
        "  this one stays off JAX's fast path until step.clear_cache(). [retrace]"
    )


def test_the_first_call_is_said_to_be_one(fresh: None) -> None:
    del fresh
    text = str(refused(lambda: jaxwatch.jit(lambda x: x, watch=Watch(name="step"))(X)))

    assert text.startswith("step would be traced at ")
    assert "\n  It is the first call of this function.\n" in text


def test_many_differences_are_not_all_told() -> None:
    step = jaxwatch.jit(lambda tree: tree)
    step({str(n): np.zeros(1) for n in range(50)})
    text = str(refused(lambda: step({str(n): np.zeros(2) for n in range(50)})))

    assert len(text.splitlines()) <= 10


def test_it_can_be_caught_as_a_runtime_error_and_shows_the_users_frames_alone(step: Any) -> None:
    def call() -> None:
        step(SHORT)

    error = refused(call)
    assert isinstance(error, RuntimeError)
    assert (error.__cause__, error.__context__) == (None, None)
    names = [name for file, name in frames(error) if file != __file__]
    assert names == []


def test_it_comes_through_jaxs_own_transformations_and_other_functions(step: Any) -> None:
    outer = jaxwatch.jit(lambda x: x)

    def loss(x: Any) -> Any:
        return step(x).sum()

    for call in (lambda: jax.grad(loss)(SHORT), lambda: jax.vmap(step)(np.ones((3, 2), np.float32))):
        text = str(refused(call))
        assert re.match(r"step would be (traced|lowered)", text)
        assert "(transform)" in text
    assert outer(X).tolist() == X.tolist()


def test_nothing_is_kept_alive_by_a_refusal(step: Any) -> None:
    argument = jnp.ones(9)
    gone = weakref.ref(argument)

    with no_retraces(step), contextlib.suppress(RetraceError):
        step(argument)
    del argument
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------ JAX's caches are sound afterwards


@pytest.mark.parametrize("clear", [True, False])
def test_the_refused_key_and_all_others_are_right_afterwards(clear: bool, events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    for _ in range(3):
        refused(lambda: step(SHORT))
    if clear:
        step.clear_cache()

    assert step(SHORT).tolist() == [1, 2]
    assert step(X).tolist() == [1, 2, 3, 4]
    assert step(X[:1]).tolist() == [1]
    with no_retraces(step):
        assert step(X).tolist() == [1, 2, 3, 4]
    assert [miss.abstract for miss in events.misses if miss.reasons[0] != "cache_lost"] == [
        "(x: float32[4])",
        "(x: float32[2])",
        "(x: float32[1])",
    ]


@pytest.mark.parametrize(
    "transformed",
    [
        lambda step: jax.grad(lambda x: step(x).sum()),
        lambda step: jax.value_and_grad(lambda x: (step(x) ** 2).sum()),
        lambda step: lambda x: jax.vmap(step)(jnp.stack([x, x])),
        lambda step: lambda x: jax.vmap(jax.grad(lambda y: step(y).sum()))(jnp.stack([x, x])),
        lambda step: lambda x: jax.jvp(step, (x,), (x,)),
        lambda step: jax.hessian(lambda x: step(x).sum()),
    ],
)
def test_a_refusal_under_a_transformation_leaves_right_gradients(transformed: Any) -> None:
    def body(x: Any) -> Any:
        return jnp.sin(x) * x

    def value(jit: Any) -> Any:
        return jax.tree_util.tree_map(lambda leaf: np.asarray(leaf).tolist(), transformed(jit(body))(jnp.asarray(X)))

    expected = value(jax.jit)
    step = jaxwatch.jit(lambda x: body(x))
    run = transformed(step)
    for _ in range(2):
        with no_retraces(step), pytest.raises(RetraceError):
            run(jnp.asarray(X))
    found = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf).tolist(), run(jnp.asarray(X)))
    assert found == expected
    step.clear_cache()
    again = jax.tree_util.tree_map(lambda leaf: np.asarray(leaf).tolist(), run(jnp.asarray(X)))
    assert again == expected
    assert step(X).tolist() == body(X).tolist()


def test_a_refused_inner_function_leaves_the_outer_one_sound() -> None:
    inner = jaxwatch.jit(lambda x: x + 1)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            made = inner(np.float32(1))
        return x * made

    with no_retraces(inner), pytest.raises(RetraceError):
        outer(X)
    assert outer(X).tolist() == [0, 2, 4, 6]
    assert outer(SHORT).tolist() == [0, 2]


# ------------------------------------------------------------------ threads


def on_a_thread(work: Callable[[], Any]) -> list[BaseException]:
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- it is handed to the test
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return errors


def test_a_call_on_another_thread_is_refused_there_and_told_at_the_end(step: Any) -> None:
    errors: list[BaseException] = []
    with pytest.raises(RetraceError, match="step would be traced again") as caught, no_retraces(step):
        errors += on_a_thread(lambda: step(SHORT))

    assert errors == [caught.value]


def test_what_was_refused_elsewhere_does_not_hide_an_error_of_the_block(step: Any) -> None:
    def work() -> None:
        on_a_thread(lambda: step(SHORT))
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"), no_retraces(step):
        work()


def test_a_refusal_that_was_caught_here_is_not_told_again(step: Any) -> None:
    with no_retraces(step), contextlib.suppress(RetraceError):
        step(SHORT)


def test_guards_of_several_threads_do_not_get_mixed_up() -> None:
    functions = [jaxwatch.jit(lambda x: x + 1) for _ in range(4)]
    failed: list[int] = []
    barrier = threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(200):
            with no_retraces(functions[number], allow=10**6):
                functions[number](X)
            with no_retraces(functions[number]):
                functions[number](X)
        failed.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(failed) == [0, 1, 2, 3]
    assert _guards.in_force() == 0


# ------------------------------------------------------------------ limits of Watch


def limited(**values: Any) -> Any:
    return jaxwatch.jit(lambda x: x + 1, watch=Watch(name="step", **values))


def test_signatures_beyond_the_limit_are_refused_and_those_within_are_not(events: Events) -> None:
    step = limited(max_signatures=2, on_retrace="raise")
    step(X)
    step(SHORT)
    for _ in range(2):
        with pytest.raises(RetraceError, match=r"Forbidden by Watch\(max_signatures=2\)"):
            step(X[:1])
    step(X)
    step(SHORT)

    assert len(events.misses) == 2
    assert [event.limit for event in events.of(Violation)] == [2, 2]


def test_a_known_signature_that_was_lost_is_within_the_limit() -> None:
    step = limited(max_signatures=1, on_retrace="raise")
    step(X)
    step.clear_cache()
    assert step(X).tolist() == [1, 2, 3, 4]


def test_a_limit_that_records_lets_the_call_go_through(events: Events) -> None:
    step = limited(max_signatures=1)
    step(X)
    step(SHORT)

    assert [(event.action, event.miss) for event in events.of(Violation)] == [("record", events.last().id)]
    assert jaxwatch.stats(step).violations == {"record": 1}


def test_a_limit_that_warns() -> None:
    step = limited(max_signatures=1, on_retrace="warn")
    step(X)
    with pytest.warns(
        JaxwatchWarning, match=r"step was compiled .* Forbidden by Watch\(max_signatures=1\)\. \[retrace\]"
    ):
        step(SHORT)


@pytest.mark.parametrize("action", ["warn", "raise"])
def test_without_a_limit_every_miss_but_the_first_is_a_violation(action: Any) -> None:
    step = limited(on_retrace=action)
    step(X)
    step(X)
    expected: Any = pytest.warns(JaxwatchWarning) if action == "warn" else pytest.raises(RetraceError)
    with expected as caught:
        step(SHORT)
    text = str(caught[0].message if action == "warn" else caught.value)
    assert f"Watch(on_retrace='{action}')" in text


def test_a_limit_and_a_guard_are_both_told(events: Events) -> None:
    step = limited(max_signatures=1)
    step(X)
    with no_retraces(step, action="record"):
        step(SHORT)

    assert [event.limit for event in events.of(Violation)] == [0, 1]
    assert REGISTRY.snapshot().functions[0].violations == {"record": 2}


def test_every_text_names_the_slug_and_no_path_of_ours(step: Any) -> None:
    text = str(refused(lambda: step(SHORT)))

    assert text.endswith("[retrace]")
    assert os.path.join(str(ROOT), "jaxwatch", "") not in text


def test_switched_off_a_guard_forbids_nothing_and_figures_are_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH", "0")
    step = jaxwatch.jit(lambda x: x + 1)

    with jaxwatch.no_retraces(step):
        assert float(step(1.0)) == 2
    assert (jaxwatch.stats(step).calls, jaxwatch.stats(step).misses) == (0, 0)
