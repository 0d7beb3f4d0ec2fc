"""``jax.jit`` replaced and put back."""

import functools
from collections.abc import Iterator
from typing import Any

import cores
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cores import CORES
from programs import run
from published import Events

import jaxwatch
from jaxwatch import _compat, _install
from jaxwatch._registry import REGISTRY

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
    assert jaxwatch.stats(step).calls == 1


def test_what_was_jitted_before_stays_as_it_was(events: Events) -> None:
    before = jax.jit(lambda x: x + 1)
    jaxwatch.install()
    try:
        before(X)
    finally:
        jaxwatch.uninstall()

    assert events.misses == []
    assert REGISTRY.find(before) is None


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


# ------------------------------------------------------------------ what was jitted before

BEFORE = """
    import functools, sys, warnings
    import jax, jax.numpy as jnp
    from jax.numpy import where  # which JAX jits
    import jaxwatch
    from jaxwatch import _compat
    from jaxwatch._registry import REGISTRY

    @jax.jit
    def step(x):
        return x + 1

    class Model:
        @jax.jit
        def apply(x):
            return x * 2

        @staticmethod
        @functools.partial(jax.jit, static_argnums=1)
        def scale(x, n):
            return x * n

    hidden = functools.partial(jax.jit(lambda x: x), 1.0)

    def watched():
        return sorted(subject.name for _, subject in REGISTRY._subjects.values())
"""


def ended(program: str, core: str = "native", **variables: str) -> None:
    """Run a program after ``BEFORE``, on a core, to an end without a word."""
    cores.core(core)  # or skip
    lines = program.splitlines()
    done = cores.run("\n".join([*BEFORE.splitlines(), *lines]), JAXWATCH_CORE=core, **variables)
    assert done.code == 0, done.err
    assert (done.out, done.err) == ("", "")


def test_attach_watches_what_was_jitted_before_in_place() -> None:
    ended("""
    kept = step
    jaxwatch.install(attach=True)
    assert kept is step and type(step) is _compat.PJIT_TYPE
    assert watched() == ["Model.apply", "Model.scale", "step"], watched()
    assert float(step(1.0)) == 2 and float(Model.scale(2.0, 3)) == 6 and float(Model.apply(2.0)) == 4
    assert [jaxwatch.stats(f).misses for f in (step, Model.scale, Model.apply)] == [1, 1, 1]
    later = jax.jit(lambda x: x)
    assert REGISTRY.find(later) is not None
    """)


def test_attach_may_come_after_install_and_again() -> None:
    ended("""
    jaxwatch.install()
    assert watched() == []
    jaxwatch.install(attach=True)
    assert len(watched()) == 3
    late = _compat.ORIGINAL_JIT(lambda x: x)
    step(1.0)
    jaxwatch.install(attach=True)
    jaxwatch.install()
    assert len(watched()) == 4
    assert jaxwatch.stats(step).calls == 1
    """)


def test_uninstall_detaches_what_install_attached_and_nothing_else() -> None:
    ended("""
    jaxwatch.attach(Model.apply)
    jaxwatch.install(attach=True)
    meanwhile = jax.jit(lambda x: x)
    jaxwatch.attach(jaxwatch.detach(step))  # now it is the program's own
    jaxwatch.uninstall()
    assert watched() == ["<lambda>", "Model.apply", "step"], watched()
    assert not hasattr(jax.jit, "__jaxwatch__")
    Model.scale(1.0, 2)
    jaxwatch.uninstall()
    jaxwatch.install(attach=True)
    assert "Model.scale" in watched()
    """)


def test_attached_functions_are_not_kept_alive() -> None:
    ended("""
    import gc, weakref
    jaxwatch.install(attach=True)
    gone = weakref.ref(step)
    del step
    gc.collect()
    assert gone() is None
    jaxwatch.uninstall()
    """)


@pytest.mark.parametrize("core", CORES)
def test_where_nothing_was_jitted_before_attach_says_nothing(core: str) -> None:
    ended(
        """
    del step, Model
    warnings.simplefilter("error")
    jaxwatch.install(attach=True)
    assert watched() == [] and jax.jit.__jaxwatch__
    """,
        core,
    )


def test_the_twin_warns_that_it_cannot_attach_and_installs_all_the_same() -> None:
    ended(
        """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jaxwatch.install(attach=True)
    (warning,) = told
    assert warning.category is jaxwatch.JaxwatchWarning
    assert warning.filename == "<string>"
    assert str(warning.message).startswith(
        "3 functions that were jitted before install(attach=True) cannot be watched in place; "
        "JAXWATCH_CORE=python asks for it. "
    ), warning.message
    assert str(warning.message).endswith("[no-native-core]")
    assert float(step(1.0)) == 2 and watched() == []
    later = jax.jit(lambda x: x)
    later(1.0)
    assert jaxwatch.stats(later).misses == 1
    jaxwatch.uninstall()
    assert not hasattr(jax.jit, "__jaxwatch__")
    """,
        "python",
    )


def test_a_warning_that_is_an_error_finds_all_else_done() -> None:
    ended(
        """
    warnings.simplefilter("error")
    try:
        jaxwatch.install(attach=True)
    except jaxwatch.JaxwatchWarning:
        assert jax.jit.__jaxwatch__
    else:
        raise AssertionError
    """,
        "python",
    )


@pytest.mark.parametrize("core", CORES)
def test_switched_off_attach_does_nothing(core: str) -> None:
    ended(
        """
    warnings.simplefilter("error")
    jaxwatch.install(attach=True)
    assert not hasattr(jax.jit, "__jaxwatch__")
    assert "jaxwatch._earlier" not in sys.modules
    """,
        core,
        JAXWATCH="0",
    )


def test_a_function_that_cannot_be_read_is_passed_over() -> None:
    ended("""
    from jaxwatch import _core
    attach, _core.attach = _core.attach, lambda f: (_ for _ in ()).throw(RuntimeError) if f is step else attach(f)
    jaxwatch.install(attach=True)
    assert watched() == ["Model.apply", "Model.scale"]
    assert REGISTRY.snapshot().dropped == {"event": 1}
    jaxwatch.uninstall()
    """)


@pytest.mark.parametrize("core", CORES)
def test_before_jax_is_imported_there_is_nothing_to_attach(core: str) -> None:
    cores.core(core)
    done = cores.run(
        """
        import sys, warnings
        warnings.simplefilter("error")
        import jaxwatch
        jaxwatch.install(attach=True)
        assert "jax" not in sys.modules
        import jax
        assert jax.jit.__jaxwatch__ and "jaxwatch._earlier" not in sys.modules
        """,
        JAXWATCH_CORE=core,
    )
    assert (done.code, done.out, done.err) == (0, "", "")
