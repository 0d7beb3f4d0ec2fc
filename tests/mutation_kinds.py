"""The closed list of mutations, and random calls to begin with; see ``mutations``."""

import dataclasses
from collections.abc import Callable, Sequence

from mutations import (
    PLACES,
    USUAL,
    WEAK,
    Argument,
    Array,
    Box,
    Call,
    Choose,
    Claim,
    Fixed,
    Mutation,
    Tree,
    Where,
    everywhere,
    label,
    replaced,
    tree_at,
    updated,
)

SIZES = (8, 16, 24)  # each splits over 8 devices
DTYPES = ("float32", "int32", "float16", "uint8", "bool")
VALUES = (1, 1.0, True, "mean", "sum", (1, 2), (1, "a"), None, b"x", -1)
KINDS_OF_BOX = ("dict", "list", "tuple", "Pair", "Batch")
Found = tuple[Callable[[Call], Call], list[Claim]] | None


# ------------------------------------------------------------------ random calls


def an_array(choose: Choose) -> Array:
    shape = tuple(choose(SIZES) for _ in range(choose((0, 1, 1, 2))))
    dtype = choose(DTYPES)
    weak = dtype in WEAK and choose((True, False, False))
    made = choose(("jax", "jax", "numpy", "python"))
    return Array(shape, dtype).changed(weak=weak, made="python" if weak and not shape else made)


def a_tree(choose: Choose, depth: int = 2) -> Tree:
    what = choose(("array", "array", "none", "box", "box")) if depth else choose(("array", "array", "array", "none"))
    if what == "none":
        return None
    return an_array(choose) if what == "array" else a_box(choose, choose(KINDS_OF_BOX), depth)


def a_box(choose: Choose, kind: str, depth: int) -> Box:
    if kind in ("Pair", "Batch"):
        names: Sequence[str] = "xy"
    else:
        names = ("abc" if kind == "dict" else "012")[: choose((0, 1, 2, 3))]
    held = choose((1, 2, 3)) if kind == "Batch" else None
    return Box(kind, tuple((name, a_tree(choose, depth - 1)) for name in names), held)


def a_call(choose: Choose) -> Call:
    return _several(choose) if choose((True, False, False)) else _plain(choose)


def _plain(choose: Choose) -> Call:
    values: list[tuple[str, Tree | Fixed]] = [("a", a_tree(choose)), ("b", a_tree(choose))]
    values.append(("mode", Fixed(choose(VALUES))))
    if choose((True, False)):
        values.append(("scale", an_array(choose)))
    by_position = choose(range(len(values) + 1))
    return Call(
        tuple(
            Argument(name, "positional" if place < by_position else "keyword", value, defaulted=name == "scale")
            for place, (name, value) in enumerate(values)
        ),
        several=False,
    )


def _several(choose: Choose) -> Call:
    more = [Argument(f"args[{n}]", "positional", a_tree(choose, 1)) for n in range(choose((0, 1, 2)))]
    named = [Argument(f"kwargs['{name}']", "keyword", a_tree(choose, 1)) for name in "lm"[: choose((0, 1, 2))]]
    return Call((Argument("a", "positional", a_tree(choose)), *more, *named), several=True)


# ------------------------------------------------------------------ arrays


def _array_at(call: Call, choose: Choose) -> tuple[Where, Array] | None:
    found = [(where, tree) for where, tree in everywhere(call) if isinstance(tree, Array)]
    return choose(found) if found else None


def _shape(call: Call, choose: Choose) -> Found:
    if (found := _array_at(call, choose)) is None:
        return None
    where, array = found
    shapes = [(*array.shape, choose(SIZES))]
    if array.shape:
        first, *rest = array.shape
        shapes.append((choose([size for size in SIZES if size != first]), *rest))
    shape = choose(shapes)
    return lambda call: updated(call, where, shape=shape), [Claim("shape", where)]


def _dtype(call: Call, choose: Choose) -> Found:
    if (found := _array_at(call, choose)) is None:
        return None
    where, array = found
    dtype = choose([other for other in (WEAK if array.weak else DTYPES) if other != array.dtype])
    return lambda call: updated(call, where, dtype=dtype), [Claim("dtype", where)]


