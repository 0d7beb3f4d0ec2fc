"""One concrete sentence for each reason of a miss. Pure: plain data in, plain data out."""

from collections.abc import Callable, Iterable, Sequence

from jaxwatch._keys import Key, Leaf, Node, Tree
from jaxwatch.events import Advice, AdviceCode, Change, Reason

_NAMED = 3


def advise(function: str, changes: Sequence[Change], keys: Sequence[Key]) -> tuple[Advice, ...]:
    """Return what to change so that a miss for these reasons does not come again.

    Args:
        function: Its name.
        changes: What differed, most telling first.
        keys: All keys seen so far, this one last.
    """
    by_reason: dict[Reason, list[Change]] = {}
    for change in changes:
        by_reason.setdefault(change.reason, []).append(change)
    return tuple(
        Advice(code=code, text=text)
        for reason, found in by_reason.items()
        if reason in _SENTENCES
        for code, text in [_SENTENCES[reason](function, found, keys)]
    )


def _paths(changes: Iterable[Change]) -> str:
    names = list(dict.fromkeys(change.path for change in changes if change.path))
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return " and ".join(names) if names else "the arguments"


# ------------------------------------------------------------------ shapes


def _shape(_function: str, changes: list[Change], keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    lengths = _varying(changes[0].path or "", keys)
    names = _paths(changes)
    if lengths is None:
        return "pad_or_bucket", f"Give {names} one shape: pad to the largest and mask, or round sizes up to a few."
    axis, sizes = lengths
    if len(sizes) <= 2:  # noqa: PLR2004 -- two sizes: most often a rest
        rows = f"{max(sizes)} rows" if axis == 0 else f"length {max(sizes)} along axis {axis}"
        return "pad_or_bucket", f"Pad {names} to {rows} and mask, or drop the remainder."
    step = bucket_step(sizes)
    rounded = _buckets(sizes, step)
    kept = f"{rounded} signature{'s' if rounded > 1 else ''} in place of {len(sizes)}"
    return "pad_or_bucket", f"Pad {names} along axis {axis} to a multiple of {step} and mask: {kept}."


def bucket_step(sizes: Iterable[int]) -> int:
    """Return the smallest power of two, from 8, whose multiples cover ``sizes`` with at most 3, fewer than they are."""
    wanted, step = set(sizes), 8
    most = min(3, max(len(wanted) - 1, 1))  # few enough to compile
    while _buckets(wanted, step) > most and step < max(wanted):
        step *= 2
    return step


def _buckets(sizes: Iterable[int], step: int) -> int:
    return len({-(-size // step) for size in sizes})


def _varying(path: str, keys: Sequence[Key]) -> tuple[int, list[int]] | None:
    """Return the one axis of a leaf that took several sizes, and the sizes; None where it is not one axis."""
    shapes = list(dict.fromkeys(leaf.shape for key in keys if (leaf := leaf_at(key, path)) is not None))
    if len({len(shape) for shape in shapes}) != 1:
        return None
    axes = [axis for axis in range(len(shapes[0])) if len({shape[axis] for shape in shapes}) > 1]
    sizes = [shape[axes[0]] for shape in shapes] if len(axes) == 1 else []
    if not sizes or not all(isinstance(size, int) for size in sizes):
        return None
    return axes[0], sorted({int(size) for size in sizes})


def leaf_at(key: Key, path: str) -> Leaf | None:
    """Return the array leaf of that path, or None."""
    for param in key.params:
        if path.startswith(param.name):
            found = _below(param.tree, path[len(param.name) :])
            if found is not None:
                return found
    return None


def _below(tree: Tree, rest: str) -> Leaf | None:
    if not rest:
        return tree if isinstance(tree, Leaf) else None
    if isinstance(tree, Node):
        for label, child in tree.children:
            if rest.startswith(label) and (found := _below(child, rest[len(label) :])) is not None:
                return found
    return None


# ------------------------------------------------------------------ the other reasons


def _dtype(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    change = changes[0]
    wanted = (change.before or "").lstrip("~").partition("[")[0]
    return "pin_dtype", f"Give {_paths(changes)} one dtype from the first call on, for instance {wanted}."


def _weak_type(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    change = changes[0]
    strong = next((text for text in (change.after, change.before) if text and not text.startswith("~")), "float32[]")
    dtype, _, shape = strong.partition("[")
    names = _paths(changes)
    made = f"jnp.{dtype}({change.path})" if shape == "]" else f"{change.path}.astype(jnp.{dtype})"
    if len(changes) > 1:
        return "pin_dtype", f"Give {names} the dtype {dtype} from the first call on, as jnp.{dtype}(…) does."
    return "pin_dtype", f"Pass {made} from the first call on: a Python scalar is weakly typed."


def _structure(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    if any("None" in (change.before, change.after) for change in changes):
        text = f"Pass an array for {_paths(changes)} from the first call on (zeros, say) in place of None."
        return "fix_structure", text
    return "fix_structure", f"Keep the tree the same: always pass {_paths(changes)}, or never."


def _metadata(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    text = f"Keep the static fields of {_paths(changes)} the same, or make them array leaves if they vary."
    return "fix_structure", text


def _static(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    names = _paths(changes)
    if any(change.note and ("__eq__" in change.note or "identity" in change.note) for change in changes):
        text = f"Give the class of {names} __eq__ and __hash__ by value, or pass the same object each time."
        return "make_hashable", text
    text = f"Each value of {names} compiles anew: pass it as an array argument, if the body can do with one."
    return "unmark_static", text


def _call_form(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    change = changes[0]
    if "left out" in (change.before, change.after):
        return "same_call_form", f"Always give {_paths(changes)}, or always leave it to its default."
    form = "position" if change.before == "positional" else "name"
    return "same_call_form", f"Always pass {_paths(changes)} by {form}."


def _new_function(function: str, _changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    if "<lambda>" in function:
        return "hoist_function", "Define the lambda and jit it once, outside the loop, and call that."
    return "jit_once", f"Jit {function} once, outside the loop, and call that object; pass what varies as an argument."


def _config(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    return "set_config_once", f"Set {_paths(changes)} once, before the first call."


def _mesh(_function: str, _changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    return "set_config_once", "Enter the mesh once, around all calls of the function."


def _placed(_function: str, changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    return "commit_inputs", f"Place {_paths(changes)} with jax.device_put and one sharding before the first call."


def _transform(function: str, _changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    text = f"Jit the transformed function, jax.jit(jax.grad({function})) say, in place of {function} under it."
    return "jit_outer", text


def _options(function: str, _changes: list[Change], _keys: Sequence[Key]) -> tuple[AdviceCode, str]:
    return "jit_once", f"Jit {function} once with one set of options, and call that object everywhere."


_SENTENCES: dict[Reason, Callable[[str, list[Change], Sequence[Key]], tuple[AdviceCode, str]]] = {
    "shape": _shape,
    "dtype": _dtype,
    "weak_type": _weak_type,
    "structure": _structure,
    "metadata": _metadata,
    "static": _static,
    "call_form": _call_form,
    "new_function": _new_function,
    "config": _config,
    "mesh": _mesh,
    "sharding": _placed,
    "placement": _placed,
    "layout": _placed,
    "transform": _transform,
    "options": _options,
}
