"""Calls described as plain data, and mutations of a known kind: what is to be told of each follows from it alone.

Nothing here looks at jaxwatch or at jax. ``mutated`` changes a call in some ways, and ``told`` says what an explanation
has to name: by reason and path from the mutation, before and after from the two descriptions.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Choose(Protocol):
    """Picks one of several: Hypothesis draws, or ``random.Random(seed).choice``."""

    def __call__(self, options: Sequence[T], /) -> T: ...


class Place(NamedTuple):
    """Where an array lies, as it is told, and on which devices: arrays of one call must agree on them."""

    sharding: str
    placement: str
    layout: str = "default"
    devices: str = ""
    dimensions: int = 0  # that an array must have at least


_ALL = "committed to cpu:0 and 7 more"
PLACES = {
    "free": Place("one device", "uncommitted"),
    "first": Place("one device", "committed to cpu:0", devices="0"),
    "second": Place("one device", "committed to cpu:1", devices="1"),
    "pinned": Place("one device", "committed to cpu:0", "pinned_host", devices="0"),
    "whole": Place("P() on mesh(d=8)", _ALL, devices="all"),
    "rows": Place("P('d') on mesh(d=8)", _ALL, devices="all", dimensions=1),
    "columns": Place("P(None, 'd') on mesh(d=8)", _ALL, devices="all", dimensions=2),
}


class Array(NamedTuple):
    """An array of ones, or a scalar; ``made`` by jax, numpy or python, which no explanation tells."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False
    place: str = "free"
    made: str = "jax"

    def changed(self, **fields: Any) -> "Array":
        """Return the array with other fields, made by jax where the other two cannot make it."""
        array = self._replace(**fields)
        if array.place != "free" or (array.made == "python" and (array.shape or not array.weak)):
            return array._replace(made="jax")
        return array._replace(made="jax") if array.made == "numpy" and array.weak else array


class Box(NamedTuple):
    """A container: dict, OrderedDict, list, tuple, Pair (a namedtuple of x, y) or Batch (a dataclass of x, y and n)."""

    kind: str
    fields: tuple[tuple[str, "Tree"], ...]
    held: int | None = None  # the static field of a Batch


Tree = Array | Box | None


class Fixed(NamedTuple):
    """The value of a static argument."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Argument:
    """One argument, under the path that stands for it: ``a``, ``args[1]``, ``kwargs['bias']``."""

    name: str
    form: str
    value: Tree | Fixed
    defaulted: bool = False


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of ``f(a, b, mode, scale=2.0)``, or of ``f(a, *args, **kwargs)`` where ``several``."""

    arguments: tuple[Argument, ...]
    several: bool
    config: tuple[tuple[str, str], ...] = ()  # what is not as usual
    mesh: str = ""
    axes: str = ""
    transform: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def named(self, name: str) -> Argument | None:
        """Return an argument that is given, by its path."""
        return next((argument for argument in self.arguments if argument.name == name), None)


Where = tuple[str, ...]


class Claim(NamedTuple):
    """What a mutation changed: nothing else may be named for it."""

    reason: str
    where: Where = ()
    whole: bool = False  # all that lies below has changed with it, and is not named apart


class Told(NamedTuple):
    """What an explanation has to name."""

    reason: str
    path: str | None
    before: str | None
    after: str | None


# ------------------------------------------------------------------ texts


def label(kind: str, name: str) -> str:
    """Return what a child of that name appends to a path."""
    if kind in ("dict", "OrderedDict"):
        return f"['{name}']"
    return f"[{name}]" if kind in ("list", "tuple") else f".{name}"


def text(tree: Tree | Fixed) -> str:
    """Return a sub-tree as docs/events.md shows it."""
    if tree is None:
        return "None"
    if isinstance(tree, Fixed):
        return repr(tree.value)
    if isinstance(tree, Array):
        return f"{'~' * tree.weak}{tree.dtype}[{','.join(map(str, tree.shape))}]"
    held = [] if tree.held is None else [str(tree.held)]
    return (
        f"{tree.kind}({', '.join(held + [f'{label(tree.kind, name)}: {text(child)}' for name, child in tree.fields])})"
    )


