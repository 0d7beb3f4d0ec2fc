"""Whether a call comes out with jaxwatch.jit as it does with jax.jit."""

import os
import re
import traceback
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import jaxwatch
from jaxwatch import _compat

COMPLETE = all(_compat.flags().values())
"""Whether this JAX has all that we know of; one that has not refuses some of what is tried, in the same words."""
DECORATES = pytest.mark.skipif(not _compat.HAS_DECORATOR_FORM, reason="this JAX has no jax.jit(**options)")
_OWN = os.path.join(os.path.dirname(jaxwatch.__file__), "")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


def _takes_statics() -> bool:
    try:
        jax.eval_shape(jax.jit(lambda n: n, static_argnums=0), 2)
    except ValueError:  # 0.6.2: the static argument was made a tracer
        return False
    return True


EVAL_SHAPE_TAKES_STATICS = _takes_statics()
"""Whether ``jax.eval_shape`` of a jitted function heeds which of its arguments are static."""


def frames(error: BaseException) -> list[tuple[str, str]]:
    return [(frame.filename, frame.name) for frame in traceback.extract_tb(error.__traceback__)]


def told(error: BaseException | None, *, strict: bool = True) -> Any:
    """Return all of an exception that a user can see: type, text, frames, notes, cause and context.

    Strict: our own frames too, which a call's error shall not have.
    """
    if error is None:
        return None
    return (
        type(error),
        _ADDRESS.sub("", str(error)),
        [frame for frame in frames(error) if strict or _OWN not in frame[0]],
        getattr(error, "__notes__", None),
        told(error.__cause__, strict=strict),
        told(error.__context__, strict=strict),
        error.__suppress_context__,
    )


def plain(value: Any) -> Any:
    """Return a value in a form that can be compared."""
    leaves, tree = jax.tree_util.tree_flatten(value)
    return str(tree), [
        (str(leaf.dtype), leaf.shape, np.asarray(jax.device_get(leaf)).tolist()) if hasattr(leaf, "dtype") else leaf
        for leaf in leaves
    ]


def outcome(run: Callable[[Any], Any], jit: Any, *, strict: bool = True) -> Any:
    try:
        return "result", plain(run(jit))
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is to be the same
        return "error", told(error, strict=strict)


def same(run: Callable[[Any], Any], *, strict: bool = True) -> Any:
    """Assert that ``run(jit)`` comes out the same with both jits, and return how."""
    # on one line: errors may tell the lines of all callers
    reference, ours = [outcome(run, jit, strict=strict) for jit in (jax.jit, jaxwatch.jit)]
    assert ours == reference
    return reference
