"""Methods of arrays, of trees of them, and of containers."""

import ast

from jaxwatch._lint import stores
from jaxwatch._lint.evidence import ARRAY_METHODS
from jaxwatch._lint.frames import QUIET, Engine, Frame
from jaxwatch._lint.values import (
    ARRAY,
    CERTAIN,
    DOUBT,
    MAYBE,
    NUMPY,
    STATIC,
    TRACED,
    UNKNOWN,
    Kind,
    Value,
    box,
    box_of,
    element,
    join_all,
    traced_in,
)

_SAME = frozenset({"copy", "_replace", "replace", "unfreeze", "freeze"})
_TO_PYTHON = frozenset({"item", "tolist", "__float__", "__int__", "__bool__"})
_UPDATES = frozenset({"set", "add", "multiply", "divide", "power", "apply"})
_OF_SHAPES = frozenset({"reshape", "broadcast_to"})


def call(engine: Engine, node: ast.Call, base: Value, given: list[Value], frame: Frame) -> Value | None:
    """Return what is known of a method's result; None where nothing is known of the method."""
    name = _name(node)
    if base.kind is Kind.DRAWS:
        engine.report("JW201", node, node, frame)
        return NUMPY
    if base.kind in MAYBE:
        return _of_traced(engine, node, base, given, frame)
    if name in stores.MUTATORS and base.kind in {Kind.BOX, Kind.UNKNOWN}:
        return _change(engine, node, base, given, frame)
    if base.kind is Kind.BOX:
        return _of_box(name, base, given, frame)
    return _of_constant(name, base, given)


def _name(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _change(engine: Engine, node: ast.Call, base: Value, given: list[Value], frame: Frame) -> Value | None:
    if stores.captured(base, frame):
        stores.mutate(engine, node, base, given, frame)
        return None
    return stores.grow(node, base, given, frame) if base.kind is Kind.BOX else None


def _of_constant(name: str, base: Value, given: list[Value]) -> Value | None:
    held = traced_in(join_all(given)) if given else False
    if base.kind in {Kind.ARRAY, Kind.NUMPY} and name in ARRAY_METHODS | _UPDATES:
        return TRACED if held else ARRAY if base.kind is Kind.ARRAY else NUMPY
    return STATIC if base.kind is Kind.STATIC and held is False else None


def _of_traced(engine: Engine, node: ast.Call, base: Value, given: list[Value], frame: Frame) -> Value:
    name = _name(node)
    if name in _TO_PYTHON:
        engine.report("JW401", node, node, frame)
        return UNKNOWN
    _check_sizes(engine, node, base, given, frame)
    if name in ARRAY_METHODS or (name in _UPDATES and _is_at(node)):
        return Value(Kind.TRACED)
    if name in _SAME:
        return base
    return DOUBT if base.kind is Kind.TRACED else _of_box(name, box_of(base), given, frame) or DOUBT


def _check_sizes(engine: Engine, node: ast.Call, base: Value, given: list[Value], frame: Frame) -> None:
    name = _name(node)
    parts = [part for shape in given for part in (shape.items or [shape])]
    if name in _OF_SHAPES and base.kind in CERTAIN and any(part.kind in CERTAIN for part in parts):
        engine.report("JW307", node, node, frame)
    if name == "nonzero" and base.kind is Kind.TRACED and not any(word.arg == "size" for word in node.keywords):
        engine.report("JW308", node, node, frame)


def _is_at(node: ast.Call) -> bool:
    base = node.func.value if isinstance(node.func, ast.Attribute) else None
    return isinstance(base, ast.Subscript) and isinstance(base.value, ast.Attribute) and base.value.attr == "at"


def _of_box(name: str, base: Value, given: list[Value], frame: Frame) -> Value | None:
    item = element(base)
    known = {
        "items": box_of(box([STATIC, item])),
        "keys": box_of(STATIC),
        "values": box_of(item),
        "get": item,
        "pop": item,
        "setdefault": item,
        "index": STATIC,
        "count": STATIC,
    }
    if name in known:
        return known[name]
    if name in _SAME:
        return Value(base.kind, frame.level, base.items, base.item, cls=base.cls)
    if any(value.callee is not None for value in given) and frame.codes != QUIET:
        return None
    return DOUBT if traced_in(base) is not False else None
