"""A key as plain data: all that decides whether JAX can reuse what it has; no array and no object of the user's."""

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from jaxwatch import _limits

Form = Literal["positional", "keyword"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array argument, or a scalar that becomes one. None in a field: not known, so never claimed to differ."""

    shape: tuple[int | str, ...]
    dtype: str
    weak: bool = False
    sharding: str | None = None  # "": on one device
    placement: str | None = None
    layout: str | None = None

    def __str__(self) -> str:
        """Return ``float32[8,128]``, with ``~`` before a weak type."""
        return f"{'~' if self.weak else ''}{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Node:
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


@dataclass(frozen=True, slots=True)
class Static:
    """The value of a static argument: as text, and as a token that is equal where JAX finds the values equal."""

    text: str
    token: str
    by_identity: bool = False  # equal only to itself
    opaque: bool = False  # tokens may be equal where the values are not
    digest: str = ""  # of all of the value, not shortened, and the same in every process
    redacted: bool = False  # the text tells the type alone

    def __str__(self) -> str:
        """Return the value's text."""
        return self.text


Tree = Leaf | Node | Static


@dataclass(frozen=True, slots=True)
class Param:
    """One argument of a call under the name of its parameter."""

    name: str
    form: Form
    tree: Tree
    defaulted: bool = False  # the parameter has a default, so that it may be left out
    variadic: bool = False  # an element of *args or **kwargs


@dataclass(frozen=True)
class Key:
    """All that is known of one call's key."""

    params: tuple[Param, ...]
    config: tuple[tuple[str, str], ...] = ()
    mesh: str = ""
    axis_env: str = ""
    transform: str = ""
    options: tuple[tuple[str, str], ...] = ()
    partial: bool = field(default=False)  # some part could not be read

    @cached_property
    def by_name(self) -> dict[str, Param]:
        """The parameters by name."""
        return {param.name: param for param in self.params}

    @cached_property
    def leaves(self) -> int:
        """How many leaves the arguments have: what keeping this key costs."""
        return sum(_leaves(param.tree) for param in self.params)

    @cached_property
    def opaque(self) -> bool:
        """Whether two keys that look equal may differ for JAX."""
        return self.partial or any(_opaque(param.tree) for param in self.params)

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
        parts = [(p.name, p.form, _stable(p.tree)) for p in self.params]
        text = repr((parts, self.config, self.mesh, self.axis_env, self.transform, self.options))
        return "s" + hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:12]


def _stable(tree: Tree) -> object:
    """Return what of a sub-tree does not depend on the process: not a static's token."""
    if isinstance(tree, Static):
        return tree.digest or tree.text
    if isinstance(tree, Node):
        aux = "" if tree.aux is None else tree.aux.digest
        return tree.kind, aux, [(label, _stable(child)) for label, child in tree.children]
    return str(tree), bare_spec(tree.sharding or ""), tree.placement or "", tree.layout or ""


_NONES = re.compile(r"(?<=\()(None(, )?)+(?=\) on )|(, None)+(?=\) on )")


def bare_spec(sharding: str) -> str:
    """Return a sharding's text without the Nones at the end of its spec: what JAX compiles is the same with them."""
    return _NONES.sub("", sharding)


def _leaves(tree: Tree) -> int:
    return sum(_leaves(child) for _, child in tree.children) + 1 if isinstance(tree, Node) else 1


def _opaque(tree: Tree) -> bool:
    if isinstance(tree, Node):
        aux = tree.aux is not None and tree.aux.opaque
        return aux or any(_opaque(child) for _, child in tree.children)
    return isinstance(tree, Static) and tree.opaque