USUAL = {
    "jax_enable_x64": ("False", "True"),
    "jax_default_matmul_precision": ("None", "float32"),
    "jax_numpy_dtype_promotion": ("standard", "strict"),
    "jax_numpy_rank_promotion": ("allow", "warn"),
    "jax_threefry_partitionable": ("True", "False"),
    "jax_default_device": ("None", "cpu:1"),
    "jax_debug_key_reuse": ("False", "True"),
    # these JAX has outside its key
    "jax_debug_nans": ("False", "True"),
    "jax_debug_infs": ("False", "True"),
    "jax_default_prng_impl": ("threefry2x32", "rbg"),
    "jax_transfer_guard": ("None", "allow"),
}


def _beside(call: Call, claim: Claim) -> str | None:
    texts = {"mesh": call.mesh or "no mesh", "axis_env": call.axes or "no axis names"}
    texts["transform"] = call.transform or "no transform"
    if claim.reason == "config":
        return dict(call.config).get(claim.where[0], USUAL[claim.where[0]][0])
    return dict(call.options).get(claim.where[0]) if claim.reason == "options" else texts[claim.reason]


def _side(call: Call, claim: Claim) -> str | None:
    if claim.reason in ("mesh", "axis_env", "transform", "config", "options"):
        return _beside(call, claim)
    argument = call.named(claim.where[0])
    if claim.reason == "call_form":
        given = argument is not None
        return ("given" if given else "left out") if claim.whole else (argument.form if argument else None)
    found = tree_at(call, claim.where)
    if found is MISSING:
        return None
    if claim.reason in ("sharding", "placement", "layout"):
        return str(getattr(PLACES[found.place], claim.reason))
    return str(found.held) if claim.reason == "metadata" else text(found)


def told(before: Call, after: Call, claims: Sequence[Claim]) -> list[Told]:
    """Return what is to be named of the claims, with the texts of both sides."""
    return [
        Told(claim.reason, "".join(claim.where) or None, _side(before, claim), _side(after, claim)) for claim in claims
    ]


# ------------------------------------------------------------------ places within a call


MISSING: Any = object()


def tree_at(call: Call, where: Where) -> Any:
    """Return the sub-tree at a place, or MISSING."""
    argument = call.named(where[0])
    found: Any = MISSING if argument is None else argument.value
    for step in where[1:]:
        if not isinstance(found, Box):
            return MISSING
        found = {label(found.kind, name): child for name, child in found.fields}.get(step, MISSING)
    return found


def below(tree: Tree | Fixed, where: Where) -> list[tuple[Where, Tree | Fixed]]:
    """Return the sub-trees with their places, from the top."""
    found: list[tuple[Where, Tree | Fixed]] = [(where, tree)]
    if isinstance(tree, Box):
        for name, child in tree.fields:
            found += below(child, (*where, label(tree.kind, name)))
    return found


def everywhere(call: Call) -> list[tuple[Where, Tree | Fixed]]:
    """Return all sub-trees of a call with their places."""
    return [entry for argument in call.arguments for entry in below(argument.value, (argument.name,))]


def replaced(call: Call, where: Where, new: Tree | Fixed) -> Call:
    """Return the call with another sub-tree at a place."""
    arguments = [
        dataclasses.replace(argument, value=_within(argument.value, where[1:], new))
        if argument.name == where[0]
        else argument
        for argument in call.arguments
    ]
    return dataclasses.replace(call, arguments=tuple(arguments))


