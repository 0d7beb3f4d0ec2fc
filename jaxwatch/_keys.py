"""A key as plain data: all that decides whether JAX can reuse what it has; no array and no object of the user's."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from jaxwatch import _limits

Form = Literal["positional", "keyword"]
Shape = tuple[int | str, ...]


class Leaf(NamedTuple):
    """An array argument, or a scalar that becomes one. None in a field: not known, so never claimed to differ."""

    shape: Shape
    dtype: str
    weak: bool = False
    sharding: str | None = None  # "": on one device
    placement: str | None = None
    layout: str | None = None

    def __str__(self) -> str:
        """Return ``float32[8,128]``, with ``~`` before a weak type."""
        return f"{'~' if self.weak else ''}{self.dtype}[{','.join(map(str, self.shape))}]"


class Node(NamedTuple):
    """A container of the pytree, or None (without children)."""

    kind: str
    children: tuple[tuple[str, "Tree"], ...] = ()  # (what to append to the path, sub-tree)
    aux: "Static | None" = None  # the very type, and auxiliary data, of a node that is not Python's own

    def __str__(self) -> str:
        """Return the sub-tree in one line; what lies deep is left out, so that a large tree has a short text."""
        return self.shown(4)

    def shown(self, depth: int) -> str:
        """Return the sub-tree in one line, down to a depth."""
        if self.kind == "None" or not depth:
            return self.kind if self.kind == "None" else f"{self.kind}(…)"
        shown = [
            f"{label}: {child.shown(depth - 1) if isinstance(child, Node) else child}"
            for label, child in self.children[:4]
        ]
        more = ", …" if len(self.children) > 4 else ""  # noqa: PLR2004 -- enough to recognise it by
        aux = f"{self.aux}, " if self.aux and self.aux.text else ""
        return f"{self.kind}({aux}{', '.join(shown)}{more})"


class Static(NamedTuple):
    """The value of a static argument: as text, and as a token that is equal where JAX finds the values equal."""

    text: str
    token: str
    by_identity: bool = False  # equal only to itself
    opaque: bool = False  # tokens may be equal where the values are not
    digest: str = ""  # of all of the value, not shortened, and the same in every process
    redacted: bool = False  # the text tells the type alone
    whole: str = ""  # the text up to STATIC_CHARACTERS, where ``text`` had to be shortened

    def __str__(self) -> str:
        """Return the value's text."""
        return self.text


Tree = Leaf | Node | Static


def shared(tree: Tree, like: Tree) -> Tree:
    """Return ``tree`` made of the very parts of ``like`` where they are equal: both weigh little more than one."""
    if tree == like:
        return like
    if not (isinstance(tree, Node) and isinstance(like, Node)) or len(tree.children) != len(like.children):
        return tree
    pairs = zip(tree.children, like.children, strict=True)
    children = tuple([b if a == b else (b[0] if a[0] == b[0] else a[0], shared(a[1], b[1])) for a, b in pairs])
    return tree._replace(children=children)


@dataclass(frozen=True)
class Param:
    """One argument of a call under the name of its parameter; keys share those that are alike, and what they cache."""

    name: str
    form: Form
    tree: Tree
    defaulted: bool = False  # the parameter has a default, so that it may be left out
    variadic: bool = False  # an element of *args or **kwargs

    @cached_property
    def leaves(self) -> int:
        """How many leaves and containers the argument has."""
        return _leaves(self.tree)

    @cached_property
    def opaque(self) -> bool:
        """Whether two arguments that look equal may differ for JAX."""
        return _opaque(self.tree)

    @cached_property
    def stable(self) -> str:
        """What of the argument is the same in every process, as text; of a container, as a digest."""
        text = repr((self.name, self.form, _stable(self.tree)))
        return _digest(text) if isinstance(self.tree, Node) else text

    @cached_property
    def outline(self) -> int:
        """A number that differs only where two arguments of one name do, both static or neither."""
        return hash((self.name, self.form, _outline(self.tree)))


def alike(param: Param, like: Param | None) -> Param:
    """Return ``like`` where it is equal to ``param``, else that, made of the parts that are equal."""
    if like is None or param == like:
        return like or param
    tree = shared(param.tree, like.tree)
    return param if tree is param.tree else Param(param.name, param.form, tree, param.defaulted, param.variadic)


