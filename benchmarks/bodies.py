"""What a jit around a function saves that one program calls several times: of tracing, lowering and compiling."""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxwatch import _limits
from jaxwatch._content import content_of
from jaxwatch._program_advice import inner_jit_saves
from jaxwatch.events import PhaseSeconds

_Phases = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Shared:
    """Medians of one program, in both forms."""

    plain: float  # seconds of trace and lowering
    shared: float  # with a jit around the function
    expected: float  # saved seconds
    compile_ratio: float  # of XLA's compile, with the jit to without; median of pairs

    @property
    def kept(self) -> bool:
        """Whether no more was told than came."""
        return self.expected < _limits.INNER_JIT_SECONDS_SAVED or self.expected <= self.plain - self.shared

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return {**asdict(self), "kept": self.kept}


def attention(x: Any, w: Any) -> Any:
    """Return one layer of matrix products."""
    q, k, v = x @ w[0], x @ w[1], x @ w[2]
    x = x + jax.nn.softmax(q @ k.T / 8.0) @ v
    x = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)
    return x + jax.nn.gelu(x @ w[3]) @ w[4]


def pointwise(x: Any, w: Any) -> Any:
    """Return one layer of elementwise operations."""
    x = jnp.sin(x) * w[0, 0] + jnp.cos(x)
    x = jnp.where(x > 0, x, -x) * 0.5 + jnp.tanh(x)
    return jnp.exp(-x) / (1 + jnp.abs(x)) + jnp.sqrt(x * x + 1)


def _apart(layer: Callable[..., Any], calls: int) -> Callable[..., Any]:
    """Return a program that calls the layer so often, with something else between: no loop of equal blocks."""

    def run(ws: Any, x: Any) -> Any:
        for number, w in enumerate(ws[:calls]):
            x = layer(x, w)
            for _ in range(number % 3):
                x = x * 0.5
        return x.sum()

    return run


def _phases(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[_Phases, Any]:
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's own
    begun = time.perf_counter()
    traced = jax.jit(function).trace(*arguments)
    is_traced = time.perf_counter()
    lowered = traced.lower()
    is_lowered = time.perf_counter()
    lowered.compile()
    return (is_traced - begun, is_lowered - is_traced, time.perf_counter() - is_lowered), traced.jaxpr


def measure(*, quick: bool) -> dict[str, Shared]:
    """Measure all programs, both forms in turn."""
    found = {}
    for layer in (attention, pointwise):
        for calls in (4, 12) if quick else (4, 12, 24):
            for name, transform in (("forward", lambda f: f), ("gradient", jax.grad)):
                text = f"{layer.__name__}, {calls} calls, {name}"
                found[text] = _shared(layer, calls, transform, repeats=2 if quick else 5)
    return found


def _shared(
    layer: Callable[..., Any], calls: int, transform: Callable[[Any], Callable[..., Any]], *, repeats: int
) -> Shared:
    arguments = [jnp.full((5, 64, 64), 0.01) for _ in range(calls)], jnp.ones((16, 64))
    pairs, expected = [], []
    for _ in range(repeats):
        plain, jaxpr = _phases(transform(_apart(layer, calls)), arguments)
        pairs.append((plain, _phases(transform(_apart(jax.jit(layer), calls)), arguments)[0]))
        seconds = PhaseSeconds(trace=plain[0], lower=plain[1], backend_compile=plain[2])
        expected.append(sum(inner_jit_saves(body, seconds) for body in content_of(jaxpr).makeup.bodies))
    return Shared(
        statistics.median(sum(plain[:2]) for plain, _ in pairs),
        statistics.median(sum(shared[:2]) for _, shared in pairs),
        statistics.median(expected),
        statistics.median(shared[2] / plain[2] for plain, shared in pairs),
    )
