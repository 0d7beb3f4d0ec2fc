"""Arguments into whose memory a program could write its outputs, were they donated; read while it is lowered."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_leaves

from jaxwatch import _compat, _limits
from jaxwatch._plan import Plan
from jaxwatch.events import Donatable


def arguments(plan: Plan, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield path and value of what of a call's arguments is not static, in the order of a program's inputs."""
    for position, value in enumerate(args):
        if not plan.is_static(position, plan.name_of(position)):
            yield plan.name_of(position), value
    for name in sorted(kwargs):
        if not plan.is_static(None, name):
            yield plan.keyword_path(name), kwargs[name]


def donatable(jaxpr: Any, donated: Sequence[bool] | None, given: Iterator[tuple[str, Any]]) -> tuple[Donatable, ...]:
    """Return the arguments of which each array has an output of its own of that shape and dtype, and none is donated.

    Left out are arguments with arrays that are not JAX's, with an array that the call is given twice (which JAX refuses
    to donate), and with one that the program does not use. Whether one is needed after the call is not known.

    Args:
        jaxpr: As JAX lowers it, closed or not: without inputs that are not used.
        donated: Of each of its inputs; None: not known.
        given: Path and value of each argument, in the order of the inputs.
    """
    program = getattr(jaxpr, "jaxpr", jaxpr)
    names = getattr(getattr(program, "debug_info", None), "arg_names", None) or ()
    if donated is None or not len(donated) == len(names) == len(program.invars):
        return ()
    free, kept = _outputs(program)
    if sum(_bytes(kind) * count for kind, count in free.items()) < _limits.DONATED_BYTES_TOLD:  # most programs
        return ()
    free.subtract(_kind(each) for each, gone in zip(program.invars, donated, strict=True) if gone)
    values = [(name, tree_leaves(value)) for name, value in given]
    times = Counter(id(leaf) for _, leaves in values for leaf in leaves)
    found, at = [], 0
    for name, leaves in values:
        start = at
        while at < len(names) and _is_within(names[at], name):
            at += 1
        used = at - start == len(leaves) and not any(donated[start:at])
        if used and all(isinstance(leaf, _SCALARS) or (_is_array(leaf) and times[id(leaf)] == 1) for leaf in leaves):
            own = [each for each, leaf in zip(program.invars[start:at], leaves, strict=True) if _is_array(leaf)]
            wanted = Counter(_kind(each) for each in own if each not in kept)
            if all(free[kind] >= count for kind, count in wanted.items()):
                free.subtract(wanted)
                found.append(Donatable(argument=name, bytes=sum(_bytes(kind) * n for kind, n in wanted.items())))
    return _worth_it(found)


def _worth_it(found: list[Donatable]) -> tuple[Donatable, ...]:
    total = sum(each.bytes for each in found)
    if total < _limits.DONATED_BYTES_TOLD:
        return ()
    most = sorted((each for each in found if 100 * each.bytes >= total), key=lambda each: -each.bytes)  # from 1 % on
    return tuple(most[: _limits.DONATABLE_TOLD])


_SCALARS = (bool, int, float, complex, np.generic)  # a counter that begins as a plain 0, say: nobody's memory
_Kind = tuple[tuple[Any, ...], Any, bool]


def _outputs(program: Any) -> tuple[Counter[_Kind], set[Any]]:
    """Return what is written, each output once, by kind; and the inputs that are handed on as they are."""
    outputs = {each for each in program.outvars if not hasattr(each, "val")}  # a literal is written nowhere
    kept = outputs.intersection(program.invars)
    return Counter(_kind(each) for each in outputs - kept), kept


def _kind(variable: Any) -> _Kind:
    """Return what JAX holds inputs and outputs against each other by."""
    aval = variable.aval
    return getattr(aval, "shape", ()), getattr(aval, "dtype", None), bool(getattr(aval, "weak_type", False))


def _bytes(kind: _Kind) -> int:
    shape, dtype, _ = kind
    return int(math.prod(shape)) * int(getattr(dtype, "itemsize", 0))


def _is_within(name: object, argument: str) -> bool:
    return isinstance(name, str) and name.startswith(argument) and name[len(argument) :][:1] in ("", "[", ".")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and not _compat.is_tracer(leaf)
