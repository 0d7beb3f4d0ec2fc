"""The part of JAX's key that is not in the arguments, as plain data: configuration, mesh, axis names."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from jaxwatch import _compat

OTHERS = "other configuration"
"""The name of all that a JAX without names (``HAS_CONTEXT_NAMES``) does not name."""


class Context(NamedTuple):
    """The part of JAX's key that is not in the arguments, as text."""

    config: tuple[tuple[str, str], ...]
    mesh: str
    axis_env: str


_last: tuple[Any, Context] | None = None


def context() -> Context:
    """Return the configuration, mesh and axis names that are part of JAX's key on this thread now."""
    global _last  # noqa: PLW0603 -- one slot; threads that race only lose the shortcut
    values = _compat.context_values()
    last = _last
    if last is not None and last[0] == values:
        return last[1]
    named = _compat.context_by_name(values)
    beside = _compat.MESH_NAMES + _compat.AXIS_NAMES
    config = [(name, _text(value)) for name, value in named.items() if name not in beside]
    if not _compat.HAS_CONTEXT_NAMES:
        config.append((OTHERS, _others(values, named)))
    found = Context(
        tuple(config),
        _joined(_meshes_text(named[name]) for name in _compat.MESH_NAMES if name in named),
        _joined(_axes_text(named[name]) for name in _compat.AXIS_NAMES if name in named),
    )
    _last = values, found
    return found


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(filter(None, texts))


def _others(values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Return the values that have no name, as text: in whatever order, equal only where all of them are."""
    others = Counter(map(_value_text, values)) - Counter(map(_value_text, named.values()))
    return ", ".join(f"{number} x {text}" for text, number in sorted(others.items()))


def _value_text(value: Any) -> str:
    """Return a value as text that is equal where JAX finds the values equal, also without a text of their own."""
    text = _text(value)
    return f"{type(value).__name__} {hash(value) & 0xFFFF:04x}" if " at 0x" in text else text


def _text(value: Any) -> str:
    name = getattr(value, "name", None)  # an enum's member, as users write it in lower case
    return (name.lower() if hasattr(type(value), "__members__") and isinstance(name, str) else str(value))[:200]


def _meshes_text(value: Any) -> str:
    if not value:
        return ""
    meshes = value if isinstance(value, tuple) else (value,)
    return ", ".join(mesh_text(mesh) for mesh in meshes if not getattr(mesh, "empty", False))


def mesh_text(mesh: Any) -> str:
    """Return a mesh by its axes: ``mesh(data=4, model=2)``."""
    shape = getattr(mesh, "shape", None)
    if not shape:
        return str(mesh)[:200]
    return "mesh(" + ", ".join(f"{name}={size}" for name, size in dict(shape).items()) + ")"


def _axes_text(value: Any) -> str:
    sizes = dict(getattr(value, "axis_sizes", value) or ())  # 0.6.2 keeps pairs
    return ", ".join(f"{name}={size}" for name, size in sizes.items())
