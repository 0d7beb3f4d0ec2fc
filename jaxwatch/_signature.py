"""Arguments → key of plain data. Called once a miss, at its first phase, before the user's body runs."""

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path

from jaxwatch import _compat, _context, _limits, _texts
from jaxwatch._keys import Key, Leaf, Node, Param, Static, Tree, alike
from jaxwatch._plan import Plan, serial

_SCALARS = (bool, int, float, complex)


def key_of(
    plan: Plan, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, redact: bool = False, like: Key | None = None
) -> Key:
    """Return the key of a call, as it is before the body runs.

    Args:
        plan: How the function's arguments are to be read.
        args: By position, statics among them. Only looked at; nothing of them is kept.
        kwargs: By keyword.
        redact: Whether values of static arguments are to be left out of texts.
        like: An earlier key, of which the new one takes over what is the same: it weighs less, and is compared faster.
    """
    reader = _Reader(redact=redact)
    known = {} if like is None else like.by_name
    params = []
    for position, value in enumerate(args):
        name = plan.name_of(position)
        tree = reader.read(value, static=plan.is_static(position, name))
        variadic = position >= len(plan.positional)
        params.append(alike(Param(name, "positional", tree, name in plan.defaults, variadic), known.get(name)))
    for keyword in sorted(kwargs):
        name = plan.keyword_path(keyword)
        tree = reader.read(kwargs[keyword], static=plan.is_static(None, keyword))
        params.append(alike(Param(name, "keyword", tree, name in plan.defaults, name != keyword), known.get(name)))
    context = _context.context()
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
        self.places: dict[tuple[int, bool], tuple[str, str, str | None]] = {}

    def read(self, value: Any, *, static: bool) -> Tree:
        """Return one argument as plain data; what cannot be read makes the key partial."""
        try:
            if static:
                return static_of(value, redact=self.redact)
            if isinstance(value, (jax.Array, np.ndarray, np.generic, *_SCALARS)):
                return self.leaf(value)
            return self.tree(value)
        except KeyboardInterrupt:  # as in `_texts`
            raise
        except BaseException:  # noqa: BLE001 -- a node of the user's that fails must not matter, whatever it raises
            self.partial = True
            return Leaf((), type(value).__name__)

    def leaf(self, value: Any) -> Leaf:
        """Return an array, scalar or tracer as plain data."""
        try:
            aval = jax.typeof(value)
        except TypeError:  # no array at all: JAX itself is about to refuse it
            self.partial = True
            return Leaf((), type(value).__name__)
        shape = tuple([size if isinstance(size, int) else str(size) for size in getattr(aval, "shape", ())])
        dtype = getattr(aval, "dtype", aval)
        text = _dtype_text(dtype) if isinstance(dtype, np.dtype) else str(dtype)
        weak = bool(getattr(aval, "weak_type", False))
        if _compat.is_tracer(value):
            self.transforms.add(_compat.transform_of(value))
            return Leaf(shape, text, weak)
        if not isinstance(value, jax.Array):
            return Leaf(shape, text, weak, "", "uncommitted", "")
        sharding, placement, memory = self.place(value)
        order = ", ".join(filter(None, (memory, _compat.layout(value)))) or None
        return Leaf(shape, text, weak, sharding, placement, order or "")

    def place(self, array: Any) -> tuple[str, str, str | None]:
        """Return where an array lies: sharding, placement and memory; read once for all that lie there."""
        where, committed = array.sharding, _compat.committed(array)
        key = id(where), committed  # it lives as long as the array that the caller holds
        if (found := self.places.get(key)) is None:
            found = sharding_text(where), placement_text(array), _compat.memory_kind(where)
            self.places[key] = found
        return found

    def tree(self, value: Any) -> Tree:
        """Return a pytree as plain data."""
        leaves, treedef = tree_flatten_with_path(value, is_leaf=_is_bare)
        return self.node(treedef, iter(leaves), 0)[1]

    def node(self, treedef: PyTreeDef, leaves: Iterator[tuple[Any, Any]], depth: int) -> tuple[Any, Tree]:
        """Return the key path of the first leaf below (None: no leaf), and the sub-tree."""
        data = treedef.node_data()
        if data is None:
            path, leaf = next(leaves)
            return path, Node(_kind_name(type(leaf))) if _is_bare(leaf) else self.leaf(leaf)
        if depth >= _limits.TREE_LEVELS:
            raise RecursionError(f"a tree of more than {depth} levels")
        kind, aux = data
        path, children = None, []
        for number, child in enumerate(treedef.children()):
            below, tree = self.node(child, leaves, depth + 1)
            # a child without leaves has no key path of JAX's: it is an empty node of the user's
            label = f"[{number}]" if below is None else _texts.label_text(keystr((below[depth],)))
            children.append((label, tree))
            path = below if path is None else path
        return path, Node(_kind_name(kind), tuple(children), _aux_of(kind, aux, redact=self.redact))


