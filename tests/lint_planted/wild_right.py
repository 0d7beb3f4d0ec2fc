"""Right code as it is written in the wild; nothing here may be told."""
import jax, jax.numpy as jnp, numpy as np, functools, os, time, random, logging, math
from functools import partial
from jax import lax, tree_util
import optax, equinox as eqx, haiku as hk
from flax import linen as nn, nnx, struct
from flax.training import train_state
import numpyro, numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from typing import Callable, Sequence, Optional
import dataclasses
import chex
HIST = {"loss": []}
logger = logging.getLogger(__name__)

class TrainState(train_state.TrainState):
    batch_stats: dict
    dropout_rate: float = struct.field(pytree_node=False, default=0.1)

@partial(jax.jit, static_argnames=("train",))
def step(state: TrainState, batch, train: bool = True):
    if train and state.dropout_rate > 0:
        batch = batch * 2
    if state.batch_stats:
        batch = batch + 1
    return state.apply_gradients(grads=batch)

class MLP(nn.Module):
    features: Sequence[int]
    act: Callable = nn.relu
    use_bn: bool = True
    @nn.compact
    def __call__(self, x, *, train=False):
        for i, f in enumerate(self.features):
            x = nn.Dense(f, name=f"d{i}")(x)
            if i != len(self.features) - 1:
                x = self.act(x)
                if self.use_bn and train:
                    x = nn.BatchNorm(use_running_average=not train)(x)
        return x
model = MLP([3, 3])
@jax.jit
def apply_model(params, x):
    y = model.apply({"params": params}, x, train=False)
    if y.ndim > 2 or y.shape[-1] != 3:
        y = y.reshape(y.shape[0], -1)
    return y

class Scanner(nn.Module):
    @partial(nn.scan, variable_broadcast="params", split_rngs={"params": False})
    @nn.compact
    def __call__(self, carry, x):
        if self.name is None: pass
        return carry, x

class Rem(nn.Module):
    deterministic: bool
    @nn.remat
    def __call__(self, x):
        if self.deterministic: return x
        return x + 1

class NNXNet(nnx.Module):
    def __init__(self, rngs):
        self.l = nnx.Linear(3, 3, rngs=rngs); self.n = 3; self.count = nnx.Variable(0)
    def __call__(self, x):
        for _ in range(self.n):
            x = self.l(x)
        self.count.value += 1
        return x
@nnx.jit
def tr(model: NNXNet, opt: nnx.Optimizer, x, y):
    def loss(m: NNXNet):
        return ((m(x) - y) ** 2).mean()
    l, g = nnx.value_and_grad(loss)(model)
    opt.update(g)
    model.last = x
    return l

def numpyro_model(x, y=None):
    n = x.shape[0]
    if y is not None: assert y.shape[0] == n
    a = numpyro.sample("a", dist.Normal(0, 1))
    with numpyro.plate("d", n):
        obs = numpyro.sample("obs", dist.Normal(a, 1), obs=y)
    print("model traced")
    return obs
mc = MCMC(NUTS(numpyro_model), num_warmup=1, num_samples=1)

@jax.jit
def tree_stuff(params, grads):
    leaves, treedef = jax.tree.flatten(params)
    if not leaves: return params
    n = len(leaves)
    if n > 3 and treedef == jax.tree.structure(grads):
        leaves = [l + 1 for l in leaves]
    sizes = [l.size for l in leaves]
    if max(sizes) > 10 or any(s > 3 for s in sizes) or all(l.ndim == 1 for l in leaves):
        leaves = leaves[:2]
    order = sorted(range(n), key=lambda i: sizes[i])
    out = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        out[jax.tree_util.keystr(path)] = leaf
        if "w" in str(path): out["z"] = leaf
    flat = {k: v for k, v in out.items() if k != "b" and v.ndim}
    total = functools.reduce(lambda a, b: a + b, [l.sum() for l in leaves], 0.)
    g = jax.tree.map(lambda p, g: p - g if p.ndim > 1 else p, params, grads)
    m = jax.tree.map(lambda p: None if p is None else p, params, is_leaf=lambda v: v is None)
    return jax.tree.unflatten(treedef, leaves), out, flat, total, order, g, m

