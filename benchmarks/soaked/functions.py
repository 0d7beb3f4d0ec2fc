"""The functions that the program jits; each counts that its body runs."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxwatch
from benchmarks.soaked.counts import Own


class BodyError(Exception):
    """What a body raises on purpose."""


class Pair(NamedTuple):
    """A container of the program's own."""

    left: Any
    right: Any


class Model:
    """An object with a jitted method, and one that is jitted anew for each instance."""

    def __init__(self, own: Own, factor: int) -> None:
        self.own, self.factor = own, factor

    def scaled(self, x: Any) -> Any:
        """Scale by the model's factor."""
        self.own.body("Model.scaled")
        return x * self.factor


class Functions:
    """All of them, jitted once; ``fresh`` and others make new function objects."""

    def __init__(self, own: Own) -> None:
        self.own = own
        jit = jaxwatch.jit
        self.affine = jit(self._affine())
        self.power = jit(self._power(), static_argnums=1, static_argnames="mode")
        self.tree = jit(self._tree())
        self.total = jit(self._total())
        self.donated = jit(self._donated(), donate_argnums=0)
        self.inner = jit(self._inner())
        self.outer = jit(self._outer())
        self.loss = jit(self._loss())
        self.slope = jit(jax.grad(self._slope()))
        self.failing = jit(self._failing(), static_argnums=1)
        self.chatty = jit(self._chatty())
        self.ahead = jit(self._ahead())
        self.guarded = jit(self._guarded())
        self.limited = {
            action: jit(self._limited(action), watch=jaxwatch.Watch(max_signatures=3, on_retrace=action))
            for action in ("raise", "warn", "record")
        }
        self.library = jax.jit(self._library())

    def _affine(self) -> Callable[..., Any]:
        def affine(x: Any, y: Any, *, scale: Any = 2) -> Any:
            self.own.body("affine")
            return x * scale + y

        return affine

    def _power(self) -> Callable[..., Any]:
        def power(x: Any, n: int, mode: str = "up") -> Any:
            self.own.body("power")
            return x + n if mode == "up" else x - n

        return power

    def _tree(self) -> Callable[..., Any]:
        def tree(batch: Any) -> Any:
            self.own.body("tree")
            return jax.tree.map(lambda leaf: leaf + 1, batch)

        return tree

    def _total(self) -> Callable[..., Any]:
        def total(x: Any) -> Any:
            self.own.body("total")
            return x.sum(axis=0)

        return total

    def _donated(self) -> Callable[..., Any]:
        def donated(x: Any) -> Any:
            self.own.body("donated")
            return x + 1

        return donated

    def _inner(self) -> Callable[..., Any]:
        def inner(x: Any) -> Any:
            self.own.body("inner")
            return x * 3

        return inner

    def _outer(self) -> Callable[..., Any]:
        def outer(x: Any) -> Any:
            self.own.body("outer")
            for _ in range(2):
                self.own.call("inner")
                x = self.inner(x)
            return x + 1

        return outer

    def _loss(self) -> Callable[..., Any]:
        def loss(x: Any) -> Any:
            self.own.body("loss")
            return (x * x).sum()

        return loss

    def _slope(self) -> Callable[..., Any]:
        def slope(x: Any) -> Any:
            self.own.body("slope")
            return (x * x * x).sum()

        return slope

    def _failing(self) -> Callable[..., Any]:
        def failing(x: Any, fails: bool) -> Any:  # noqa: FBT001 -- a static argument
            self.own.body("failing")
            if fails:
                raise BodyError
            return x + 2

        return failing

    def _chatty(self) -> Callable[..., Any]:
        def chatty(x: Any) -> Any:
            self.own.body("chatty")
            jax.debug.callback(_nothing, x)
            return x + 4

        return chatty

    def _ahead(self) -> Callable[..., Any]:
        def ahead(x: Any) -> Any:
            self.own.body("ahead")
            return x + 5

        return ahead

    def _guarded(self) -> Callable[..., Any]:
        def guarded(x: Any) -> Any:
            self.own.body("guarded")
            return x * 2

        return guarded

    def _limited(self, action: str) -> Callable[..., Any]:
        def limited(x: Any) -> Any:
            self.own.body(limited.__name__)
            return x * 2

        limited.__name__ = limited.__qualname__ = f"limited_{action}"
        return limited

    def _library(self) -> Callable[..., Any]:
        def library(x: Any) -> Any:
            self.own.body("library")
            return x + 6

        return library

    # -------------------------------------------------------------- new function objects

    def fresh(self, add: int) -> Callable[..., Any]:
        """Return the same code as another function object, jitted."""

        def fresh(x: Any) -> Any:
            self.own.body("fresh")
            return x + add

        jitted: Callable[..., Any] = self.own.made(jaxwatch.jit(self.own.made(fresh)))
        return jitted

    def method(self, factor: int) -> Callable[..., Any]:
        """Return a method of a new instance, jitted."""
        jitted: Callable[..., Any] = jaxwatch.jit(self.own.made(Model(self.own, factor)).scaled)
        return jitted

    def partial(self, factor: int) -> Callable[..., Any]:
        """Return a new partial of one function, jitted."""
        jitted: Callable[..., Any] = jaxwatch.jit(functools.partial(_shifted, self.own, factor))
        return jitted

    def installed(self, add: int) -> Callable[..., Any]:
        """Return a function jitted by what stands in the place of ``jax.jit``."""

        def installed(x: Any) -> Any:
            self.own.body("installed")
            return x + add

        return jax.jit(installed)


def _shifted(own: Own, factor: int, x: Any) -> Any:
    own.body("_shifted")
    return x - factor


def _nothing(_: Any) -> None:
    return None


def array(length: int, dtype: str = "float32") -> Any:
    """Return whole numbers, so that results are exact in whatever order they are summed."""
    return jax.device_put(np.arange(length).astype(dtype))
