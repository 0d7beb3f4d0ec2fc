"""Both cores in one process, for tests that hold them against each other and against jax.jit."""

import contextlib
import gc
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import programs
import pytest
from published import Events

import jaxwatch
from jaxwatch import _ahead, _core, _frames, _hook
from jaxwatch._history import HISTORY
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.events import CacheMiss

CORES = ("native", "python")
_PACKAGES = str(Path(jaxwatch.__file__).parents[1])
_PAGE = os.sysconf("SC_PAGE_SIZE")


def _native() -> _core.Core:
    """Return the native core, whichever is in use."""
    if _core.CORE.hooks is not None:
        return _core.CORE
    before = _frames.Active.frame, _frames.Active.ahead
    try:
        return _core.Core("native", "for tests", _hook.Hooks(importlib.import_module("jaxwatch._native.core")))
    except ImportError as error:
        reason = f"needs the native core: {error}"
        if os.environ.get("JAXWATCH_CORE") == "native" or os.environ.get("JAXWATCH_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    finally:
        _frames.Active.frame, _frames.Active.ahead = map(staticmethod, before)


_cores: dict[str, _core.Core] = {"python": _core.Core("python", "for tests", None)}


def core(name: str) -> _core.Core:
    """Return a core; the native one where it is built, else the test is skipped (fails, where CI demands it)."""
    if name not in _cores:
        _cores[name] = _native()
    return _cores[name]


def hooks() -> _hook.Hooks:
    """Return the native core's hooks."""
    found = core("native").hooks
    assert found is not None
    return found


@contextlib.contextmanager
def in_use(name: str) -> Iterator[_core.Core]:
    """Have ``jaxwatch.jit`` use that core; what is watched already stays with its own, and is told of by no event."""
    chosen, before, active = core(name), _core.CORE, (_frames.Active.frame, _frames.Active.ahead)
    native = chosen.hooks is not None
    current = chosen.hooks.native.current if chosen.hooks is not None else _frames.twins_frame
    ahead = _ahead.under_way if native else _frames.nothing_ahead
    _core.CORE, _frames.Active.frame, _frames.Active.ahead = chosen, staticmethod(current), staticmethod(ahead)
    try:
        yield chosen
    finally:
        _core.CORE = before
        _frames.Active.frame, _frames.Active.ahead = map(staticmethod, active)


@contextlib.contextmanager
def told() -> Iterator[Events]:
    """Collect events, beginning with no history and no figures."""
    HISTORY.reset()
    REGISTRY.reset()
    found = Events()
    HUB.add("cores", found.append)
    try:
        yield found
    finally:
        HUB.remove("cores")


def built(events: Events) -> list[CacheMiss]:
    """Return the misses for which JAX traced, lowered or compiled: those that both cores see."""
    return [miss for miss in events.misses if miss.layer != "dispatch"]


def departures(events: Events) -> list[CacheMiss]:
    """Return the misses of JAX's fast path alone, which only the native core sees."""
    return [miss for miss in events.misses if miss.layer == "dispatch"]


def cells(*, collect: bool = False) -> int:
    """Return how many cells of the native core there are, those of dead functions folded; collected, if asked for."""
    kind = hooks().native.Cell
    if collect:
        gc.collect()
    REGISTRY.snapshot()  # folds the figures of the dead into their definition's
    return sum(type(thing) is kind for thing in gc.get_objects())


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def at_once(work: Callable[[], None], threads: int) -> list[BaseException]:
    """Run ``work`` on so many threads, begun together; return what they raised."""
    failures: list[BaseException] = []
    begin = threading.Barrier(threads)

    def guarded() -> None:
        begin.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- told on the test's own thread
            failures.append(error)

    working = [threading.Thread(target=guarded) for _ in range(threads)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    return failures


def run(program: str, **variables: str) -> programs.Ended:
    """Run a program text with the jaxwatch that is tested here and its native core, which may lie elsewhere."""
    variables.setdefault("JAXWATCH_CORE", "native")
    return programs.run(program, folder=None, PYTHONPATH=_PACKAGES, **variables)
