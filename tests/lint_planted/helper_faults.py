"""Faults among helpers, factories and loops, each marked with its code; nothing here is run."""
import jax, jax.numpy as jnp, numpy as np
from numpy.random import normal
from random import random, choice
import random as rnd
from time import perf_counter
import datetime
from pprint import pprint
from functools import partial
from jax import lax
import os
HISTORY = []
class Config: pass
cfg = Config()
def log(v):
    HISTORY.append(v)  # JW103
@jax.jit
def a(x):
    log(x)
    y = normal()  # JW201
    z = random() + rnd.randint(0, 3)  # JW201
    w = choice([1, 2])  # JW201
    t = perf_counter()  # JW202
    d = datetime.date.today()  # JW202
    cfg.step = x  # JW104
    pprint(x)  # JW101
    import uuid
    return uuid.uuid4()  # JW201
def make_step(scale):
    trace = []
    def step(x):
        print("step")  # JW101
        trace.append(x)  # JW103
        if scale > 2:
            x = x * scale
        return x if x > 0 else -x  # JW301
    return step
step = jax.jit(make_step(3))
class Loss:
    def __init__(self): self.vals = []; self.best = None
    @partial(jax.jit, static_argnums=0)
    def __call__(self, p):
        y = p.copy()
        y[0] = 1  # JW501
        self.vals.extend([p])  # JW103
        self.__dict__["z"] = p  # JW103
        if self.best is None or p < self.best:  # JW301
            self.best = p  # JW104
        return p
@jax.jit
def b(x, ys):
    m = max(ys)  # JW304
    if all(x > 0):  # JW304
        pass
    if float(x[0]) > 0:  # JW401
        pass
    if len(x) > ys:  # JW301
        pass
    for i in range(x.shape[0]):
        if x[i] > 0:  # JW301
            x[i] = 0  # JW501
            continue
    r = [v * 2 for v in range(3) if x[v]]  # JW301
    q = {k: float(v) for k, v in {"a": x}.items()}  # JW401
    return m
FNS = {"a": lambda x: x.item()}  # JW401
c = jax.jit(FNS["a"])
def outer():
    n = 0
    def body(i, v):
        nonlocal n
        n += 1  # JW102
        return v + i
    return lax.fori_loop(0, 3, body, 0.)
@jax.jit
def d(params, grads):
    for k in params:
        if jnp.abs(grads[k]).max() > 1:  # JW301
            grads[k] = grads[k] / 2
    new = {k: v.at[0].set(0) for k, v in params.items()}
    norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in grads.values()))
    if norm > 1.0:  # JW301
        grads = jax.tree.map(lambda g: g / norm, grads)
    ok = bool(jnp.isfinite(norm))  # JW401
    os.environ["A"] = "1"  # JW103
    return new
def e(key, x, p):
    if jax.random.bernoulli(key, p):  # JW301
        return jnp.zeros_like(x)
    return x
dropout = jax.vmap(e, in_axes=(0, 0, None))
@partial(jax.jit, static_argnames=("opts",))
def f(x, opts=dict(a=1)):  # JW601
    return x
f(1, opts={"a": 2})  # JW601
g = jax.jit(lambda x, n: x, static_argnames=("m",))  # JW602
h = jax.jit(jax.vmap(e), static_argnums=5)  # JW603
class K:
    def _f(self, x): return x
    def __init__(self): self.f = jax.jit(self._f, static_argnums=(1,))  # JW603
@jax.jit
def clip(g, lo, hi):
    return min(max(g, lo), hi)  # JW304
@jax.jit
def bisect(lo, hi):
    for _ in range(30):
        mid = (lo + hi) / 2
        if mid ** 2 > 2:  # JW301
            hi = mid
        else:
            lo = mid
    return mid
@jax.jit
def newton(x):
    err = 1.0
    it = 0
    while err > 1e-3 and it < 10:  # JW302
        x = x - (x ** 2 - 2) / (2 * x)
        err = abs(x ** 2 - 2)
        it += 1
    return x
@jax.jit
def bins(x, n_bins):
    edges = jnp.linspace(0, 1, n_bins + 1)  # JW307
    h = [jnp.sum(x == i) for i in range(n_bins)]  # JW305
    return edges, h
