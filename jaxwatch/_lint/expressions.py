"""Expressions of a traced function: what is known of their values, and what is at fault in them."""

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from jaxwatch._lint import attributes, calls
from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.subscripts import is_list, subscript
from jaxwatch._lint.transforms import defined
from jaxwatch._lint.values import (
    ARRAY,
    DOUBT,
    MASK,
    NUMPY,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Kind,
    Value,
    box,
    box_of,
    element,
    join,
    join_all,
    traced_in,
)
from jaxwatch._lint.values import CERTAIN as TRACED_KINDS


def evaluate(engine: Engine, node: ast.AST, frame: Frame) -> Value:
    """Return what is known of an expression's value."""
    handler = _HANDLERS.get(type(node))
    if handler is not None:
        return handler(engine, node, frame)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            engine.eval(child, frame)
    return UNKNOWN


def outside(value: Value) -> Value:
    """Return a value as the functions see it that did not make it."""
    return replace(value, owner=0)


def _name(engine: Engine, node: ast.Name, frame: Frame) -> Value:
    where: Frame | None = frame
    while where is not None:
        if node.id in where.env:
            return where.env[node.id]
        where = where.closure
    return engine.lexical(node.id, frame.scope)


def _constant(_engine: Engine, _node: ast.Constant, _frame: Frame) -> Value:
    return STATIC


