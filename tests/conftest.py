"""Shared fixtures."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from published import Events

pytest_plugins = ["pytester"]
settings.register_profile("jaxwatch", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # machines are busy
settings.load_profile("jaxwatch")


@pytest.fixture
def require_program() -> Callable[[str], str]:
    """Return a function that finds a program of the system, or skips the test (fails, with JAXWATCH_REQUIRE_ALL=1)."""

    def find(name: str) -> str:
        if path := shutil.which(name):
            return path
        reason = f"needs the program {name}: apt-get install {name}"
        if os.environ.get("JAXWATCH_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return find


@pytest.fixture
def axe_core() -> str:
    """Return the source of axe-core, or skip the test (fail, with JAXWATCH_REQUIRE_ALL=1)."""
    found = Path(__file__).parent / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    if found.exists():
        return found.read_text(encoding="utf-8")
    reason = "needs axe-core: npm ci --prefix tests/axe"
    if os.environ.get("JAXWATCH_REQUIRE_ALL") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Left(NamedTuple):
    """What a test could leave behind; read off the modules that are loaded, so that no jax is imported for it."""

    guards: int  # and stances
    installed: bool
    jit: bool  # whether jax.jit is ours
    exporters: frozenset[str]
    threads: frozenset[str]  # those that would keep the process from ending


CLEAN = Left(0, installed=False, jit=False, exporters=frozenset(), threads=frozenset())


def probe(exporters_before: frozenset[str] = frozenset(), threads_before: frozenset[int] = frozenset()) -> Left:
    loaded: dict[str, Any] = dict(sys.modules)
    guards, install, hub = (loaded.get(f"jaxwatch.{name}") for name in ("_guards", "_install", "_hub"))
    jax = loaded.get("jax")
    threads = (thread for thread in threading.enumerate() if thread.ident not in threads_before and not thread.daemon)
    return Left(
        guards=guards.in_force() if guards else 0,
        installed=bool(install and install.installed()),
        jit=bool(jax and getattr(getattr(jax, "jit", None), "__jaxwatch__", False)),
        exporters=frozenset(hub.HUB.names if hub else ()) - exporters_before - {"console", "log"},
        threads=frozenset(thread.name for thread in threads if thread is not threading.main_thread()),
    )


def clean_up(found: Left) -> None:
    loaded: dict[str, Any] = dict(sys.modules)
    if found.guards:
        loaded["jaxwatch._guards"]._active = ()
    if "jaxwatch._policy" in loaded:
        loaded["jaxwatch._policy"].reset()
    if found.installed:
        loaded["jaxwatch._install"].uninstall()
    if found.jit:
        loaded["jax"].jit = loaded["jaxwatch._compat"].ORIGINAL_JIT
    for name in found.exporters:
        loaded["jaxwatch._hub"].HUB.remove(name)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    hub: Any = sys.modules.get("jaxwatch._hub")
    exporters = frozenset(hub.HUB.names) if hub else frozenset()
    threads = frozenset(thread.ident for thread in threading.enumerate() if thread.ident is not None)
    yield
    found = probe(exporters, threads)
    clean_up(found)  # so that only the guilty test fails
    assert found == CLEAN, "the test leaves something behind"


@pytest.fixture
def fresh() -> None:
    """Forget what earlier tests were watched doing: keys and figures."""
    from jaxwatch._history import HISTORY
    from jaxwatch._registry import REGISTRY

    HISTORY.reset()
    REGISTRY.reset()


@pytest.fixture
def events(fresh: None) -> Iterator[Events]:
    """Collect the events of the test; it begins with no history."""
    del fresh
    from jaxwatch._hub import HUB

    found = Events()
    HUB.add("test", found.append)
    yield found
    HUB.remove("test")


@pytest.fixture
def fresh_log(tmp_path: Path) -> Path:
    """Return the path of a log that is not there yet."""
    return tmp_path / "run.jsonl"
