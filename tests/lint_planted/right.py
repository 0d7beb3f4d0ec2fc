"""Right code that looks like the faults; nothing here may be told."""

import functools
import logging
import math
import os
import random
import time
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import jax.numpy as np
import jax.random as jr
import numpy as onp
import optax
from flax import nnx
from flax.training.train_state import TrainState
from jax import lax, random as jrandom
from jax.experimental import io_callback
from jax.tree_util import register_pytree_node_class

LOG = []
SCALE = float(os.environ.get("SCALE", "1"))
TABLE = onp.arange(10)
CONFIG = {"depth": 3, "name": "a"}
LAYERS = [jnp.sin, jnp.cos]


# ------------------------------------------------------------------ not jitted at all


def plain(x):
    print(x)
    if x > 0:
        LOG.append(float(x))
    x[0] = onp.random.rand() + time.time()
    return onp.asarray(x).item()


def main():
    rng = onp.random.default_rng(0)
    step = jax.jit(loss)
    for i in range(10):
        value = step(jnp.ones(3), rng.normal(size=3))
        if value > 3 and i:
            LOG.append(float(value))
            print(i, value.item(), time.time())


# ------------------------------------------------------------------ static while tracing


@jax.jit
def loss(params, x):
    if x.ndim == 1 and params.shape[0] > 2:
        x = x[None]
    n = x.shape[0]
    rows, cols = x.shape
    for i in range(n):
        params = params + i
    for _ in range(rows * cols):
        params = params * 2
    if len(x) > 3 or x.dtype == jnp.float32:
        params = -params
    assert x.ndim == 2, x.shape
    scale = math.sqrt(x.shape[-1]) * onp.prod(x.shape) / float(n)
    return jnp.mean(params * x) * scale


@jax.jit
def optional(x, mask=None, bias=None):
    if mask is not None:
        x = jnp.where(mask, x, 0)
    if bias is None:
        bias = jnp.zeros_like(x)
    if not (mask is None):
        x = x + 1
    return x + bias


@partial(jax.jit, static_argnums=(1,), static_argnames=("mode",))
def static(x, n, mode="sum", *, flag=False):
    if n > 3:
        x = x + n
    for _ in range(n):
        x = x * 2
    if mode == "sum":
        return x.sum()
    return getattr(jnp, mode)(x) if mode in ("mean", "max") else x.reshape(n, -1)


static_by_default = jax.jit(plain_static := (lambda x, n=3: x * n if n > 2 else x))


@jax.jit
def containers(batch, params):
    if "mask" in batch:
        batch = {**batch, "extra": 1}
    total = 0.0
    for name, value in params.items():
        if name.startswith("w"):
            total = total + jnp.sum(value)
    for key in sorted(params):
        total = total + params[key].sum()
    batch["x"] = batch["x"] + 1
    new = dict(batch)
    new["y"] = total
    out = []
    for k in batch.keys():
        out.append(batch[k])
    out[0] = total
    if not params or len(out) > 3:
        return new
    return out, jax.tree.map(lambda a: a * 2, params)


@jax.jit
def local_only(x):
    acc, seen, names = [], {}, set()
    acc.append(x)
    seen["x"] = x
    names.add("x")
    buffer = onp.zeros(3)
    buffer[0] = 1.0
    if acc:
        x = acc.pop()

    def add(v):
        acc.append(v)
        seen["v"] = v

    add(x)
    count = 0

    def bump():
        nonlocal count
        count += 1

    bump()
    return jnp.stack(acc), seen, buffer, count


@jax.jit
def debugging(x):
    jax.debug.print("x {x}", x=x)
    jax.debug.callback(lambda v: print(v, float(v)), x)

    def host(v):
        LOG.append(float(v))
        print("host", time.time())
        return onp.sin(v)

    y = jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
    io_callback(host, None, y)
    return y


@jax.jit
def on_jnp(x, key, i):
    y = np.asarray(x) + np.sin(x)
    noise = jrandom.normal(key, x.shape) + jr.uniform(key)
    y = y.at[0].set(1.0).at[i].add(2.0)
    rows = jnp.where(y > 0, y, 0.0)
    found = jnp.nonzero(y, size=3)
    values = jnp.unique(y, size=4)
    both = (x > 0) & (y < 1) | ~(x == y)
    picked = jnp.asarray(TABLE)[i] + jnp.take(y, i)
    first = y[i] + y[0] + y[..., None] + y[jnp.argsort(y)]
    return lax.cond(y.sum() > 0, lambda: rows, lambda: -rows), noise, found, values, both, picked, first


