"""Samples of results, by which runs under two scopes are held against each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_ELEMENTS = 512  # of a leaf
_LEAVES = 200  # of a result
_CALLS = 14  # the 1st, 2nd, 4th, … 8,192nd
_EARLY = 2  # calls up to which a program's own feedback has not yet made much of a difference of rounding

# What may differ, of the largest value of a leaf: fused, operations round less, and sums come in another order.
_TOLERANCES = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float16": 2e-2,
    "bfloat16": 5e-2,
}
_EXACT = 0.0
_COARSE = 0.3  # float8 and the like


def is_sampled(number: int) -> bool:
    """Whether the result of the outermost call of that number, from 1, is sampled."""
    return number & (number - 1) == 0 and number < 1 << _CALLS


def sample(leaves: Sequence[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Return a sample of a result as plain data.

    Args:
        leaves: Path and value of each leaf; arrays, or Python scalars.

    Returns:
        For each leaf its path, dtype and shape, and at most 512 of its elements, evenly spaced, as two numbers each
        where they are complex. A leaf that is no number has its type's name alone.
    """
    return [{"path": path, **_leaf(value)} for path, value in leaves[:_LEAVES]]


def _leaf(value: Any) -> dict[str, Any]:
    import numpy as np  # noqa: PLC0415 -- in the run alone, which has loaded it

    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001 -- a tracer, a deleted array, an object of the user's
        return {"dtype": type(value).__name__, "shape": None, "values": []}
    name, flat = str(array.dtype), array.reshape(-1)
    if array.dtype == object or (array.dtype.kind in "USVMm" and name not in _TOLERANCES):
        return {"dtype": name, "shape": None, "values": []}
    if flat.size > _ELEMENTS:
        flat = flat[np.linspace(0, flat.size - 1, _ELEMENTS).astype(int)]
    if array.dtype.kind == "c":
        flat = np.stack([flat.real, flat.imag], axis=-1).reshape(-1)
    values = flat.astype(np.float64).tolist()
    return {"dtype": name, "shape": list(array.shape), "values": [v if math.isfinite(v) else str(v) for v in values]}


class Difference(NamedTuple):
    """Where results under two scopes are not the same.

    Attributes:
        call: The how-manieth outermost call it is the result of; their order is the same under each scope.
        path: Of the leaf in its result; empty where it is the result as a whole.
        what: In words: ``0.3 of its largest value``, ``float32[3] → float64[3]``.
        early: It is seen at the first calls already, and so no mere drift of a program that feeds back.
    """

    call: int
    path: str
    what: str
    early: bool


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference | None:
    """Return the first difference between the samples of two runs, beyond that of rounding; None of none.

    Args:
        before: Call's number, as text → what ``sample`` returned.
        after: As ``before``, of the other run.
    """
    for call in sorted(map(int, before.keys() & after.keys())):
        found = _between(before[str(call)], after[str(call)])
        if found is not None:
            return Difference(call, *found, early=call <= _EARLY)
    return None


def _between(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    if [leaf["path"] for leaf in before] != [leaf["path"] for leaf in after]:
        return "", f"a tree of {len(before)} leaves → one of {len(after)}"
    for first, second in zip(before, after, strict=True):
        what = _between_leaves(first, second)
        if what is not None:
            return str(first["path"]), what
    return None


def _between_leaves(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    if before["shape"] != after["shape"]:
        return f"shape {before['shape']} → {after['shape']}"
    first, second = before["values"], after["values"]
    odd = [(a, b) for a, b in zip(first, second, strict=False) if isinstance(a, str) or isinstance(b, str)]
    if any(a != b for a, b in odd):
        return next(f"{a} → {b}" for a, b in odd if a != b)
    pairs = [(a, b) for a, b in zip(first, second, strict=False) if not isinstance(a, str) and not isinstance(b, str)]
    size = max((abs(value) for pair in pairs for value in pair), default=0.0)
    most = max((abs(a - b) for a, b in pairs), default=0.0)
    if most <= _tolerance(before["dtype"], after["dtype"]) * size:
        return None
    return f"by {most / size:.2g} of its largest value"


def _tolerance(before: str, after: str) -> float:
    if before != after:  # un-jitted, what is no array need not become one
        return max(_of(before), _of(after))
    return _of(before)


def _of(dtype: str) -> float:
    if "float" not in dtype and "complex" not in dtype:
        return _EXACT
    return _TOLERANCES.get(dtype, _COARSE)
