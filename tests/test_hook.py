"""What a hooked function is taken for, how it is copied and pickled, attached and detached; what the probe finds."""

# ruff: noqa: ARG001, PLW0108 -- functions of the user's take what they do not use

import copy
import functools
import gc
import importlib
import inspect
import operator
import pickle
import types
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it has no types
import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fidelity import COMPLETE, DECORATES, EVAL_SHAPE_TAKES_STATICS, frames, same
from published import Events

import jaxwatch
from jaxwatch import Watch, _compat, _core, _departures, _frames, _hook, _misses
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, NoNativeCoreError, NotWatchedError

X = np.arange(4, dtype=np.float32)


# `jaxwatch.jit` itself is made once in a process.
IN_C = pytest.mark.skipif(_core.CORE.hooks is None, reason="the twin's jit is a function of Python, a frame more")


def double(x: Any, n: int = 2) -> Any:
    """Double it."""
    return x * n


@pytest.fixture(autouse=True)
def native() -> Iterator[Any]:
    gc.collect()  # what earlier tests left dies now, and not under a test that counts
    with cores.in_use("native"):
        yield cores.hooks().native


# ------------------------------------------------------------------ what it is taken for


def test_it_is_a_jitted_function_of_jaxs_own_type() -> None:
    step: Any = jaxwatch.jit(double, static_argnums=1)

    assert type(step) is type(jax.jit(double))
    assert vars(step)["__wrapped__"] is double
    assert vars(step).keys() == vars(jax.jit(double, static_argnums=1)).keys()


@pytest.mark.parametrize("values", [(X,), (X, 3), (jnp.float32(1), 2)])
def test_it_goes_through_all_of_jaxs_transformations(values: tuple[Any, ...]) -> None:
    def run(jit: Any) -> Any:
        step = jit(double, static_argnums=1)
        x, *rest = values
        return (
            step(*values),
            jax.eval_shape(step, *values).shape if EVAL_SHAPE_TAKES_STATICS or not rest else 0,
            jax.grad(lambda x: step(x, *rest).sum())(x),
            jax.vmap(lambda x: step(x, *rest))(jnp.stack([x, x])),
            jax.jit(lambda x: step(x, *rest))(x),
            jax.jvp(lambda x: step(x, *rest), (x,), (x,)),
            jax.checkpoint(step, static_argnums=1)(*values) if rest else 0,
            step.lower(*values).as_text(),
            str(step.trace(*values).jaxpr),
            str(jax.make_jaxpr(step, static_argnums=1)(*values)),
        )

    assert same(run)[0] == "result"


@pytest.mark.parametrize("wrong", [(), (X, X, X), ("text",), (X, [])])
def test_a_wrong_call_is_the_same_error(wrong: tuple[Any, ...]) -> None:
    assert same(lambda jit: jit(double, static_argnums=1)(*wrong))[0] == "error"


@IN_C
@pytest.mark.parametrize(
    "make",
    [
        lambda jit: jit(3),
        lambda jit: jit(double, nothing=1),
        lambda jit: jit(double, static_argnums=9),
        lambda jit: jit(double, static_argnums="x"),
        lambda jit: jit(double, static_argnames=["none"]),
        pytest.param(lambda jit: jit(nothing=1), marks=DECORATES),
        pytest.param(lambda jit: jit(static_argnums="x")(double), marks=DECORATES),
        lambda jit: jit(inline=True)(),
        pytest.param(lambda jit: jit(inline=True)(double, inline=False), marks=DECORATES),
        lambda jit: jit(None),
        lambda jit: jit()(),
    ],
)
def test_wrong_options_are_the_same_error(make: Callable[[Any], Any]) -> None:
    assert same(make)[0] == "error"


