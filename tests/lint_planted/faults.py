"""Faults, each marked with its code on its line; nothing here is run."""

import datetime as dt
import functools
import logging
import math
import os
import random
import time
from functools import partial
from typing import NamedTuple

import equinox as eqx
import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as onp
from flax import nnx
from jax import jit as J
from jax import lax, value_and_grad, vmap
from jaxtyping import Array, Float

import jaxwatch

HISTORY = []
CACHE = {}
SEEN = set()
COUNT = 0
TABLE = jnp.arange(10)
WEIGHTS = onp.ones(3)
LAYERS = [jnp.sin, jnp.cos]


# ------------------------------------------------------------------ side effects


@jax.jit
def prints(x):
    print("x is", x)  # JW101
    return x


@J
def aliased(x):
    total = x.sum()
    print(f"total {total}")  # JW101
    return total


@jaxwatch.jit
def watched(x):
    global COUNT
    COUNT += 1  # JW102
    return x * COUNT


@partial(jax.jit, donate_argnums=(0,))
def appends(x):
    HISTORY.append(x)  # JW103
    SEEN.add(3)  # JW103
    return x


@jax.jit
def caches(params, x):
    CACHE["last"] = x  # JW103
    CACHE.update(params=params)  # JW103
    del CACHE["last"]  # JW103
    return params @ x


def make_counter():
    calls = 0
    log = {"n": 0}
    losses = []

    @jax.jit
    def step(x):
        nonlocal calls
        calls = calls + 1  # JW102
        log["n"] += 1  # JW103
        loss = jnp.mean(x**2)
        losses.append(loss)  # JW103
        return loss

    return step, log, losses


class Trainer:
    def __init__(self, model):
        self.model = model
        self.metrics = []
        self.steps = 0
        self.update = jax.jit(self._update)
        self.evaluate = jax.jit(partial(self._evaluate, 3))

    def _update(self, params, batch):
        self.steps += 1  # JW104
        self.metrics.append(batch["x"])  # JW103
        self.last = params  # JW104
        return params

    def _evaluate(self, k, params):
        if params > k:  # JW301
            return params
        for _ in range(k):
            params = params + 1
        return params

    @partial(jax.jit, static_argnums=0)
    def predict(self, x):
        self.cached = x  # JW104
        setattr(self, "shape", x)  # JW104
        return self.model(x)

    @jax.jit  # the line below is told
    def broken(self, x):  # JW606
        return x * 2


# ------------------------------------------------------------------ frozen values


@jax.jit
def noisy(x):
    noise = onp.random.normal(size=x.shape)  # JW201
    shift = random.random()  # JW201
    return x + noise + shift


@jax.jit
def timed(x):
    start = time.perf_counter()  # JW202
    now = dt.datetime.now().timestamp()  # JW202
    return x + start + now


@jax.jit
def configured(x):
    scale = float(os.environ["SCALE"])  # JW203
    debug = os.environ.get("DEBUG", "0")  # JW203
    if os.getenv("VERBOSE"):  # JW203
        x = x + 1
    if "FAST" in os.environ:  # JW203
        return x
    return x * scale + int(debug)


# ------------------------------------------------------------------ Python's control flow


@jax.jit
def relu(x):
    if x > 0:  # JW301
        return x
    return 0.0


@jax.jit
def flagged(x, train: bool):
    if train:  # JW301
        return x
    return -x


@functools.partial(jax.jit, static_argnames="mode")
def moded(x, mode, verbose):
    if mode == "a" and verbose:  # JW301
        return x
    y = x.mean()
    return y if not y > 1 else x  # JW301


@jax.jit
def chained(x):
    y = x + 1
    z = y * 2
    if jnp.any(z):  # JW301
        z = -z
    if jnp.linalg.norm(z) > 1.0 and x.ndim == 2:  # JW301
        z = z / 2
    while z.sum() > 1:  # JW302
        z = z / 2
    assert (z >= 0).all(), "negative"  # JW303
    return z


@jax.jit
def truths(x, y):
    a = x > 0 and y > 0  # JW304
    b = not x  # JW304
    c = 0 < x < 1  # JW304
    d = max(x, y)  # JW304
    e = min(jnp.sum(x), 3.0)  # JW304
    f = any([x > 0, y > 0])  # JW304
    g = x in (1, 2)  # JW304
    return a, b, c, d, e, f, g


