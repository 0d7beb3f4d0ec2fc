"""``JAXWATCH_JIT_SCOPE``: what is not named runs as it is written, and all else stays what it was."""

import copy
import sys
import traceback
from collections.abc import Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped]  # it has no types
import cores
import jax
import jax.numpy as jnp
import programs
import pytest

import jaxwatch
from jaxwatch import _core, _scope
from jaxwatch._scope import Measuring, Scope


@pytest.fixture(params=cores.CORES)
def core(request: pytest.FixtureRequest) -> Iterator[_core.Core]:
    with cores.in_use(request.param) as found:
        yield found


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measuring, "on", True)
    monkeypatch.setattr(Measuring, "subjects", {})


def scope(monkeypatch: pytest.MonkeyPatch, names: str) -> None:
    monkeypatch.setenv(_scope.VARIABLE, names)


def pair() -> tuple[Any, Any, list[str]]:
    ran: list[str] = []

    @jaxwatch.jit
    def inner(x: Any) -> Any:
        ran.append("inner")
        return 2 * x + jnp.sin(x)

    @jaxwatch.jit
    def outer(x: Any) -> Any:
        ran.append("outer")
        return inner(inner(x)) / 2

    return outer, inner, ran


# ------------------------------------------------------------------ which functions


@pytest.mark.parametrize(
    ("said", "name", "definition", "is_jitted"),
    [
        ("f", "f", "/a/b.py:3", True),
        ("f", "g", "/a/b.py:3", False),
        (" f , g ", "g", "/a/b.py:3", True),
        ("f@b.py:3", "f", "/a/b.py:3", True),
        ("f@/a/b.py:3", "f", "/a/b.py:3", True),
        ("f@b.py:3", "f", "/a/ab.py:3", False),
        ("f@b.py:3", "f", "/a/b.py:33", False),
        ("f@b.py:3", "g", "/a/b.py:3", False),
        ("none", "none_of_these", "/a/b.py:3", False),
    ],
)
def test_a_function_is_jitted_where_its_name_is_said(said: str, name: str, definition: str, is_jitted: bool) -> None:
    found = _scope.named({_scope.VARIABLE: said})

    assert found is not None
    assert found.jits(name, definition) == is_jitted


@pytest.mark.parametrize("said", ["", " ", ","])
def test_without_a_name_nothing_is_bypassed(said: str) -> None:
    assert _scope.named({_scope.VARIABLE: said}) is None


def test_a_name_with_a_comma_is_said_with_a_semicolon() -> None:
    assert Scope(["a;b"]).jits("a,b", "x.py:1")


def test_names_that_are_no_functions_are_told_when_the_program_ends() -> None:
    program = """
        import jaxwatch, jax.numpy as jnp
        @jaxwatch.jit
        def step(x):
            return x + 1
        step(jnp.ones(3))
    """
    done = programs.run(program, JAXWATCH_JIT_SCOPE="stepp")

    assert "JAXWATCH_JIT_SCOPE names stepp, and no watched function is called that; it had step." in done.err
    assert programs.run(program, JAXWATCH_JIT_SCOPE="step").err == ""
    assert programs.run(program, JAXWATCH_JIT_SCOPE="none").err == ""


# ------------------------------------------------------------------ what a bypassed function is


@pytest.mark.parametrize(
    ("names", "outer_runs", "inner_runs", "misses"),
    [("outer", 1, 2, 1), ("inner", 3, 1, 1), ("none", 3, 6, 0), ("outer,inner", 1, 1, 1), ("", 1, 1, 1)],
)
@pytest.mark.usefixtures("core")
def test_a_body_runs_at_each_call_unless_its_function_is_jitted(
    monkeypatch: pytest.MonkeyPatch, names: str, outer_runs: int, inner_runs: int, misses: int
) -> None:
    scope(monkeypatch, names)

    with cores.told() as events:
        outer, inner, ran = pair()
        for _ in range(3):
            outer(jnp.ones(3))

    assert (ran.count("outer"), ran.count("inner")) == (outer_runs, inner_runs)
    assert len(cores.built(events)) == misses
    assert jaxwatch.stats(outer).calls == 3
    assert jaxwatch.stats(inner).calls == 2 * outer_runs


@pytest.mark.usefixtures("core")
def test_results_are_those_of_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")
    outer, _, _ = pair()

    found = outer(jnp.ones(3))

    assert jnp.allclose(found, jax.jit(outer.__wrapped__)(jnp.ones(3)))
    assert jaxwatch.jit(lambda x: x)("no array") == "no array"


@pytest.mark.usefixtures("core")
def test_methods_statics_and_keywords_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")

    def apply(self: Any, x: Any, *, times: int) -> Any:
        assert isinstance(times, int)
        return x * times * len(vars(self) or [self])

    kind = type("Model", (), {"apply": jaxwatch.jit(apply, static_argnums=0, static_argnames="times")})
    model: Any = kind()

    assert model.apply(jnp.ones(2), times=3).tolist() == [3, 3]


