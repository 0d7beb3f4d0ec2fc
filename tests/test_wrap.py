"""What jaxwatch.jit returns behaves as what jax.jit returns, and counts."""

# ruff: noqa: ARG001, ARG005, PLW0108, TRY301 -- functions of the user's take what they do not use, and are functions of their own

import asyncio
import copy
import functools
import gc
import inspect
import re
import threading
import typing
import weakref
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fidelity import COMPLETE, DECORATES, EVAL_SHAPE_TAKES_STATICS, frames, outcome, plain, same, told
from programs import run
from published import Events

import jaxwatch
from jaxwatch import Watch, _compat, _core
from jaxwatch._frames import THREAD
from jaxwatch._registry import REGISTRY
from jaxwatch.events import TraceError

_ADDRESS = re.compile("0x[0-9a-f]+")
X = np.arange(4, dtype=np.float32)
MESH = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("d",))
SPEC: Any = jax.sharding.PartitionSpec("d")  # type: ignore[no-untyped-call]  # JAX does not annotate it
PARTIAL: Any = jax.tree_util.Partial  # which JAX does not annotate
SHAPE: Any = jax.eval_shape(lambda: X)


def double(x: Any, n: int = 2) -> Any:
    """Double it."""
    return x * n


watched_double = jaxwatch.jit(double, static_argnums=1, watch=Watch(name="twice", max_signatures=5))
plain_double = jax.jit(double, static_argnums=1)


@pytest.fixture(autouse=True)
def _thread_is_clean() -> Iterator[None]:
    yield
    assert THREAD.top is None
    assert THREAD.open == []


def made(function: Callable[..., Any] = double, **options: Any) -> Any:
    return jaxwatch.jit(function, **options)


# ------------------------------------------------------------------ what it is taken for


def test_who_knows_jitted_functions_by_the_name_of_their_type_knows_ours() -> None:
    """``chex.is_traceable`` looks for it in the type's text."""
    assert type(plain_double).__name__ in str(type(watched_double))


@pytest.mark.parametrize(
    "ask",
    [
        lambda f: f.__name__,
        lambda f: f.__qualname__,
        lambda f: f.__module__,
        lambda f: f.__doc__,
        lambda f: f.__annotations__,
        lambda f: f.__wrapped__,
        lambda f: f.__signature__,
        lambda f: sorted(vars(f)),
        lambda f: repr(f),
        lambda f: str(f),
        lambda f: dir(f),
        lambda f: str(inspect.signature(f)),
        lambda f: typing.get_type_hints(f),
        lambda f: inspect.getsource(f),
        lambda f: inspect.unwrap(f),
        lambda f: inspect.getdoc(f),
        lambda f: callable(f),
        lambda f: isinstance(f, jax.stages.Wrapped),
        lambda f: inspect.iscoroutinefunction(f),
        lambda f: inspect.isfunction(f),
        lambda f: f == f,  # noqa: PLR0124 -- just so
        lambda f: f == double,
        lambda f: len({f, f}),
        lambda f: bool(f),
        lambda f: hasattr(f, "nothing_of_the_kind"),
        lambda f: f.nothing_of_the_kind,
        lambda f: functools.wraps(f)(lambda x: x).__dict__.keys(),
        lambda f: functools.wraps(f)(lambda x: x).__name__,
    ],
)
def test_it_answers_as_jaxs_own(ask: Callable[[Any], Any]) -> None:
    same(lambda jit: [_ADDRESS.sub("", str(ask(jit(double))))], strict=False)


def test_attributes_are_set_read_and_deleted_as_on_jaxs_own() -> None:
    def use(jit: Any) -> Any:
        step = jit(lambda x: x)
        step.tag = 1
        step.__doc__, step.__name__, step.__module__ = "new", "other", "elsewhere"
        wrapper = functools.wraps(step)(lambda x: x)
        found = step.tag, vars(step)["tag"], step.__doc__, step.__name__, step.__module__, vars(wrapper)["tag"]
        del step.tag
        return [str(part) for part in (*found, hasattr(step, "tag"))]

    assert same(use)[0] == "result"