@jax.jit
def asked(x, scale):
    if isinstance(scale, (int, float)):
        scale = scale * 2 if scale > 1 else scale
    if isinstance(x, onp.ndarray):
        x = x.astype(onp.float32) if x.max() > 0 else x
    if callable(scale) or hasattr(x, "shape"):
        return x
    if not isinstance(x, jax.core.Tracer) and x > 0:
        return 1
    return x * scale


@jax.jit
def tried(x):
    try:
        value = float(x)
    except (TypeError, jax.errors.ConcretizationTypeError):
        value = None
    return x if value is None else x * value


@jax.jit
def folded(xs, n_devices):
    total = sum(xs)
    pairs = list(zip(xs, xs))
    if not pairs:
        return total
    if lax.psum(1, "i") > 1:
        total = total / 2
    if jax.device_count() > 1 or jax.process_index() == 0:
        total = total * 2
    for i, (a, b) in enumerate(pairs):
        if i == 0 or i % 2:
            total = total + a * b
    return total, n_devices


# ------------------------------------------------------------------ wrapped by call


def apply(config, n, x):
    if config["depth"] > 2 and n:
        for _ in range(n):
            x = x + 1
    if CONFIG["name"] == "a":
        return x
    return LAYERS[0](x)


applied = jax.jit(partial(apply, CONFIG, 3))
also = jax.jit(apply, static_argnums=(0, 1))
by_name = jax.jit(partial(apply, n=2), static_argnames="config")


def objective(params, x, train):
    if train:
        x = x * 2
    return jnp.sum(params * x)


trained = jax.jit(partial(objective, train=True))
gradient = jax.jit(jax.grad(objective), static_argnums=2)
mapped = jax.vmap(objective, in_axes=(None, 0, None))


@jax.grad
def slope(x):
    print("eager", x)  # under grad alone, at each call
    if x > 0:
        return x**2
    return x


def eager_loss(w, x):
    LOG.append(x)
    return jnp.sum(w * x)


eager_grad = jax.grad(eager_loss)


# ------------------------------------------------------------------ nested, bodies


def rollout(state, steps, verbose):
    history = []

    def body(carry, _):
        i, x = carry
        y = jnp.where(x > 0, x, -x)
        return (i + 1, y), y

    out, ys = lax.scan(body, (0, state), None, length=steps)
    if verbose and steps > 3:
        print(ys)
    history.append(out)
    return history


@jax.jit
def loop(x):
    def cond(val):
        i, v = val
        return (i < 10) & (v.sum() < 3)

    def body(val):
        i, v = val
        n, m = 3, v.ndim
        if n > 2 and m:
            v = v * n
        return i + 1, v

    return lax.while_loop(cond, body, (0, x))


def train_step(state: TrainState, batch, dropout_key):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, batch["x"], rngs={"dropout": dropout_key})
        one_hot = jax.nn.one_hot(batch["y"], logits.shape[-1])
        return optax.softmax_cross_entropy(logits, one_hot).mean(), logits

    (loss_value, logits), grads = jax.value_and_grad(loss_fn, has_aux=True)(state.params)
    metrics = {"loss": loss_value, "accuracy": jnp.mean(jnp.argmax(logits, -1) == batch["y"])}
    return state.apply_gradients(grads=grads), metrics


train_step_jit = jax.jit(train_step, donate_argnums=0)


