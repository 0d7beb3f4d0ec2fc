"""A real training run that ends in a recompilation storm: the dashboards are rendered from what it says of itself.

Job ``pretrain`` has two processes under ``jax.distributed``, which do not do quite the same; job ``evaluate`` has one,
and stays healthy. Each serves its metrics on a free port of 127.0.0.1, and writes a target file for Prometheus::

    python grafana/render/storm.py TARGETS --seconds 80 --healthy 30
"""

# ruff: noqa: INP001 -- a script, no package

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

import jaxwatch

RANKS = 2
WIDTH, ROWS = 64, 32
PAUSE = 0.02  # seconds between two steps, so that three processes and a Prometheus fit on two cores
SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
EVERY = 25  # steps from one epoch's end to the next

Params = dict[str, jax.Array]
Batch = dict[str, np.ndarray[Any, Any]]


def network(params: Params, x: Any) -> jax.Array:
    """Return the logits of a network with one hidden layer."""
    return jnp.tanh(x @ params["w1"]) @ params["w2"]


def loss(params: Params, batch: Batch) -> jax.Array:
    """Return the mean squared error."""
    return jnp.mean((network(params, batch["x"]) - batch["y"]) ** 2)


@jaxwatch.jit(watch=jaxwatch.Watch(max_signatures=4))  # type: ignore[untyped-decorator]  # any function may be given
def train_step(params: Params, batch: Batch, lr: Any) -> tuple[Params, jax.Array]:
    """Return the parameters after one step of gradient descent, and the loss."""
    value, grads = jax.value_and_grad(loss)(params, batch)
    return jax.tree.map(lambda p, g: p - lr * g, params, grads), value


@jaxwatch.jit
def eval_step(params: Params, x: Any) -> jax.Array:
    """Return the logits' mean."""
    return network(params, x).mean()


@jaxwatch.jit(static_argnames="left")  # type: ignore[untyped-decorator]  # as above
def crop(x: Any, left: int) -> jax.Array:
    """Return the rows from ``left`` on, the rest filled up: each value of ``left`` compiles anew."""
    return jnp.roll(x, -left, axis=0).at[-1].set(0)


@jaxwatch.jit
def log_norm(params: Params) -> jax.Array:
    """Return a norm, and call back: so no call gets onto the fast path."""
    norm = jnp.sqrt(sum(jnp.vdot(w, w) for w in params.values()))
    jax.debug.callback(lambda _: None, norm)
    return norm


def augmenter(rank: int) -> Any:
    """Return a function into whose program the rank has found its way: the ranks' programs differ."""
    noise = 0.01 * (rank + 1)
    return jaxwatch.jit(lambda x: x + noise * jnp.sin(x), watch=jaxwatch.Watch(name="augment"))


def parameters() -> Params:
    """Return the parameters that training starts from."""
    w1, w2 = 0.1 * np.random.default_rng(0).normal(size=(2, WIDTH, WIDTH)).astype("float32")
    return {"w1": jax.device_put(w1), "w2": jax.device_put(w2)}


def batch_of(rows: int) -> Batch:
    """Return a batch of so many rows."""
    x = np.random.default_rng(rows).normal(size=(rows, WIDTH)).astype("float32")
    return {"x": x, "y": np.roll(x, 1, axis=1)}


def steps(seconds: float) -> Iterator[tuple[int, float]]:
    """Yield the number of each step and the seconds passed, until so many have."""
    started, number = time.monotonic(), 0
    while (passed := time.monotonic() - started) < seconds:
        yield number, passed
        number += 1
        time.sleep(PAUSE)


def storm(rank: int, number: int) -> int:
    """Return how many rows the batch has in a storm, and do what else goes wrong in one, at each fifth step."""
    if number % 5:
        return ROWS
    turn = number // 5
    jnp.cumsum(np.ones(turn % 40 + 2, "float32"))  # outside jit, of a new length each time
    if turn % 7 == 0:
        crop(batch_of(ROWS)["x"], left=turn)
    if rank and turn % 9 == 0:
        eval_step(parameters(), batch_of(ROWS + turn)["x"])  # one rank compiles what the other does not
    if turn % 10 == 0:
        _fail()
    return 1 + turn * 389 % 997 if turn % 2 else ROWS


