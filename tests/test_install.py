"""``jax.jit`` replaced and put back."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import run
from published import Events

import jaxwatch
from jaxwatch import _compat, _install
from jaxwatch._wrap import Watched

X = np.ones(3, np.float32)


@pytest.fixture
def installed() -> Iterator[None]:
    jaxwatch.install()
    yield
    jaxwatch.uninstall()


def test_what_is_jitted_from_then_on_is_watched(installed: None, events: Events) -> None:
    del installed

    @jax.jit
    def step(x: Any) -> Any:
        return x + 1

    @functools.partial(jax.jit, static_argnums=1)
    def other(x: Any, n: int) -> Any:
        return x * n

    step(X)
    other(X, 2)
    assert [miss.function for miss in events.misses] == ["step", "other"]
    assert isinstance(step, Watched)


def test_what_was_jitted_before_stays_as_it_was(events: Events) -> None:
    before = jax.jit(lambda x: x + 1)
    jaxwatch.install()
    try:
        before(X)
    finally:
        jaxwatch.uninstall()

    assert events.misses == []
    assert not isinstance(before, Watched)


def test_what_jax_jits_itself_is_not_watched(installed: None, events: Events) -> None:
    del installed
    jnp.linalg.norm(jnp.ones(751))
    jnp.where(jnp.ones(752) > 0, 1, 2)

    assert events.misses == []


def test_what_was_jitted_meanwhile_stays_watched(events: Events) -> None:
    jaxwatch.install()
    step = jax.jit(lambda x: x + 1)
    jaxwatch.uninstall()
    step(X)

    assert len(events.misses) == 1
    assert jaxwatch.stats(step).calls == 1


def test_install_and_uninstall_may_be_called_again_and_again() -> None:
    original = jax.jit
    for _ in range(2):
        jaxwatch.install()
        jaxwatch.install()
        assert _install.installed()
        assert jax.jit is not original
        jaxwatch.uninstall()
        jaxwatch.uninstall()
        assert jax.jit is original is _compat.ORIGINAL_JIT
        assert not _install.installed()


def test_a_jit_that_someone_else_put_there_is_left_alone() -> None:
    original = jax.jit

    def theirs(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs)

    jaxwatch.install()
    jax.jit = theirs
    try:
        jaxwatch.uninstall()
        assert jax.jit is theirs
    finally:
        jax.jit = original


def test_jaxwatch_jit_under_install_is_watched_once(installed: None, events: Events) -> None:
    del installed
    step = jaxwatch.jit(jax.jit(lambda x: x + 1))
    step(X)

    assert [miss.call for miss in events.misses] == [1]


def test_before_jax_is_imported_it_waits_and_imports_nothing() -> None:
    ended = run("""
        import sys
        import jaxwatch
        jaxwatch.install()
        assert "jax" not in sys.modules
        import jax.numpy as jnp, jax
        step = jax.jit(lambda x: x + 1)
        step(1.0)
        assert jaxwatch.stats(step).misses == 1
        jaxwatch.uninstall()
        assert not hasattr(jax.jit, "__jaxwatch__")
    """)
    assert ended.code == 0, ended.err
    assert (ended.out, ended.err) == ("", "")


def test_uninstalled_before_jax_is_imported_it_never_happened() -> None:
    ended = run("""
        import jaxwatch
        jaxwatch.install(); jaxwatch.uninstall()
        import jax
        assert not hasattr(jax.jit, "__jaxwatch__")
    """)
    assert ended.code == 0, ended.err