def _list(engine: Engine, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Value:
    if any(isinstance(part, ast.Starred) for part in node.elts):
        parts = [
            element(engine.eval(part.value, frame)) if isinstance(part, ast.Starred) else engine.eval(part, frame)
            for part in node.elts
        ]
        return box_of(join_all(parts), frame.level)
    return box([engine.eval(part, frame) for part in node.elts], frame.level)


def _dict(engine: Engine, node: ast.Dict, frame: Frame) -> Value:
    for key in node.keys:
        engine.eval(key, frame)
    values = [engine.eval(value, frame) for value in node.values]
    spread = [element(v) if k is None else v for k, v in zip(node.keys, values, strict=True)]
    return box_of(join_all(spread), frame.level)


def _attribute(engine: Engine, node: ast.Attribute, frame: Frame) -> Value:
    path = engine.path(node, frame)
    if path:
        return attributes.of_path(engine, node, path, frame)
    return attributes.of(engine, node, engine.eval(node.value, frame), frame)


def arithmetic(left: Value, right: Value, op: ast.AST, frame: Frame) -> Value:
    """Return what comes of an operator: of anything with an array, an array."""
    kinds = {left.kind, right.kind}
    if Kind.BOX in kinds:
        return _of_boxes(left, right, op)
    if kinds & TRACED_KINDS:
        both = kinds == {Kind.TREE} and isinstance(op, ast.Add)
        return TREE if both else Value(Kind.TRACED, mask=left.mask and right.mask)
    for kind, value in ((Kind.ARRAY, TRACED if frame.staged else ARRAY), (Kind.DOUBT, DOUBT), (Kind.NUMPY, NUMPY)):
        if kind in kinds:
            return value
    return UNKNOWN if kinds & {Kind.UNKNOWN, Kind.FUNCTION} else STATIC


def _of_boxes(left: Value, right: Value, op: ast.AST) -> Value:
    if left.kind is right.kind and isinstance(op, ast.Add):
        if left.items is not None and right.items is not None:
            return box([*left.items, *right.items], left.owner)
        return box_of(join(element(left), element(right)), left.owner)
    if left.kind in TRACED_KINDS or right.kind in TRACED_KINDS:
        return TREE
    one = left if left.kind is Kind.BOX else right
    return box_of(element(one), one.owner)


def _binary(engine: Engine, node: ast.BinOp, frame: Frame) -> Value:
    chain: list[ast.BinOp] = []  # a long sum is deep, and Python's own stack is not
    first: ast.expr = node
    while isinstance(first, ast.BinOp):
        chain.append(first)
        first = first.left
    value = engine.eval(first, frame)
    for each in reversed(chain):
        right = engine.eval(each.right, frame)
        texts = (
            isinstance(each.op, ast.Mod) and isinstance(each.left, ast.Constant) and isinstance(each.left.value, str)
        )
        value = STATIC if texts else arithmetic(value, right, each.op, frame)
    return value


def _unary(engine: Engine, node: ast.UnaryOp, frame: Frame) -> Value:
    if isinstance(node.op, ast.Not):
        value = engine.truth(node.operand, frame, "JW304")
        return STATIC if value.kind is not Kind.DOUBT else UNKNOWN
    value = engine.eval(node.operand, frame)
    return TRACED if value.kind is Kind.TREE else value


def _either(engine: Engine, node: ast.BoolOp, frame: Frame) -> Value:
    branch = frame.within()
    values = []
    for operand in node.values[:-1]:
        values.append(engine.truth(operand, branch, "JW304"))
        engine.refined(operand, branch, holds=isinstance(node.op, ast.And))
    last = engine.eval(node.values[-1], branch)
    return last if last.kind in TRACED_KINDS else join_all([*values, last])


def _compare(engine: Engine, node: ast.Compare, frame: Frame) -> Value:
    values = [engine.eval(node.left, frame), *(engine.eval(right, frame) for right in node.comparators)]
    none = [part for part in (node.left, *node.comparators) if isinstance(part, ast.Constant) and part.value is None]
    if none or all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return STATIC
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        return _contains(engine, node, values, frame)
    results = [_compared(one, other, op) for one, other, op in zip(values, values[1:], node.ops, strict=False)]
    for value in results[:-1]:
        if value.kind in TRACED_KINDS:
            engine.report("JW304", node, node, frame)
            break
    return results[-1]


def _contains(engine: Engine, node: ast.Compare, values: list[Value], frame: Frame) -> Value:
    if engine.path(node.comparators[0], frame) == "os.environ":
        engine.report("JW203", node, node, frame)
        return STATIC
    texts = [
        part for part in ast.walk(node.comparators[0]) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    number = isinstance(node.left, ast.Constant) and isinstance(node.left.value, int | float)
    if (
        values[1].kind is Kind.TRACED
        or (number and values[1].kind is Kind.TREE)
        or (values[0].kind in TRACED_KINDS and is_list(values[1]) and not texts)
    ):
        engine.report("JW304", node, node, frame)
        return STATIC
    return STATIC if Kind.DOUBT not in {values[0].kind, values[1].kind} else UNKNOWN


def _compared(one: Value, other: Value, op: ast.AST) -> Value:
    kinds = {one.kind, other.kind}
    if kinds & TRACED_KINDS:
        return MASK
    if kinds == {Kind.BOX} and isinstance(op, ast.Eq | ast.NotEq):
        holds = traced_in(one) and traced_in(other)
        return DOUBT if holds else STATIC
    if Kind.ARRAY in kinds:
        return Value(Kind.ARRAY, mask=True)
    return DOUBT if Kind.DOUBT in kinds else NUMPY if Kind.NUMPY in kinds else STATIC


def _ternary(engine: Engine, node: ast.IfExp, frame: Frame) -> Value:
    engine.truth(node.test, frame, "JW301")
    yes, no = frame.within(), frame.within()
    engine.refined(node.test, yes, holds=True)
    engine.refined(node.test, no, holds=False)
    return join(engine.eval(node.body, yes), engine.eval(node.orelse, no))


def _comprehension(engine: Engine, node: Any, frame: Frame) -> Value:
    inner = frame.within()
    for generator in node.generators:
        engine.store(generator.target, element(engine.eval(generator.iter, inner)), inner)
        for test in generator.ifs:
            engine.truth(test, inner, "JW301")
            engine.refined(test, inner, holds=True)
    if isinstance(node, ast.DictComp):
        engine.eval(node.key, inner)
        return box_of(engine.eval(node.value, inner), frame.level)
    return box_of(engine.eval(node.elt, inner), frame.level)


def _lambda(engine: Engine, node: ast.Lambda, frame: Frame) -> Value:
    return defined(engine, node, frame)


def _named(engine: Engine, node: ast.NamedExpr, frame: Frame) -> Value:
    value = engine.eval(node.value, frame)
    engine.store(node.target, value, frame)
    return value


def _text(engine: Engine, node: ast.JoinedStr, frame: Frame) -> Value:
    for part in ast.walk(node):
        if isinstance(part, ast.FormattedValue):
            engine.eval(part.value, frame)
    return STATIC


def _passed_on(engine: Engine, node: ast.Starred | ast.Await, frame: Frame) -> Value:
    return engine.eval(node.value, frame)


def _yield(engine: Engine, node: ast.Yield | ast.YieldFrom, frame: Frame) -> Value:
    if node.value is not None:
        engine.eval(node.value, frame)
    return UNKNOWN


_HANDLERS: dict[type[ast.AST], Callable[[Engine, Any, Frame], Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.Tuple: _list,
    ast.List: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.Attribute: _attribute,
    ast.Subscript: subscript,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _either,
    ast.Compare: _compare,
    ast.IfExp: _ternary,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.JoinedStr: _text,
    ast.Starred: _passed_on,
    ast.Await: _passed_on,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.Call: calls.call,
}
