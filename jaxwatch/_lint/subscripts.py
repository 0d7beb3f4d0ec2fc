"""Subscripts: of arrays, of containers, and of the environment."""

import ast
from dataclasses import replace

from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.values import CERTAIN as TRACED_KINDS
from jaxwatch._lint.values import STATIC, TRACED, TREE, UNKNOWN, Kind, Value, box_of, element


def subscript(engine: Engine, node: ast.Subscript, frame: Frame) -> Value:
    """Return what is known of an element or a slice, and report what cannot be taken while tracing."""
    if engine.path(node.value, frame) == "os.environ":
        engine.report("JW203", node, node, frame)
        return STATIC
    base, index = engine.eval(node.value, frame), engine.eval(node.slice, frame)
    indexed = base.kind in {Kind.TRACED, Kind.TREE, Kind.ARRAY, Kind.NUMPY} or is_list(base)
    if indexed and _has_traced_bound(engine, node.slice, frame):
        engine.report("JW307", node, node, frame)
        return TRACED
    if base.kind in {Kind.TRACED, Kind.TREE, Kind.ARRAY} and index.mask and frame.staged:
        engine.report("JW308", node, node, frame)
    if index.kind in TRACED_KINDS and (base.kind is Kind.NUMPY or is_list(base)):
        engine.report("JW306", node.slice, node.slice, frame)
        return TRACED
    return _taken(node.slice, base, index)


def _has_traced_bound(engine: Engine, index: ast.expr, frame: Frame) -> bool:
    """Whether a slice's start, stop or step is traced."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    bounds = [bound for part in parts if isinstance(part, ast.Slice) for bound in (part.lower, part.upper, part.step)]
    return any(engine.eval(bound, frame).kind in TRACED_KINDS for bound in bounds if bound is not None)


def is_list(base: Value) -> bool:
    """Whether a value is a list or tuple of which the elements are known."""
    return base.kind is Kind.BOX and base.items is not None and base.cls is None


def _taken(index: ast.expr, base: Value, at: Value) -> Value:
    if base.kind is Kind.BOX:
        return _from_box(index, base)
    if base.kind is Kind.TREE:
        whole = isinstance(index, ast.Tuple | ast.Slice) or at.kind is Kind.TRACED
        return TRACED if whole else TREE
    if base.kind in {Kind.ARRAY, Kind.NUMPY} and at.kind in TRACED_KINDS:
        return TRACED
    return element(base) if base.kind is not Kind.FUNCTION else UNKNOWN


def _from_box(index: ast.expr, base: Value) -> Value:
    number = _whole(index)
    if base.items is not None and number is not None:
        return base.items[number] if -len(base.items) <= number < len(base.items) else UNKNOWN
    if isinstance(index, ast.Slice):
        return box_of(element(base), base.owner)
    its = element(base)
    return replace(its, owner=base.owner) if its.kind is Kind.UNKNOWN else its


def _whole(index: ast.expr) -> int | None:
    """Return the number that an index is, as it is written."""
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        number = _whole(index.operand)
        return None if number is None else -number
    return index.value if isinstance(index, ast.Constant) and isinstance(index.value, int) else None