def make_step(optimizer, config, *, verbose=False):
    schedule = {"lr": 0.1}

    @jax.jit
    def step(params, opt_state, batch):
        if config.use_bias and verbose:
            params = {**params, "b": 1}
        loss_value, grads = jax.value_and_grad(lambda p: jnp.sum(p["w"] * batch))(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        for _ in range(config.n_layers):
            grads = jax.tree.map(jnp.tanh, grads)
        return optax.apply_updates(params, updates), opt_state, loss_value * schedule["lr"]

    return step


# ------------------------------------------------------------------ libraries


@eqx.filter_jit
def filtered(model, x, training, n):
    if training:
        x = x + 1
    for _ in range(n):
        x = model(x)
    return x


class MLP(eqx.Module):
    layers: list
    bias: jax.Array | None
    depth: int = eqx.field(static=True)

    def __call__(self, x):
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        if self.depth > 3 and self.bias is not None:
            x = x + self.bias
        return self.layers[-1](x)

    @jax.jit
    def forward(self, x):
        return self(x)


@nnx.jit
def nnx_step(model, optimizer, metrics, batch):
    def loss_fn(model):
        logits = model(batch["x"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean(), logits

    (loss_value, logits), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model)
    metrics.update(loss=loss_value, logits=logits)
    optimizer.update(grads)
    model.count.value += 1
    return loss_value


class CNN(nn.Module):
    features: int = 3

    @nn.compact
    def __call__(self, x, train: bool = True):
        if train:
            x = nn.Dropout(0.5)(x)
        for i in range(self.features):
            x = nn.Dense(i)(x)
        mean = self.variable("stats", "mean", jnp.zeros, (3,))
        mean.value = x.mean(0)
        return x


class Point(NamedTuple):
    x: jax.Array
    y: jax.Array


@jax.jit
def move(point: Point, by=1.0):
    if point:
        point = point._replace(x=point.x + by)
    return Point(point.x, y=point.y)


@flax.struct.dataclass
class Env:
    done: jax.Array
    size: int = flax.struct.field(pytree_node=False)

    @jax.jit
    def step(self, action):
        if self.size > 3:
            action = action + 1
        return self.replace(done=jnp.where(action > 0, True, self.done))


@register_pytree_node_class
class Linear:
    def __init__(self, w, n):
        self.w, self.n = w, n

    def tree_flatten(self):
        return (self.w,), self.n

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux)

    @jax.jit
    def __call__(self, x):
        if self.n > 3:
            return x
        return self.w @ x


class Agent:
    def __init__(self, n):
        self.n = n
        self.act = jax.jit(self._act)
        self.log = []

    def _act(self, params, obs):
        if self.n > 3 and obs.ndim == 2:
            obs = obs * self.n
        local = self._scaled(obs)
        return params @ local

    def _scaled(self, obs):
        return obs / self.n

    @partial(jax.jit, static_argnums=(0,))
    def value(self, params, obs):
        if self.n:
            return params @ obs
        return obs

    @partial(jax.jit, static_argnames=("self", "n"))
    def more(self, x, n):
        return x if n else -x

    @staticmethod
    @jax.jit
    def pure(x):
        return x * 2

    def train(self, batches):
        for batch in batches:
            loss_value = self.act(batch, batch)
            self.log.append(float(loss_value))
            self.n += 1
        return self.log


# ------------------------------------------------------------------ how it is jitted


@partial(jax.jit, static_argnames=("sizes", "axis"), donate_argnums=0)
def sized(x, sizes=(3, 3), axis=None):
    return x.reshape(sizes).sum(axis)


sized(jnp.ones(9), sizes=(3, 3))


@partial(jax.jit, static_argnums=(-1,), static_argnames=("extra",))
def varied(*args, **kwargs):
    return args[0]


@lru_cache(maxsize=None)
def compiled(n):
    return jax.jit(lambda x: x * n)(1.0)


def jit_all(functions):
    jitted = {}
    for name, function in functions.items():
        jitted[name] = jax.jit(function)
    fs = [jax.jit(f) for f in functions.values()]
    steps = {}
    for n in (1, 2):
        if n not in steps:
            steps[n] = jax.jit(partial(apply, CONFIG, n))
    for f in functions.values():
        jax.jit(f)(1.0)
    return jitted, fs, steps


def init_model(model, key):
    return jax.jit(model.init)(key, jnp.ones(3))


def test_it():
    assert jax.jit(lambda x: x + 1)(1) == 2
    jax.jit(plain_static).lower(1.0).compile()


total = jax.jit(lambda x: x.sum())(jnp.ones(3))
random.seed(0)
logging.info("made")


class Layer(nn.Module):
    def __call__(self, x):
        return jax.jit(lambda v: v * 2)(x)


def start(key, init_fn):
    return jax.jit(init_fn)(key)


@jax.jit
def outer_jit(x):
    for _ in range(3):
        x = jax.jit(lambda v: v + 1)(x)
    return jax.jit(jnp.sin)(x)


def compare(function, x):
    return jax.jit(function)(x), function(x)