@IN_C
def test_warnings_of_jax_name_the_users_line() -> None:
    def places(jit: Any) -> list[tuple[str, str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            jit(double, backend="cpu")
            if _compat.HAS_DECORATOR_FORM:
                jit(backend="cpu")(double)
            jit(lambda x: x.sum(), donate_argnums=0)(jnp.ones(3))
        return [(str(told.message), told.filename, told.lineno) for told in caught]

    found = [places(jit) for jit in (jax.jit, jaxwatch.jit)]  # on one line: the decorator's warning names the caller's
    assert found[0] == found[1]
    assert __file__ in {name for _, name, _ in found[0]} or not COMPLETE


def test_a_traceback_has_the_frames_that_it_has_with_jax() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("no")

    def kept(jit: Any) -> list[tuple[str, str]]:
        with pytest.raises(KeyError) as raised:
            jit(fail)(X)
        return frames(raised.value)

    assert kept(jaxwatch.jit) == kept(jax.jit)


def test_methods_bind() -> None:
    class Model:
        scale = 3.0

        @functools.partial(jaxwatch.jit, static_argnums=0)
        def apply(self, x: Any) -> Any:
            return x * self.scale

        @classmethod
        @functools.partial(jaxwatch.jit, static_argnums=0)
        def make(cls, x: Any) -> Any:
            return x + cls.scale

        @staticmethod
        @jaxwatch.jit
        def loss(x: Any) -> Any:
            return x.sum()

    model = Model()
    assert isinstance(model.apply, types.MethodType)
    assert (model.apply(X).tolist(), Model.make(X).tolist(), float(Model.loss(X))) == ([0, 3, 6, 9], [3, 4, 5, 6], 6)
    assert (
        jaxwatch.stats(model.apply).calls == jaxwatch.stats(Model.make).calls == jaxwatch.stats(Model.loss).calls == 1
    )


def test_signature_and_wraps_are_as_with_jax() -> None:
    def ask(jit: Any) -> Any:
        step = jit(double, static_argnums=1)
        wrapper = functools.wraps(step)(lambda x: x)
        return str(inspect.signature(step)), inspect.getdoc(step), sorted(vars(wrapper)), float(wrapper(2.0))

    assert same(ask)[0] == "result"


def test_grad_and_vmap_compute_what_they_should_when_jitted_again() -> None:
    cube = jaxwatch.jit(lambda x: x**3)

    assert float(jaxwatch.jit(jax.grad(cube))(2.0)) == 12
    assert float(jaxwatch.jit(jax.grad(jax.grad(cube)))(2.0)) == 12
    assert jaxwatch.jit(jax.vmap(cube))(X).tolist() == [0, 1, 8, 27]


class NoWeak:
    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return x + 1


def test_a_function_without_weak_references_is_left_as_jax_does_it(native: Any) -> None:
    """Not called here: JAX's caches ask for weak references, and a call ends the process sooner or later (0.10.2)."""
    step, plain = jaxwatch.jit(NoWeak()), jax.jit(NoWeak())

    assert type(step) is type(plain)
    assert cores.hooks()._seen_through(plain, NoWeak(), native.Cell()) is plain
    assert copy.copy(step) is step


@pytest.mark.parametrize(
    "jit",
    [
        lambda f: jaxwatch.jit(f),
        lambda f: jaxwatch.jit()(f),
        lambda f: jaxwatch.jit(inline=False)(f),
        lambda f: jaxwatch.jit(watch=Watch(name="double"))(f),
        lambda f: jaxwatch.jit(f, watch=Watch(name="double"), inline=True),
        lambda f: functools.partial(jaxwatch.jit, inline=False)(f),
    ],
)
def test_every_form_of_jit_hooks(jit: Callable[[Any], Any], native: Any) -> None:
    step = jit(double)

    assert step(X).tolist() == [0, 2, 4, 6]
    assert native.is_hooked(step)
    assert jaxwatch.stats(step).function == "double"


# ------------------------------------------------------------------ copies

DUPLICATES: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, lambda f: cloudpickle.loads(cloudpickle.dumps(f))]


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copy_is_watched_as_its_original_and_counts_for_itself(
    duplicate: Callable[[Any], Any], native: Any, events: Events
) -> None:
    def twice(x: Any, n: int = 2) -> Any:
        return x * n

    stored = jaxwatch.jit(twice, static_argnums=1, watch=Watch(name="stored"))
    stored(X)
    made = duplicate(stored)
    made.tag = 1

    assert made is not stored
    assert not hasattr(stored, "tag")
    assert type(made) is type(stored)
    assert native.is_hooked(made)
    assert [made(X).tolist(), made(X, 3).tolist(), made(np.ones(9, np.float32), 3).tolist()] == [
        [0, 2, 4, 6],
        [0, 3, 6, 9],
        9 * [3],
    ]
    assert (jaxwatch.stats(stored).calls, jaxwatch.stats(made).calls) == (1, 3)
    assert {miss.function for miss in events.misses} == {"stored"}
    assert native.current() is None


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copy_of_what_nobody_watches_is_jaxs_own(duplicate: Callable[[Any], Any], native: Any) -> None:
    made = duplicate(jax.jit(double))

    assert not native.is_hooked(made)
    assert made(X).tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("switched", [True, False])
def test_an_installed_or_attached_function_is_copied_watched_and_pickled_plain(switched: bool, native: Any) -> None:
    """The program does not name jaxwatch, so its pickles may be read where it is not installed."""
    step = _core.installed_jit()(double) if switched else jaxwatch.attach(jax.jit(double))
    copied, pickled = copy.copy(step), cloudpickle.dumps(step)

    assert native.is_hooked(copied)
    assert native.is_hooked(copy.copy(copied))
    assert b"jaxwatch" not in pickled.replace(__name__.encode(), b"")
    assert b"jaxwatch" not in cloudpickle.dumps(copied)
    assert not native.is_hooked(pickle.loads(pickled))  # noqa: S301 -- our own
    assert pickle.loads(pickled)(X).tolist() == copied(X).tolist() == [0, 2, 4, 6]  # noqa: S301


def test_a_copy_outlives_its_original() -> None:
    original = jaxwatch.jit(lambda x: x + 1)
    made, gone = copy.copy(original), weakref.ref(original)
    del original
    gc.collect()

    assert gone() is None
    assert made(X).tolist() == [1, 2, 3, 4]


def test_the_pickle_of_an_installed_function_is_read_where_we_are_not_installed() -> None:
    by_value = cloudpickle.dumps(_core.installed_jit()(lambda x: x + 1))

    assert b"jaxwatch" not in by_value
    done = cores.run(
        f"""
        import sys
        sys.modules["jaxwatch"] = None
        import pickle, jax, numpy as np
        step = pickle.loads({by_value!r})
        assert type(step) is type(jax.jit(abs)), type(step)
        assert step(np.float32(1)) == 2
        """,
        JAXWATCH_CORE="",
    )
    assert done.code == 0, done.err


@pytest.mark.parametrize("cores_of", [("native", "python"), ("python", "native")])
def test_a_pickle_of_one_core_is_read_by_the_other(cores_of: tuple[str, str]) -> None:
    writer, reader = cores_of
    with cores.in_use(writer):
        by_value = cloudpickle.dumps(jaxwatch.jit(lambda x: x + 1, watch=Watch(name="sent")))
    with cores.in_use(reader):
        came = pickle.loads(by_value)  # noqa: S301 -- our own
        assert came(X).tolist() == [1, 2, 3, 4]
        assert (jaxwatch.stats(came).function, jaxwatch.stats(came).calls) == ("sent", 1)


def test_what_pickle_cannot_do_with_jaxs_own_it_cannot_with_ours() -> None:
    def fail(jit: Any) -> Any:
        return len(pickle.dumps(jit(double)))

    assert same(fail)[0] == "error"


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_jit_itself_is_copied_and_pickled_as_a_function_is(dumps: Callable[[Any], bytes]) -> None:
    assert copy.copy(jaxwatch.jit) is copy.deepcopy(jaxwatch.jit) is jaxwatch.jit
    assert pickle.loads(dumps(jaxwatch.jit)) is jaxwatch.jit  # noqa: S301 -- our own
    assert copy.deepcopy({"jit": jaxwatch.jit(inline=False)})["jit"](double)(X).tolist() == [0, 2, 4, 6]


def test_an_installed_jit_is_copied_and_pickled_as_a_function_is() -> None:
    jaxwatch.install()
    try:
        again = functools.partial(jax.jit, static_argnums=1)
        assert copy.deepcopy(jax.jit) is jax.jit
        assert pickle.loads(pickle.dumps(jax.jit)) is jax.jit  # noqa: S301 -- our own
        assert pickle.loads(pickle.dumps(again))(double)(X, 3).tolist() == [0, 3, 6, 9]  # noqa: S301
    finally:
        jaxwatch.uninstall()


def test_what_stands_for_the_miss_callback_is_pickled_as_jaxs_own() -> None:
    state = jaxwatch.jit(double).__getstate__()
    kind, (kept,) = state["cache_miss"].__reduce__()

    assert isinstance(kind, operator.itemgetter)
    assert kept[0] is state["cache_miss"].__wrapped__


# ------------------------------------------------------------------ attach, detach


def test_attach_and_detach_work_in_place(native: Any, events: Events) -> None:
    step = jax.jit(lambda x: x + 1)
    step(X)

    assert jaxwatch.attach(step) is step
    assert jaxwatch.attach(step) is step
    assert [step(X).tolist(), step(np.ones(3)).tolist()] == [[1, 2, 3, 4], [2, 2, 2]]
    assert (jaxwatch.stats(step).calls, jaxwatch.stats(step).misses) == (2, 1)
    assert [(miss.call, miss.reasons) for miss in events.misses] == [(2, ("unknown",))]

    assert jaxwatch.detach(step) is step
    assert not native.is_hooked(step)
    assert step(np.ones(5)).tolist() == 5 * [2]
    assert len(events.misses) == 1
    with pytest.raises(NotWatchedError):
        jaxwatch.detach(step)
    with pytest.raises(NotWatchedError):
        jaxwatch.stats(step)


def test_the_figures_of_a_detached_function_stay_in_the_process(events: Events) -> None:
    step = jaxwatch.jit(double)
    for _ in range(3):
        step(X)
    jaxwatch.detach(step)
    step(X)

    assert [(stats.function, stats.calls) for stats in REGISTRY.snapshot().functions] == [("double", 3)]


def test_a_function_detached_and_attached_again_counts_on() -> None:
    step = jaxwatch.jit(lambda x: x)
    step(X)
    jaxwatch.attach(jaxwatch.detach(step))
    step(X)
    step(X)

    assert jaxwatch.stats(step).calls == 2
    assert (
        sum(
            stats.calls
            for stats in REGISTRY.snapshot().functions
            if stats.definition == jaxwatch.stats(step).definition
        )
        == 3
    )


def test_a_function_detached_within_its_own_call_finishes_it(native: Any) -> None:
    def body(x: Any) -> Any:
        jaxwatch.detach(step)
        return jax.jit(lambda x: x + 1)(x)

    step = jaxwatch.jit(body)
    assert step(X).tolist() == [1, 2, 3, 4]
    assert step(X).tolist() == [1, 2, 3, 4]
    assert native.current() is None
    assert not native.is_hooked(step)


def test_a_function_attached_within_its_own_call_is_watched_from_the_next(native: Any) -> None:
    def body(x: Any) -> Any:
        jaxwatch.attach(step)
        return x + 1

    step = jax.jit(body)
    assert [step(X).tolist(), step(X).tolist()] == 2 * [[1, 2, 3, 4]]
    assert jaxwatch.stats(step).calls == 1


def test_one_function_may_be_attached_by_many_threads_at_once(native: Any) -> None:
    before = native.hooked_count()
    step = jax.jit(lambda x: x)

    failures = cores.at_once(lambda: jaxwatch.attach(step), threads=8)

    step(X)
    assert failures == []
    assert native.hooked_count() == before + 1
    assert jaxwatch.stats(step).calls == 1


def test_who_comes_second_to_attach_a_function_is_content(native: Any) -> None:
    step = jaxwatch.jit(double)
    kept = REGISTRY.find(step)
    cores.hooks().attach(step, double, Watch())

    assert REGISTRY.find(step) is kept
    with pytest.raises(ValueError, match="hooked already"):
        native.hook(step, native.Cell(), None)


@pytest.mark.parametrize("wrong", [None, 3, double, "step", jax.jit])
def test_what_is_not_jitted_cannot_be_attached(wrong: Any, native: Any) -> None:
    with pytest.raises(BadOptionError, match=r"attach\(.*Give what jax\.jit returned"):
        jaxwatch.attach(wrong)
    with pytest.raises(NotWatchedError):
        jaxwatch.detach(wrong)
    for refused in (native.unhook, lambda f: native.hook(f, native.Cell(), None)):
        with pytest.raises(TypeError, match="not a jitted function"):
            refused(wrong)
    assert not native.is_hooked(wrong)


def test_the_twin_cannot_attach_and_says_so() -> None:
    with cores.in_use("python"), pytest.raises(NoNativeCoreError, match=r"in place.*Jit with jaxwatch\.jit"):
        jaxwatch.attach(jax.jit(double))


# ------------------------------------------------------------------ the probe


class Native:
    """The extension module, with something of it gone wrong."""

    def __init__(self, native: Any, **changed: Any) -> None:
        self._native, self._changed = native, changed

    def __getattr__(self, name: str) -> Any:
        return self._changed[name] if name in self._changed else getattr(self._native, name)


@pytest.fixture
def _restored(native: Any) -> Iterator[None]:
    frame = _frames.Active.frame
    yield
    _frames.Active.frame = staticmethod(frame)
    native.setup(_compat.PJIT_TYPE, _frames.Frame, _misses.finish, _hook._refused, _departures.left)


def refuse(*_: Any) -> Any:
    raise KeyError("cache_miss")


@pytest.mark.usefixtures("_restored")
def test_where_jaxs_state_is_another_departures_are_not_seen(native: Any, events: Events) -> None:
    hooks = _hook.Hooks(Native(native, exact=refuse))
    assert not hooks.exact

    def own(x: Any) -> Any:
        return x * 2

    jitted = jax.jit(own)
    step = hooks.watch(jitted, own, Watch(), {})
    assert step is jitted
    assert [step(X).tolist(), step(X).tolist()] == 2 * [[0, 2, 4, 6]]
    assert (jaxwatch.stats(step).calls, jaxwatch.stats(step).misses) == (2, 1)
    assert sum(jaxwatch.stats(step).dispatch.values()) == 1
    assert len(events.misses) == 1


@pytest.mark.usefixtures("_restored")
def test_a_state_that_changes_later_only_costs_the_departures(native: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = cores.hooks()
    monkeypatch.setattr(hooks, "native", Native(native, exact=refuse))
    step = jaxwatch.jit(double)

    assert [step(X).tolist(), step(X).tolist()] == 2 * [[0, 2, 4, 6]]
    assert jaxwatch.stats(step).calls == 2


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(
    "changed",
    [
        {"is_hooked": lambda _: False},
        {"unhook": lambda _: False},
        {"hook": lambda *_: None},
        {"Cell": lambda: types.SimpleNamespace(calls=0, left=0), "exact": refuse, "hook": lambda *_: None},
    ],
)
def test_a_probe_that_fails_leads_to_the_twin(
    native: Any, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Native(native, **changed)
    with pytest.raises(_hook.ProbeFailedError):
        _hook.Hooks(broken)

    monkeypatch.setattr(importlib, "import_module", lambda _: broken)
    picked = _core.pick({})
    assert (picked.name, picked.hooks) == ("python", None)
    assert picked.reason.startswith("the native core does not fit this JAX")
    with pytest.raises(NoNativeCoreError, match="does not fit"):
        _core.pick({"JAXWATCH_CORE": "native"})


def test_the_probe_leaves_nothing_and_starts_no_backend() -> None:
    done = cores.run(
        """
        import jax, jaxwatch
        jaxwatch.jit(lambda x: x)
        from jax._src import xla_bridge
        from jaxwatch import _core
        from jaxwatch._registry import REGISTRY
        assert not xla_bridge._backends
        assert _core.CORE.hooks.native.hooked_count() == 0, "the function above is dead, and so is the probe's"
        assert REGISTRY.snapshot().functions == ()
        assert _core.CORE.hooks.native.current() is None
        """
    )
    assert done.code == 0, done.err


def test_the_probe_sees_departures_where_the_program_begins_with_jit_disabled() -> None:
    done = cores.run(
        """
        import jax, jaxwatch
        from jaxwatch import _core
        assert jax.config.jax_disable_jit
        print(_core.CORE.hooks.exact)
        """,
        JAX_DISABLE_JIT="1",
    )
    assert done.out.strip() == "True", done.err


def test_a_refused_call_shows_no_frame_of_ours() -> None:
    step = jaxwatch.jit(lambda x: x, watch=Watch(max_signatures=1, on_retrace="raise"))
    step(X)
    with pytest.raises(jaxwatch.RetraceError) as raised:
        step(np.ones(7, np.float32))

    assert [name for _, name in frames(raised.value)] == ["test_a_refused_call_shows_no_frame_of_ours"]


# ------------------------------------------------------------------ what was called before it was attached


def test_the_first_miss_of_a_function_that_was_called_before_it_was_attached_is_no_first_call(events: Events) -> None:
    step = jax.jit(lambda x: x + 1)
    step(X)
    jaxwatch.attach(step)
    step(X)
    step(X[:2])
    step(X[:1])

    assert events.reasons == [("unknown",), ("shape",)]
    assert "before it was watched" in str(events.misses[0].changes[0].note)


def test_the_first_call_of_a_function_that_was_not_is_one(events: Events) -> None:
    step = jaxwatch.attach(jax.jit(lambda x: x + 1))
    step(X)

    assert events.reasons == [("first_call",)]


def test_a_guard_that_allows_one_compile_does_not_allow_another_to_what_has_compiled() -> None:
    step = jax.jit(lambda x: x + 1)
    step(X)
    jaxwatch.attach(step, watch=Watch(name="step"))

    with pytest.raises(jaxwatch.RetraceError), jaxwatch.no_retraces():
        step(X[:2])


def test_methods_are_attached_and_detached_through_instances() -> None:
    class Model:
        @jax.jit
        def step(self, x: Any) -> Any:
            return x + 1

    jax.tree_util.register_static(Model)
    model = Model()
    assert jaxwatch.attach(model.step) == model.step
    model.step(X)
    assert jaxwatch.stats(model.step).calls == jaxwatch.stats(Model.step).calls == 1
    assert jaxwatch.detach(model.step) == model.step
    with pytest.raises(NotWatchedError):
        jaxwatch.stats(model.step)