@jax.jit
def loops(x, n):
    for _ in range(n):  # JW305
        x = x + 1
    for i in range(int(x.sum())):  # JW401
        x = x + i
    return [v for v in x if v > 0]  # JW301


@jax.jit
def indexes(x, i):
    layer = LAYERS[i]  # JW306
    weight = WEIGHTS[i.astype(int)]  # JW306
    return layer(x) * weight


@jax.jit
def shapes(x, n):
    a = jnp.zeros((n, 3))  # JW307
    b = jnp.arange(n)  # JW307
    c = x.reshape(n, -1)  # JW307
    return a, b, c


@jax.jit
def masks(x):
    a = x[x > 0]  # JW308
    b = jnp.nonzero(x)  # JW308
    c = jnp.unique(x)  # JW308
    mask = jnp.isnan(x)
    d = x[~mask]  # JW308
    e = jnp.where(x > 0)[0]  # JW308
    return a, b, c, d, e


# ------------------------------------------------------------------ Python's numbers, numpy


@jax.jit
def numbers(x, y):
    a = float(x)  # JW401
    b = int(y.sum())  # JW401
    c = bool(jnp.all(x == y))  # JW401
    d = x.mean().item()  # JW401
    e = y.tolist()  # JW401
    f = math.sqrt(x)  # JW401
    return a, b, c, d, e, f


@jax.jit
def numpys(x):
    a = onp.asarray(x)  # JW402
    b = onp.sin(x)  # JW402
    c = onp.array([x, x + 1])  # JW402
    buffer = onp.zeros(3)
    buffer[0] = x  # JW402
    return a, b, c, buffer


# ------------------------------------------------------------------ assignment in place


@jax.jit
def in_place(x, i):
    x[0] = 1.0  # JW501
    x[i, :] += 2.0  # JW501
    y = jnp.zeros(3)
    y[1:] = x[1:]  # JW501
    x.at[0].set(1.0)  # JW502
    return x + y


@jax.jit
def table(x):
    TABLE[0] = x  # JW501
    return TABLE


# ------------------------------------------------------------------ wrapped by call


def loss_fn(params, batch):
    print("loss")  # JW101
    error = params["w"] @ batch["x"] - batch["y"]
    if error.max() > 1e3:  # JW301
        error = error / 2
    return float(jnp.mean(error**2))  # JW401


step = jax.jit(jax.value_and_grad(loss_fn))


def scaled(factor, x):
    if factor > 1 and x > 1:  # JW301
        return x
    return factor * x


double = jax.jit(partial(scaled, 2.0))
abs_ = J(lambda x: x if x > 0 else -x)  # JW301
batched = jit_of_vmap = jax.jit(vmap(lambda r: r.item()))  # JW401


def clip(x, low, high):
    if x < low:  # JW301
        return low
    return high if x > high else x  # JW301


clipped = jax.jit(clip, static_argnums=(1, 2))


def normalize(x):
    return x / float(x.max())  # JW401


mapped = vmap(normalize)


# ------------------------------------------------------------------ nested, bodies


@jax.jit
def rollout(state, keys):
    outs = []

    def body(carry, key):
        if carry > 0:  # JW301
            carry = carry - 1
        outs.append(carry)  # JW103
        noise = onp.random.rand()  # JW201
        return carry + noise, key

    final, _ = lax.scan(body, state, keys)
    return final, outs


def unrolled(xs):
    def cond(val):
        i, x = val
        return i < 10 and x < 3  # JW304

    def body(val):
        i, x = val
        print(i)  # JW101
        return i + 1, x

    return lax.while_loop(cond, body, (0, xs))


def summed(xs):
    def body(i, total):
        if i % 2 == 0:  # JW301
            total = total + xs[i]
        HISTORY.append(total)  # JW103
        return total

    return jax.lax.fori_loop(0, 10, body, 0.0)


def branches(pred, x):
    return lax.cond(pred, lambda v: float(v), lambda v: -v, x)  # JW401


