"""What a parameter is, by its annotation and by what the function does with it."""

import ast
from enum import Enum, auto

from jaxwatch._lint.classes import Class, class_of
from jaxwatch._lint.names import path_of
from jaxwatch._lint.scopes import FunctionNode, Module, Scope, arguments
from jaxwatch._lint.tables import words

# Attributes of arrays that are known while tracing, and such that are arrays.
STATIC_ATTRIBUTES = words(
    """
    shape ndim dtype size itemsize nbytes weak_type aval sharding device devices is_fully_addressable vma format
    """
)
ARRAY_ATTRIBUTES = words("T mT real imag at")
ARRAY_METHODS = words(
    """
    all any argmax argmin argpartition argsort astype choose clip compress conj conjugate cumprod cumsum
    diagonal dot flatten max mean min nonzero prod ptp ravel repeat reshape round searchsorted sort squeeze std
    sum swapaxes take trace transpose var view block_until_ready
    """
)
_VALUES = frozenset({"item", "tolist"})
_BOX_ATTRIBUTES = words(
    """
    items keys values append extend pop get update setdefault _replace _asdict insert
    """
)
_TAKE_MANY = words(
    """
    array asarray stack concatenate concat vstack hstack dstack column_stack block shape ndim size
    broadcast_arrays broadcast_shapes meshgrid ix_ result_type
    """
)
_ARRAYS = words(
    """
    Array ndarray ArrayLike Float Int Bool Num Key UInt Complex Shaped PRNGKeyArray Tracer Scalar KeyArray
    ArrayDevice Inexact PRNGKey Real Numeric
    """
)
_BOXES = words(
    """
    list dict tuple set List Dict Tuple Sequence Mapping Iterable Callable PyTree NamedTuple FrozenDict
    ArrayTree Params OptState TrainState Any
    """
)


class Shape(Enum):
    """What a parameter is."""

    ARRAY = auto()
    NUMBER = auto()  # a Python number or truth value, until it is traced
    BOX = auto()  # a container, or an object with fields
    TEXT = auto()
    EITHER = auto()


def annotated(annotation: ast.expr | None, scope: Scope, module: Module) -> Shape | Class:
    """Return what an annotation says."""
    if annotation is None:
        return Shape.EITHER
    if isinstance(annotation, ast.BinOp):  # X | None
        sides = [side for side in (annotation.left, annotation.right) if not _is_none(side)]
        return annotated(sides[0], scope, module) if len(sides) == 1 else Shape.EITHER
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return Shape.EITHER
        return annotated(annotation, scope, module) if not isinstance(annotation, ast.Constant) else Shape.EITHER
    if isinstance(annotation, ast.Subscript):
        if _last(annotation.value) == "Optional":
            return annotated(annotation.slice, scope, module)
        annotation = annotation.value
    of = class_of(annotation, scope, module)
    return of if of is not None else _by_name(_last(annotation))


def _by_name(name: str) -> Shape:
    for names, shape in (
        (_ARRAYS, Shape.ARRAY),
        (_BOXES, Shape.BOX),
        (("int", "float", "bool", "complex"), Shape.NUMBER),
    ):
        if name in names:
            return shape
    return Shape.TEXT if name == "str" else Shape.EITHER


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def used(function: FunctionNode, scope: Scope) -> dict[str, Shape]:
    """Return what parameters must be for what the function does with them; those that may be either are not in it."""
    names = {argument.arg for argument in arguments(function)}
    seen: dict[str, set[Shape]] = {}
    for node in ast.walk(function):
        for name, shape in _told(node, scope):
            if name in names:
                seen.setdefault(name, set()).add(shape)
    return {name: next(iter(shapes)) for name, shapes in seen.items() if len(shapes) == 1}


def _told(node: ast.AST, scope: Scope) -> list[tuple[str, Shape]]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        known = STATIC_ATTRIBUTES | ARRAY_ATTRIBUTES | ARRAY_METHODS | _VALUES
        return [(node.value.id, Shape.ARRAY if node.attr in known else Shape.BOX)]
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _by_index(node.value.id, node.slice)
    if isinstance(node, ast.Starred | ast.keyword) and (isinstance(node, ast.Starred) or node.arg is None):
        return _names([node.value], Shape.BOX)
    return _by_call(node, scope) if isinstance(node, ast.Call) else _by_operator(node)


def _by_operator(node: ast.AST) -> list[tuple[str, Shape]]:
    if isinstance(node, ast.BinOp):
        sums = isinstance(node.op, ast.Add) and not any(isinstance(s, ast.Constant) for s in (node.left, node.right))
        return [] if sums or isinstance(node.op, ast.Mod | ast.BitOr) else _names([node.left, node.right], Shape.ARRAY)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return _names([node.operand], Shape.ARRAY)
    return _by_comparison(node) if isinstance(node, ast.Compare) else []


def _names(nodes: list[ast.expr], shape: Shape) -> list[tuple[str, Shape]]:
    return [(node.id, shape) for node in nodes if isinstance(node, ast.Name)]


def _by_index(name: str, index: ast.expr) -> list[tuple[str, Shape]]:
    if isinstance(index, ast.Constant) and isinstance(index.value, str):
        return [(name, Shape.BOX)]
    if isinstance(index, ast.Tuple) or (isinstance(index, ast.Constant) and index.value is None):
        return [(name, Shape.ARRAY)]
    return []


def _by_comparison(node: ast.Compare) -> list[tuple[str, Shape]]:
    if all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
        return _names([node.left, *node.comparators], Shape.ARRAY)
    number = isinstance(node.left, ast.Constant) and not isinstance(node.left.value, str)
    return _names(node.comparators, Shape.BOX) if isinstance(node.ops[0], ast.In | ast.NotIn) and not number else []


def _by_call(node: ast.Call, scope: Scope) -> list[tuple[str, Shape]]:
    path = path_of(node.func, scope)
    if path.startswith(("jax.numpy.", "jax.nn.")) and path.rpartition(".")[2] not in _TAKE_MANY:
        return _names(node.args[:2], Shape.ARRAY)
    if path == "builtins.isinstance":
        first = node.args[0] if node.args else None
        told = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        boxes = any(name in told for name in ("list", "dict", "tuple", "Mapping", "Sequence"))
        return [(first.id, Shape.BOX)] if boxes and isinstance(first, ast.Name) else []
    return [(node.func.id, Shape.BOX)] if isinstance(node.func, ast.Name) else []
