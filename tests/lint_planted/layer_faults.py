"""Faults in layers, which are traced by way of the functions that call them; nothing here is run."""

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx


class Inner(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        print("inner", x.shape)  # JW101
        y = nn.Dense(self.width)(x)
        return y if y.sum() > 0 else -y  # JW301


class Net(nn.Module):
    depth: int = 2

    @nn.compact
    def __call__(self, x, train=False):
        for _ in range(self.depth):
            x = Inner(3)(x)
        if train:
            x = nn.Dropout(0.5, deterministic=False)(x)
        if x.mean() > 0:  # JW301
            x = x / float(x.max())  # JW401
        return x


net = Net()


@jax.jit
def forward(params, x):
    return net.apply({"params": params}, x, train=True)


def make_train(width):
    model = Net(depth=width)

    @jax.jit
    def step(params, x):
        def loss(p):
            return jnp.mean(model.apply(p, x))

        return jax.value_and_grad(loss)(params)

    return step


class Score(nn.Module):
    def setup(self):
        self.dense = nn.Dense(3)
        self.seen = []

    def __call__(self, x):
        self.seen.append(x)  # JW103
        noise = np.random.rand()  # JW201
        return self.dense(x) + noise


score = jax.jit(Score().apply)


class Mlp(eqx.Module):
    layers: list
    gain: jax.Array

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        if self.gain > 1:  # JW301
            x = x * self.gain
        return x.item()  # JW401


@eqx.filter_jit
def predict(model: Mlp, xs):
    return jax.vmap(model)(xs)


class Policy:
    def __init__(self, n):
        self.n = n

    def __call__(self, obs):
        if self.n > 3:
            obs = obs * 2
        while obs.sum() > self.n:  # JW302
            obs = obs / 2
        return obs


act = jax.jit(Policy(3))


class Counter(nnx.Module):
    def __init__(self):
        self.count = nnx.Variable(0)

    def __call__(self, x):
        self.count.value += 1
        assert x > 0  # JW303
        return x


@nnx.jit
def count(counter: Counter, x):
    return counter(x)


@hk.transform
def decorated(x, is_training):
    if is_training:
        x = hk.dropout(hk.next_rng_key(), 0.5, x)
    if jnp.max(x) > 1:  # JW301
        x = x / 2
    return x


run = jax.jit(decorated.apply, static_argnums=3)
