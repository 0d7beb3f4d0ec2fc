"""What any thread of the program does: calls that hit, miss and fail, in all ways that there are."""

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from benchmarks.soaked.counts import Own
from benchmarks.soaked.functions import BodyError, Functions, Pair, array

LENGTHS = (1, 2, 3, 4, 8, 12, 16, 31)
_DTYPES = ("float32", "int32", "float16")
_WRONG: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("affine", ()),
    ("power", (1.0, [])),
    ("tree", ("text",)),
    ("total", (None, 1)),
)


class Calls:
    """Operations by name; each returns what is hashed."""

    def __init__(self, own: Own, functions: Functions) -> None:
        self.own, self.f = own, functions
        devices = np.array(jax.devices())
        self.mesh = Mesh(devices, ("d",))
        self.shardings = [
            NamedSharding(self.mesh, PartitionSpec("d")),  # type: ignore[no-untyped-call]  # JAX's
            NamedSharding(self.mesh, PartitionSpec()),  # type: ignore[no-untyped-call]  # JAX's
            *(jax.sharding.SingleDeviceSharding(device) for device in devices[:2]),
        ]
        self.by_name: dict[str, Callable[[random.Random], Any]] = {
            "shape, dtype, weak type": self.affine,
            "call form": self.forms,
            "static": self.power,
            "tree": self.tree,
            "sharding": self.total,
            "donated": self.donated,
            "nested jit": self.outer,
            "inner alone": self.inner,
            "grad, vmap": self.transformed,
            "jit of grad": self.slope,
            "new function object": self.fresh,
            "method": self.method,
            "partial": self.partial,
            "raises in its trace": self.failing,
            "wrong arguments": self.wrong,
            "debug callback": self.chatty,
            "configuration": self.configured,
            "outside jit": self.eager,
            "ahead of time": self.ahead,
            "clear_cache": self.clear_one,
            "hits": self.hits,
        }

    def run(self, rng: random.Random, number: int) -> list[Any]:
        """Do so many, at random; return their results in order."""
        names = list(self.by_name)
        found = []
        for _ in range(number):
            name = rng.choice(names)
            self.own.operation(name)
            found.append(self.by_name[name](rng))
        return found

    def _array(self, rng: random.Random, dtype: str = "float32") -> Any:
        return self.own.made(array(rng.choice(LENGTHS), dtype))

    def affine(self, rng: random.Random) -> Any:
        """Vary shape, dtype and weak type."""
        x = self._array(rng, rng.choice(_DTYPES))
        y = rng.choice([1, 1.0, np.float32(1), jnp.float32(1)])
        self.own.call("affine")
        return self.f.affine(x, y)

    def forms(self, rng: random.Random) -> Any:
        """Give an argument by its name, or one more."""
        x = self._array(rng)
        self.own.call("affine")
        return self.f.affine(x, y=3) if rng.random() < 0.5 else self.f.affine(x, 3, scale=rng.choice([2, 2.0]))  # noqa: PLR2004 -- a coin

    def power(self, rng: random.Random) -> Any:
        """Vary static arguments."""
        x = self._array(rng)
        self.own.call("power")
        return self.f.power(x, rng.randrange(6), mode=rng.choice(["up", "down"]))

    def tree(self, rng: random.Random) -> Any:
        """Vary the tree."""
        x = self._array(rng)
        batch = rng.choice([{"a": x}, {"a": x, "b": x}, [x, None], (x, (x,)), Pair(x, [x]), {"a": {"b": x}}, {}])
        self.own.call("tree")
        return self.f.tree(batch)

    def total(self, rng: random.Random) -> Any:
        """Vary the sharding."""
        x = self.own.made(jax.device_put(array(rng.choice((4, 8, 16))), rng.choice(self.shardings)))
        self.own.call("total")
        return self.f.total(x)

    def donated(self, rng: random.Random) -> Any:
        """Give an array away."""
        self.own.call("donated")
        return self.f.donated(self._array(rng))

    def outer(self, rng: random.Random) -> Any:
        """Call what calls a watched function."""
        x = self._array(rng)
        self.own.call("outer")
        return self.f.outer(x)

    def inner(self, rng: random.Random) -> Any:
        """Call alone what is mostly inlined."""
        x = self._array(rng)
        self.own.call("inner")
        return self.f.inner(x)

    def transformed(self, rng: random.Random) -> Any:
        """Transform a watched function."""
        x = self._array(rng)
        self.own.call("loss")
        if rng.random() < 0.5:  # noqa: PLR2004 -- a coin
            return jax.grad(self.f.loss)(x)
        return jax.vmap(self.f.loss)(x.reshape(-1, 1))

    def slope(self, rng: random.Random) -> Any:
        """Call what was transformed before it was jitted."""
        x = self._array(rng)
        self.own.call("slope")
        return self.f.slope(x)

    def fresh(self, rng: random.Random) -> Any:
        """Jit a new function object, and call it twice."""
        fresh, x = self.f.fresh(rng.randrange(4)), self._array(rng)
        self.own.call("fresh")
        first = fresh(x)
        self.own.call("fresh")
        return first, fresh(x)

    def method(self, rng: random.Random) -> Any:
        """Jit a bound method anew."""
        x = self._array(rng)
        self.own.call("Model.scaled")
        return self.f.method(rng.randrange(4))(x)

    def partial(self, rng: random.Random) -> Any:
        """Jit a partial anew."""
        x = self._array(rng)
        self.own.call("_shifted")
        return self.f.partial(rng.randrange(4))(x)

    def failing(self, rng: random.Random) -> Any:
        """Call what may raise while it is traced."""
        x = self._array(rng)
        self.own.call("failing")
        try:
            return self.f.failing(x, rng.random() < 0.5)  # noqa: PLR2004 -- a coin
        except BodyError:
            self.own.failed("failing")
            return "raised"

    def wrong(self, rng: random.Random) -> Any:
        """Call with what JAX refuses."""
        function, arguments = rng.choice(_WRONG)
        self.own.call(function)
        before = self.own.told_here()
        try:
            getattr(self.f, function)(*arguments)
        except (TypeError, ValueError) as error:
            self.own.reject(function, before)
            return type(error).__name__
        return "not refused"

    def chatty(self, rng: random.Random) -> Any:
        """Call what never gets onto the fast path."""
        x = self._array(rng)
        self.own.call("chatty")
        return self.f.chatty(x)

    def configured(self, rng: random.Random) -> Any:
        """Change a configuration that is part of JAX's key."""
        x = self._array(rng)
        with jax.default_matmul_precision(rng.choice(["float32", "bfloat16"])):
            self.own.call("inner")
            return self.f.inner(x)

    def eager(self, rng: random.Random) -> Any:
        """Compile outside of any jit."""
        x = self._array(rng)
        return jnp.concatenate([x, x])[: rng.choice(LENGTHS)]

    def ahead(self, rng: random.Random) -> Any:
        """Compile ahead of time, or ask for the shapes alone."""
        x = self._array(rng)
        if rng.random() < 0.5:  # noqa: PLR2004 -- a coin
            shape = self.f.ahead.eval_shape(x)
            return f"{shape.shape} {shape.dtype}"
        with self.own.ahead():
            compiled = self.f.ahead.lower(x).compile()
        return compiled(x)

    def clear_one(self, rng: random.Random) -> Any:
        """Clear the caches of one function."""
        for name in rng.sample(["affine", "power", "tree", "total", "inner", "failing"], 2):
            getattr(self.f, name).clear_cache()
        return "cleared"

    def hits(self, rng: random.Random) -> Any:
        """Call the same again and again, read the figures between."""
        x = self._array(rng)
        found = []
        for _ in range(20):
            self.own.call("inner")
            found.append(self.f.inner(x))
        return found
