"""Faults as they are written in the wild, each marked with its code; nothing here is run."""
import jax, jax.numpy
import jax.numpy as jnp
import numpy as np
import haiku as hk
import optax
import numpyro
import numpyro.distributions as dist
import equinox as eqx
from flax import linen as nn, nnx, struct
from functools import partial
from jax.lax import scan
from jax.experimental.shard_map import shard_map
from jax.sharding import PartitionSpec as P
from collections import deque, defaultdict
import dataclasses
import itertools
from time import time
from datetime import datetime
from os import environ
import typing as tp
import chex
import sys

BUF = deque(maxlen=3)
STATS = defaultdict(list)
rng = np.random.default_rng(0)
config = {"lr": 0.1}
DEBUG = False
jit_static = partial(jax.jit, static_argnums=(1,))
jjit = jax.jit
counter = 0

@jit_static
def a1(x, n):
    if n > 1: x = x + 1
    if x > 1: x = x + 1  # JW301
    return x

@jjit
def a2(x):
    BUF.append(x)  # JW103
    STATS["x"].append(x)  # JW103
    return x + rng.normal()  # JW201

@jax.jit
@jax.vmap
def a3(row):
    if row.sum() > 0:  # JW301
        return row
    return -row

@partial(jax.vmap, in_axes=(0, None))
def a4(x, flag):
    if flag:
        x = x + 1
    if x > 0:  # JW301
        x = 0
    return x

def a5(x):
    t = time()  # JW202
    d = datetime.now()  # JW202
    e = environ["A"]  # JW203
    return x * t
a5 = jax.jit(a5)

def a6(x, y):
    return x if x > y else y  # JW301
a6_jit = jax.jit(fun=a6)
a7 = partial(jax.jit, static_argnums=(0,))(lambda n, x: x if n else float(x))  # JW401

class Model:
    def __init__(self, dim):
        self.dim = dim
        self.rng = np.random.RandomState(0)
        self.cache = {}
        self.update = jax.jit(self.update)
    def update(self, p, x):
        if self.dim > 3:
            p = p + 1
        self.cache[self.dim] = p  # JW103
        noise = self.rng.randn(3)  # JW201
        if jnp.abs(p).max() > 1:  # JW301
            p = p / 2
        return self.helper(p, x)
    def helper(self, p, x):
        if x.mean() > 0:  # JW301
            return p
        return -p
    def loss(self, p, x):
        print(p)  # JW101
        return p @ x
    _static = jax.jit(lambda self, x: x.item(), static_argnums=0)  # JW401

model = Model(3)
ml = jax.jit(model.loss)
class Sub(Model):
    @partial(jax.jit, static_argnames=["self"])
    def go(self, x):
        self.count += 1  # JW104
        return self.helper(x, x)

def net(x):
    print("net")  # JW101
    h = hk.Linear(3)(x)
    if h.sum() > 0:  # JW301
        h = -h
    if x.sum() > 0:  # JW301
        h = h * 2
    return h
net_t = hk.without_apply_rng(hk.transform(net))
apply = jax.jit(net_t.apply)

def scan_kw(xs, params):
    def body(params, carry, x):
        if params["n"] > 3: pass
        if carry["i"] > 3:  # JW301
            pass
        if x > 0:  # JW301
            pass
        return carry, x
    return scan(f=partial(body, params), init={"i": 0}, xs=xs)

@partial(jax.pmap, axis_name="batch", static_broadcasted_argnums=(1,))
def pm(x, n):
    for _ in range(n): x = x + 1
    g = jax.lax.pmean(x, "batch")
    if g > 0:  # JW301
        print(g)  # JW101
    return g

@partial(shard_map, mesh=None, in_specs=P("x"), out_specs=P("x"))
def sm(x):
    return x.tolist()  # JW401

@jax.jit
def walrus(x):
    if (s := x.sum()) > 0:  # JW301
        return s
    match x:  # JW301
        case 0:
            return 1
    return s

@jax.jit
def mtch(x, mode):
    match mode:  # JW301
        case "a":
            return x
        case _:
            return -x

@jax.jit
def glob(x):
    global counter, BUF
    counter = counter + x  # JW102
    BUF += [x]  # JW102
    return x

@jax.jit
def slices(x, n, k):
    a = x[:n]  # JW307
    b = jax.random.normal(jax.random.PRNGKey(0), (k, 3))  # JW307
    c = jnp.linspace(0, 1, n)  # JW307
    d = jnp.ones(x.sum())  # JW307
    return a, b, c

@jax.jit
def inner_jit(x):
    @jax.jit
    def inner(y):
        if y > 0:  # JW301
            return y
        return -y
    return inner(x)

@jax.custom_vjp
def cv(x):
    if x > 0:  # JW301
        return x
    return x
def cv_fwd(x): return cv(x), x
def cv_bwd(r, g): return (g,)
cv.defvjp(cv_fwd, cv_bwd)
@jax.jit
def use_cv(x): return cv(x)

