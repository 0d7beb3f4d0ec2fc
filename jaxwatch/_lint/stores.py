"""Assignments: to names, and to what is in arrays, containers and objects, some of which is not the function's own."""

import ast

from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import UNKNOWN, Kind, Value, element, join, join_all, traced_in

# Methods that change a container; the second are seldom methods of anything else.
MUTATORS = words(
    """
    append extend insert remove pop clear update setdefault popitem add discard sort reverse appendleft popleft
    extendleft difference_update intersection_update
    """
)
_OF_LISTS = frozenset({"append", "extend", "appendleft", "popleft", "popitem", "setdefault"})


def store(engine: Engine, target: ast.AST, value: Value, frame: Frame) -> None:
    """Assign ``value`` to ``target``."""
    if isinstance(target, ast.Name):
        _to_name(engine, target, value, frame)
    elif isinstance(target, ast.Tuple | ast.List):
        _to_each(engine, target, value, frame)
    elif isinstance(target, ast.Starred):
        store(engine, target.value, value, frame)
    elif isinstance(target, ast.Subscript):
        _to_item(engine, target, value, frame)
    elif isinstance(target, ast.Attribute):
        _to_attribute(engine, target, value, frame)


def _to_name(engine: Engine, target: ast.Name, value: Value, frame: Frame) -> None:
    if target.id not in frame.scope.shared:
        frame.env[target.id] = value
        return
    where = frame.closure  # a nonlocal of a function that is run in the same trace is its own affair
    while where is not None and target.id not in where.env:
        where = where.closure
    if where is None or where.level < frame.level:
        engine.report("JW102", target, target, frame, doubt=_known(engine, target, value))
    if where is not None:
        where.env[target.id] = value


def _to_each(engine: Engine, target: ast.Tuple | ast.List, value: Value, frame: Frame) -> None:
    parts = target.elts
    stars = [at for at, part in enumerate(parts) if isinstance(part, ast.Starred)]
    known = list(value.items) if value.items is not None else None
    if known is not None and stars and len(known) >= len(parts) - 1:
        at, after = stars[0], len(parts) - stars[0] - 1
        middle = Value(Kind.BOX, frame.level, item=join_all(known[at : len(known) - after]))
        known = [*known[:at], middle, *known[len(known) - after :]]
    if known is not None and len(known) == len(parts):
        for part, its in zip(parts, known, strict=True):
            store(engine, part, its, frame)
        return
    its = element(value)
    for part in parts:
        starred = isinstance(part, ast.Starred)
        store(engine, part, Value(Kind.BOX, frame.level, item=its) if starred else its, frame)


def _to_item(engine: Engine, target: ast.Subscript, value: Value, frame: Frame) -> None:
    base, index = engine.eval(target.value, frame), engine.eval(target.slice, frame)
    if base.kind in {Kind.TRACED, Kind.ARRAY}:
        engine.report("JW501", target, target, frame, doubt=_is_ref(target))
    elif base.kind is Kind.TREE:
        text = isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
        unclear = index.kind is Kind.UNKNOWN and not _plain(target.slice)
        if not text:
            engine.report("JW501", target, target, frame, doubt=unclear or _is_ref(target))
    elif base.kind is Kind.NUMPY and traced_in(value):
        engine.report("JW402", target, target, frame)
    elif captured(base, frame):
        array = base.kind is Kind.UNKNOWN and isinstance(target.slice, ast.Slice | ast.Tuple)
        doubt = array or _is_ref(target) or _known(engine, target, value)
        engine.report("JW103", target, target, frame, doubt=doubt)
    elif base.kind is Kind.BOX and isinstance(target.value, ast.Name):
        _grown(target.value.id, base, value, frame)


def _is_ref(target: ast.Subscript) -> bool:
    """Whether what is assigned to may be a Ref of jax, which is made for it: by its name, or by ``[...]``."""
    base = target.value
    name = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
    whole = isinstance(target.slice, ast.Constant) and target.slice.value is Ellipsis
    return whole or name.lower().rstrip("s").endswith("ref")


def _plain(index: ast.expr) -> bool:
    return isinstance(index, ast.Constant | ast.Slice | ast.Tuple | ast.UnaryOp | ast.BinOp | ast.Name)


def _grown(name: str, base: Value, value: Value, frame: Frame) -> None:
    if name in frame.env:
        frame.env[name] = Value(Kind.BOX, base.owner, item=join(element(base), value), cls=base.cls)


def _to_attribute(engine: Engine, target: ast.Attribute, value: Value, frame: Frame) -> None:
    path = engine.path(target, frame)
    base = engine.eval(target.value, frame)
    if path or captured(base, frame):
        engine.report("JW104", target, target, frame, doubt=_known(engine, target, value))


def _known(engine: Engine, target: ast.AST, value: Value) -> bool:
    """Whether what is set is a shape or a structure, worked out while tracing: to keep that is a way to get it out."""
    parent = engine.module.parents.get(target)
    source = parent.value if isinstance(parent, ast.Assign) else None
    return source is not None and _is_structure(source, value)


def _is_structure(source: ast.AST, value: Value) -> bool:
    literal = isinstance(source, ast.Constant | ast.JoinedStr | ast.BinOp) or value == Value(Kind.BOX, value.owner, ())
    static = value.kind is Kind.STATIC or (value.kind is Kind.BOX and traced_in(value) is False and _all_static(value))
    return static and not literal


def _all_static(value: Value) -> bool:
    parts = value.items if value.items is not None else (value.item or UNKNOWN,)
    return all(part.kind is Kind.STATIC or (part.kind is Kind.BOX and _all_static(part)) for part in parts)


def captured(value: Value, frame: Frame) -> bool:
    """Whether an object is from outside of the innermost trace."""
    return (
        value.owner is not None
        and value.owner < frame.level
        and value.kind in {Kind.BOX, Kind.UNKNOWN, Kind.STATIC, Kind.NUMPY}
    )


def mutate(engine: Engine, node: ast.Call, base: Value, given: list[Value], frame: Frame) -> None:
    """Report a call of a method that changes a container, where that is not the function's own.

    Args:
        engine: The engine.
        node: The call.
        base: What the method is of.
        given: The arguments.
        frame: Where.
    """
    function = node.func
    if not isinstance(function, ast.Attribute) or not captured(base, frame):
        return
    structure = len(node.args) == 1 and bool(given) and _is_structure(node.args[0], given[0])
    if base.kind is Kind.BOX:
        engine.report("JW103", node, function, frame, doubt=structure)
    elif base.cls is None and isinstance(
        engine.module.parents.get(node), ast.Expr
    ):  # else it is no change, but a result
        engine.report("JW103", node, function, frame, doubt=structure or function.attr not in _OF_LISTS)


def grow(node: ast.Call, base: Value, given: list[Value], frame: Frame) -> Value:
    """Note what a method adds to a container of the function's own."""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and given:
        name = function.value.id
        added = element(given[-1]) if function.attr in {"extend", "update"} else given[-1]
        before = [] if base.items == () else [element(base)]
        if name in frame.env:
            frame.env[name] = Value(Kind.BOX, base.owner, item=join_all([*before, added]), cls=base.cls)
    return UNKNOWN if base.kind is not Kind.BOX else element(base)
