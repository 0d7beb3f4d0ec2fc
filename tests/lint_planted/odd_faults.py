"""Faults in less common forms, each marked with its code; nothing here is run."""
import jax
import jax.numpy as jnp
import numpy as np
import logging
from functools import partial, wraps
from jax import grad, vmap, lax, random
import optax, equinox as eqx
from flax import linen as nn, nnx
from typing import NamedTuple, Tuple
import time
TOTAL = 0.0
metrics = {}
class Carry(NamedTuple):
    x: jax.Array
    n: int

# scan body method, class attr lists
class Sim:
    history = []
    def __init__(self): self.t = 0; self.params = None
    def body(self, carry, x):
        self.t += 1  # JW104
        self.history.append(carry)  # JW103
        if carry.x.sum() > 0:  # JW301
            pass
        return carry, x
    def run(self, xs):
        return lax.scan(self.body, Carry(jnp.zeros(3), 0), xs)
    @jax.jit
    def bad(self, x):  # JW606
        return x
    def fit(self, xs):
        @jax.jit
        def step(p, x):
            self.params = p  # JW104
            return p + x
        for x in xs:
            self.params = step(self.params, x)

# conditional on result of optax/jax nn
@jax.jit
def train(params, x, y):
    logits = jax.nn.relu(x @ params["w"])
    loss = optax.l2_loss(logits, y).mean()
    acc = (logits.argmax(-1) == y).mean()
    if acc > 0.9 and loss < 0.1:  # JW301
        loss = loss * 0
    metrics["acc"] = acc  # JW103
    return loss

def outer_fn(x):
    def inner(y):
        z = y * 2
        while jnp.abs(z) > 1e-3:  # JW302
            z = z / 2
        return z
    return jax.jit(vmap(inner))(x)  # JW605

@partial(jax.jit, static_argnums=0)
def poly(n, x):
    out = 0.
    for i in range(n):
        out = out + x ** i
    if out > 1:  # JW301
        return out
    return lax.fori_loop(0, n, lambda i, a: a if i > 2 else a + 1, out)  # JW301

def decorate(f):
    @wraps(f)
    def inner(*a, **k):
        return f(*a, **k)
    return inner

@jax.jit
def err(x):
    try:
        n = int(x)  
    except Exception:
        n = 0
    if x.shape[0] > 3:
        raise ValueError(f"bad {x}")
    with jax.named_scope("a"):
        if x[0] > 0:  # JW301
            return x
    return x

@jax.jit
def tup(args):
    a, b = args
    if a > b:  # JW301
        return a
    for i in range(b):  # JW305
        a = a + i
    return a

@jax.jit
def kw(*, temperature, top_k: int):
    if temperature == 0:  # JW301
        return 1
    x = jnp.arange(top_k)  # JW307
    return x

@jax.jit
def star(*xs, **kw):
    if xs[0] > 0:  # JW301
        pass
    if kw["a"] > 1:  # JW301
        pass
    return float(xs[1])  # JW401

def sample(key, logits, temperature):
    if temperature == 0.0:  # JW301
        return jnp.argmax(logits)
    return random.categorical(key, logits / temperature)
sample_jit = jax.jit(sample)

def generate(params, tokens, n):
    out = []
    for i in range(n):
        tok = sample_jit(params, tokens, 1.0)
        out.append(int(tok))
        if tok == 0:
            break
    return out

@jax.jit
def lens(x):
    n = jnp.sum(x > 0)
    y = jnp.zeros(n)  # JW307
    z = list(range(n))  # JW305
    w = [0] * 3
    v = w[n]
    return y, z, v, x[:n], str(n)  # JW307

@jax.jit
def strs(x):
    name = f"{x}"
    print("shape", x.shape)  # JW101
    logging.info("x %s", x)
    return x

@jax.vmap
def vm(x, y):
    print("vmapped", x)
    z = np.array(x)  # JW402
    return z if y else x  # JW301

per_ex = vmap(grad(lambda p, x: p * x if x > 0 else p), in_axes=(None, 0))  # JW301

@jax.jit
def assign(x):
    y = x.reshape(-1)
    y[0] += 1  # JW501
    z = x.T
    z[:, 0] = 0  # JW501
    a = b = jnp.ones(3)
    b[1] = 2  # JW501
    del b[0]  # JW501
    c = [x, x]
    c[0] = 1
    c[0][0] = 1
    d = np.zeros(3)
    d[:] = x  # JW402
    return y, z

def make(opt):
    state = {"i": 0}
    @partial(jax.jit, donate_argnums=(0,))
    def step(p):
        state["i"] += 1  # JW103
        p = opt.update(p)
        opt.calls = 3  # JW104
        return p
    return step

class Mod(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x
m = Mod()
@jax.jit
def fwd(p, x):
    y = m.apply(p, x)
    if y.mean() > 0:  # JW301
        return y
    s = y.sum().item()  # JW401
    return jnp.mean(y) if jnp.isnan(y).any() else s  # JW301

@eqx.filter_jit
def ef(model, x):
    y = model(x)
    if jnp.any(y > 0):  # JW301
        pass
    if not isinstance(x, jax.Array): x = jnp.asarray(x)
    z = jnp.sum(y)
    return float(z)  # JW401

@jax.jit
def nested_cond(x, k):
    def tr(o):
        if o > k:  # JW301
            return o
        return np.log(o)  # JW402
    return lax.cond(x > 0, tr, lambda o: o, x)

@jax.jit
def bools(x, flags):
    ok = x is not None and (x > 0)
    if ok:  # JW301
        pass
    found = x > 0 or flags  # JW304
    r = not jnp.any(x)  # JW304
    any_ = any(v > 0 for v in x)  # JW304
    if 3 in x:  # JW304
        pass
    if isinstance(x, jnp.ndarray) and x.sum() > 3:  # JW301
        pass
    return x

step_fn = jax.jit(lambda s, a: (s + a) if a else s, donate_argnums=0)  # JW301
def run(xs):
    for x in xs:
        y = jax.jit(step_fn)(x, 1)  # JW604
    i = 0
    while i < 3:
        h = jax.jit(lambda v: v + 1)  # JW604
        print(h(i)); i += 1
    return {k: jax.jit(lambda v: v * 2)(k) for k in xs}  # JW604
class P:
    def predict(self, x):
        f = jax.jit(lambda v: v * self.w)
        return f(x)
    def call(self, x):
        return jax.jit(self.impl)(x)  # JW605
    def __call__(self, x):
        return jax.jit(partial(self.impl, 3))(x)  # JW605
    def impl(self, n, x=None):
        return x

def forward(p, x):
    return p @ x
def forecast(params, x):
    return jax.jit(forward)(params, x)  # JW605

@jax.jit
def scatter(x, n):
    y = x.at[x > 0].set(0)  # JW308
    z = x.at[:n].set(1)  # JW307
    w = np.split(x, 2, 0)[0] + np.reshape(x, (2, -1)).swapaxes(0, 1)
    return y, z, w, np.take(x, 0), np.searchsorted([1, 2], x)  # JW402

def epochs(batches):
    for batch in batches:
        @partial(jax.jit, donate_argnums=0)  # JW604
        def step(x):
            return x * 2
        if batch is not None:
            step(batch)