def test_deleting_what_is_not_there_is_the_same_error() -> None:
    def use(jit: Any) -> None:
        del jit(double).nothing

    assert same(use, strict=False)[0] == "error"


def test_jax_wraps_do_not_carry_the_wrapper_on() -> None:
    """As a Python class with its state in __dict__ did: jit(grad(f)) then computed f."""

    def cube(x: Any) -> Any:
        return x**3

    assert float(made(jax.grad(made(cube)))(2.0)) == 12.0
    assert float(made(jax.grad(jax.grad(made(cube))))(2.0)) == 12.0
    assert made(jax.vmap(made(cube)))(X).tolist() == [0.0, 1.0, 8.0, 27.0]
    assert float(functools.wraps(made(cube))(lambda x: x)(2.0)) == 2.0


def test_of_a_method_it_is_a_method() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @functools.partial(jaxwatch.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x * self.scale

        @classmethod
        @functools.partial(jaxwatch.jit, static_argnums=0)
        def make(cls, x: Any) -> Any:
            return x + len(cls.__name__)

        @staticmethod
        @jaxwatch.jit
        def loss(x: Any) -> Any:
            return x.sum()

    model = Model(3.0)
    assert model.apply(X).tolist() == [0, 3, 6, 9]
    assert Model.apply(model, X).tolist() == [0, 3, 6, 9]
    assert Model.make(X).tolist() == [5, 6, 7, 8]
    assert float(model.loss(X)) == 6
    assert model.apply.__self__ is model
    assert jaxwatch.stats(model.apply).calls == 2
    assert jaxwatch.stats(Model.apply).calls == 2
    assert jaxwatch.stats(model.loss).calls == 1


# ------------------------------------------------------------------ calls


@pytest.mark.parametrize(
    "use",
    [
        lambda jit: jit(lambda self, fun, watch: self + 10 * fun + 100 * watch)(self=1, fun=2, watch=3),
        lambda jit: jit(lambda **kwargs: kwargs)(self=1, args=2, kwargs=3, frame=4),
        lambda jit: jit(lambda *args: args)(),
        lambda jit: jit(lambda x, n: x * n, static_argnums=1)(X, 3),
        lambda jit: jit(lambda x, n: x * n, static_argnames="n")(X, n=3),
        lambda jit: jit(lambda x, n: x * n, static_argnums=-1)(X, 3),
        lambda jit: jit(lambda x, *, n: x * n, static_argnames=["n"])(X, n=3),
        lambda jit: jit(lambda x: {"a": (x, None), "b": [x[:2]]})(X),
        lambda jit: jit(lambda x, y: x + y, donate_argnums=0)(jnp.ones(3), jnp.ones(3)),
        lambda jit: jit(lambda x: x, inline=True)(X),
        lambda jit: jit(lambda x, y: x, keep_unused=True)(X, 1),
        lambda jit: jit(jit(lambda x: x + 1))(X),
        lambda jit: jit(functools.partial(lambda a, x: a + x, 3))(X),
        lambda jit: jax.make_jaxpr(jit(lambda x: x + 1))(X).out_avals,
        lambda jit: jax.eval_shape(jit(lambda x: x + 1), X).shape,
        lambda jit: jit(lambda x: x + 1).eval_shape(X).shape,
        lambda jit: jit(lambda x: x + 1).lower(X).compile()(X),
        lambda jit: jit(lambda x: x + 1).trace(X).jaxpr.out_avals,
        lambda jit: jax.export.export(jit(lambda x: x + 1))(X).out_avals,
        lambda jit: jax.grad(jit(lambda x: (x**2).sum()))(X),
        lambda jit: jax.value_and_grad(jit(lambda p, x: (p * x).sum()))(X, X),
        lambda jit: jax.jacfwd(jit(lambda x: x**2))(X),
        lambda jit: jax.hessian(jit(lambda x: (x**3).sum()))(X),
        lambda jit: jax.vmap(jit(lambda x: x.sum()))(np.ones((3, 2))),
        lambda jit: jax.vmap(jax.grad(jit(lambda x: x**2)))(X),
        lambda jit: jax.linearize(jit(lambda x: x**2), X)[0],
        lambda jit: jax.checkpoint(jit(lambda x: x**2))(X),
        lambda jit: jax.grad(jax.checkpoint(jit(lambda x: (x**2).sum())))(X),
        lambda jit: jax.lax.scan(jit(lambda c, x: (c + x, c)), 0.0, X),
        lambda jit: jax.lax.cond(True, jit(lambda x: x + 1), jit(lambda x: x - 1), X),
        lambda jit: jax.lax.fori_loop(0, 3, jit(lambda i, x: x + i), X),
        lambda jit: jax.lax.while_loop(jit(lambda x: x[0] < 3), jit(lambda x: x + 1), X),
        lambda jit: jax.lax.map(jit(lambda x: x + 1), X),
        lambda jit: jax.lax.associative_scan(jit(lambda a, b: a + b), X),
        lambda jit: jax.pmap(jit(lambda x: x + 1))(X[None]),
        lambda jit: jax.closure_convert(jit(lambda x: x + 1), X)[0](X),
        lambda jit: jit(lambda f, x: f(x))(PARTIAL(jit(lambda x: x + 1)), X),
        lambda jit: jit(lambda f, x: f(x), static_argnums=0)(jit(lambda x: x + 1), X),
        lambda jit: jax.vjp(jit(lambda x: x**2), X)[1](X),
        lambda jit: jax.jvp(jit(lambda x: x**2), (X,), (X,)),
        lambda jit: jax.linear_transpose(jit(lambda x: x * 2), X)(X),
        lambda jit: jax.named_call(jit(lambda x: x + 1), name="n")(X),
        lambda jit: jax.shard_map(jit(lambda x: x + 1), mesh=MESH, in_specs=SPEC, out_specs=SPEC)(X),
        lambda jit: jax.eval_shape(jit(lambda x: {"a": x}), x=X)["a"].dtype.name,
        lambda jit: jax.eval_shape(functools.partial(jit(lambda x, n: x[:n], static_argnums=1), n=2), X).shape,
        lambda jit: jax.tree_util.tree_map(jit(lambda x: x + 1), {"a": X}),
        lambda jit: list(map(jit(lambda x: x + 1), [X, X])),
        lambda jit: jit(lambda key: jax.random.normal(key, (2,)))(jax.random.key(0)),
        lambda jit: jit(lambda x: jax.pure_callback(lambda y: y, SHAPE, x))(X),
    ],
)
def test_results_are_those_of_jax_jit(use: Callable[[Any], Any]) -> None:
    assert same(use)[0] == "result" or not COMPLETE


@pytest.mark.xfail(
    _core.CORE.name == "python" and EVAL_SHAPE_TAKES_STATICS,
    strict=True,
    reason="an object in front: jax.eval_shape asks for the very type of JAX's own",
)
def test_jaxs_eval_shape_takes_static_arguments() -> None:
    same(lambda jit: jax.eval_shape(jit(lambda x, n: x[:n], static_argnums=1), X, 2).shape)


class Raising:
    def __hash__(self) -> NoReturn:
        raise RuntimeError("not to be hashed")


def broken_body(x: Any) -> Any:
    return deeper(x)


def deeper(x: Any) -> Any:
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise ValueError(f"bad shape {x.shape}") from error


def in_context(x: Any) -> Any:
    try:
        raise KeyError("inner")
    except KeyError:
        raise ValueError(f"bad shape {x.shape}")  # noqa: B904 -- the context is what is tested


def noted(x: Any) -> Any:
    error = ValueError("bad")
    error.add_note(f"shape {x.shape}")
    raise error


def endless(x: Any) -> Any:
    return endless(x)


@pytest.mark.parametrize(
    "use",
    [
        lambda jit: jit(lambda x: x)(),
        lambda jit: jit(lambda x: x)(1, 2),
        lambda jit: jit(lambda x: x)(y=1),
        lambda jit: jit(lambda x: x)("text"),
        lambda jit: jit(lambda x: x)(object()),
        lambda jit: jit(lambda x: x)(np.array(["a"])),
        lambda jit: jit(lambda x: x)(10**100),
        lambda jit: jit(lambda x, n: x, static_argnums=1)(X, [1]),
        lambda jit: jit(lambda x, n: x, static_argnums=1)(X, Raising()),
        lambda jit: jit(lambda x: "text")(X),
        lambda jit: jit(lambda x: x if x > 0 else -x)(1.0),
        lambda jit: jit(lambda x: float(x))(1.0),
        lambda jit: jit(lambda x: x @ x)(np.ones((2, 3))),
        lambda jit: jit(broken_body)(X),
        lambda jit: jit(in_context)(X),
        lambda jit: jit(noted)(X),
        lambda jit: jax.jit(jit(broken_body))(X),
        lambda jit: jit(lambda x: jit(broken_body)(x))(X),
        lambda jit: jax.grad(jit(broken_body))(X),
        lambda jit: jax.vmap(jit(broken_body))(np.ones((2, 2))),
        lambda jit: jit(broken_body).lower(X),
        lambda jit: jit(broken_body).trace(X),
        lambda jit: jit(broken_body).eval_shape(X),
        lambda jit: jit(double)(*[1] * 300),
    ],
)
def test_errors_are_those_of_jax_jit_frame_by_frame(use: Callable[[Any], Any]) -> None:
    assert same(use)[0] == "error"


@pytest.mark.parametrize(
    "use",
    [
        lambda jit: jit(lambda x, n: x, static_argnums=5),
        lambda jit: jit(lambda x: x, static_argnames="z"),
        lambda jit: jit(lambda x: x, static_argnums="a"),
        lambda jit: jit(lambda x: x, donate_argnums=1.5),
        lambda jit: jit(lambda x: x, bogus=1),
        pytest.param(lambda jit: jit(bogus=1), marks=DECORATES),
        pytest.param(lambda jit: jit(static_argnums="a")(lambda x: x), marks=DECORATES),
        lambda jit: jit(3),
        lambda jit: jit(None),
        lambda jit: jit("f"),
        pytest.param(lambda jit: jit(), marks=DECORATES),
        lambda jit: jit(fun=lambda x: x),
        lambda jit: jit(lambda x: x, 1),
        lambda jit: jit(double).nothing(X),
    ],
)
def test_what_jax_refuses_to_jit_is_refused_in_the_same_words(use: Callable[[Any], Any]) -> None:
    def refused(jit: Any) -> Any:
        try:
            return type(use(jit)).__name__ in ("PjitFunction", "WatchedPjitFunction", "function", "Jit")
        except Exception as error:  # noqa: BLE001 -- whatever it is
            return type(error), str(error)

    assert refused(jaxwatch.jit) == refused(jax.jit)


def test_an_exception_in_a_context_keeps_it() -> None:
    def use(jit: Any) -> None:
        try:
            raise LookupError("outer")
        except LookupError:
            jit(broken_body)(X)

    assert same(use)[0] == "error"


def test_the_exception_is_the_object_that_was_raised() -> None:
    error = ValueError("mine")

    def failing(x: Any) -> NoReturn:
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        made(failing)(X)
    assert caught.value is error
    assert (error.__cause__, error.__context__) == (None, None)
    assert not [name for file, name in frames(error) if "/jaxwatch/" in file]


def test_a_second_call_that_fails_does_so_as_the_first() -> None:
    step = made(broken_body)
    found = []
    for _ in range(2):
        with pytest.raises(ValueError, match="bad shape") as caught:
            step(X)
        found.append(told(caught.value))

    assert found[0] == found[1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, asyncio.CancelledError])