def switched(index, x):
    def first(v):
        time.time()  # JW202
        return v

    return lax.switch(index, [first, lambda v: v.item()], x)  # JW401


def helper(y, n):
    for _ in range(n):
        y = y + 1
    if y.sum() > 0:  # JW301
        return y
    return -y


@jax.jit
def calls_helper(x):
    y = jnp.exp(x)
    return helper(y, 3)


def train_step(params, opt_state, batch):
    def inner(p):
        logits = p @ batch["x"]
        loss = jnp.mean((logits - batch["y"]) ** 2)
        if loss > 10:  # JW301
            loss = 10.0
        return loss

    loss, grads = value_and_grad(inner)(params)
    if jnp.isnan(loss):  # JW301
        print("nan!")  # JW101
    return params, opt_state, loss


train_step_jit = jax.jit(train_step, donate_argnums=(0, 1))


@jax.checkpoint
def block(x):
    if x.sum() > 0:  # JW301
        return x
    return -x


# ------------------------------------------------------------------ libraries


@eqx.filter_jit
def filtered(model, x: Float[Array, "n"]):
    y = jax.vmap(model)(x)
    if jnp.sum(x) > 0:  # JW301
        y = y + 1
    print(y)  # JW101
    return y.item()  # JW401


class MLP(eqx.Module):
    weight: Array
    depth: int = eqx.field(static=True)

    @eqx.filter_jit
    def __call__(self, x):
        for _ in range(self.depth):
            x = self.weight @ x
        if self.weight.sum() > 0:  # JW301
            return x
        return jnp.tanh(x)


@nnx.jit
def nnx_step(model, optimizer, x, y):
    def loss_fn(model):
        return jnp.mean((model(x) - y) ** 2)

    loss, grads = nnx.value_and_grad(loss_fn)(model)
    optimizer.update(grads)
    if loss < 0.1:  # JW301
        HISTORY.append(loss)  # JW103
    return loss


class Block(nn.Module):
    @nn.jit
    @nn.compact
    def __call__(self, x):
        print("call")  # JW101
        if x.mean() > 0:  # JW301
            return nn.Dense(3)(x)
        return x


class State(NamedTuple):
    position: jax.Array
    step: int


@jax.jit
def advance(state: State):
    if state.step > 3:  # JW301
        return state
    return state._replace(step=int(state.step))  # JW401


@flax.struct.dataclass
class Env:
    done: jax.Array
    size: int = flax.struct.field(pytree_node=False)


@jax.jit
def env_step(env: Env, action):
    if env.size > 3:
        action = action + 1
    if env.done:  # JW301
        return env
    key = jr.PRNGKey(int(time.time()))  # JW202
    return env, jr.normal(key)


# ------------------------------------------------------------------ how it is jitted


@partial(jax.jit, static_argnames=("sizes",))
def sized(x, sizes=[3, 3]):  # JW601
    return x.reshape(sizes)


@partial(jax.jit, static_argnums=(1,))
def optioned(x, options={}):  # JW601
    return x


@partial(jax.jit, static_argnames=["shape"])
def made(x, shape):
    return jnp.zeros(shape) + x


made(1.0, shape=[2, 3])  # JW601


@partial(jax.jit, static_argnames=("axes",))  # JW602
def misnamed(x, axis):
    return x.sum(axis)


@partial(jax.jit, static_argnums=(2,))  # JW603
def misnumbered(x, n):
    return x * n


def plain(x, n):
    return x


wrong_name = jax.jit(plain, static_argnames="k")  # JW602
wrong_number = jax.jit(plain, static_argnums=-3)  # JW603


def train(params, batches):
    for batch in batches:
        params = jax.jit(plain)(params, batch)  # JW604
    for batch in batches:
        update = jax.jit(lambda p: p - batch)  # JW604
        params = update(params)
    while params.sum() > 0:
        grad = jax.jit(jax.grad(plain))(params, 1)  # JW604
        params = params - grad
    return [jax.jit(lambda p: p + b)(params) for b in batches]  # JW604


def predict(params, x):
    return jax.jit(lambda p, v: p @ v)(params, x)  # JW605


def evaluate(params, x):
    def forward(p):
        return p @ x

    return jax.jit(forward)(params)  # JW605
