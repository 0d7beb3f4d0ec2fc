"""``jaxwatch.jit``: all forms of it, what it takes, and where it steps aside."""

# ruff: noqa: PLW0108 -- functions of the user's take what they do not use, and are functions of their own

import asyncio
import functools
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import records, run
from published import Events

import jaxwatch
from jaxwatch import Watch, _core, _plan
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadWatchError, NotWatchedError

X = np.arange(4, dtype=np.float32)


def double(x: Any) -> Any:
    return x * 2


# ------------------------------------------------------------------ forms


@pytest.mark.parametrize(
    "jit",
    [
        lambda f: jaxwatch.jit(f),
        lambda f: jaxwatch.jit()(f),
        lambda f: jaxwatch.jit(watch=None)(f),
        lambda f: jaxwatch.jit(watch=Watch(name="double"))(f),
        lambda f: jaxwatch.jit(f, watch=Watch(name="double")),
        lambda f: jaxwatch.jit(donate_argnums=0)(f),
        lambda f: functools.partial(jaxwatch.jit, inline=False)(f),
        lambda f: jaxwatch.jit(inline=False, watch=Watch())(f),
    ],
)
def test_every_form_gives_a_watched_function(jit: Any, events: Events) -> None:
    def double(x: Any) -> Any:
        return x * 2

    step = jit(double)

    assert step(jnp.asarray(X)).tolist() == [0, 2, 4, 6]
    assert [miss.function for miss in events.misses] == ["double"]
    assert jaxwatch.stats(step).calls == 1


def test_the_name_of_watch_is_the_functions(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x, watch=Watch(name='my "step"\n'))
    step(X)

    assert events.last().function == jaxwatch.stats(step).function == 'my "step"\n'


@pytest.mark.parametrize("watch", [True, "step", {"name": "step"}, Watch, 0])
@pytest.mark.parametrize("late", [True, False])
def test_what_is_no_watch_is_refused_at_once(watch: Any, late: bool) -> None:
    with pytest.raises(BadWatchError, match=r"watch=.*Give jaxwatch\.Watch"):
        jaxwatch.jit(watch=watch) if late else jaxwatch.jit(double, watch=watch)


def test_not_enabled_is_plain_jit() -> None:
    step = jaxwatch.jit(double, watch=Watch(enabled=False))

    assert type(step) is type(jax.jit(double))
    with pytest.raises(NotWatchedError):
        jaxwatch.stats(step)


def test_what_cannot_be_read_is_jitted_all_the_same(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    del fresh

    def failing(*args: Any) -> None:
        raise RuntimeError(args)

    monkeypatch.setattr(_plan, "make_plan", failing)
    step = jaxwatch.jit(double)

    assert type(step) is type(jax.jit(double))
    assert REGISTRY.snapshot().dropped == {"event": 1}


def test_a_jitted_function_is_jitted_again_under_its_own_name(events: Events) -> None:
    inner = jax.jit(double)
    step = jaxwatch.jit(inner)
    step(X)

    assert events.last().function == "double"
    assert events.last().definition.startswith(__file__)


# ------------------------------------------------------------------ stats


@pytest.mark.parametrize("thing", [double, jax.jit(double), None, 3, "step", len, jaxwatch, object(), Watch()])
def test_of_what_is_not_watched_there_are_no_figures(thing: Any) -> None:
    with pytest.raises(
        NotWatchedError, match=r"is not watched by jaxwatch\. Jit it with jaxwatch\.jit.*\[not-watched\]"
    ):
        jaxwatch.stats(thing)
    assert issubclass(NotWatchedError, TypeError)


def test_a_function_that_was_never_called_has_figures_of_0() -> None:
    found = jaxwatch.stats(jaxwatch.jit(double))

    assert (found.function, found.calls, found.misses, found.dispatch) == ("double", 0, 0, {})
    assert found.definition == f"{__file__}:{double.__code__.co_firstlineno}"
    assert not found.in_library


# ------------------------------------------------------------------ the jit that is installed


def test_the_installed_jit_is_jaxs_in_name_and_signature() -> None:
    installed: Any = _core.installed_jit()

    assert installed.__name__ == "jit"
    assert installed.__doc__ == jax.jit.__doc__
    assert installed.__wrapped__ is jax.jit


@pytest.mark.parametrize("form", [lambda jit, f: jit(f), lambda jit, f: jit()(f), lambda jit, f: jit(inline=False)(f)])
def test_the_installed_jit_watches_the_users_functions_and_leaves_jaxs_own_alone(form: Any) -> None:
    installed = _core.installed_jit()

    assert REGISTRY.find(form(installed, double))
    assert REGISTRY.find(form(installed, functools.partial(double)))
    assert not REGISTRY.find(form(installed, jnp.linalg.norm))


# ------------------------------------------------------------------ switched off


def test_jaxwatch_0_is_plain_jit_without_a_log_or_a_listener(tmp_path: Any) -> None:
    log = tmp_path / "run.jsonl"
    ended = run(
        """
        import jax, jaxwatch
        from jax._src import monitoring
        from jaxwatch._hub import HUB
        step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step", max_signatures=1, on_retrace="raise"))
        assert type(step) is type(jax.jit(lambda x: x)), type(step)
        step(1.0), step(1)
        jaxwatch.install()
        assert not hasattr(jax.jit, "__jaxwatch__")
        assert not monitoring.get_scalar_listeners() and not HUB.names
        """,
        JAXWATCH="0",
        JAXWATCH_LOG=str(log),
    )

    assert ended.code == 0, ended.err
    assert (ended.out, ended.err) == ("", "")
    assert not log.exists()


def test_jaxwatch_0_breaks_no_program_that_reads_figures_or_attaches() -> None:
    ended = run(
        """
        import jax, jaxwatch
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0)
        assert jaxwatch.stats(step).calls == 0 and jaxwatch.stats(step).function == "<lambda>"
        assert jaxwatch.attach(step) is step and jaxwatch.detach(step) is step
        try:
            jaxwatch.stats(len)
        except jaxwatch.JaxwatchError:
            print("refused")
        """,
        JAXWATCH="0",
    )
    assert (ended.code, ended.out) == (0, "refused\n"), ended.err


# ------------------------------------------------------------------ values left out of events


def test_static_values_are_left_out_of_the_log_where_the_environment_says_so(tmp_path: Any) -> None:
    log = tmp_path / "run.jsonl"
    ended = run(
        """
        import jaxwatch
        step = jaxwatch.jit(lambda x, name: x, static_argnums=1)
        step(1.0, "secret one"), step(1.0, "secret two")
        """,
        JAXWATCH_LOG=str(log),
        JAXWATCH_REDACT="1",
    )

    assert ended.code == 0, ended.err
    first, second = records(log, "cache_miss")
    assert second["reasons"] == ["static"]
    assert second["signature"] != first["signature"]
    assert "secret" not in json.dumps([first, second])


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError, pytest.fail.Exception, Exception])
def test_a_repr_may_raise_whatever_it_likes(kind: type[BaseException], events: Events) -> None:
    class Plan:
        def __repr__(self) -> str:
            raise kind("no repr")

    step = jaxwatch.jit(lambda x, plan: x + 1, static_argnums=1)  # noqa: ARG005 -- a static argument that is not read

    assert float(step(1.0, Plan())) == 2
    assert float(step(1.0, Plan())) == 2
    assert events.reasons == [("first_call",), ("static",)]