@dataclass(frozen=True)
class Key:
    """All that is known of one call's key."""

    params: tuple[Param, ...]
    config: tuple[tuple[str, str], ...] = ()
    mesh: str = ""
    axis_env: str = ""
    transform: str = ""
    options: tuple[tuple[str, str], ...] = ()
    partial: bool = False  # some part could not be read

    @cached_property
    def by_name(self) -> dict[str, Param]:
        """The parameters by name."""
        return {param.name: param for param in self.params}

    @cached_property
    def leaves(self) -> int:
        """How many leaves and containers the arguments have: what keeping this key costs."""
        return sum(param.leaves for param in self.params)

    @cached_property
    def opaque(self) -> bool:
        """Whether two keys that look equal may differ for JAX."""
        return self.partial or any(param.opaque for param in self.params)

    @cached_property
    def statics(self) -> frozenset[str]:
        """The names of the static parameters."""
        return frozenset(param.name for param in self.params if isinstance(param.tree, Static))

    @cached_property
    def outline(self) -> int:
        """A number that differs only where two keys with the same ``statics`` do, in what is told of them too."""
        return hash(frozenset([param.outline for param in self.params]))

    def shape_at(self, path: str) -> Shape | None:
        """Return the shape of the array leaf of that path, or None."""
        for param in self.params:
            if path.startswith(param.name) and (found := _below(param.tree, path[len(param.name) :])) is not None:
                return found.shape
        return None

    @cached_property
    def abstract(self) -> str:
        """The key, readable: the arguments, then what else is not as usual."""
        arguments = ", ".join(
            f"{param.name}={param.tree}" if param.form == "keyword" or param.variadic else f"{param.name}: {param.tree}"
            for param in self.params
        )
        extras = [text for text in (self.transform, self.mesh, self.axis_env) if text]
        extras += [f"{name}={text}" for name, text in self.options]
        text = f"({arguments})" + (f" under {'; '.join(extras)}" if extras else "")
        return text if len(text) <= _limits.ABSTRACT_CHARACTERS else text[: _limits.ABSTRACT_CHARACTERS - 1] + "…"

    @cached_property
    def signature(self) -> str:
        """``s`` and a hex digest of the key; the same in every process that makes the same call."""
        beside = _digest_beside(self.config, self.mesh, self.axis_env, self.transform, self.options)
        return "s" + _digest(" ".join([param.stable for param in self.params] + [beside]))


@lru_cache(maxsize=16)
def _digest_beside(*values: object) -> str:
    """Return a digest of what stands beside the arguments: some thirty values that hardly ever change."""
    return _digest(repr(values))


def _digest(text: str) -> str:
    # with cold caches, as they are after a compile, 14 µs; OpenSSL's SHA-256 takes 33
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def _stable(tree: Tree) -> object:
    """Return what of a sub-tree does not depend on the process: not a static's token."""
    if isinstance(tree, Static):
        return tree.digest or tree.text
    if isinstance(tree, Node):
        aux = "" if tree.aux is None else tree.aux.digest
        return tree.kind, aux, [(label, _stable(child)) for label, child in tree.children]
    return str(tree), bare_spec(tree.sharding or ""), tree.placement or "", tree.layout or ""


def _outline(tree: Tree) -> object:
    """Return what of a sub-tree is compared whatever else is known of it."""
    if isinstance(tree, Static):
        return tree.token
    if isinstance(tree, Node):
        return tree.kind, tuple([(label, _outline(child)) for label, child in tree.children])
    return tree.shape, tree.dtype, tree.weak


_NONES = re.compile(r"(?<=\()(None(, )?)+(?=\) on )|(, None)+(?=\) on )")


def bare_spec(sharding: str) -> str:
    """Return a sharding's text without the Nones at the end of its spec: what JAX compiles is the same with them."""
    return _NONES.sub("", sharding) if "None" in sharding else sharding


def in_full(key: Key) -> dict[str, Any]:
    """Return a key as JSON has it, for a report of what could not be explained; at most ``FULL_LEAVES`` leaves."""
    rows: list[tuple[str, str]] = []
    for param in key.params:
        rows.append((f"{param.name} is given", f"{param.form}{', has a default' if param.defaulted else ''}"))
        rows += _rows(param.name, param.tree)
    more = len(rows) - _limits.FULL_LEAVES
    return {
        "arguments": [list(row) for row in rows[: _limits.FULL_LEAVES]]
        + ([["and more", str(more)]] if more > 0 else []),
        "config": dict(key.config),
        "mesh": key.mesh,
        "axis_env": key.axis_env,
        "transform": key.transform,
        "options": dict(key.options),
        "partial": key.partial,
    }


def _rows(path: str, tree: Tree) -> Iterator[tuple[str, str]]:
    if isinstance(tree, Leaf):
        beside = [text for text in (tree.sharding, tree.placement, tree.layout) if text]
        yield path, ", ".join([str(tree), *beside])
    elif isinstance(tree, Static):
        yield path, _static_row(tree)
    else:
        yield path, tree.kind + (f", {_static_row(tree.aux)}" if tree.aux is not None else "")
        for label, child in tree.children:
            yield from _rows(path + label, child)


def _static_row(static: Static) -> str:
    how = "compared by identity" if static.by_identity else "as its own __eq__ compares" if static.opaque else ""
    token = "" if static.redacted else static.token  # of a small value, the value could be guessed from it
    return ", ".join(filter(None, [f"static {static.text}".strip(), how, token]))


def _below(tree: Tree, rest: str) -> Leaf | None:
    if not rest:
        return tree if isinstance(tree, Leaf) else None
    if isinstance(tree, Node):
        for label, child in tree.children:
            if rest.startswith(label) and (found := _below(child, rest[len(label) :])) is not None:
                return found
    return None


def _leaves(tree: Tree) -> int:
    return sum(_leaves(child) for _, child in tree.children) + 1 if isinstance(tree, Node) else 1


def _opaque(tree: Tree) -> bool:
    if isinstance(tree, Node):
        aux = tree.aux is not None and tree.aux.opaque
        return aux or any(_opaque(child) for _, child in tree.children)
    return isinstance(tree, Static) and tree.opaque