def update(params, opt_state, batch, opt):
    loss, grads = jax.value_and_grad(loss_fn)(params, batch)
    updates, opt_state = opt.update(grads, opt_state)
    params = optax.apply_updates(params, updates)
    if loss < 1e-3:  # JW301
        print("converged")  # JW101
    norm = optax.global_norm(grads)
    if norm > 1:  # JW301
        pass
    return params, opt_state, float(loss)  # JW401
def loss_fn(params, batch):
    x, y = batch
    pred = x @ params["w"]
    assert pred.shape == y.shape
    assert jnp.all(y >= 0)  # JW303
    return jnp.mean((pred - y) ** 2)
update = jax.jit(update, static_argnums=(3,))

class Net(eqx.Module):
    lin: eqx.nn.Linear
    scale: jax.Array
    def __call__(self, x):
        x = self.lin(x)
        if self.scale > 1:  # JW301
            x = x * 2
        return x
@eqx.filter_jit
@eqx.filter_value_and_grad
def eloss(model: Net, x, y):
    p = jax.vmap(model)(x)
    print("p", p)  # JW101
    return jnp.mean((p - y) ** 2)
@eqx.filter_jit
def estep(model: Net, x: jax.Array, opt_state):
    model(x)
    v = np.mean(np.asarray(x))  # JW402
    for i in range(x.shape[0]): pass
    while jnp.max(x) > 0:  # JW302
        x = x - 1
    return v

class RL:
    @partial(jax.jit, static_argnums=(0,))
    def act(self, params, obs, key, eps=0.1):
        if jax.random.uniform(key) < eps:  # JW301
            return jax.random.randint(key, (), 0, 4)
        q = params @ obs
        a = int(jnp.argmax(q))  # JW401
        self.replay.append((obs, a))  # JW103
        return a
    def run(self, env, params):
        obs = env.reset()
        for t in range(100):
            a = int(self.act(params, obs, jax.random.PRNGKey(t)))
            obs, r, done, _ = env.step(a)
            if done: break
            if r > 0: print(r)

def train(env):
    best = -np.inf
    step = jax.jit(lambda p, o: p @ o)
    for i in range(10):
        v = step(1, 2)
        if v > best: best = float(v)
        g = jax.jit(jax.grad(loss_fn))(1., 2.)  # JW604
    for i, j in itertools.product(range(3), range(3)):
        f = jax.jit(partial(loss_fn, batch=3))  # JW604
        f(i)

@nnx.jit
def nstep(model: nnx.Module, x, train: bool):
    y = model(x)
    if train:  # JW301
        y = y * 2
    if x.sum() > 0:  # JW301
        pass
    return y

@jax.jit
def dicts(state):
    state["n"] += 1
    if state["n"] > 3:  # JW301
        state["n"] = 0
    state["x"][0] = 1
    for k, v in state.items():
        if k == "n": continue
        if v.any():  # JW301
            pass
    keys = [k for k in state if k.startswith("x")]
    return state

@chex.dataclass
class Sim:
    pos: chex.Array
    t: int
@jax.jit
def sim(s: Sim, dt):
    if s.t > 3:  # JW301
        return s
    s.pos[0] = 1.0  # JW501
    return s.replace(t=s.t + 1)

@jax.jit
def more(x, y):
    z = jnp.dot(x, y).item()  # JW401
    w = sorted(jnp.zeros(3))  # JW304
    s = sum(v for v in x if v > 0)  # JW301
    q = x.at[0].set(3)
    q[1] = 2  # JW501
    r = complex(y)  # JW401
    n = len(x[x > 0])  # JW308
    sys.stdout.write("a")  # JW101
    while True:
        if z is None: break
        if y < 0: break  # JW301
    return np.linalg.norm(x)  # JW402

vm = jax.vmap(lambda x: x if x > 0 else 0)  # JW301
lm = jax.lax.map(lambda x: print(x), jnp.arange(3))  # JW101
@jax.remat
def rem(x):
    assert x > 0  # JW303
    return x

@partial(jax.jit, static_argnames=("cfg", "k"))
def st(x, cfg={"a": 1}, *, k=np.zeros(3)):  # JW601
    return x

@partial(jax.jit, static_argnums=(1, 5))  # JW603
def st2(x, y): return x

@partial(jax.jit, static_argnames="n", donate_argnames=("z",))  # JW602
def st3(x, n): return x
st3(1, n=[1, 2])  # JW601

class Plain:
    @jax.jit
    def f(self, x):  # JW606
        return x
    @partial(jax.jit, static_argnums=1)
    def g(self, x, n):  # JW606
        return x

@dataclasses.dataclass
class DC:
    w: float
    @jax.jit
    def f(self, x):  # JW606
        return x

class Lin(nn.Module):
    @jax.jit
    def __call__(self, x):  # JW606
        return x

def outer(xs):
    results = []
    for x in xs:
        @jax.jit  # JW604
        def f(y):
            results.append(y)  # JW103
            return y + x
        results.append(f(x))
    return results