def _weak(call: Call, choose: Choose) -> Found:
    if (found := _array_at(call, choose)) is None or found[1].dtype not in WEAK:
        return None
    where, array = found
    made = choose(("jax", "python" if not array.weak else "numpy"))
    return lambda call: updated(call, where, weak=not array.weak, made=made), [Claim("weak_type", where)]


def _place(call: Call, choose: Choose) -> Found:
    if (found := _array_at(call, choose)) is None:
        return None
    where, array = found
    name = choose([name for name in PLACES if name != array.place])
    old, new = PLACES[array.place], PLACES[name]
    claims = [Claim("layout", where)] if old.layout != new.layout else []
    if old.sharding != new.sharding:
        claims.append(Claim("sharding", where))
    elif old.placement != new.placement:
        claims.append(Claim("placement", where))
    return lambda call: updated(call, where, place=name), claims


def _made(call: Call, choose: Choose) -> Found:
    """Give the same array as one of NumPy's, or the other way round: nothing is to be told."""
    found = [(w, t) for w, t in everywhere(call) if isinstance(t, Array) and not t.weak and t.place == "free"]
    if not found:
        return None
    where, array = choose(found)
    made = "jax" if array.made == "numpy" else "numpy"
    return lambda call: updated(call, where, made=made), []


# ------------------------------------------------------------------ containers


def _box_at(call: Call, choose: Choose, *kinds: str) -> tuple[Where, Box] | None:
    found = [(where, tree) for where, tree in everywhere(call) if isinstance(tree, Box) and tree.kind in kinds]
    return choose(found) if found else None


def _added(call: Call, choose: Choose) -> Found:
    if (found := _box_at(call, choose, "dict", "list", "tuple")) is None:
        return None
    where, box = found
    name, child = "new" if box.kind == "dict" else str(len(box.fields)), a_tree(choose, 1)

    def edit(call: Call) -> Call:
        return updated(call, where, fields=(*tree_at(call, where).fields, (name, child)))

    return edit, [Claim("structure", (*where, label(box.kind, name)), whole=True)]


def _removed(call: Call, choose: Choose) -> Found:
    if (found := _box_at(call, choose, "dict", "list", "tuple")) is None or not found[1].fields:
        return None
    where, box = found
    name = choose([name for name, _ in box.fields]) if box.kind == "dict" else box.fields[-1][0]

    def edit(call: Call) -> Call:
        return updated(call, where, fields=tuple(field for field in tree_at(call, where).fields if field[0] != name))

    return edit, [Claim("structure", (*where, label(box.kind, name)), whole=True)]


def _of_other_kind(call: Call, choose: Choose) -> Found:
    """Make a list of a tuple, a namedtuple of a dataclass, an OrderedDict of a dict; the children stay."""
    if (found := _box_at(call, choose, *KINDS_OF_BOX)) is None:
        return None
    where, box = found
    kind = choose(
        {
            "dict": ("OrderedDict",),
            "list": ("tuple",),
            "tuple": ("list",),
            "Pair": ("Batch", "Twin"),
            "Batch": ("Pair",),
        }[box.kind]
    )
    held = 1 if kind == "Batch" else None
    return lambda call: updated(call, where, kind=kind, held=held), [Claim("structure", where, whole=True)]


def _none(call: Call, choose: Choose) -> Found:
    """Put None in the place of an array or a container, or the other way round."""
    found = [(where, tree) for where, tree in everywhere(call) if not isinstance(tree, Fixed) and where != ("scale",)]
    where, tree = choose(found)
    new = an_array(choose) if tree is None else None
    return lambda call: replaced(call, where, new), [Claim("structure", where, whole=True)]


def _held(call: Call, choose: Choose) -> Found:
    if (found := _box_at(call, choose, "Batch")) is None:
        return None
    where, box = found
    held = choose([other for other in (1, 2, 3, 4) if other != box.held])
    return lambda call: updated(call, where, held=held), [Claim("metadata", where)]


# ------------------------------------------------------------------ arguments


def _static(call: Call, choose: Choose) -> Found:
    if (mode := call.named("mode")) is None or not isinstance(mode.value, Fixed):
        return None
    old = mode.value.value
    value = choose([value for value in VALUES if (type(value), value) != (type(old), old)])
    return lambda call: replaced(call, ("mode",), Fixed(value)), [Claim("static", ("mode",))]