def test_an_interrupted_trace_goes_through_and_the_next_call_is_right(
    error: type[BaseException], events: Events
) -> None:
    fail = [True]

    @jaxwatch.jit
    def step(x: Any) -> Any:
        if fail:
            fail.pop()
            raise error
        return x + 1

    with pytest.raises(error):
        step(X)
    assert THREAD.open == []
    assert step(X).tolist() == [1, 2, 3, 4]
    assert [event.error for event in events.of(TraceError)] == [error.__qualname__]
    assert events.reasons == [("first_call",)]


def test_endless_recursion_ends_in_its_own_error(events: Events) -> None:
    step = made(endless)
    with pytest.raises(RecursionError):
        step(X)

    assert made(double)(X).tolist() == [0, 2, 4, 6]
    assert len(events.of(TraceError)) == 1


def test_with_jit_disabled_the_function_runs_as_it_is(events: Events) -> None:
    step = made(lambda x: float(x) + 1)
    with jax.disable_jit():
        assert step(1.0) == 2.0

    assert events.misses == []
    assert jaxwatch.stats(step).calls == 1


def test_a_leaked_tracer_is_the_same_error() -> None:
    def use(jit: Any) -> Any:
        leaked = []
        jit(lambda x: leaked.append(x))(X)
        return jit(lambda x: x + leaked[0])(X)

    assert same(use)[0] == "error"


