"""What the main thread does while no other one calls: what there is to foretell, and to count, of guards and others."""

import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxwatch
from benchmarks.soaked.calls import LENGTHS
from benchmarks.soaked.counts import Own
from benchmarks.soaked.functions import BodyError, Functions, array
from jaxwatch import RetraceError

_CHILD_SECONDS = 60.0


class Serial:
    """Operations by name, as ``calls.Calls``."""

    def __init__(self, own: Own, functions: Functions, *, attaches: bool) -> None:
        self.own, self.f, self._attaches = own, functions, attaches
        self.compiled: set[int] = set()  # lengths of ``guarded`` that are in JAX's cache
        self.seen: dict[str, set[int]] = {action: set() for action in functions.limited}
        self.attached = False
        self.children: dict[str, int] = {"ended well": 0, "hung": 0, "failed": 0}
        self.by_name: dict[str, Callable[[random.Random], Any]] = {
            "guard": self.guard,
            "limit": self.limit,
            "attach, detach": self.attach,
            "install, uninstall": self.install,
            "fork": self.fork,
            "deleted array": self.deleted,
            "jax.clear_caches": self.clear_all,
        }

    def run(self, rng: random.Random) -> list[Any]:
        """Do each one, in random order, some twice; of forks and cleared caches only now and then."""
        names = [name for name in self.by_name for _ in range(rng.choice([1, 2]))]
        names = [name for name in names if name not in {"fork", "jax.clear_caches"} or rng.random() < 0.2]  # noqa: PLR2004 -- now and then
        rng.shuffle(names)
        found = []
        for name in names:
            self.own.operation(name)
            found.append(self.by_name[name](rng))
        return found

    def cleared(self) -> None:
        """Take note that all of JAX's caches were cleared."""
        self.compiled.clear()

    def guard(self, rng: random.Random) -> Any:
        """Call under a guard, with a key that is compiled or not."""
        length, action = rng.choice(LENGTHS), rng.choice(["raise", "warn", "record"])
        x = array(length)
        missing = length not in self.compiled
        if missing:
            self.own.foretell(action)
        self.compiled.add(length)  # within the block or after it
        self.own.call("guarded")
        try:
            with jaxwatch.no_retraces(self.f.guarded, action=action):  # type: ignore[arg-type]  # of ACTIONS
                return self.f.guarded(x)
        except RetraceError:
            self.own.reject("guarded")
            self.f.guarded.clear_cache()  # else the key stays off the fast path: docs/messages.md, [retrace]
            self.compiled = {length}
        self.own.call("guarded")
        return self.f.guarded(x)

    def limit(self, rng: random.Random) -> Any:
        """Call a function that may have three signatures."""
        action, length = rng.choice(list(self.f.limited)), rng.choice(LENGTHS)
        seen, x = self.seen[action], array(length)
        beyond = length not in seen and len(seen) >= 3  # noqa: PLR2004 -- as in Watch
        if beyond:
            self.own.foretell(action)
        if not beyond or action != "raise":
            seen.add(length)
        name = f"limited_{action}"
        self.own.call(name)
        try:
            return self.f.limited[action](x)
        except RetraceError:
            self.own.reject(name)
            return jax.numpy.asarray(np.asarray(x) * 2)

    def attach(self, rng: random.Random) -> Any:
        """Begin or end to watch what was jitted elsewhere, and call it."""
        if self._attaches and rng.random() < 0.5:  # noqa: PLR2004 -- a coin
            (jaxwatch.detach if self.attached else jaxwatch.attach)(self.f.library)
            self.attached = not self.attached
        if self.attached:
            self.own.call("library")
        return self.f.library(array(rng.choice(LENGTHS)))

    def install(self, rng: random.Random) -> Any:
        """Have ``jax.jit`` replaced, and put back."""
        jaxwatch.install()
        try:
            installed = self.f.installed(rng.randrange(4))
        finally:
            jaxwatch.uninstall()
        self.own.call("installed")
        return installed(array(rng.choice(LENGTHS)))

    def deleted(self, rng: random.Random) -> Any:
        """Give an array that is gone."""
        x = array(rng.choice(LENGTHS))
        self.own.call("donated")
        result = self.f.donated(x)
        self.own.call("donated")
        before = self.own.told_here()
        try:
            self.f.donated(x)
        except (RuntimeError, ValueError):
            self.own.reject("donated", before)
            return "gone", result
        return "not gone", result

    def clear_all(self, _: random.Random) -> Any:
        """Clear all of JAX's caches."""
        jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's
        self.cleared()
        return "cleared"

    def fork(self, rng: random.Random) -> Any:
        """Fork; the child makes calls from the cache, one that fails in its trace, and is gone."""
        x = array(4)
        self.own.call("inner")
        result = self.f.inner(x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that threads and forks do not go together
            child = os.fork()
        if child == 0:
            os._exit(self._in_child(x, rng))
        status = _ended(child)
        self.children["hung" if status is None else "failed" if status else "ended well"] += 1
        return result

    def _in_child(self, x: Any, rng: random.Random) -> int:
        try:
            for _ in range(rng.randrange(1, 4)):
                self.f.inner(x)
            try:
                self.f.failing(x, True)  # noqa: FBT003 -- as in `calls`
            except BodyError:
                return 0
        except BaseException:  # noqa: BLE001 -- told by the exit code
            return 2
        return 1


def _ended(child: int) -> int | None:
    """Return the status with which a child ended; None for one that had to be killed."""
    until = time.monotonic() + _CHILD_SECONDS
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