def _form(call: Call, choose: Choose) -> Found:
    if call.several:
        return None
    by_position = sum(argument.form == "positional" for argument in call.arguments)
    place = choose([place for place in (by_position - 1, by_position) if 0 <= place < len(call.arguments)])
    name, form = call.arguments[place].name, "keyword" if place < by_position else "positional"

    def edit(call: Call) -> Call:
        return dataclasses.replace(
            call,
            arguments=tuple(
                dataclasses.replace(argument, form=form) if argument.name == name else argument
                for argument in call.arguments
            ),
        )

    return edit, [Claim("call_form", (name,))]


def _default(call: Call, choose: Choose) -> Found:
    """Leave out what has a default, or give it."""
    if call.several:
        return None
    claims = [Claim("call_form", ("scale",), whole=True)]
    if call.named("scale") is not None:
        return lambda call: _without(call, "scale"), claims
    form = choose(("positional", "keyword")) if call.arguments[-1].form == "positional" else "keyword"
    given = Argument("scale", form, an_array(choose), defaulted=True)
    return lambda call: dataclasses.replace(call, arguments=(*call.arguments, given)), claims


def _without(call: Call, name: str) -> Call:
    return dataclasses.replace(call, arguments=tuple(each for each in call.arguments if each.name != name))


def _variadic(call: Call, choose: Choose) -> Found:
    """Give one more of ``*args`` or ``**kwargs``, or one less."""
    if not call.several:
        return None
    starred = [argument for argument in call.arguments[1:] if argument.form == "positional"]
    named = [argument for argument in call.arguments if argument.form == "keyword"]
    choice = choose(["more", "named"] + ["less"] * bool(starred) + ["less named"] * bool(named))
    if choice.startswith("less"):
        name = (named if choice == "less named" else starred)[-1].name
        return lambda call: _without(call, name), [Claim("structure", (name,), whole=True)]
    name, form = ("kwargs['z']", "keyword") if choice == "named" else (f"args[{len(starred)}]", "positional")
    given, place = (
        Argument(name, form, a_tree(choose, 1)),
        len(call.arguments) if choice == "named" else len(starred) + 1,
    )

    def edit(call: Call) -> Call:
        before = sum(a.form == "positional" for a in call.arguments) if form == "positional" else place
        return dataclasses.replace(call, arguments=(*call.arguments[:before], given, *call.arguments[before:]))

    return edit, [Claim("structure", (name,), whole=True)]


# ------------------------------------------------------------------ beside the arguments


def _config(call: Call, choose: Choose) -> Found:
    del call
    name = choose(list(USUAL))
    return (
        lambda call: dataclasses.replace(call, config=(*call.config, (name, USUAL[name][1]))),
        [Claim("config", (name,))],
    )


def _mesh(call: Call, choose: Choose) -> Found:
    del call
    mesh = choose(("mesh(d=8)", "mesh(p=2, q=4)"))
    return lambda call: dataclasses.replace(call, mesh=mesh), [Claim("mesh")]


def _transform(call: Call, choose: Choose) -> Found:
    """Call it within vmap over ``a``, with or without a name for the axis; where ``a`` lies is not known then."""
    del call
    axes = choose(("", "i=2"))
    claims = [Claim("transform")] + [Claim("axis_env")] * bool(axes)
    return lambda call: dataclasses.replace(call, transform="vmap[2]", axes=axes), claims


def _options(call: Call, choose: Choose) -> Found:
    name, value = choose((("donate_argnums", "(0,)"), ("keep_unused", "True"), ("inline", "True")))
    del call
    return lambda call: dataclasses.replace(call, options=(*call.options, (name, value))), [Claim("options", (name,))]


KINDS: dict[str, Mutation] = {
    "shape": _shape,
    "dtype": _dtype,
    "weak type": _weak,
    "place": _place,
    "made by NumPy": _made,
    "child added": _added,
    "child removed": _removed,
    "another container": _of_other_kind,
    "None": _none,
    "static field": _held,
    "static value": _static,
    "call form": _form,
    "default": _default,
    "variadic": _variadic,
    "config": _config,
    "mesh": _mesh,
    "transform": _transform,
    "options": _options,
}
