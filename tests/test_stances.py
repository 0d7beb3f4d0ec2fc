"""``stance`` and ``warm_up`` as a program uses them: on both cores, threads, tasks, nested, with exceptions inside."""

# ruff: noqa: ARG001, ARG005, PLW0108 -- functions of the user's take what they do not use

import asyncio
import contextlib
import functools
import inspect
import pickle
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from published import Events

import jaxwatch
from jaxwatch import Watch, _guards, _policy, no_retraces, stance, warm_up
from jaxwatch._hub import HUB
from jaxwatch._places import place_here
from jaxwatch.errors import BadOptionError, JaxwatchWarning, NotWatchedError, RetraceError
from jaxwatch.events import TraceError, Violation

X = np.arange(4, dtype=np.float32)
LENGTHS = iter(range(5, 10_000))


def new() -> Any:
    """Return an argument of a signature that was not there before."""
    return np.zeros(next(LENGTHS), np.float32)


@pytest.fixture(params=cores.CORES, autouse=True)
def core(request: pytest.FixtureRequest, fresh: None) -> Iterator[str]:
    """Run each test with both cores."""
    del fresh
    with cores.in_use(request.param):
        yield request.param


def jitted(**values: Any) -> Any:
    return jaxwatch.jit(lambda x: x + 1, watch=Watch(name="step", **values))


@pytest.fixture
def step(core: str) -> Any:
    """Return a watched function that was called once."""
    del core
    made = jitted()
    made(X)
    return made