_dtype_text = lru_cache(maxsize=64)(str)  # NumPy takes 5 µs for it


_BUILT_IN = (dict, list, tuple, OrderedDict)


def _is_bare(value: Any) -> bool:
    """Whether the value is None or an empty container: taken as a leaf, so that JAX gives it a key path."""
    return value is None or (isinstance(value, (*_BUILT_IN, defaultdict)) and not value)


def _kind_name(kind: Any) -> str:
    return "None" if kind is type(None) else kind.__qualname__.rpartition("<locals>.")[2]


def _aux_of(kind: type, aux: Any, *, redact: bool) -> Static | None:
    """Return what of a node is neither its type's name nor its children: the type itself and the auxiliary data."""
    if kind in _BUILT_IN:
        return None
    several = isinstance(aux, list | tuple)
    of_kind = Static("", f"{serial(kind)}{several}", digest=str(several))
    if aux is None or hasattr(kind, "_fields"):
        return of_kind
    values = aux[:1] if kind is defaultdict else aux if several else (aux,)
    parts = [of_kind, *(static_of(value, redact=redact, typed=False) for value in values)]
    return Static(
        _texts.shortened(", ".join(part.text for part in parts[1:]), 2 * _limits.REPR_CHARACTERS),
        " ".join(part.token for part in parts),
        by_identity=any(part.by_identity for part in parts),
        opaque=any(part.opaque for part in parts),
        digest=" ".join(part.digest for part in parts),
        redacted=redact,
        whole=_kept(", ".join(part.whole or part.text for part in parts[1:]), redact=redact),
    )


def static_of(value: Any, *, redact: bool, typed: bool = True) -> Static:
    """Return a static argument's value as plain data; its ``__hash__`` and ``__repr__`` are called once, guarded.

    Args:
        value: The argument, or an element of a node's auxiliary data.
        redact: Whether the value is to be left out of the text.
        typed: Whether 1, 1.0 and True are three values: as arguments they are, within a tuple or a node they are one.
    """
    kind = type(value)
    whole = _texts.whole_text(value)
    text = f"<{kind.__name__}>" if redact else _texts.shortened(whole)
    if _texts.is_plain(value):
        stable = _texts.digest(f"{kind.__name__ if typed else ''}:{_texts.equal_text(value)}")
        kept = _kept(whole, redact=redact)
        return Static(text, stable + _texts.nans(value), digest=stable, redacted=redact, whole=kept)
    by_identity = _inherited(kind, "__hash__") is object.__hash__ and _inherited(kind, "__eq__") is object.__eq__
    try:
        same = serial(value) if by_identity else hash(value)
    except KeyboardInterrupt:  # as in `_texts`
        raise
    except BaseException:  # noqa: BLE001 -- unhashable: JAX itself is about to refuse it
        same = "?"
    stable = _texts.digest(f"{kind.__module__}.{kind.__qualname__}:{whole}")
    kept = _kept(whole, redact=redact)
    return Static(text, f"{serial(kind)}:{same}", by_identity, not by_identity, stable, redact, kept)


def _kept(whole: str, *, redact: bool) -> str:
    """Return what is kept of a text that is too long to be told whole."""
    short = redact or len(whole) <= _limits.REPR_CHARACTERS
    return "" if short else _texts.shortened(whole, _limits.STATIC_CHARACTERS)


def _inherited(kind: type, name: str) -> Any:
    """Return a type's method as its instances find it."""
    return next((base.__dict__[name] for base in kind.__mro__ if name in base.__dict__), None)


def sharding_text(sharding: Any) -> str:
    """Return a sharding by its spec and mesh; "" for a single device."""
    spec = getattr(sharding, "spec", None)
    if spec is not None:
        parts = ", ".join(_spec_part(part) for part in spec)
        return f"P({parts}) on {_context.mesh_text(sharding.mesh)}"
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
