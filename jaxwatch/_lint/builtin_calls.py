"""Python's own functions, called on what may be traced."""

import ast

from jaxwatch._lint.frames import Engine, Frame, Handler
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import (
    CERTAIN,
    DOUBT,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Kind,
    Value,
    box,
    box_of,
    element,
    join_all,
    traced_in,
)


def _given(engine: Engine, node: ast.Call, frame: Frame) -> list[Value]:
    for word in node.keywords:
        engine.eval(word.value, frame)
    return [element(engine.eval(p, frame)) if isinstance(p, ast.Starred) else engine.eval(p, frame) for p in node.args]


def _number(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    if given and given[0].kind in CERTAIN:
        engine.report("JW401", node, node, frame)
    elif given and given[0].kind is Kind.DOUBT:
        engine.report("JW401", node, node, frame, doubt=True)
    return STATIC


def _range(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    if any(value.kind in CERTAIN for value in given):
        engine.report("JW305", node, node, frame)
    elif any(value.kind is Kind.DOUBT for value in given):
        engine.report("JW305", node, node, frame, doubt=True)
    return box_of(STATIC, frame.level)


def _most(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """``max`` and ``min`` ask of each pair which is the greater, ``sorted`` too."""
    given = _given(engine, node, frame)
    several = len(given) > 1 and not path.endswith("sorted")
    values = given if several else [element(value) for value in given]
    keyed = any(word.arg == "key" for word in node.keywords)
    certain = any(value.kind is Kind.TRACED for value in values) or any(value.kind is Kind.TREE for value in given)
    if certain and not keyed:
        engine.report("JW304", node, node, frame)
    elif any(value.kind in {Kind.DOUBT, Kind.TREE} for value in values):
        engine.report("JW304", node, node, frame, doubt=True)
    return given[0] if path.endswith("sorted") and given else join_all(values)


def _any(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    values = [element(value) for value in given]
    if any(value.kind is Kind.TRACED for value in values):
        engine.report("JW304", node, node, frame)
    elif any(value.kind in {Kind.DOUBT, Kind.TREE} for value in values):
        engine.report("JW304", node, node, frame, doubt=True)
    return STATIC


def _static(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    _given(engine, node, frame)
    return STATIC


def _first(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    if not given or given[0].kind is Kind.BOX:
        return TREE if given and traced_in(given[0]) else UNKNOWN
    return TRACED if given[0].kind is Kind.TREE else given[0]


def _sum(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    values = [element(value) for value in _given(engine, node, frame)]
    return TRACED if any(value.kind in CERTAIN for value in values) else join_all(values)


def _collect(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    words = [engine.eval(word.value, frame) for word in node.keywords]
    if not given:
        return box_of(join_all(words), frame.level) if words else box([], frame.level)
    if given[0].kind is Kind.BOX and given[0].items is not None and not words:
        return box(list(given[0].items), frame.level)
    return box_of(join_all([*map(element, given), *words]), frame.level)


def _zip(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    return box_of(box([element(value) for value in _given(engine, node, frame)]))


def _enumerate(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    return box_of(box([STATIC, element(given[0]) if given else UNKNOWN]))


def _map(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    parts = [element(value) for value in given[1:]]
    result = DOUBT if any(traced_in(part) is not False for part in parts) else UNKNOWN
    if given and given[0].callee is not None:
        result = engine.invoke(given[0].callee, parts, {}, frame)
    return box_of(join_all(parts) if path.endswith("filter") else result, frame.level)


def _attribute(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    given = _given(engine, node, frame)
    named = len(node.args) > 1 and isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str)
    if named and isinstance(node.args[1], ast.Constant):
        return engine.eval(
            ast.copy_location(ast.Attribute(node.args[0], str(node.args[1].value), ast.Load()), node), frame
        )
    return DOUBT if given and traced_in(given[0]) is not False else UNKNOWN


def _set_attribute(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    _given(engine, node, frame)
    if len(node.args) > 1:
        name = node.args[1].value if isinstance(node.args[1], ast.Constant) else "…"
        target = ast.copy_location(ast.Attribute(node.args[0], str(name), ast.Store()), node)
        engine.store(target, UNKNOWN, frame)
    return STATIC


def _unknown(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    _given(engine, node, frame)
    return UNKNOWN


BUILTINS: dict[str, Handler] = {
    **{f"builtins.{name}": _number for name in ("float", "int", "bool", "complex")},
    **{f"builtins.{name}": _most for name in ("max", "min", "sorted")},
    **{f"builtins.{name}": _any for name in ("any", "all")},
    **{
        f"builtins.{name}": _static
        for name in words(
            """
    len isinstance issubclass type hasattr callable id repr str format hash dir vars ord chr ascii
    """
        )
    },
    **{f"builtins.{name}": _first for name in ("abs", "round", "divmod", "pow")},
    **{f"builtins.{name}": _collect for name in ("list", "tuple", "set", "frozenset", "dict", "reversed", "iter")},
    "builtins.sum": _sum,
    "builtins.range": _range,
    "builtins.zip": _zip,
    "builtins.enumerate": _enumerate,
    "builtins.map": _map,
    "builtins.filter": _map,
    "builtins.getattr": _attribute,
    "builtins.setattr": _set_attribute,
    "builtins.super": _unknown,
    "builtins.globals": _unknown,
    "itertools.product": _unknown,
}