def outcome(call: Callable[[], object]) -> str:
    """Return what becomes of a call: record, warn or raise."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            call()
        except RetraceError:
            return "raise"
    return "warn" if any(issubclass(each.category, JaxwatchWarning) for each in told) else "record"


def in_a_thread(call: Callable[[], object]) -> str:
    found: list[str] = []

    def work() -> None:
        try:
            call()
        except RetraceError:
            found.append("raise")
        else:
            found.append("record")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


# ------------------------------------------------------------------ forms


@pytest.mark.parametrize("action", ["record", "warn", "raise"])
def test_in_each_form_the_action_holds_for_as_long_as_it_is_in_force(step: Any, action: Any) -> None:
    with stance(action, step):
        assert outcome(lambda: step(new())) == action
    started = stance(action).start()
    assert outcome(lambda: step(new())) == action
    started.stop()
    work = stance(action)(lambda: step(new()))
    assert outcome(work) == action

    assert outcome(lambda: step(new())) == "record"
    assert _guards.in_force() == 0


def test_what_is_in_the_cache_is_free(step: Any) -> None:
    with stance("raise"):
        assert step(X).tolist() == [1, 2, 3, 4]


def test_to_make_one_puts_nothing_in_force(step: Any) -> None:
    stance("raise")

    @stance("raise", step)
    def work() -> None:
        """Work."""

    assert outcome(lambda: step(new())) == "record"


def test_a_refused_call_runs_no_body_and_compiles_nothing(step: Any, events: Events) -> None:
    ran = []

    @jaxwatch.jit
    def body(x: Any) -> Any:
        ran.append(1)
        return x + 1

    with stance("raise"), pytest.raises(RetraceError) as caught:
        body(X)

    assert ran == []
    assert (events.misses, events.of(TraceError)) == ([], [])
    (told,) = events.of(Violation)
    assert (told.action, told.miss, told.limit) == ("raise", None, None)
    assert told.by.startswith(f"stance('raise') at {place_here(__file__)}:")
    assert told.site.startswith(f"{__file__}:")
    assert told.by in str(caught.value)
    assert caught.value.signature is not None
    body.clear_cache()
    assert body(X).tolist() == [1, 2, 3, 4]


def test_record_makes_no_violation_and_warn_makes_one(step: Any, events: Events) -> None:
    with stance("record"):
        step(new())
    assert events.of(Violation) == []
    with stance("warn"), pytest.warns(JaxwatchWarning, match=r"Forbidden by stance\('warn'\) at"):
        step(new())
    assert [(told.action, told.miss) for told in events.of(Violation)] == [("warn", events.last().id)]
    assert not events.last().steady


# ------------------------------------------------------------------ nesting


def test_the_innermost_that_covers_the_function_decides(step: Any) -> None:
    other = jitted()
    with stance("raise"), stance("warn", step):
        assert outcome(lambda: step(new())) == "warn"
        assert outcome(lambda: other(new())) == "raise"
        with stance("record"):
            assert outcome(lambda: step(new())) == "record"
        assert outcome(lambda: step(new())) == "warn"


def test_a_stance_decides_over_the_functions_own_watch_and_over_configure() -> None:
    strict, lax = jitted(on_retrace="raise"), jitted(on_retrace="record")
    strict(X)
    lax(X)
    assert (outcome(lambda: strict(new())), outcome(lambda: lax(new()))) == ("raise", "record")
    with stance("record"):
        assert outcome(lambda: strict(new())) == "record"
    with stance("raise"):
        assert outcome(lambda: lax(new())) == "raise"
    jaxwatch.configure(on_retrace="raise")
    assert outcome(lambda: lax(new())) == "record"
    silent = jitted()
    assert outcome(lambda: silent(new())) == "raise"  # the same definition missed before
    with stance("record"):
        assert outcome(lambda: silent(new())) == "record"


def test_no_retraces_forbids_whatever_a_stance_says(step: Any) -> None:
    with no_retraces(step), stance("record"):
        assert outcome(lambda: step(new())) == "raise"
    with stance("record", step), no_retraces(step):
        assert outcome(lambda: step(new())) == "raise"
    with no_retraces(step, action="record") as guard, stance("raise"):
        assert outcome(lambda: step(new())) == "raise"
    assert guard.broken == []


def test_one_object_may_be_entered_again_and_started_again(step: Any) -> None:
    strict = stance("raise", step)
    with strict:
        with strict:
            assert outcome(lambda: step(new())) == "raise"
        assert outcome(lambda: step(new())) == "raise"
    assert _guards.in_force() == 0
    strict.start().start()
    assert _policy.in_force() == 1
    strict.stop()
    strict.stop()
    assert _guards.in_force() == 0


def test_a_started_one_that_is_entered_ends_with_the_block(step: Any) -> None:
    with stance("raise", step).start():
        assert in_a_thread(lambda: step(new())) == "raise"
    assert _guards.in_force() == 0


def test_the_last_one_started_counts(step: Any) -> None:
    first, second = stance("raise").start(), stance("record", step).start()
    assert outcome(lambda: step(new())) == "record"
    first.start()
    assert outcome(lambda: step(new())) == "raise"
    first.stop()
    second.stop()


def test_an_exception_goes_through_as_it_is(step: Any) -> None:
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, stance("raise"):
        raise error
    assert caught.value is error
    assert _guards.in_force() == 0


def test_blocks_may_end_in_another_order(step: Any) -> None:
    def guarded(action: Any) -> Iterator[None]:
        with stance(action, step):
            yield

    strict, lax = guarded("raise"), guarded("record")
    next(strict)
    next(lax)
    next(strict, None)
    assert outcome(lambda: step(new())) == "record"
    next(lax, None)
    assert _guards.in_force() == 0


# ------------------------------------------------------------------ as a decorator


def test_it_decorates_functions_methods_and_coroutine_functions(step: Any) -> None:
    class Suite:
        @stance("raise", step)
        def run(self, x: Any) -> Any:
            """Run."""
            return step(x)

    @stance("raise", step)
    async def work(x: Any) -> Any:
        await asyncio.sleep(0)
        return step(x)

    assert Suite().run(X).tolist() == [1, 2, 3, 4]
    assert (Suite.run.__name__, Suite.run.__doc__) == ("run", "Run.")
    assert inspect.iscoroutinefunction(work)
    assert asyncio.run(work(X)).tolist() == [1, 2, 3, 4]
    for call in (lambda: Suite().run(new()), lambda: asyncio.run(work(new()))):
        assert outcome(call) == "raise"
    assert _guards.in_force() == 0


def test_it_refuses_generator_functions(step: Any) -> None:
    def batches() -> Iterator[Any]:
        yield step(X)

    async def later() -> AsyncIterator[Any]:
        yield step(X)

    for function in (batches, later):
        with pytest.raises(BadOptionError, match=r"^stance cannot decorate the generator function .*Put a with block"):
            stance("raise")(function)


def test_a_decorated_function_may_call_itself(step: Any) -> None:
    @stance("raise", step)
    def work(depth: int) -> str:
        return outcome(lambda: step(new())) if depth == 0 else work(depth - 1)

    assert work(3) == "raise"
    assert _guards.in_force() == 0


# ------------------------------------------------------------------ threads and tasks


def test_a_strict_one_holds_on_worker_threads_in_every_form(step: Any) -> None:
    with stance("raise"):
        assert in_a_thread(lambda: step(new())) == "raise"
    started = stance("raise", step).start()
    assert in_a_thread(lambda: step(new())) == "raise"
    started.stop()
    assert in_a_thread(lambda: step(new())) == "record"


def test_a_block_loosens_nothing_on_other_threads(step: Any) -> None:
    started = stance("raise").start()
    with stance("record"):
        assert in_a_thread(lambda: step(new())) == "raise"
        assert outcome(lambda: step(new())) == "record"
    started.stop()


def test_a_block_lasts_across_awaits_in_its_own_task_and_those_that_it_starts(step: Any) -> None:
    async def miss() -> str:
        await asyncio.sleep(0)
        return outcome(lambda: step(new()))

    async def reload(entered: asyncio.Event, go: asyncio.Event) -> list[str]:
        with stance("record"):
            entered.set()
            await go.wait()
            return [await miss(), await asyncio.create_task(miss()), await asyncio.to_thread(in_a_thread, lambda: X)]

    async def main() -> None:
        entered, go = asyncio.Event(), asyncio.Event()
        with stance("raise").start():
            pass
        started = stance("raise").start()
        reloading = asyncio.create_task(reload(entered, go))
        await entered.wait()
        assert await miss() == "raise"  # beside the block, on the same thread
        go.set()
        assert await reloading == ["record"] * 3
        assert await miss() == "raise"
        started.stop()

    asyncio.run(main())


def test_many_threads_with_stances_of_their_own_do_not_disturb_each_other() -> None:
    functions = [jitted() for _ in range(4)]
    for function in functions:
        function(X)
    mine = iter(functions)

    def work() -> None:
        function = next(mine)
        for _ in range(5):
            with stance("raise", function), contextlib.suppress(RetraceError):
                function(new())
                raise AssertionError
            with stance("record", function):
                function(new())

    assert cores.at_once(work, len(functions)) == []
    assert _guards.in_force() == 0


def test_what_a_hook_compiles_is_not_refused_and_counts_nowhere(step: Any) -> None:
    inner, raised = jitted(), []

    def hook(event: Any) -> None:
        try:
            inner(new())
        except RetraceError as error:
            raised.append(error)

    HUB.add("hook", hook)
    try:
        with stance("raise", inner):
            step(new())
    finally:
        HUB.remove("hook")
    assert raised == []


# ------------------------------------------------------------------ what is expected


def test_expected_functions_and_signatures_are_free(step: Any) -> None:
    evaluate, x = jaxwatch.jit(lambda x: x * 2), new()
    with stance("raise"), pytest.raises(RetraceError) as caught:
        step(x)
    step.clear_cache()
    signature = caught.value.signature
    assert signature is not None

    with stance("raise", allow=[evaluate, signature]):
        assert outcome(lambda: evaluate(new())) == "record"
        assert outcome(lambda: step(x)) == "record"
        assert outcome(lambda: step(new())) == "raise"
    for single in (evaluate, signature):
        stance("raise", allow=single)


def test_the_error_keeps_its_signature_when_it_is_pickled(step: Any) -> None:
    with stance("raise"), pytest.raises(RetraceError) as caught:
        step(new())
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 -- our own

    assert (copy.signature, str(copy)) == (caught.value.signature, str(caught.value))


# ------------------------------------------------------------------ warm_up


def test_after_it_the_examples_are_free_and_all_else_is_refused(step: Any) -> None:
    predict = jaxwatch.jit(lambda params, x: params * x.sum())
    params = jnp.float32(2)
    with warm_up(predict, *[(params, np.zeros(size, np.float32)) for size in (1, 8)]):
        assert float(predict(params, np.ones(8, np.float32))) == 16
        assert in_a_thread(lambda: predict(params, np.ones(1, np.float32))) == "record"
        assert in_a_thread(lambda: predict(params, new())) == "raise"
        assert outcome(lambda: step(new())) == "record"
    assert _guards.in_force() == 0


def test_it_takes_shapes_and_keywords(events: Events) -> None:
    predict = jaxwatch.jit(lambda params, x, training: params["w"] @ x if training else x, static_argnames="training")
    of: Any = jax.ShapeDtypeStruct
    shapes: Any = {"w": of((3, 4), np.float32)}, of((4,), np.float32)
    started = warm_up(functools.partial(predict, training=True), shapes, then="raise")
    params = {"w": jnp.ones((3, 4))}
    assert outcome(lambda: predict(params, jnp.ones(4), training=True)) == "record"
    assert outcome(lambda: predict(params, jnp.ones(4), training=False)) == "raise"
    started.stop()

    assert len(events.misses) == 1 or {miss.layer for miss in events.misses[1:]} == {"dispatch"}


def test_no_rule_refuses_the_warm_up_itself_but_no_retraces_does() -> None:
    strict = jitted(on_retrace="raise", max_signatures=1)
    with stance("raise"), warm_up(strict, (X,), (new(),)):
        assert outcome(lambda: strict(X)) == "record"
    with no_retraces(), pytest.raises(RetraceError):
        warm_up(strict, (new(),))
    assert _guards.in_force() == 0


def test_where_an_example_fails_nothing_is_forbidden_afterwards(step: Any) -> None:
    with pytest.raises(TypeError):
        warm_up(step, (X,), ())
    assert _guards.in_force() == 0


# ------------------------------------------------------------------ bad use


def key_shape() -> Any:
    of: Any = jax.ShapeDtypeStruct
    return of((), jax.random.key(0).dtype)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda step: stance("explode"), r"stance\('explode'\) is no action.*Give one of"),  # type: ignore[arg-type]
        (lambda step: stance(step), r"stance\(.*\) is no action"),
        (lambda step: stance("raise", allow=["step"]), r"allow=…\) has 'step' in it\. Give watched functions"),
        (lambda step: stance("raise", allow=["s"]), r"has 's' in it"),
        (lambda step: stance("raise", allow=3), r"has 3 in it"),  # type: ignore[arg-type]
        (lambda step: warm_up(step), r"no example\. Give a tuple"),
        (lambda step: warm_up(step, X), r"of type ndarray\. Give .* as \(x,\)"),  # type: ignore[arg-type]
        (lambda step: warm_up(step, (X,), then="explode"), r"stance\('explode'\)"),  # type: ignore[arg-type]
        (lambda step: warm_up(step, (key_shape(),)), r"can make no Shape.*real"),
    ],
)
def test_bad_values_are_named(step: Any, wrong: Any, told: str) -> None:
    with pytest.raises(BadOptionError, match=told):
        wrong(step)
    assert _guards.in_force() == 0


def test_what_is_not_watched_has_no_stance() -> None:
    for wrong in (
        functools.partial(stance, "raise", len),
        functools.partial(stance, "raise", allow=[len]),
        functools.partial(warm_up, len, (X,)),
    ):
        with pytest.raises(NotWatchedError, match="is not watched"):
            wrong()


def test_switched_off_a_stance_forbids_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXWATCH", "0")
    step = jaxwatch.jit(lambda x: x + 1)

    with stance("raise", step, allow=[step]), warm_up(step, (X,)):
        assert step(new()).shape != X.shape


def test_one_object_may_be_entered_by_many_tasks_and_threads_at_a_time(step: Any) -> None:
    """Each leaves what it entered itself, in whichever order they end."""
    loading = stance("record")
    outcomes: dict[str, bool] = {}

    def allowed() -> bool:
        try:
            step(new())
        except RetraceError:
            return False
        return True

    async def task(number: int, begun: list[asyncio.Event], ended: list[asyncio.Event]) -> None:
        with loading:
            begun[number].set()
            await asyncio.gather(*(event.wait() for event in begun))
            if number:
                await ended[number - 1].wait()
            outcomes[f"{number} in"] = allowed()
        outcomes[f"{number} after"] = allowed()
        ended[number].set()

    async def main() -> None:
        begun, ended = [asyncio.Event() for _ in range(3)], [asyncio.Event() for _ in range(3)]
        await asyncio.gather(*(task(number, begun, ended) for number in range(3)))

    with stance("raise"):
        asyncio.run(main())

    assert outcomes == {f"{number} {when}": when == "in" for number in range(3) for when in ("in", "after")}
    assert _policy.in_force() == 0
