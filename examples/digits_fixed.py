"""Train a small network on scikit-learn's digits, as ``digits.py`` does.

Without its five mistakes each function is compiled once.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.datasets import load_digits

EPOCHS, ROWS, TRAINED = 8, 64, 1500
images, labels = load_digits(return_X_y=True)
images, labels = (images / 16).astype("float32"), labels.astype("int32")
adam = optax.scale_by_adam()
# jitted once, and called in each epoch
norm_of = jax.jit(lambda p: jnp.sqrt(sum(jnp.vdot(w, w) for w in p.values())))


def network(params, images):
    return jnp.tanh(images @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params, batch):
    return optax.softmax_cross_entropy_with_integer_labels(network(params, batch["x"]), batch["y"]).mean()


@jax.jit
def step(params, state, batch, lr):
    value, grads = jax.value_and_grad(loss)(params, batch)
    updates, state = adam.update(grads, state)
    return jax.tree.map(lambda p, u: p - lr * u, params, updates), state, value


@jax.jit
def blur(images, strength):
    return (1 - strength) * images + strength * jnp.roll(images, 1, axis=1)


@jax.jit
def evaluate(params, images, labels):
    return (network(params, images).argmax(-1) == labels).mean()


w1, w2 = 0.1 * np.random.default_rng(0).normal(size=(2, 64, 64)).astype("float32")
params = jax.device_put({"w1": w1, "b1": np.zeros(64, "float32"), "w2": w2[:, :10], "b2": np.zeros(10, "float32")})
state, losses, lr = adam.init(params), [], np.float32(0.003)
for epoch in range(EPOCHS):
    shown = blur(images, strength=round(0.4 * 0.7**epoch, 3))
    for start in range(0, TRAINED - TRAINED % ROWS, ROWS):
        rows = slice(start, start + ROWS)
        params, state, value = step(params, state, {"x": np.asarray(shown[rows]), "y": labels[rows]}, lr)
        lr = np.float32(0.999) * lr
    losses.append(value)
    norm = norm_of(params)
    mean = np.mean(losses)
    right = evaluate(params, images[TRAINED:], labels[TRAINED:])
    print(f"epoch {epoch}: loss {mean:.6f}, norm {norm:.6f}, right {right:.6f}")