def _fail() -> None:
    try:
        eval_step(parameters(), np.ones((ROWS, WIDTH + 1), "float32"))
    except TypeError:  # the shapes do not fit: raised while tracing
        return


def pretrain(rank: int, seconds: float, healthy: float) -> None:
    """Train: first as one should, then with batches of ever new lengths."""
    params, augment, lr = parameters(), augmenter(rank), jnp.float32(0.01)
    full = batch_of(ROWS)
    for number, passed in steps(seconds):
        stormy = passed > healthy
        rows = storm(rank, number) if stormy else ROWS
        augment(full["x"])
        params, _ = train_step(params, full if rows == ROWS else batch_of(rows), 0.01 if stormy else lr)
        if number % EVERY == 0:
            eval_step(params, full["x"])
            log_norm(params)
            crop(full["x"], left=0)


def evaluate(seconds: float) -> None:
    """Evaluate one batch again and again: all is compiled once."""
    params, batch = parameters(), batch_of(ROWS)
    for _ in steps(seconds):
        eval_step(params, batch["x"])


def announce(folder: Path, job: str, rank: int, port: int) -> None:
    """Write the file by which Prometheus finds a process; it appears whole or not at all."""
    target = [{"targets": [f"127.0.0.1:{port}"], "labels": {"job": job}}]
    part = folder / f"{job}-{rank}.part"
    part.write_text(json.dumps(target), "utf-8")
    part.rename(part.with_suffix(".json"))


def process(args: argparse.Namespace) -> None:
    """Be one of the processes."""
    jaxwatch.configure(console=False)
    if args.job == "pretrain":
        jax.distributed.initialize(f"127.0.0.1:{args.coordinator}", num_processes=RANKS, process_id=args.rank)
    server = jaxwatch.serve(port=0)
    announce(args.targets, args.job, args.rank, server.port)
    if args.job == "pretrain":
        pretrain(args.rank, args.seconds, args.healthy)
    else:
        evaluate(args.seconds)
    os._exit(0)  # jax.distributed would wait for a rank that was stopped


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def together(args: argparse.Namespace) -> int:
    """Run all processes; return 1 where one of them failed."""
    options = ["--seconds", str(args.seconds), "--healthy", str(args.healthy), "--coordinator", str(free_port())]
    with tempfile.TemporaryDirectory(prefix="storm-") as cache:
        environment = {**os.environ, **SETTINGS, "JAX_COMPILATION_CACHE_DIR": cache}
        children = [
            subprocess.Popen(  # noqa: S603 -- this very script
                [sys.executable, __file__, str(args.targets), *options, "--job", job, "--rank", rank],
                env=environment,
            )
            for job, rank in (("pretrain", "0"), ("pretrain", "1"), ("evaluate", "0"))
        ]
        try:
            codes = [child.wait() for child in children]
            return int(any(codes))
        finally:
            for child in children:
                child.kill()
                child.wait()


def stopped(_: int, __: FrameType | None) -> NoReturn:
    """End by way of ``finally``, so that no process is left."""
    raise SystemExit(0)


def main() -> int:
    """Read the arguments; with ``--job`` be that process, else start all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", type=Path, help="folder for the target files")
    parser.add_argument("--seconds", type=float, default=80, help="how long to train")
    parser.add_argument("--healthy", type=float, default=30, help="when the storm begins")
    parser.add_argument("--job", default="", help=argparse.SUPPRESS)
    for hidden in ("--rank", "--coordinator"):
        parser.add_argument(hidden, type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.job:
        process(args)
        return 0
    signal.signal(signal.SIGTERM, stopped)
    return together(args)


if __name__ == "__main__":
    sys.exit(main())
