"""The rows: kinds of call. Each gives a run of its own for a way to jit."""

import time
from collections.abc import Callable
from itertools import repeat
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from benchmarks._paired import Run
from benchmarks.variants import Jit

_LOOP = """
def run(calls):
    started = clock()
    for _ in repeat(None, calls):
        {call}
    return (clock() - started) / calls
"""


class Case(NamedTuple):
    """A row."""

    name: str
    make: Callable[[Jit], Run]
    brief: bool  # also with --quick


def loop(call: str, **names: Any) -> Run:
    """Return a run of the statement ``call``, in code of its own: the interpreter adapts a call to what it finds there.

    Args:
        call: A statement.
        names: What it refers to.
    """
    space: dict[str, Any] = {"clock": time.perf_counter_ns, "repeat": repeat, **names}
    exec(_LOOP.format(call=call), space)  # noqa: S102 -- our own text
    run: Run = space["run"]
    return run


def _scalar(jit: Jit) -> Run:
    return loop("fun(x)", fun=jit(lambda x: x), x=jnp.float32(1))


def _tree(leaves: int) -> Callable[[Jit], Run]:
    tree = {f"k{i}": jnp.full((4,), i, jnp.float32) for i in range(leaves)}
    return lambda jit: loop("fun(tree)", fun=jit(lambda t: t["k0"]), tree=tree)


def _method(jit: Jit) -> Run:
    class Model:
        step = jit(lambda self, x: x, static_argnums=0)

    return loop("model.step(x)", model=Model(), x=jnp.float32(1))


def _kwargs(jit: Jit) -> Run:
    return loop("fun(x=x, y=y)", fun=jit(lambda x, y: x), x=jnp.float32(1), y=jnp.float32(2))


def _static(jit: Jit) -> Run:
    return loop("fun(x, 3, 'same')", fun=jit(lambda x, n, mode: x, static_argnums=(1, 2)), x=jnp.float32(1))


_ARRAY = np.ones(3, np.float32)  # one for all variants: by its alignment JAX copies it or does not


def _numpy(jit: Jit) -> Run:
    return loop("fun(x)", fun=jit(lambda x: x), x=_ARRAY)


def _donated(jit: Jit) -> Run:
    fun = jit(lambda x: x + 1, donate_argnums=0)
    return loop("box[0] = fun(box[0])", fun=fun, box=[jnp.zeros(1024, jnp.float32)])


CASES = (
    Case("scalar", _scalar, brief=True),
    Case("tree of 1 leaf", _tree(1), brief=False),
    Case("tree of 10 leaves", _tree(10), brief=False),
    Case("tree of 100 leaves", _tree(100), brief=True),
    Case("tree of 1,000 leaves", _tree(1000), brief=False),
    Case("method", _method, brief=True),
    Case("keyword arguments", _kwargs, brief=False),
    Case("static arguments", _static, brief=False),
    Case("numpy argument", _numpy, brief=True),
    Case("donated argument", _donated, brief=False),
)
SCALAR, HUNDRED = "scalar", "tree of 100 leaves"