def test_a_donated_buffer_is_gone_as_with_jax() -> None:
    def use(jit: Any) -> Any:
        step = jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(3)
        once = step(x)
        return [once, x.is_deleted()]

    assert same(use)[1][1][-1] is True

    def again(jit: Any) -> Any:
        step = jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(3)
        step(x)
        return step(x)

    assert same(again)[0] == "error"


# ------------------------------------------------------------------ odd callables


class Callable1:
    """A function by its class; hashable by value."""

    def __call__(self, x: Any) -> Any:
        return x + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Callable1)

    def __hash__(self) -> int:
        return 1


class SlottedWeakly:
    __slots__ = ("__weakref__",)

    def __call__(self, x: Any) -> Any:
        return x + 1


class Evil:
    """Answers every question with an error."""

    def __call__(self, x: Any) -> Any:
        return x + 1

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


class Proxy:
    """Answers every question with itself."""

    def __call__(self, x: Any) -> Any:
        return x + 1

    def __getattr__(self, name: str) -> Any:
        return self


class NoHash:
    __hash__ = None  # type: ignore[assignment]  # as Python does it for a class with __eq__

    def __call__(self, x: Any) -> Any:
        return x + 1


class EvilHash:
    def __hash__(self) -> NoReturn:
        raise RuntimeError("hash")

    def __call__(self, x: Any) -> Any:
        return x + 1


