"""What is known of a value in a traced function: whether it is traced, what is in it, and whose it is. Pure data."""

import ast
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxwatch._lint.classes import Class

_WIDEST, _DEEPEST = 32, 4  # containers with more in them are known by the join of their elements


class Kind(Enum):
    """How much of a value is known."""

    UNKNOWN = auto()
    STATIC = auto()  # a Python value, known while tracing
    TRACED = auto()  # an array that is traced
    TREE = auto()  # an argument of a jitted function: an array, or a tree of them
    DOUBT = auto()  # may be traced
    BOX = auto()  # Python's list, tuple, dict or set, or an object with fields
    NUMPY = auto()
    DRAWS = auto()  # a generator of random numbers, of numpy or Python
    ARRAY = auto()  # jax's, and not traced
    FUNCTION = auto()


@dataclass(frozen=True, slots=True)
class Callee:
    """A function, or one that is wrapped.

    Attributes:
        node: The function itself.
        closure: The frame that defined it, if that is being run.
        how: "" for the function itself; "partial", "method", or the path of a transform.
        inner: What is wrapped.
        given: What the wrapper binds, in front of the call's own arguments.
        named: What it binds by name.
        call: The call or decorator that wrapped it, with its options.
    """

    node: ast.AST | None = None
    closure: Any = None
    how: str = ""
    inner: "Callee | None" = None
    given: "tuple[Value, ...]" = ()
    named: "tuple[tuple[str, Value], ...]" = ()
    call: ast.Call | None = None
    scope: Any = None

    def base(self) -> "Callee":
        """Return the function at the bottom."""
        found = self
        while found.inner is not None:
            found = found.inner
        return found


@dataclass(frozen=True, slots=True)
class Value:
    """One value.

    Attributes:
        kind: How much is known.
        owner: The level of tracing at which it was made, 0 for outside of it all; None: not known.
        items: A container's elements in order, if known.
        item: Else their join.
        callee: Of a function.
        cls: The class, if it is one of this module.
        mask: An array of truth values.
    """

    kind: Kind
    owner: int | None = None
    items: "tuple[Value, ...] | None" = None
    item: "Value | None" = None
    callee: Callee | None = None
    cls: "Class | None" = None
    mask: bool = False


UNKNOWN = Value(Kind.UNKNOWN)
STATIC = Value(Kind.STATIC)
TRACED = Value(Kind.TRACED)
TREE = Value(Kind.TREE)
DOUBT = Value(Kind.DOUBT)
NUMPY = Value(Kind.NUMPY)
ARRAY = Value(Kind.ARRAY)
MASK = Value(Kind.TRACED, mask=True)

CERTAIN = frozenset({Kind.TRACED, Kind.TREE})
MAYBE = CERTAIN | {Kind.DOUBT}


def box(items: "list[Value]", owner: int | None = None) -> Value:
    """Return a container with these elements in order."""
    if len(items) > _WIDEST or depth(items) >= _DEEPEST:
        return Value(Kind.BOX, owner, item=_flat(join_all(items)))
    return Value(Kind.BOX, owner, tuple(items))


def box_of(item: Value, owner: int | None = None) -> Value:
    """Return a container of which each element is like ``item``."""
    return Value(Kind.BOX, owner, item=_flat(item) if depth([item]) >= _DEEPEST else item)


def depth(values: "list[Value] | tuple[Value, ...]") -> int:
    """Return how deep containers are nested."""
    inner = [value.items or ((value.item,) if value.item else ()) for value in values if value.kind is Kind.BOX]
    return 1 + max(map(depth, inner)) if inner else 0


def _flat(value: Value) -> Value:
    if value.kind is not Kind.BOX:
        return value
    holds = traced_in(value)
    return TREE if holds else DOUBT if holds is None else UNKNOWN


def element(value: Value) -> Value:
    """Return what comes of iterating over, or taking one from, a value."""
    if value.kind is Kind.BOX:
        if value.items is not None:
            return join_all(list(value.items)) if value.items else UNKNOWN
        return value.item or UNKNOWN
    if value.kind is Kind.FUNCTION:
        return UNKNOWN
    return replace(value, cls=None, mask=False)


def join(one: Value, other: Value) -> Value:
    """Return what is known where it may be either."""
    if one == other:
        return one
    kinds = {one.kind, other.kind}
    owner = one.owner if one.owner == other.owner else None
    if kinds == {Kind.BOX}:
        return _join_boxes(one, other, owner)
    if kinds == {Kind.FUNCTION}:
        return one
    if kinds <= CERTAIN:
        return TREE if Kind.TREE in kinds else TRACED
    if traced_in(one) is not False or traced_in(other) is not False:  # a container of tracers, or something else
        return DOUBT
    return Value(one.kind if len(kinds) == 1 else Kind.UNKNOWN, owner)


def _join_boxes(one: Value, other: Value, owner: int | None) -> Value:
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        pairs = zip(one.items, other.items, strict=True)
        return Value(Kind.BOX, owner, tuple(join(a, b) for a, b in pairs))
    return box_of(join(element(one), element(other)), owner)


def join_all(values: list[Value]) -> Value:
    """Return what is known where it may be any of them; UNKNOWN of none."""
    if not values:
        return UNKNOWN
    found = values[0]
    for value in values[1:]:
        found = join(found, value)
    return found


def traced_in(value: Value) -> bool | None:
    """Return whether something in a value is traced: True, False, or None where it may be."""
    if value.kind is Kind.BOX:
        within = [traced_in(item) for item in value.items or ([value.item] if value.item else [])]
        return True if True in within else None if None in within else False
    return True if value.kind in CERTAIN else None if value.kind is Kind.DOUBT else False


def as_traced(value: Value, owner: int | None = None) -> Value:
    """Return a value as it comes out of a function's boundary, where all leaves are made tracers."""
    if value.kind is Kind.BOX:
        if value.items is not None:
            return replace(value, owner=owner, items=tuple(as_traced(item, owner) for item in value.items))
        return replace(value, owner=owner, item=as_traced(value.item or UNKNOWN, owner))
    if value.kind is Kind.FUNCTION:
        return value
    if value.kind in {Kind.TRACED, Kind.NUMPY, Kind.ARRAY}:
        return TRACED
    return Value(Kind.TREE, owner, cls=value.cls)
