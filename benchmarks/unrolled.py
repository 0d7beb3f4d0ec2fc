"""Programs with an unrolled Python loop, each with its twin by ``lax.scan``: what advice is held against."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

Make = Callable[[int], tuple[Callable[..., Any], tuple[Any, ...]]]


class Pair(NamedTuple):
    """A program in both forms, each of a size."""

    loop: Make
    scan: Make


def _stacked(size: int, *shape: int) -> Any:
    return jnp.full((size, *shape), 0.01)


def _listed(size: int, *shape: int) -> list[Any]:
    return [jnp.full(shape, 0.01) for _ in range(size)]


def _rnn() -> Pair:
    def cell(w: Any, h: Any, x: Any) -> Any:
        r, z = jax.nn.sigmoid(h @ w + x), jax.nn.sigmoid(x @ w - h)
        return z * h + (1 - z) * jnp.tanh((r * h) @ w + x)

    def loop(w: Any, h: Any, xs: Any) -> Any:
        for t in range(len(xs)):
            h = cell(w, h, xs[t])
        return h

    def scan(w: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (cell(w, h, x), None), h, xs)[0]

    def arguments(n: int) -> tuple[Any, ...]:
        return jnp.full((32, 32), 0.01), jnp.zeros((8, 32)), _stacked(n, 8, 32)

    return Pair(lambda n: (loop, arguments(n)), lambda n: (scan, arguments(n)))


def _transformer(*, grad: bool = False) -> Pair:
    def layer(x: Any, w: Any) -> Any:
        q, k, v = x @ w[0], x @ w[1], x @ w[2]
        x = x + jax.nn.softmax(q @ k.T / 8.0) @ v
        x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(x @ w[3]) @ w[4]

    def loop(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return x.sum()

    def scan(ws: Any, x: Any) -> Any:
        return lax.scan(lambda x, w: (layer(x, w), None), x, ws)[0].sum()

    def wrapped(fun: Any) -> Any:
        return jax.grad(fun) if grad else fun

    x = jnp.ones((16, 64))
    return Pair(
        lambda n: (wrapped(loop), (_listed(n, 5, 64, 64), x)), lambda n: (wrapped(scan), (_stacked(n, 5, 64, 64), x))
    )


def _ode() -> Pair:
    def f(y: Any) -> Any:
        return jnp.stack([y[1], -jnp.sin(y[0]) - 0.1 * y[1]])

    def rk4(y: Any, h: float = 0.01) -> Any:
        a = f(y)
        b = f(y + h / 2 * a)
        c = f(y + h / 2 * b)
        return y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))

    def loop(n: int) -> Any:
        def run(y: Any) -> Any:
            for _ in range(n):
                y = rk4(y)
            return y

        return run

    def scan(n: int) -> Any:
        return lambda y: lax.scan(lambda y, _: (rk4(y), None), y, None, length=n)[0]

    return Pair(lambda n: (loop(n), (jnp.ones((2, 10)),)), lambda n: (scan(n), (jnp.ones((2, 10)),)))


def _optimizer() -> Pair:
    def loss(p: Any, x: Any) -> Any:
        return jnp.mean((jnp.tanh(x @ p["a"]) @ p["b"] - 1.0) ** 2)

    def update(state: Any, x: Any) -> Any:
        p, m = state
        g = jax.grad(loss)(p, x)
        m = {name: 0.9 * m[name] + g[name] for name in p}
        return {name: p[name] - 0.1 * m[name] for name in p}, m

    def loop(n: int) -> Any:
        def run(state: Any, x: Any) -> Any:
            for _ in range(n):
                state = update(state, x)
            return state

        return run

    def scan(n: int) -> Any:
        return lambda state, x: lax.scan(lambda state, _: (update(state, x), None), state, None, length=n)[0]

    p = {"a": jnp.full((16, 16), 0.1), "b": jnp.full((16, 4), 0.1)}
    arguments = (p, p), jnp.ones((8, 16))
    return Pair(lambda n: (loop(n), arguments), lambda n: (scan(n), arguments))


def _nested() -> Pair:
    def body(x: Any, j: Any) -> Any:
        return jnp.sin(x) * j + jnp.cos(x)

    def loop(n: int) -> Any:
        def run(x: Any) -> Any:
            for _ in range(n):
                for j in range(5):
                    x = body(x, j)
                x = x / (1 + jnp.abs(x).max())
            return x

        return run

    def scan(n: int) -> Any:
        def outer(x: Any, _: Any) -> Any:
            for j in range(5):
                x = body(x, j)
            return x / (1 + jnp.abs(x).max()), None

        return lambda x: lax.scan(outer, x, None, length=n)[0]

    x = jnp.ones((32, 32))
    return Pair(lambda n: (loop(n), (x,)), lambda n: (scan(n), (x,)))


def _half() -> Pair:
    """Return a loop that is but a part of its program."""

    def rest(x: Any) -> Any:
        for k in range(40):
            x = x[:, : 120 - k] @ jnp.full((120 - k, 119 - k), 0.1) + jnp.tanh(x[:, : 119 - k])
        return x

    def block(x: Any, w: Any) -> Any:
        return jnp.tanh(x @ w) + jnp.sin(x) * 0.1

    def loop(ws: Any, x: Any) -> Any:
        for w in ws:
            x = block(x, w)
        return rest(x)

    def scan(ws: Any, x: Any) -> Any:
        return rest(lax.scan(lambda x, w: (block(x, w), None), x, ws)[0])

    x = jnp.ones((8, 120))
    return Pair(lambda n: (loop, (_listed(n, 120, 120), x)), lambda n: (scan, (_stacked(n, 120, 120), x)))


def _inner_jit() -> Pair:
    @jax.jit
    def block(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = jnp.tanh(x @ w) + jax.nn.softmax(x)
        return x

    def loop(ws: Any, x: Any) -> Any:
        for w in ws:
            x = block(x, w)
        return x

    def scan(ws: Any, x: Any) -> Any:
        return lax.scan(lambda x, w: (block(x, w), None), x, ws)[0]

    x = jnp.ones((8, 32))
    return Pair(lambda n: (loop, (_listed(n, 32, 32), x)), lambda n: (scan, (_stacked(n, 32, 32), x)))


def _convolutions() -> Pair:
    def block(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME")
        return x + jax.nn.relu((y - y.mean()) * lax.rsqrt(y.var() + 1e-5))

    def loop(ws: Any, x: Any) -> Any:
        for w in ws:
            x = block(x, w)
        return x

    def scan(ws: Any, x: Any) -> Any:
        return lax.scan(lambda x, w: (block(x, w), None), x, ws)[0]

    x = jnp.ones((2, 8, 16, 16))
    return Pair(lambda n: (loop, (_listed(n, 8, 8, 3, 3), x)), lambda n: (scan, (_stacked(n, 8, 8, 3, 3), x)))


def _filter() -> Pair:
    """Return a Kalman filter, with small solves in it."""

    def step(state: Any, z: Any) -> Any:
        m, p = state
        a = jnp.eye(4) + 0.1 * jnp.eye(4, k=1)
        m, p = a @ m, a @ p @ a.T + 0.01 * jnp.eye(4)
        s = p[:2, :2] + 0.1 * jnp.eye(2)
        k = p[:, :2] / jnp.trace(s)
        return (m + k @ (z - m[:2]), p - k @ p[:2]), None

    def loop(state: Any, zs: Any) -> Any:
        for t in range(len(zs)):
            state, _ = step(state, zs[t])
        return state

    def scan(state: Any, zs: Any) -> Any:
        return lax.scan(step, state, zs)[0]

    state = jnp.zeros(4), jnp.eye(4)
    return Pair(lambda n: (loop, (state, _stacked(n, 2))), lambda n: (scan, (state, _stacked(n, 2))))


def _lstm(*, grad: bool = False) -> Pair:
    def cell(w: Any, state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(jnp.concatenate([h, x], -1) @ w, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    def loop(w: Any, state: Any, xs: Any) -> Any:
        for t in range(len(xs)):
            state = cell(w, state, xs[t])
        return state[0].sum()

    def scan(w: Any, state: Any, xs: Any) -> Any:
        return lax.scan(lambda state, x: (cell(w, state, x), None), state, xs)[0][0].sum()

    def arguments(n: int) -> tuple[Any, ...]:
        return jnp.full((32, 64), 0.01), (jnp.zeros((4, 16)),) * 2, _stacked(n, 4, 16)

    def wrapped(fun: Any) -> Any:
        return jax.grad(fun) if grad else fun

    return Pair(lambda n: (wrapped(loop), arguments(n)), lambda n: (wrapped(scan), arguments(n)))


def _leapfrog() -> Pair:
    def force(q: Any) -> Any:
        return -q * (1 + 2 * jnp.roll(q, 1) ** 2) + jnp.cos(q) * jnp.exp(-(q**2))

    def step(state: Any) -> Any:
        q, p = state
        p = p + 0.05 * force(q)
        q = q + 0.1 * p
        return q, p + 0.05 * force(q)

    def loop(n: int) -> Any:
        def run(state: Any) -> Any:
            for _ in range(n):
                state = step(state)
            return state

        return run

    def scan(n: int) -> Any:
        return lambda state: lax.scan(lambda state, _: (step(state), None), state, None, length=n)[0]

    state = jnp.ones(64), jnp.zeros(64)
    return Pair(lambda n: (loop(n), (state,)), lambda n: (scan(n), (state,)))


PAIRS: dict[str, Pair] = {
    "RNN": _rnn(),
    "transformer": _transformer(),
    "ODE": _ode(),
    "optimizer": _optimizer(),
    "nested": _nested(),
    "transformer, grad": _transformer(grad=True),
    "half of the program": _half(),
    "inner jit": _inner_jit(),
    "convolutions": _convolutions(),
    "Kalman filter": _filter(),
    "LSTM": _lstm(),
    "LSTM, grad": _lstm(grad=True),
    "leapfrog": _leapfrog(),
}
# Measured after the rule was made; the figures of all others were known then, so that they test it less.
UNSEEN = ("LSTM", "LSTM, grad", "leapfrog")
SIZES = {
    "RNN": (20, 100),
    "transformer": (8, 60),
    "ODE": (15, 60),
    "optimizer": (20, 100),
    "nested": (20, 60),
    "transformer, grad": (10, 40),
    "half of the program": (20, 100),
    "inner jit": (16, 60),
    "convolutions": (20, 60),
    "Kalman filter": (20, 60),
    "LSTM": (30, 120),
    "LSTM, grad": (15, 60),
    "leapfrog": (20, 80),
}