@jax.jit
def py_containers(xs):
    a, *rest = xs
    stack = []
    d = {}
    for i, x in enumerate(rest):
        stack.append((i, x))
        d[i] = x
        d.setdefault("k", []).append(x)
    while stack:
        i, x = stack.pop()
        if i > 3: break
        a = a + x
    q = [None] * 3
    q[0] = a
    t = (a,) + (a,)
    if len(t) == 2 and t[0] is a: pass
    if d: a = a * 2
    for k in list(d): del d[k]
    s = set(); s.add(3); s.update({4})
    arr = [[0] * 3 for _ in range(3)]
    arr[0][1] = a
    return arr, q

@jax.jit
def np_static(x):
    idx = np.arange(x.shape[0])
    mask = idx % 2 == 0
    if mask.any(): idx = idx[mask]
    perm = np.random.RandomState if False else None
    k = int(np.ceil(np.log2(x.shape[0])))
    scale = 1 / np.sqrt(x.shape[-1])
    w = np.zeros((3, 3)); w[0] = 1; w[mask[:3]] = 2
    eps = np.finfo(x.dtype).eps
    if np.ndim(x) == 1 and np.shape(x)[0] > 3: x = x[None]
    for i in range(k): x = x + i
    return x[idx] * scale * w + x[mask] + eps + np.float32(3.) * np.array([1., 2.]) @ x

@jax.jit
def weird(x, opt: Optional[jax.Array] = None, *args, **kwargs):
    if args: x = x + args[0]
    if kwargs: x = x + kwargs["a"]
    if "b" in kwargs: x = x + 1
    if opt is None or x.shape != opt.shape: opt = x
    if type(x) is float: return x
    if isinstance(x, float) and x > 0: return x
    if x.dtype in (jnp.float32, jnp.int32) and jnp.issubdtype(x.dtype, jnp.floating): x = x * 2
    if jax.default_backend() == "cpu" and jax.config.jax_enable_x64: x = -x
    assert x.ndim >= 1, f"{x.shape}"
    name = "a" if x.ndim else "b"
    y = jnp.zeros_like(x, dtype=bool) | (x > 0)
    z = y & ~y ^ (x == 0)
    return jnp.where(y, x, 0) if name == "a" else z

def make_train(config):
    def train(rng):
        network = MLP(config["features"])
        if config["ANNEAL"]:
            tx = optax.adam(1e-3)
        else:
            tx = optax.sgd(1e-3)
        params = network.init(rng, jnp.zeros(3))
        def _update(runner, _):
            params, opt_state, rng = runner
            rng, k = jax.random.split(rng)
            if config.get("DEBUG"):
                jax.debug.print("{}", rng)
                def cb(info):
                    for v in info["r"]: print(float(v))
                    HIST["loss"].append(info)
                jax.debug.callback(cb, {"r": rng})
            u, opt_state = tx.update(params, opt_state)
            return (params, opt_state, rng), jnp.mean(k)
        r, m = lax.scan(_update, (params, tx.init(params), rng), None, config["N"])
        return {"r": r, "m": m}
    return train
tj = jax.jit(make_train({"features": [3], "ANNEAL": True, "N": 3}))
tv = jax.jit(jax.vmap(make_train({})))

@jax.jit
def lax_forms(x, n, pred):
    y = lax.fori_loop(0, n, lambda i, v: v + i, x)
    z = lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 2), (0, x))
    w = lax.cond(pred, lambda a: a, lambda a: -a, x)
    s = lax.switch(n, [lambda a: a, lambda a: a * 2], x)
    d = lax.dynamic_slice(x, (n,), (3,))
    m = jnp.arange(10) < n
    f = jnp.where(m, jnp.arange(10), 0)
    t = lax.select(pred, x, y)
    g = lax.stop_gradient(x) * jnp.maximum(x, 0).astype(int)
    o = jax.nn.one_hot(n, 10); r = jnp.repeat(x, 2); sz = jnp.nonzero(x, size=3, fill_value=0)[0]
    return y, z, w, s, d, f, t, g, o, r, sz, jnp.clip(x, min=0), jnp.round(x), round(x), abs(x), sum([x, y])

class Agent:
    def __init__(self, opt): 
        self.opt = opt; self.n = 0; self.losses = []
        self._update = jax.jit(self._update_impl)
        self._act = jax.jit(lambda p, o: p @ o)
    def _update_impl(self, params, opt_state, batch):
        def loss(p):
            q = p @ batch["obs"]
            return jnp.mean((q - batch["r"]) ** 2), {"q": q.mean()}
        (l, aux), g = jax.value_and_grad(loss, has_aux=True)(params)
        upd, opt_state = self.opt.update(g, opt_state)
        aux["loss"] = l
        aux.update(norm=optax.global_norm(g))
        return optax.apply_updates(params, upd), opt_state, aux
    def learn(self, params, opt_state, buffer):
        for i in range(10):
            batch = buffer.sample(32)
            params, opt_state, aux = self._update(params, opt_state, batch)
            self.losses.append(float(aux["loss"])); self.n += 1
            if aux["loss"] < 1e-3: print("done", time.time()); break
        return params

