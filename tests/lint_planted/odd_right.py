"""Right code in less common forms; nothing here may be told."""
import jax, jax.numpy as jnp, numpy as np, optax
from jax import lax, jit, vmap, grad
from functools import partial
import equinox as eqx
from flax import nnx, linen as nn
from dataclasses import dataclass
import contextlib, math, collections
GLOBAL = {"a": 1}
SCHEDULE = optax.cosine_decay_schedule(1., 100)

@jit
def r1(x, *, axis=None):
    axis = axis if axis is not None else -1
    return x.sum(axis)

@partial(jit, static_argnames=("n_steps", "unroll", "fn"))
def r2(x, n_steps, unroll=1, fn=jnp.sin):
    if unroll > 1 and n_steps % unroll: raise ValueError
    def body(i, s):
        for _ in range(unroll): s = fn(s)
        return s
    return lax.fori_loop(0, n_steps // unroll, body, x)

@jit
def r3(params, x):
    for i, (w, b) in enumerate(params[:-1]):
        x = jnp.tanh(x @ w + b)
        if i == len(params) - 2: x = x * 2
    w, b = params[-1]
    return x @ w + b

@jit
def r4(state):
    new = {}
    for k, v in state.items():
        if k in ("a", "b"): new[k] = v + 1
        elif isinstance(v, dict): new[k] = {kk: vv for kk, vv in v.items() if kk != "z"}
        else: new[k] = v
    new.update(c=1); new.setdefault("d", []).append(2)
    return new

def r5(cfg):
    hist = []
    def loss(p, x):
        if cfg["l2"] > 0: return jnp.sum(p ** 2)
        return jnp.mean((x - p) ** 2)
    step = jit(grad(loss))
    for i in range(10):
        g = step(1., 2.); hist.append(g)
        if i % 10 == 0: print(float(g))
    return hist

@dataclass(frozen=True)
class Cfg:
    layers: int = 2
    use: bool = False
class Learner:
    cfg: Cfg
    def __init__(self, cfg): self.cfg = cfg; self.opt = optax.adam(1e-3); self._step = jit(self._step_fn, donate_argnums=(0,)); self.t = 0; self.buf = collections.deque()
    def _loss(self, p, batch):
        x = batch["x"]
        for _ in range(self.cfg.layers): x = jnp.tanh(x @ p)
        aux = {"m": x.mean()}
        if self.cfg.use: aux["n"] = jnp.linalg.norm(p)
        return jnp.mean(x), aux
    def _step_fn(self, state, batch):
        (l, aux), g = jax.value_and_grad(self._loss, has_aux=True)(state["p"], batch)
        up, opt = self.opt.update(g, state["opt"], state["p"])
        lr = SCHEDULE(state["t"])
        state = dict(state, p=optax.apply_updates(state["p"], up), opt=opt, t=state["t"] + 1)
        return state, {**aux, "lr": lr, "l": l}
    def update(self, state, data):
        for batch in data:
            state, m = self._step(state, batch)
            self.t += 1; self.buf.append(m)
            if m["l"] > 3 and self.t > 2: print(m, np.asarray(m["lr"]).item())
        return state

@jit
def r6(x):
    y, = jnp.split(x, 1)
    a, b = jnp.unstack(x) if hasattr(jnp, "unstack") else (x[0], x[1])
    parts = jnp.array_split(x, 3)
    if len(parts) > 2: parts = parts[:2]
    out = jnp.concatenate([p * 2 for p in parts if p.size > 0])
    idx = jnp.argsort(x)[::-1]; n = x.shape[0] // 2
    x = x[idx][:n]; x = x[..., None]; x = x[:, 0][jnp.arange(n)]
    mask = jnp.arange(n)[:, None] >= jnp.arange(n)[None, :]
    return jnp.where(mask, x, -jnp.inf), out, y, a, b

@jit
def r7(key):
    n = 3
    keys = jax.random.split(key, 4)
    k1, k2, *ks = keys
    for k in ks: k1 = k1 + k
    for i in range(n): k2 = k2 + i
    return [jax.random.normal(k, (n,)) for k in keys], k1, k2

@vmap
def r8(x):
    print("hi", x.shape)
    GLOBAL["a"] = 2
    return x * np.random.rand()

@jit
def r9(x):
    with contextlib.suppress(Exception), jax.named_scope("a"), jax.default_matmul_precision("float32"):
        x = x @ x
    try:
        import scipy
    except ImportError: scipy = None
    if scipy is not None: x = x + 1
    def cb(v): GLOBAL["v"] = float(v)
    jax.debug.callback(cb, x[0, 0])
    return x

@eqx.filter_jit
def r10(model, x, *, key=None, train: bool = False):
    if train and key is not None: x = eqx.nn.Dropout(0.5)(x, key=key)
    if callable(model): x = model(x)
    if isinstance(x, tuple): x = x[0]
    for layer in model.layers:
        if isinstance(layer, eqx.nn.Linear): x = layer(x)
    params, static = eqx.partition(model, eqx.is_array)
    return eqx.combine(params, static), x

class Attn(nnx.Module):
    def __init__(self, n, rngs): self.n = n; self.cache = nnx.Variable(jnp.zeros(3)); self.q = nnx.Linear(3, 3, rngs=rngs)
    def __call__(self, x, mask=None, decode: bool = False):
        if mask is not None: x = jnp.where(mask, x, 0)
        if decode and self.n > 1: self.cache.value = x
        return self.q(x)
@nnx.jit
def r11(m: Attn, x): return m(x, decode=True)

@jit
def r12(carry, xs=None):
    xs = [] if xs is None else xs
    if not xs: return carry
    return sum(xs, carry)

@jit
def r13(p):
    flat, tree = jax.tree_util.tree_flatten(p)
    shapes = [f.shape for f in flat]; sizes = np.cumsum([math.prod(s) for s in shapes])
    vec = jnp.concatenate([f.ravel() for f in flat])
    pieces = jnp.split(vec, sizes[:-1])
    if vec.size != sizes[-1]: raise ValueError(vec.shape)
    offset = 0
    for s in shapes:
        n = int(np.prod(s)); offset += n
        if n == 0: continue
    return tree.unflatten([a.reshape(s) for a, s in zip(pieces, shapes)]), offset

def r14(f, xs):
    @jit
    def g(x):
        out = f(x)
        leaves = jax.tree.leaves(out)
        assert all(l.shape == leaves[0].shape for l in leaves), "shapes"
        assert isinstance(out, (tuple, list)) or out is None
        if isinstance(out, tuple) and len(out) == 2: out, _ = out
        return out
    return [g(x) for x in xs]

@jit
def r15(obs, hidden):
    (h, c), d = hidden
    h = jax.lax.cond(jnp.any(d), lambda v: v * 0, lambda v: v, h)
    new = jnp.select([obs > 0, obs < 0], [h, c], 0)
    return jax.tree.map(lambda a, b: jnp.where(d, a, b), (h, c), (new, new))