def renamed(**attributes: Any) -> Any:
    def step(x: Any) -> Any:
        return x + 1

    for name, value in attributes.items():
        setattr(step, name, value)
    return step


def generator(x: Any) -> Iterator[Any]:
    yield x


@pytest.mark.parametrize(
    "make",
    [
        lambda: len,
        lambda: sum,
        lambda: int,
        lambda: type,
        lambda: print,
        lambda: functools.partial(max, 1),
        lambda: functools.partial(functools.partial(double, n=2)),
        lambda: jnp.sin,
        lambda: jnp.add,
        lambda: Callable1(),
        lambda: Callable1().__call__,
        lambda: SlottedWeakly(),  # without __weakref__, as np.sin is: JAX 0.10.2 itself crashes
        lambda: Evil(),
        lambda: Proxy(),
        lambda: NoHash(),
        lambda: EvilHash(),
        lambda: functools.lru_cache(double),
        lambda: functools.singledispatch(double),
        lambda: staticmethod(double),
        lambda: classmethod(double),
        lambda: property(double),
        lambda: generator,
        lambda: jax.custom_jvp(double),
        lambda: jax.checkpoint(double),
        lambda: renamed(__wrapped__=3),
        lambda: renamed(__wrapped__=None),
        lambda: renamed(__wrapped__=len),
        lambda: renamed(__name__='a b "c"'),
        lambda: renamed(__name__="x" * 1000),
        lambda: renamed(__qualname__=""),
        lambda: renamed(__module__=None),
        lambda: renamed(__doc__=3),
        lambda: renamed(__annotations__={"x": "nothing.of.the.kind"}),
        lambda: renamed(__defaults__=(1,)),
        lambda: renamed(__signature__=3),
        lambda: renamed(__code__=double.__code__),
        lambda: eval("lambda x: x + 1"),  # noqa: S307 -- code without a file
    ],
)
def test_an_odd_callable_comes_out_as_with_jax_jit(make: Callable[[], Any]) -> None:
    def use(jit: Any) -> Any:
        found = jit(make())
        return found(X), found(X)

    same(use, strict=False)


