"""Random keys, and changes to them of a known kind, for the tests of what compares them."""

import dataclasses
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from jaxwatch._keys import Form, Key, Leaf, Node, Param, Static, Tree

DTYPES = ("float32", "int32", "bool", "key<fry>")
CONTAINERS = ("dict", "tuple", "Batch")

shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple)
texts = st.text(max_size=6)


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    shape: Any = draw(shapes)
    known = draw(st.booleans())  # a tracer's place is not
    return Leaf(
        shape,
        draw(st.sampled_from(DTYPES)),
        draw(st.booleans()),
        draw(st.sampled_from(["", "P('d') on mesh(d=2)", "P(None) on mesh(d=2)"])) if known else None,
        draw(st.sampled_from(["uncommitted", "committed to cpu:0", "committed to cpu:1"])) if known else None,
        draw(st.sampled_from(["", "pinned_host"])) if known else None,
    )


def statics() -> st.SearchStrategy[Static]:
    return st.builds(lambda text: Static(text, f"int:{text}", digest=f"digest of {text}"), texts)


@st.composite
def nodes(draw: st.DrawFn, children: st.SearchStrategy[Tree]) -> Node:
    labels = draw(st.lists(st.sampled_from("abcdef"), max_size=3, unique=True))
    aux = draw(st.none() | statics())
    return Node(draw(st.sampled_from(CONTAINERS)), tuple((f"['{name}']", draw(children)) for name in labels), aux)


def trees() -> st.SearchStrategy[Tree]:
    bare: st.SearchStrategy[Tree] = leaves() | st.just(Node("None"))
    return st.recursive(bare, nodes, max_leaves=6)


@st.composite
def keys(draw: st.DrawFn, least: int = 0) -> Key:
    names = draw(st.lists(st.sampled_from(["x", "y", "z", "params", "n"]), min_size=least, max_size=4, unique=True))
    params = tuple(
        Param(
            name,
            draw(st.sampled_from(["positional", "keyword"])),
            draw(trees() | statics()),
            draw(st.booleans()),
            draw(st.booleans()),
        )
        for name in names
    )
    config = (("jax_enable_x64", draw(st.sampled_from(["False", "True"]))), ("jax_debug_nans", "False"))
    options = draw(st.sampled_from([(), (("donate_argnums", "(0,)"),)]))
    return Key(
        params=params,
        config=config,
        mesh=draw(st.sampled_from(["", "mesh(d=2)"])),
        axis_env=draw(st.sampled_from(["", "i=2"])),
        transform=draw(st.sampled_from(["", "grad", "vmap[8]"])),
        options=options,
    )


Mutation = Callable[[Key], tuple[Key, set[tuple[str, str | None]]]]


def _other(value: str, *choices: str) -> str:
    return next(choice for choice in choices if choice != value)


def _beside(field: str, reason: str, *choices: str) -> Mutation:
    def mutate(key: Key) -> tuple[Key, set[tuple[str, str | None]]]:
        changed: Any = {field: _other(getattr(key, field), *choices)}
        return dataclasses.replace(key, **changed), {(reason, None)}

    return mutate


def _config(key: Key) -> tuple[Key, set[tuple[str, str | None]]]:
    (name, value), *rest = key.config
    return dataclasses.replace(key, config=((name, _other(value, "True", "False")), *rest)), {("config", name)}


def _options(key: Key) -> tuple[Key, set[tuple[str, str | None]]]:
    new = (("donate_argnums", _other(dict(key.options).get("donate_argnums", ""), "(0,)", "(0, 1)")),)
    return dataclasses.replace(key, options=new), {("options", "donate_argnums")}


BESIDE: tuple[Mutation, ...] = (
    _beside("mesh", "mesh", "mesh(d=2)", "mesh(d=4)"),
    _beside("axis_env", "axis_env", "i=2", "i=4"),
    _beside("transform", "transform", "grad", "vmap[8]"),
    _config,
    _options,
)


def changed_leaf(leaf: Leaf, what: str) -> Leaf | None:
    """Return the leaf with one thing changed; None where that thing is not known of it."""
    if what == "shape":
        return leaf._replace(shape=(*leaf.shape, 7))
    if what == "dtype":
        return leaf._replace(dtype=_other(leaf.dtype, *DTYPES))
    if what == "weak_type":
        return leaf._replace(weak=not leaf.weak)
    found = getattr(leaf, what)
    if found is None:
        return None
    changed: Any = {what: _other(found, "first", "second")}
    return leaf._replace(**changed)


def _other_static(static: Static) -> Static:
    return Static(static.text + "'", static.token + "'", digest=static.digest + "'")


def changed_tree(path: str, tree: Tree, draw: st.DrawFn) -> tuple[Tree, set[tuple[str, str | None]]]:
    """Return the sub-tree with one thing changed somewhere in it, and what is to be told of it."""
    if isinstance(tree, Static):
        return _other_static(tree), {("static", path)}
    if isinstance(tree, Leaf):
        what = draw(st.sampled_from(["shape", "dtype", "weak_type", "sharding", "placement", "layout", "structure"]))
        if what != "structure" and (changed := changed_leaf(tree, what)) is not None:
            return changed, {(what, path)}
        return Node("None"), {("structure", path)}
    if tree.kind == "None":
        return Leaf((), "float32"), {("structure", path)}
    return _changed_node(path, tree, draw)


def _changed_node(path: str, node: Node, draw: st.DrawFn) -> tuple[Tree, set[tuple[str, str | None]]]:
    choices = ["kind", "more"] + ["below", "less"] * bool(node.children) + ["aux"] * (node.aux is not None)
    choice = draw(st.sampled_from(choices))
    if choice == "kind":
        return node._replace(kind="Other"), {("structure", path)}
    if choice == "more":
        return node._replace(children=(*node.children, ("['new']", Leaf((), "int32")))), {
            ("structure", f"{path}['new']")
        }
    if choice == "aux":
        assert node.aux is not None
        return node._replace(aux=_other_static(node.aux)), {("metadata", path)}
    place = draw(st.integers(0, len(node.children) - 1))
    label, child = node.children[place]
    if choice == "less":
        rest = (*node.children[:place], *node.children[place + 1 :])
        return node._replace(children=rest), {("structure", path + label)}
    new, told = changed_tree(path + label, child, draw)
    return node._replace(children=(*node.children[:place], (label, new), *node.children[place + 1 :])), told


def changed_param(param: Param, draw: st.DrawFn) -> tuple[Param, set[tuple[str, str | None]]]:
    if draw(st.booleans()):
        form: Form = "keyword" if param.form == "positional" else "positional"
        return dataclasses.replace(param, form=form), {("call_form", param.name)}
    tree, told = changed_tree(param.name, param.tree, draw)
    return dataclasses.replace(param, tree=tree), told


@st.composite
def keys_and_changes(draw: st.DrawFn) -> tuple[Key, Key, set[tuple[str, str | None]]]:
    """Return a key, the same with some things changed, and (reason, path) of each."""
    before = after = draw(keys(least=1))
    told: set[tuple[str, str | None]] = set()
    for mutate in draw(st.lists(st.sampled_from(BESIDE), max_size=3, unique=True)):
        after, more = mutate(after)
        told |= more
    params = list(after.params)
    for place in draw(st.lists(st.integers(0, len(params) - 1), max_size=3, unique=True)):
        params[place], more = changed_param(params[place], draw)
        told |= more
    return before, dataclasses.replace(after, params=tuple(params)), told