def _within(tree: Tree | Fixed, steps: Where, new: Tree | Fixed) -> Any:
    if not steps:
        return new
    assert isinstance(tree, Box)
    fields = [
        (name, _within(child, steps[1:], new) if label(tree.kind, name) == steps[0] else child)
        for name, child in tree.fields
    ]
    return tree._replace(fields=tuple(fields))


def updated(call: Call, where: Where, **fields: Any) -> Call:
    """Return the call with fields of an array or a container changed; as it is where there is none."""
    found = tree_at(call, where)
    if isinstance(found, Array):
        return replaced(call, where, found.changed(**fields))
    return replaced(call, where, found._replace(**fields)) if isinstance(found, Box) else call


# ------------------------------------------------------------------ several mutations of one call


WEAK = ("float32", "int32")


def sound(call: Call) -> bool:
    """Whether Python and JAX can make this call."""
    arrays = [tree for _, tree in everywhere(call) if isinstance(tree, Array)]
    devices = {PLACES[array.place].devices for array in arrays} - {""}
    forms = [argument.form for argument in call.arguments]
    wide = dict(call.config).get("jax_enable_x64") == "True"
    starred = [argument.name for argument in call.arguments if argument.name.startswith("args[")]
    return (
        all(len(array.shape) >= PLACES[array.place].dimensions for array in arrays)
        and all(array.dtype in WEAK for array in arrays if array.weak)
        and not (wide and any(array.made == "python" for array in arrays))  # it would become a float64
        and len(devices | ({"all"} if call.mesh else set())) <= 1
        and not ((devices or call.mesh) and "jax_default_device" in dict(call.config))
        and forms == sorted(forms, reverse=True)
        and starred == [f"args[{n}]" for n in range(len(starred))]
        and all(_in_order(tree) for _, tree in everywhere(call))
        and (not call.transform or _mapped(call))
    )


def _in_order(tree: Tree | Fixed) -> bool:
    if not isinstance(tree, Box) or tree.kind not in ("list", "tuple"):
        return True
    return [name for name, _ in tree.fields] == [str(n) for n in range(len(tree.fields))]


def _mapped(call: Call) -> bool:
    """Whether ``a`` can be mapped over: it has arrays, all of them free to go anywhere."""
    arrays = [tree for where, tree in everywhere(call) if where[0] == "a" and isinstance(tree, Array)]
    return bool(arrays) and all(array.place == "free" for array in arrays)


Mutation = Callable[[Call, Choose], tuple[Callable[[Call], Call], list[Claim]] | None]
_ONE = {"placement": "sharding", "layout": "sharding"}  # an array is moved as a whole


def apart(one: Claim, other: Claim) -> bool:
    """Whether neither of two claims hides or changes what the other is told as."""
    if one.where == other.where:
        same = _ONE.get(one.reason, one.reason) == _ONE.get(other.reason, other.reason)
        return not (same or one.whole or other.whole)
    above, under = sorted((one, other), key=lambda claim: len(claim.where))
    return not (above.whole and under.where[: len(above.where)] == above.where)


class Mutated(NamedTuple):
    """A call after some mutations; for each its kind, the first call with it alone, and its claims."""

    call: Call
    steps: tuple[tuple[str, Call, tuple[Claim, ...]], ...] = ()

    @property
    def claims(self) -> list[Claim]:
        """The claims of all mutations."""
        return [claim for _, _, claims in self.steps for claim in claims]


def mutated(call: Call, kinds: Sequence[str], table: dict[str, Mutation], choose: Choose) -> Mutated:
    """Change a call by mutations of these kinds; one that does not fit, or meddles with another, is left out."""
    done = Mutated(call)
    for kind in kinds:
        found = table[kind](call, choose)
        if found is None or not all(apart(new, old) for new in found[1] for old in done.claims):
            continue
        edit, claims = found
        alone, together = edit(call), edit(done.call)
        if sound(alone) and sound(together):
            done = Mutated(together, (*done.steps, (kind, alone, tuple(claims))))
    return done
