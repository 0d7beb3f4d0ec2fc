"""Runs of pytest within a test: in this process, or in one of their own."""

import importlib
import textwrap

import pytest
from programs import environment

# All that a run would import and forget again at its end: two copies of the engine, or of jax, must not meet.
for _name in (
    "jax.numpy",
    "jaxwatch._core",
    "jaxwatch._earlier",
    "jaxwatch._testing.reporting",
    "jaxwatch._testing.calls",
):
    importlib.import_module(_name)

HEAD = """
import jax, numpy as np, pytest
import jaxwatch

step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(name="step"))
ONE, TWO, THREE = (np.ones(size, np.float32) for size in (1, 2, 3))
"""
OPTIONS = "-p", "no:cacheprovider", "-W", "error"


def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give runs an environment without what this one's was told."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER", "JAXWATCH", "JAXWATCH_LOG"):
        monkeypatch.delenv(name, raising=False)


def body(text: str) -> str:
    """Return a file of tests: the head, then ``text``."""
    return HEAD + textwrap.dedent(text)


def here(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest in this process, with no memory of what was compiled before."""
    from jaxwatch._history import HISTORY
    from jaxwatch._registry import REGISTRY

    HISTORY.reset()
    REGISTRY.reset()
    return pytester.runpytest_inprocess(*OPTIONS, *options)


def apart(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Run pytest in a process of its own."""
    return pytester.runpytest_subprocess(*OPTIONS, *options)
