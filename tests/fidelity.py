"""Whether a call comes out with jaxwatch.jit as it does with jax.jit."""

import os
import re
import traceback
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxwatch

_OWN = os.path.join(os.path.dirname(jaxwatch.__file__), "")
_ADDRESS = re.compile(r"0x[0-9a-f]+")


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
    reference = outcome(run, jax.jit, strict=strict)
    ours = outcome(run, jaxwatch.jit, strict=strict)
    assert ours == reference
    return reference
