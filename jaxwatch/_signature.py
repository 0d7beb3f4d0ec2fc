"""Arguments → key of plain data. Called once a miss, at its first phase, before the user's body runs."""

from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path

from jaxwatch import _compat, _texts
from jaxwatch._keys import Key, Leaf, Node, Param, Static, Tree
from jaxwatch._plan import Plan, serial

_SCALARS = (bool, int, float, complex)


def key_of(plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, redact: bool = False) -> Key:
    """Return the key of a call, as it is before the body runs.

    Args:
        plan: How the function's arguments are to be read.
        args: By position, statics among them. Only looked at; nothing of them is kept.
        kwargs: By keyword.
        redact: Whether values of static arguments are to be left out of texts.
    """
    reader = _Reader(redact=redact)
    params = []
    for position, value in enumerate(args):
        name = plan.name_of(position)
        tree = reader.read(value, static=plan.is_static(position, name))
        variadic = position >= len(plan.positional)
        params.append(Param(name, "positional", tree, name in plan.defaults, variadic))
    for keyword in sorted(kwargs):
        name = plan.keyword_path(keyword)
        tree = reader.read(kwargs[keyword], static=plan.is_static(None, keyword))
        params.append(Param(name, "keyword", tree, name in plan.defaults, name != keyword))
    context = _compat.context()
    return Key(
        params=tuple(params),
        config=context.config,
        mesh=context.mesh,
        axis_env=context.axis_env,
        transform=", ".join(sorted(reader.transforms)),
        options=plan.options,
        partial=reader.partial,
    )


class _Reader:
    """Reads the arguments of one call."""

    def __init__(self, *, redact: bool) -> None:
        self.redact = redact
        self.partial = False
        self.transforms: set[str] = set()

    def read(self, value: Any, *, static: bool) -> Tree:
        """Return one argument as plain data; what cannot be read makes the key partial."""
        try:
            if static:
                return static_of(value, redact=self.redact)
            if isinstance(value, (jax.Array, np.ndarray, np.generic, *_SCALARS)):
                return self.leaf(value)
            return self.tree(value)
        except Exception:  # noqa: BLE001 -- a node or repr of the user's that fails must not matter
            self.partial = True
            return Leaf((), type(value).__name__)

    def leaf(self, value: Any) -> Leaf:
        """Return an array, scalar or tracer as plain data."""
        try:
            aval = jax.typeof(value)
        except TypeError:  # no array at all: JAX itself is about to refuse it
            self.partial = True
            return Leaf((), type(value).__name__)
        shape = tuple(size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ()))
        dtype, weak = str(getattr(aval, "dtype", aval)), bool(getattr(aval, "weak_type", False))
        if _compat.is_tracer(value):
            self.transforms.add(_compat.transform_of(value))
            return Leaf(shape, dtype, weak)
        if not isinstance(value, jax.Array):
            return Leaf(shape, dtype, weak, "", "uncommitted")
        where = value.sharding
        memory = _compat.memory_kind(where)
        order = ", ".join(filter(None, (memory, _compat.layout(value)))) or None
        return Leaf(shape, dtype, weak, sharding_text(where), placement_text(value), order or "")

    def tree(self, value: Any) -> Tree:
        """Return a pytree as plain data."""
        leaves, treedef = tree_flatten_with_path(value, is_leaf=lambda x: x is None)
        return self.node(treedef, iter(leaves), 0)[1]

    def node(self, treedef: PyTreeDef, leaves: Iterator[tuple[Any, Any]], depth: int) -> tuple[Any, Tree]:
        """Return the key path of the first leaf below (None: no leaf), and the sub-tree."""
        data = treedef.node_data()
        if data is None:
            path, leaf = next(leaves)
            return path, Node("None") if leaf is None else self.leaf(leaf)
        kind, aux = data
        path, children = None, []
        for number, child in enumerate(treedef.children()):
            below, tree = self.node(child, leaves, depth + 1)
            label = _label_of(kind, aux, number) if below is None else keystr((below[depth],))
            children.append((label, tree))
            path = below if path is None else path
        text, opaque = ("", False) if kind in (dict, list, tuple) else _aux_text(kind, aux, redact=self.redact)
        return path, Node(_kind_name(kind), tuple(children), text, opaque)


def _label_of(kind: type, aux: Any, number: int) -> str:
    """Return what an empty child of a container is called; with a leaf below, JAX's own key path says it."""
    if kind is dict or type(aux) is list:
        return f"[{aux[number]!r}]"
    fields = getattr(kind, "_fields", None)
    return f".{fields[number]}" if fields else f"[{number}]"


def _kind_name(kind: Any) -> str:
    return getattr(kind, "__qualname__", str(kind)).rpartition("<locals>.")[2]


def _aux_text(kind: type, aux: Any, *, redact: bool) -> tuple[str, bool]:
    """Return auxiliary data as text, and whether unequal data may have the same one."""
    if aux is None or hasattr(kind, "_fields"):
        return "", False
    if redact:
        return f"<{type(aux).__name__}>", True
    if isinstance(aux, list | tuple):
        return ", ".join(map(_texts.value_text, aux)), not all(map(_texts.is_plain, aux))
    return _texts.value_text(aux), not _texts.is_plain(aux)


def static_of(value: Any, *, redact: bool) -> Static:
    """Return a static argument's value as plain data; its ``__hash__`` and ``__repr__`` are called once, guarded."""
    kind = type(value)
    whole = _texts.whole_text(value)
    text = f"<{kind.__name__}>" if redact else _texts.shortened(whole)
    if _texts.is_plain(value):  # JAX tells 1, 1.0 and True apart, and (1,) and (1.0,) not
        token = _texts.digest(f"{kind.__name__}:{_texts.token(value)}")
        stable = _texts.digest(f"{kind.__name__}:{_ADDRESS_OF_NAN.sub('', _texts.token(value))}")
        return Static(text, token, digest=stable, redacted=redact)
    by_identity = _inherited(kind, "__hash__") is object.__hash__ and _inherited(kind, "__eq__") is object.__eq__
    try:
        same = serial(value) if by_identity else hash(value)
    except Exception:  # noqa: BLE001 -- unhashable: JAX itself is about to refuse it
        same = "?"
    name = f"{kind.__module__}.{kind.__qualname__}"
    stable = _texts.digest(f"{name}:{whole}")
    return Static(text, f"{name}:{same}", by_identity, opaque=not by_identity, digest=stable, redacted=redact)


def _inherited(kind: type, name: str) -> Any:
    """Return a type's method as its instances find it."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def sharding_text(sharding: Any) -> str:
    """Return a sharding by its spec and mesh; "" for a single device."""
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        parts = ", ".join(_spec_part(part) for part in spec)
        return f"P({parts}) on {_compat.mesh_text(sharding.mesh)}"
    return "" if isinstance(sharding, jax.sharding.SingleDeviceSharding) else _texts.shortened(str(sharding), 160)


def _spec_part(part: Any) -> str:
    return repr(part) if part is None or isinstance(part, str | tuple) else str(part)


def placement_text(array: Any) -> str:
    """Return whether an array is committed, and to what: ``uncommitted``, ``committed to cpu:0``."""
    if not _compat.committed(array):
        return "uncommitted"
    devices = sorted(array.sharding.device_set, key=lambda device: device.id)
    first = f"{devices[0].platform}:{devices[0].id}"
    return f"committed to {first}" + (f" and {len(devices) - 1} more" if len(devices) > 1 else "")
