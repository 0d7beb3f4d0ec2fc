"""What an expression is called: ``jnp.sum`` → ``jax.numpy.sum``, by way of the module's imports and aliases."""

import ast
import builtins
import functools

from jaxwatch._lint.scopes import Binding, Scope

_DEPTH = 8  # of aliases of aliases
# The same function under another path, by the longest beginning that fits.
_SAME = {
    "jax.experimental.pjit.pjit": "jax.jit",
    "jax.pjit": "jax.jit",
    "jax.api.jit": "jax.jit",
    "jaxwatch.jit": "jax.jit",
    "equinox.filter_pmap": "jax.pmap",
    "jax.remat": "jax.checkpoint",
    "jax.ad_checkpoint.checkpoint": "jax.checkpoint",
    "jax.experimental.shard_map.shard_map": "jax.shard_map",
    "jax.tree_map": "jax.tree.map",
    "jax.tree_util.tree_": "jax.tree.",
    "jax.lax.linalg.": "jax.numpy.linalg.",
    "jax.custom_derivatives.": "jax.",
    "jax.core.ShapeDtypeStruct": "jax.ShapeDtypeStruct",
    "flax.training.common_utils.": "flax.common_utils.",
    "numpy.core.": "numpy.",
    "flax.nnx.nn.": "flax.nnx.",
}


def path_of(node: ast.AST, scope: Scope, depth: int = 0) -> str:
    """Return the full path of what a name or a chain of attributes stands for; "" where that is not known."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    start = _of_name(node.id, scope, depth)
    return _canonical(".".join([start, *reversed(attributes)])) if start else ""


def _of_name(name: str, scope: Scope, depth: int) -> str:
    found = scope.find(name)
    if found is None:
        return f"builtins.{name}" if hasattr(builtins, name) else ""
    where, bindings = found
    imports = [binding.path for binding in bindings if binding.path]
    if imports:
        return imports[0] if len(imports) == len(bindings) or _is_fallback(bindings) else ""
    node = bindings[0].node
    if len(bindings) > 1 or depth >= _DEPTH or not isinstance(node, ast.Name | ast.Attribute):
        return ""
    return path_of(node, where, depth + 1)


def _is_fallback(bindings: list[Binding]) -> bool:
    return all(binding.path or isinstance(binding.node, ast.Constant) for binding in bindings)


@functools.cache
def _canonical(path: str) -> str:
    for known, same in _SAME.items():
        if path.startswith(known) and (known.endswith((".", "_")) or path == known):
            return same + path.removeprefix(known)
    return path


def text_of(node: ast.AST, limit: int = 40) -> str:
    """Return an expression as the user wrote it, in one line, cut where it is long."""
    try:
        text = " ".join(ast.unparse(node).split())
    except (RecursionError, ValueError):
        return "…"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