def test_a_finalizer_that_calls_watched_functions_does_no_harm() -> None:
    step = made(lambda x: x + 1)

    class Dying:
        def __del__(self) -> None:
            step(X)

    for _ in range(20):
        thing = Dying()
        made(lambda x: x + 2)(X)
        del thing
    assert jaxwatch.stats(step).calls == 20


# ------------------------------------------------------------------ copies


@pytest.mark.parametrize("name", ["pickle", "cloudpickle"])
def test_a_pickled_function_comes_back_watched_as_it_was(name: str) -> None:
    through = pytest.importorskip(name)

    def sent(function: Any) -> Any:
        return outcome(lambda _jit: through.loads(through.dumps(function))(X, 3), None)

    assert sent(watched_double)[0] == sent(plain_double)[0]
    if sent(plain_double)[0] == "result":
        came = through.loads(through.dumps(watched_double))
        assert jaxwatch.stats(came).function == "twice"
        assert plain(came(X, 3)) == plain(plain_double(X, 3))
        assert jaxwatch.stats(came).calls == 1


def test_a_closure_goes_through_cloudpickle_as_with_jax() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")

    def use(jit: Any) -> Any:
        scale = 3.0
        step = jit(lambda x: x * scale)
        step(X)
        return cloudpickle.loads(cloudpickle.dumps(step))(X)

    same(use)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_computes_the_same_and_has_attributes_and_counts_of_its_own(copied: Any) -> None:
    step = made(lambda x: x + 1)
    step(X)
    other = copied(step)
    other.tag = 1

    assert not hasattr(step, "tag")
    assert other(X).tolist() == step(X).tolist()
    assert other is not step
    assert repr(other) == repr(copied(jax.jit(lambda x: x + 1)))
    if REGISTRY.find(other) is not None:
        assert jaxwatch.stats(other).calls == 1
    assert jaxwatch.stats(step).calls == 2


# ------------------------------------------------------------------ counting


def test_every_call_is_counted_by_eight_threads_at_once(events: Events) -> None:
    step = made(lambda x: x + 1)
    step(X)
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        for _ in range(2000):
            step(X)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = jaxwatch.stats(step)
    assert found.calls == 16_001
    assert found.misses == len(events.misses) == 1
    assert sum(found.dispatch.values()) == 16_000


