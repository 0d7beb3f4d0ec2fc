"""What the program counts itself, without asking jaxwatch."""

import contextlib
import gc
import hashlib
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

_PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_NAMED = {"scaled": "Model.scaled"}  # as jaxwatch names it


class _Here(threading.local):
    ahead = False  # this thread compiles ahead of time
    phases = 0  # that JAX has told on it


class Own:
    """The program's own counts; any thread may count."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = _Here()
        self.calls: Counter[str] = Counter()  # by function
        self.bodies: Counter[str] = Counter()  # by function: how often Python ran it
        self.raised: Counter[str] = Counter()  # by function: calls whose traced body raised
        self.mismatched: Counter[str] = Counter()  # by function: calls that failed within a phase, and without its body
        self.rejected: Counter[str] = Counter()  # by function: calls that failed for other reasons, and were refused
        self.phases: Counter[tuple[str, str]] = Counter()  # (phase, function) → that JAX told
        self.ahead_compiles = 0
        self.operations: Counter[str] = Counter()
        self.forbidden: Counter[str] = Counter()  # action → misses that break a guard, as foretold
        self.told: Counter[str] = Counter()  # warnings of jaxwatch's by slug
        self.other_warnings: set[str] = set()  # of all others: category and beginning
        self._alive: list[weakref.ref[Any]] = []
        jax.monitoring.register_event_duration_secs_listener(self._heard)  # type: ignore[arg-type]  # takes them by position

    def call(self, function: str) -> None:
        """Count a call that is about to be made."""
        self._add(self.calls, function)

    def body(self, function: str) -> None:
        """Count that a function's body runs."""
        self._add(self.bodies, function)

    def failed(self, function: str) -> None:
        """Count a call whose body raised while it was traced."""
        self._add(self.raised, function)

    def told_here(self) -> int:
        """Return how many phases JAX has told on this thread so far."""
        return self._here.phases

    def reject(self, function: str, told_before: int | None = None) -> None:
        """Count a call that failed without its body: within a phase where JAX has told one since, which is its own."""
        within = told_before is not None and self.told_here() > told_before
        self._add(self.mismatched if within else self.rejected, function)

    def operation(self, name: str) -> None:
        """Count one thing that the program does."""
        self._add(self.operations, name)

    def foretell(self, action: str) -> None:
        """Count a miss that is about to break a guard."""
        self._add(self.forbidden, action)

    def _add(self, counter: "Counter[str]", name: str) -> None:
        with self._lock:
            counter[name] += 1

    @contextlib.contextmanager
    def ahead(self) -> Iterator[None]:
        """Within the block this thread's compiles are ahead of time."""
        self._here.ahead = True
        try:
            yield
        finally:
            self._here.ahead = False

    def _heard(self, event: str, _seconds: float, **fields: Any) -> None:
        phase = _PHASES.get(event)
        if phase is None:
            return
        name = str(fields.get("fun_name", ""))
        name = name[4:-1] if name.startswith("jit(") else name
        name = _NAMED.get(name, name)
        self._here.phases += 1
        with self._lock:
            if phase == "compile" and self._here.ahead:
                self.ahead_compiles += 1
            self.phases[phase, name] += 1

    def warned(self, message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        """Count a warning; stands in the place of ``warnings.showwarning``."""
        text = str(message)
        with self._lock:
            if category.__name__ == "JaxwatchWarning":
                self.told[text.rpartition("[")[2].rstrip("]")] += 1
            else:
                self.other_warnings.add(f"{category.__name__}: {text[:40]}")

    # -------------------------------------------------------------- what lives on

    def made(self, thing: Any) -> Any:
        """Remember weakly what the program has made, and return it."""
        self._alive.append(weakref.ref(thing))
        return thing

    def alive(self) -> int:
        """Return how many of the things made since the last time live on."""
        gc.collect()
        gc.collect()
        refs, self._alive = self._alive, []
        return sum(ref() is not None for ref in refs)


class Digest:
    """All results, in order."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, result: Any) -> None:
        """Take the arrays of a result, with shapes and dtypes; or a text."""
        for leaf in jax.tree.leaves(result):
            value = leaf if isinstance(leaf, str) else np.asarray(leaf)
            told = value if isinstance(value, str) else f"{value.shape}{value.dtype}"
            self._hash.update(told.encode())
            if not isinstance(value, str):
                self._hash.update(value.tobytes())

    def text(self) -> str:
        """Return the hash so far."""
        return self._hash.hexdigest()