@eqx.filter_jit
def evaluate(model, x, y, key, inference: bool, n: int):
    model = eqx.nn.inference_mode(model, inference)
    if inference: key = None
    pred = jax.vmap(model)(x) if key is None else jax.vmap(model)(x, jax.random.split(key, n))
    return jnp.mean(pred == y)

class GRU(eqx.Module):
    cell: eqx.nn.GRUCell
    hidden: int = eqx.field(static=True)
    use_bias: bool = False
    bias: Optional[jax.Array] = None
    def __init__(self, n, *, key):
        self.hidden = n; self.cell = eqx.nn.GRUCell(n, n, key=key)
    @eqx.filter_jit
    def __call__(self, xs, key=None):
        if self.use_bias and self.bias is not None: xs = xs + self.bias
        if key is not None: xs = xs + jax.random.normal(key, xs.shape)
        h = jnp.zeros((self.hidden,))
        def f(c, x): return self.cell(x, c), None
        out, _ = lax.scan(f, h, xs)
        return out

@struct.dataclass
class Cfg:
    n: int = struct.field(pytree_node=False)
    w: jax.Array = None
@jax.jit
def use(cfg: Cfg, x):
    for _ in range(cfg.n): x = x + 1
    return x if cfg.w is None else x * cfg.w

@dataclasses.dataclass(frozen=True)
class Hyper:
    n: int = 3
    flag: bool = True
@partial(jax.jit, static_argnums=0)
def hyp(h: Hyper, x):
    if h.flag:
        for _ in range(h.n): x = x * 2
    return x

def hk_net(x, is_training):
    if is_training: x = hk.dropout(hk.next_rng_key(), 0.5, x)
    return hk.Linear(3)(x)
f = hk.transform(hk_net)
fa = jax.jit(f.apply, static_argnums=3)
fb = jax.jit(partial(f.apply, is_training=True))

@jax.custom_vjp
def cv(x, n): return x * n
cv_j = jax.jit(cv, static_argnums=1)
@partial(jax.custom_jvp, nondiff_argnums=(1,))
def cj(x, n):
    return x if n > 2 else -x
@jax.jit
def ucj(x): return cj(x, 3)

def benchmark():
    for n in (1, 2):
        f = jax.jit(make_train({"N": n}))
        f(n); t = time.perf_counter()
        for _ in range(10): f(n).block_until_ready()
        print(time.perf_counter() - t)
    for name, fn in {"a": step}.items():
        g = jax.jit(fn); g(1)

@jax.jit
def closures(x, n=3):
    eta = {"k": 1}
    def g(v, k=2):
        if k > 1: v = v + n
        return v * eta["k"]
    h = lambda v, w=None: v if w is None else v + w
    return g(x) + h(x) + partial(g, k=3)(x)

def grad_only(w):
    print(w)
    if w > 0: return w ** 2
    HIST["loss"].append(int(w))
    return -w
gg = jax.grad(grad_only)(3.)

@jax.jit
def shadow(x, print, random):
    print = 3
    time = x
    return time * random

@jax.jit
def gen(x):
    return sum(v * i for i, v in enumerate(x)), [v for v in x], {i: v for i, v in enumerate(x) if i > 0}, tuple(x), list(zip(x, x))
@jax.jit
def eqnone(x, y):
    if x == None: return y
    if y != None and x is not y: return x
    return x


@partial(jax.jit, static_argnums=0)
def again(shape, x):
    return x.reshape(shape)


@jax.jit
def again(x, y):
    return x + y


again(np.zeros(3), [1, 2])


@partial(jax.jit, static_argnames="lr")
def fit(params, lr=0.1):
    return params * lr


def use_others(trainer):
    trainer.inner.fit(1.0, lr=[1, 2])
    return trainer.inner.fit(1.0, [3])


def make_all(scales):
    made = []
    for scale in scales:
        @jax.jit
        def f(x, scale=scale):
            return x * scale
        made.append(f)
    return made
