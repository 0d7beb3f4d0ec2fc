"""One concrete sentence for each reason of a miss. Pure: plain data in, plain data out."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from jaxwatch import _buckets
from jaxwatch._keys import Shape
from jaxwatch.events import Advice, AdviceCode, Change, Reason

Varying = tuple[int, set[int]]  # an axis, and the sizes that were seen along it

_T = TypeVar("_T")

_NAMED = 3

DEFINED_AGAIN = "defined again by a cell"  # how the note of a new function begins that a notebook's user made so


def advise(
    function: str, changes: Sequence[Change], varying: Callable[[str], Varying | None], *, new: bool = False
) -> tuple[Advice, ...]:
    """Return what to change so that a miss for these reasons does not come again.

    Args:
        function: Its name.
        changes: What differed, most telling first.
        varying: Along which one axis the leaf at a path has varied so far, this call's among them; None: not along one.
        new: Whether it is the first call of the jitted object, though its function was jitted before.
    """
    if new and any(change.reason == "cache_lost" for change in changes):  # an equal bound method, which has died
        text = f"Jit {function} once, outside the loop, and keep that object: its entry dies with the last one."
        return (Advice(code="jit_once", text=text),)
    by_reason: dict[Reason, list[Change]] = {}
    for change in changes:
        by_reason.setdefault(change.reason, []).append(change)
    return tuple(
        Advice(code=code, text=text)
        for reason, found in by_reason.items()
        if reason in _SENTENCES
        for code, text in [_SENTENCES[reason](function, found, varying)]
    )


def and_more(texts: Sequence[str], most: int = _NAMED) -> str:
    """Return the first texts, and how many more there are."""
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return " and ".join(texts)


def megabytes(size: int) -> str:
    """Return a size in bytes as text: ``1.4 MB``."""
    return f"{size / 1e6:,.1f} MB"


def paths(changes: Iterable[Change]) -> str:
    """Return the arguments that the changes name."""
    return and_more(list(dict.fromkeys(change.path for change in changes if change.path))) or "the arguments"


# ------------------------------------------------------------------ shapes


def _rank(leaf: str | None) -> int:
    """Return the number of dimensions of a leaf's text, as ``float32[8,128]``."""
    inside = (leaf or "").partition("[")[2].partition("]")[0]
    return inside.count(",") + 1 if inside else 0