@pytest.mark.usefixtures("core")
def test_ahead_of_time_and_transforms_work_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")
    square = jaxwatch.jit(lambda x: x * x)

    assert square.lower(3.0).compile()(3.0) == 9
    assert square.eval_shape(jnp.ones(2)).shape == (2,)
    assert jax.grad(square)(3.0) == 6
    assert jax.vmap(square)(jnp.arange(3.0)).tolist() == [0, 1, 4]
    assert jax.jit(square)(3.0) == 9


@pytest.mark.usefixtures("core")
def test_an_error_comes_out_with_the_frames_that_the_function_has(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")

    @jaxwatch.jit
    def fails(x: Any) -> Any:
        raise ZeroDivisionError(x)

    with pytest.raises(ZeroDivisionError) as raised:
        fails(1)

    assert [frame.name for frame in traceback.extract_tb(raised.tb)][1:] == ["fails"]


def doubled(x: Any) -> Any:
    return x * 2


@pytest.mark.usefixtures("core")
def test_copies_and_pickles_are_in_the_scope_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")
    watched = jaxwatch.jit(doubled)

    for again in (copy.copy(watched), cloudpickle.loads(cloudpickle.dumps(watched))):
        with cores.told() as events:
            assert again(jnp.ones(2)).tolist() == [2, 2]
        assert cores.built(events) == []


def test_with_the_native_core_a_bypassed_function_is_still_jaxs_own_object(monkeypatch: pytest.MonkeyPatch) -> None:
    scope(monkeypatch, "none")
    with cores.in_use("native"):
        watched = jaxwatch.jit(doubled)

    assert type(watched) is type(jax.jit(doubled))
    assert _core.stats(watched).calls == 0
    assert watched(3) == 6
    assert sys.getrefcount(watched) < 5


# ------------------------------------------------------------------ outermost calls


def measured(core: _core.Core) -> Any:
    del core
    return _core.measurer()


@pytest.mark.usefixtures("measuring")
@pytest.mark.parametrize("names", ["", "outer", "inner", "none"])
def test_outermost_calls_are_recorded_once_each_whatever_is_jitted(
    monkeypatch: pytest.MonkeyPatch, core: _core.Core, names: str
) -> None:
    scope(monkeypatch, names)
    seen: list[int] = []
    outer, inner, _ = pair()
    measurer = measured(core)
    measurer.measure(lambda _result, call: seen.append(call), None)

    outer(jnp.ones(3))
    inner(jnp.ones(3))
    outer(jnp.ones(3))
    count, records = measurer.measured()

    assert count == 3
    assert seen == [1, 2, 3]
    assert [Measuring.subjects[record.function].name for record in records] == ["outer", "inner", "outer"]
    for record in records:
        assert record.begun <= record.returned <= record.ready
    assert [record.begun for record in records] == sorted(record.begun for record in records)


@pytest.mark.usefixtures("measuring")
def test_what_is_called_within_what_is_told(core: _core.Core) -> None:
    found: set[tuple[str, str]] = set()
    outer, _, _ = pair()
    measured(core).measure(None, lambda around, within: found.add((around.name, within.name)))

    outer(jnp.ones(3))

    assert found == {("outer", "inner")}


class Enough(BaseException):
    pass


@pytest.mark.usefixtures("measuring")
def test_what_is_raised_after_a_call_comes_out_of_it(core: _core.Core) -> None:
    outer, _, _ = pair()

    def after(_result: Any, call: int) -> None:
        if call >= 2:
            raise Enough

    measured(core).measure(after, None)
    outer(jnp.ones(3))
    with pytest.raises(Enough):
        outer(jnp.ones(3))

    assert measured(core).measured()[0] == 2


@pytest.mark.usefixtures("measuring")
def test_calls_that_fail_do_not_stop_the_measuring(core: _core.Core) -> None:
    measured(core).measure(None, None)

    @jaxwatch.jit
    def fails(x: Any) -> Any:
        raise ZeroDivisionError(x)

    outer, _, _ = pair()
    with pytest.raises(ZeroDivisionError):
        fails(jnp.ones(2))
    outer(jnp.ones(3))

    _, records = measured(core).measured()
    assert "outer" in [Measuring.subjects[record.function].name for record in records]


@pytest.mark.usefixtures("measuring", "core")
def test_threads_each_have_an_outermost_call_of_their_own(core: _core.Core) -> None:
    outer, _, _ = pair()
    outer(jnp.ones(3))
    measured(core).measure(None, None)

    def work() -> None:
        for _ in range(50):
            outer(jnp.ones(3))

    failures = cores.at_once(work, 4)

    assert failures == []
    assert measured(core).measured()[0] == 200


def test_without_scope_and_measuring_no_function_is_hooked_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_scope.VARIABLE, raising=False)
    with cores.in_use("python"):
        assert type(jaxwatch.jit(doubled)).__name__ == "WatchedPjitFunction"
