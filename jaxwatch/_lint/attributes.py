"""Attributes: of arrays, of trees of them, of objects, and of modules."""

import ast

from jaxwatch._lint.classes import Class, class_of
from jaxwatch._lint.evidence import ARRAY_ATTRIBUTES, STATIC_ATTRIBUTES, Shape, annotated
from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.transforms import defined
from jaxwatch._lint.values import (
    ARRAY,
    DOUBT,
    NUMPY,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Callee,
    Kind,
    Value,
    box_of,
    element,
)

# How a field says that it is none of the tree's leaves.
_STATIC_FIELDS = ("static=True", "'static': True", "pytree_node=False")


def of_path(engine: Engine, node: ast.Attribute, path: str, frame: Frame) -> Value:
    """Return what is known of a module's attribute."""
    if path == "sys.argv":
        engine.report("JW203", node, node, frame)
    if path.startswith("numpy."):
        return STATIC if path.rpartition(".")[2] in {"pi", "e", "inf", "nan", "newaxis"} else UNKNOWN
    return Value(Kind.UNKNOWN, 0)


def of(engine: Engine, node: ast.Attribute, base: Value, frame: Frame) -> Value:
    """Return what is known of an attribute of a value."""
    name = node.attr
    of_class = class_of(node.value, frame.scope, engine.module)
    if of_class is not None:
        method = of_class.method(name)
        return defined(engine, method[0], Frame(method[1])) if method is not None else Value(Kind.UNKNOWN, 0)
    if base.cls is not None:
        return _of_instance(engine, base, base.cls, name, frame)
    if base.kind in {Kind.TRACED, Kind.TREE, Kind.ARRAY, Kind.NUMPY, Kind.DOUBT}:
        return _of_array(base, name)
    if base.kind is Kind.BOX:
        return _of_box(base)
    if base.kind is Kind.FUNCTION and base.callee is not None:
        return _of_function(base.callee, name)
    return Value(Kind.UNKNOWN, base.owner)


def _of_array(base: Value, name: str) -> Value:
    if name in STATIC_ATTRIBUTES:
        return STATIC
    if name in ARRAY_ATTRIBUTES:
        return {Kind.NUMPY: NUMPY, Kind.ARRAY: ARRAY, Kind.DOUBT: DOUBT}.get(base.kind, TRACED)
    return Value(Kind.DOUBT, base.owner) if base.kind in {Kind.TREE, Kind.DOUBT} else UNKNOWN


def _of_box(base: Value) -> Value:
    item = element(base)
    if item.kind not in {Kind.TREE, Kind.TRACED, Kind.DOUBT} or base.items is not None:
        return UNKNOWN
    return Value(Kind.DOUBT, base.owner)  # a field of an object, which may be static


def _of_function(callee: Callee, name: str) -> Value:
    if (
        callee.how.startswith("haiku.transform")
        or callee.how.startswith("haiku.without")
        or callee.how.startswith("haiku.multi")
    ):
        return (
            Value(Kind.FUNCTION, callee=Callee(how=f"haiku.{name}", inner=callee))
            if name in {"apply", "init"}
            else UNKNOWN
        )
    return UNKNOWN


def _of_instance(engine: Engine, base: Value, of_class: Class, name: str, frame: Frame) -> Value:
    method = of_class.method(name)
    if method is not None:
        return _of_method(engine, base, method[0], frame)
    if name in {"apply", "init"} and "flax.linen.Module" in of_class.marks():
        return _of_layer(engine, base, of_class, name)
    if base.kind is Kind.BOX:
        declared = of_class.field(name)
        return _field(engine, name, declared, of_class, base) if declared is not None else DOUBT
    assigned = of_class.assigned(name)
    if assigned is None:
        return Value(Kind.UNKNOWN, base.owner)
    expression, scope = assigned
    value = engine.assigned(expression, scope)
    return Value(value.kind, base.owner, value.items, value.item, value.callee, value.cls)


def _of_layer(engine: Engine, base: Value, of_class: Class, name: str) -> Value:
    """``apply`` and ``init`` of a module of flax run its ``__call__``."""
    found = of_class.method("__call__")
    if found is None:
        return UNKNOWN
    own = Callee(found[0], None, scope=engine.module.scopes[found[0]])
    bound = Callee(how="method", inner=own, given=(base,))
    return Value(Kind.FUNCTION, callee=Callee(how=f"flax.linen.{name}", inner=bound))


def _of_method(engine: Engine, base: Value, node: ast.FunctionDef | ast.AsyncFunctionDef, frame: Frame) -> Value:
    names = [engine.path(mark, frame) for mark in node.decorator_list]
    value = defined(engine, node, Frame(engine.module.outer(node)))
    if "builtins.property" in names or "functools.cached_property" in names:
        return engine.invoke(Callee(node, None, scope=engine.module.scopes[node]), [base], {}, frame)
    if "builtins.staticmethod" in names or value.callee is None:
        return value
    first = UNKNOWN if "builtins.classmethod" in names else base
    return Value(Kind.FUNCTION, callee=Callee(how="method", inner=value.callee, given=(first,)))


def _field(engine: Engine, name: str, declared: ast.AnnAssign, of_class: Class, base: Value) -> Value:
    text = ast.unparse(declared.value) if declared.value is not None else ""
    if (
        any(word in text for word in _STATIC_FIELDS)
        or of_class.names_static(name)
        or "ClassVar" in ast.unparse(declared.annotation)
    ):
        return STATIC
    shape = annotated(declared.annotation, of_class.scope, engine.module)
    if isinstance(shape, Class):
        return Value(Kind.BOX, base.owner, item=TREE, cls=shape)
    if shape is Shape.ARRAY:
        return TRACED
    if shape is Shape.NUMBER:
        return TRACED if of_class.is_tree else DOUBT
    if shape is Shape.BOX:
        return box_of(TREE if of_class.is_tree else DOUBT, base.owner)
    return TREE if of_class.is_tree and shape is Shape.EITHER and not of_class.is_open else DOUBT