def _shape(_function: str, changes: list[Change], varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    names = paths(changes)
    if any(_rank(change.before) != _rank(change.after) for change in changes):
        return "pad_or_bucket", f"Give {names} one number of dimensions."
    lengths = varying(changes[0].path or "")
    if lengths is None:
        return "pad_or_bucket", f"Give {names} one shape: pad to the largest and mask, or round sizes up to a few."
    axis, sizes = lengths
    if len(sizes) <= 2:  # noqa: PLR2004 -- two sizes: most often a rest
        rows = f"{max(sizes)} rows" if axis == 0 else f"length {max(sizes)} along axis {axis}"
        return "pad_or_bucket", f"Pad {names} to {rows} and mask, or drop the remainder."
    scheme = _buckets.best(sizes)
    kept = f"{scheme.signatures} signature{'s' if scheme.signatures > 1 else ''} in place of {len(sizes)}"
    padding = f"{100 * scheme.waste:.0f} % more elements over the lengths seen"
    return "pad_or_bucket", f"Pad {names} along axis {axis} to {scheme} and mask: {kept}, {padding}."


class Sizes:
    """The sizes of one leaf along each axis, counted over several keys."""

    __slots__ = ("axes", "ranks")

    def __init__(self) -> None:
        self.ranks: dict[int, int] = {}
        self.axes: list[dict[int | str, int]] = []

    def count(self, shape: Shape, number: int) -> None:
        """Add a shape ``number`` times; with -1, take it out again."""
        add(self.ranks, len(shape), number)
        while len(self.axes) < len(shape):
            self.axes.append({})
        for sizes, size in zip(self.axes, shape, strict=False):
            add(sizes, size, number)

    def varying(self) -> Varying | None:
        """Return the one axis along which there are several sizes, and these; None where it is not one axis."""
        found = [(axis, sizes) for axis, sizes in enumerate(self.axes) if len(sizes) > 1]
        if len(self.ranks) != 1 or len(found) != 1:
            return None
        axis, sizes = found[0]
        lengths = {size for size in sizes if isinstance(size, int)}
        return (axis, lengths) if len(lengths) == len(sizes) else None


def add(counts: dict[_T, int], what: _T, number: int) -> None:
    """Count ``what``, which leaves ``counts`` at 0."""
    left = counts.get(what, 0) + number
    if left:
        counts[what] = left
    else:
        del counts[what]


# ------------------------------------------------------------------ the other reasons


def _dtype(_function: str, changes: list[Change], _varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    change = changes[0]
    wanted = (change.before or "").lstrip("~").partition("[")[0]
    return "pin_dtype", f"Give {paths(changes)} one dtype from the first call on, for instance {wanted}."


def _weak_type(
    _function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    change = changes[0]
    strong = next((text for text in (change.after, change.before) if text and not text.startswith("~")), "float32[]")
    dtype, _, shape = strong.partition("[")
    names = paths(changes)
    if not (change.before or "").startswith("~"):
        by = f"jnp.{dtype}(…)" if shape == "]" else f".astype(jnp.{dtype})"
        text = f"Give {names} its dtype where it is made, by {by}"
        return "pin_dtype", f"{text}: Python scalars, and results of them alone, are weakly typed."
    if len(changes) > 1:
        return "pin_dtype", f"Give {names} the dtype {dtype} from the first call on, as jnp.{dtype}(…) does."
    made = f"jnp.{dtype}({change.path})" if shape == "]" else f"{change.path}.astype(jnp.{dtype})"
    return "pin_dtype", f"Pass {made} from the first call on: a Python scalar is weakly typed."


def _structure(
    _function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    if all(change.before and change.after and "None" not in (change.before, change.after) for change in changes):
        return "fix_structure", f"Pass {paths(changes)} as one type of container each time."
    if any("None" in (change.before, change.after) for change in changes):
        text = f"Pass an array for {paths(changes)} from the first call on (zeros, say) in place of None."
        return "fix_structure", text
    return "fix_structure", f"Keep the tree the same: always pass {paths(changes)}, or never."


def _metadata(
    _function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    text = f"Keep the static fields of {paths(changes)} the same, or make them array leaves if they vary."
    return "fix_structure", text


def _static(_function: str, changes: list[Change], _varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    names = paths(changes)
    notes = [change.note or "" for change in changes]
    if any("made anew" in note or "functions are" in note for note in notes):
        return (
            "make_hashable",
            f"Pass the same function object as {names} each time: one that is made anew compiles anew.",
        )
    if any("equal-looking" in note for note in notes):
        text = f"Have __eq__ and __hash__ of {names} go by what it holds, or pass the same object each time."
        return "make_hashable", text
    if any("__eq__" in note or "identity" in note for note in notes):
        text = f"Give the class of {names} __eq__ and __hash__ by value, or pass the same object each time."
        return "make_hashable", text
    text = f"Each value of {names} compiles anew: pass it as an array argument, if the body can do with one."
    return "unmark_static", text


def _call_form(
    _function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    change = changes[0]
    if "left out" in (change.before, change.after):
        return "same_call_form", f"Always give {paths(changes)}, or always leave it to its default."
    form = "position" if change.before == "positional" else "name"
    return "same_call_form", f"Always pass {paths(changes)} by {form}."


def _new_function(
    function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    if (changes[0].note or "").startswith(DEFINED_AGAIN):
        what = "the lambda" if "<lambda>" in function else function
        return "jit_once", f"Define and jit {what} in a cell of its own, and run that again only to change it."
    if "<lambda>" in function:
        return (
            "hoist_function",
            "Define the lambda and jit it once, outside the loop, and pass what varies as an argument.",
        )
    return "jit_once", f"Jit {function} once, outside the loop, and call that object; pass what varies as an argument."


def _config(_function: str, changes: list[Change], _varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    return "set_config_once", f"Set {paths(changes)} once, before the first call."


def _mesh(_function: str, _changes: list[Change], _varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    return "set_config_once", "Enter the mesh once, around all calls of the function."


def _placed(_function: str, changes: list[Change], _varying: Callable[[str], Varying | None]) -> tuple[AdviceCode, str]:
    return "commit_inputs", f"Place {paths(changes)} with jax.device_put and one sharding before the first call."


def _transform(
    function: str, changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    name = "vmap" if (changes[0].after or "").startswith("vmap") else "grad"
    text = f"Jit the transformed function, jax.jit(jax.{name}({function})) say, in place of {function} under it."
    return "jit_outer", text


def _options(
    function: str, _changes: list[Change], _varying: Callable[[str], Varying | None]
) -> tuple[AdviceCode, str]:
    return "jit_once", f"Jit {function} once with one set of options, and call that object everywhere."


_SENTENCES: dict[Reason, Callable[[str, list[Change], Callable[[str], Varying | None]], tuple[AdviceCode, str]]] = {
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