def test_each_thread_has_its_own_misses(events: Events) -> None:
    step = made(lambda x: x + 1)
    start = threading.Barrier(8)

    def work(size: int) -> None:
        start.wait()
        for _ in range(3):
            step(np.zeros(size, np.float32))

    threads = [threading.Thread(target=work, args=(size,), name=f"size {size}") for size in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(miss.origin.thread_name for miss in events.misses) == [f"size {size}" for size in range(1, 9)]
    for miss in events.misses:
        assert miss.abstract == f"(x: float32[{miss.origin.thread_name.removeprefix('size ')}])"
        assert (miss.traces, miss.lowerings, miss.compiles) == (1, 1, 1)
    assert sorted(reasons[0] for reasons in events.reasons) == ["first_call"] + ["shape"] * 7
    ids = [miss.id for miss in events.misses]
    compared = {miss.id: miss.compared_with for miss in events.misses}
    assert all(compared[number] is None or compared[number] < number for number in ids)  # type: ignore[operator]  # not None
    assert jaxwatch.stats(step).calls == 24


def test_an_inner_function_is_called_but_misses_nothing(events: Events) -> None:
    inner = made(lambda x: x * 2)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        return inner(x) + inner(x)

    outer(X)
    outer(X)

    assert [(miss.function, miss.reasons) for miss in events.misses] == [("outer", ("first_call",))]
    assert jaxwatch.stats(inner).calls == 2
    assert sum(jaxwatch.stats(inner).dispatch.values()) == 0
    assert jaxwatch.stats(outer).calls == 2
    assert events.eager == []


def test_recursion_of_watched_functions_is_counted_once_each(events: Events) -> None:
    @functools.partial(jaxwatch.jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x if n == 0 else x * power(x, n - 1)

    assert power(2.0, 3) == 16.0
    assert jaxwatch.stats(power).calls == 4
    assert [(miss.function, miss.call) for miss in events.misses] == [("power", 1)]


def test_what_is_evaluated_for_real_inside_a_trace_is_not_the_outer_functions(events: Events) -> None:
    inner = made(lambda x: x + 1)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        with jax.ensure_compile_time_eval():
            value = inner(np.float32(1.0)) + jnp.arange(3).sum()
        return x + value

    outer(X)

    assert {miss.function for miss in events.misses} == {"<lambda>", "outer"}
    (miss,) = (miss for miss in events.misses if miss.function == "outer")
    assert (miss.traces, miss.lowerings, miss.compiles) == (1, 1, 1)
    assert all(event.function != "outer" for event in events.eager)


def test_tasks_of_asyncio_do_not_get_in_each_others_way(events: Events) -> None:
    step = made(lambda x: x + 1)

    async def worker(size: int) -> float:
        total = 0.0
        for _ in range(3):
            total += float(step(np.ones(size, np.float32)).sum())
            await asyncio.sleep(0)
        return total

    async def main() -> list[float]:
        return await asyncio.gather(*(worker(size) for size in (1, 2, 3)))

    assert asyncio.run(main()) == [6.0, 12.0, 18.0]
    assert [miss.call for miss in events.misses] == [1, 2, 3]
    assert jaxwatch.stats(step).calls == 9


def test_a_generator_may_be_left_in_the_midst(events: Events) -> None:
    step = made(lambda x: x + 1)

    def batches() -> Generator[Any]:
        while True:
            yield step(X)

    running = batches()
    next(running)
    next(running)
    running.close()

    assert jaxwatch.stats(step).calls == 2
    assert len(events.misses) == 1


def test_the_figures_add_up(events: Events) -> None:
    step = made(lambda x: x + 1)
    for size in (1, 2, 1, 2, 1):
        step(np.zeros(size, np.float32))
    found = jaxwatch.stats(step)

    assert found.calls == 5
    assert found.misses == found.traces == found.lowerings == found.compiles == found.signatures == 2
    assert sum(found.dispatch.values()) == 3
    assert found.misses_by_cause == {("compile", "first_call"): 1, ("compile", "shape"): 1}
    assert found.misses_by_signature == {miss.signature: 1 for miss in events.misses}
    assert found.abstracts == {miss.signature: miss.abstract for miss in events.misses}
    assert found.seconds.total == pytest.approx(sum(miss.seconds.total for miss in events.misses))
    assert sum(found.miss_seconds.values()) == 2
    assert found.dispatch_quantile(0.5) is not None


# ------------------------------------------------------------------ nothing is kept


def test_nothing_of_a_call_is_kept_alive() -> None:
    step = made(lambda x, y: x["a"] + y)
    argument, keyword = {"a": jnp.ones(3)}, jnp.ones(3)
    result = step(argument, y=keyword)
    gone = [weakref.ref(part) for part in (argument["a"], keyword, result)]
    del argument, keyword, result
    gc.collect()

    assert [ref() for ref in gone] == [None] * 3


def test_nothing_of_a_call_that_failed_is_kept_alive() -> None:
    step = made(broken_body)
    argument = jnp.ones(3)
    with pytest.raises(ValueError, match="bad"):
        step(argument)
    gone = weakref.ref(argument)
    del argument
    gc.collect()

    assert gone() is None


def test_a_watched_function_dies_and_its_counts_stay(events: Events) -> None:
    def body(x: Any) -> Any:
        return x + 1

    step = made(body, watch=Watch(name="mortal"))
    step(X)
    step(X)
    gone = weakref.ref(step), weakref.ref(body)
    del step, body
    gc.collect()

    assert [ref() for ref in gone] == [None, None]
    (found,) = (stats for stats in REGISTRY.snapshot().functions if stats.function == "mortal")
    assert (found.calls, found.misses) == (2, 1)
    assert len(events.misses) == 1


def test_a_method_of_an_instance_lets_it_die() -> None:
    class Model:
        def apply(self, x: Any) -> Any:
            return x + 1

    model = Model()
    step = made(model.apply)
    step(X)
    gone = weakref.ref(model)
    del model, step
    gc.collect()

    assert gone() is None


# ------------------------------------------------------------------ the wrapper is not in the way


def test_the_users_function_itself_is_given_to_jax() -> None:
    assert watched_double.__wrapped__ is double
    assert _compat.function_of(watched_double) is double


def test_programs_have_the_same_name_and_text_as_without() -> None:
    def use(jit: Any) -> list[str]:
        return [jit(double, static_argnums=1).lower(X, 2).as_text(), jit(lambda x: x + 1).lower(X).as_text()]

    assert use(jaxwatch.jit) == use(jax.jit)


def test_caches_are_those_of_plain_jit() -> None:
    """jit anew of the same function finds what was compiled, whichever jit it is."""
    compiled: list[str] = []

    def listen(event: str, seconds: float, **kwargs: Any) -> None:
        del seconds
        if event == _compat.COMPILE_EVENT:
            compiled.append(kwargs.get("fun_name", ""))

    def body(x: Any) -> Any:
        return x * 5

    monitoring: Any = vars(_compat)["_monitoring"]
    monitoring.register_event_duration_secs_listener(listen)
    try:
        jax.jit(body)(X)
        made(body)(X)
        jax.jit(body)(X)
    finally:
        _compat.unregister(listen, listen, listen)
    assert len(compiled) == 1


CACHING = """
    import os, sys, jax, jax.numpy as jnp
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if {ours}:
        import jaxwatch
        jit = jaxwatch.jit
    else:
        jit = jax.jit

    def double(x, n): return x * n
    class Model:
        def step(self, x): return jnp.tanh(x @ x)
    def loss(x): return (x ** 2).sum()
    x = jnp.ones((3, 3))
    jit(double, static_argnums=1)(x, 2), jit(Model().step)(x), jit(jax.grad(loss))(x)
    jit(lambda x: x - 1, donate_argnums=0)(x + 1)
    jit(jax.vmap(jit(loss)))(x), jit(double).lower(x, x).compile()
    print(*sorted(os.listdir(os.environ["JAX_COMPILATION_CACHE_DIR"])))
"""


def test_programs_are_found_in_the_persistent_cache_under_the_same_keys(tmp_path: Path) -> None:
    names = []
    for ours in (False, True):
        ended = run(CACHING.format(ours=ours), JAX_COMPILATION_CACHE_DIR=str(tmp_path))  # which is in the key
        assert ended.code == 0, ended.err
        names.append([name for name in ended.out.split() if not name.endswith("-atime")])

    assert names[0] == names[1]
    assert len(names[0]) >= 6


def test_a_switched_off_process_unpickles_plain_functions() -> None:
    ended = run(
        """
        import pickle, sys, jax, jaxwatch
        from jaxwatch._core import rewatch
        step = jaxwatch.jit(abs)
        assert type(step) is type(jax.jit(abs))
        assert rewatch(step, jaxwatch.Watch(), False) is step
        """,
        JAXWATCH="0",
    )
    assert ended.code == 0, ended.err
