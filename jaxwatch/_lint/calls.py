"""Calls in a traced function: of what a library has, of the module's own functions, of methods."""

import ast

from jaxwatch._lint import control, libraries, methods, transforms
from jaxwatch._lint.classes import Class, class_of
from jaxwatch._lint.frames import QUIET, Engine, Frame
from jaxwatch._lint.invocations import SPREAD, SPREAD_NAMES
from jaxwatch._lint.values import DOUBT, UNKNOWN, Callee, Kind, Value, element, join_all, traced_in


def call(engine: Engine, node: ast.Call, frame: Frame) -> Value:
    """Return what is known of a call's result, and report what is at fault in it."""
    path = engine.path(node.func, frame)
    handler = (control.HANDLERS.get(path) or libraries.handler_of(path)) if path else None
    if handler is not None:
        return handler(engine, node, path, frame)
    how, options = transforms.applied(engine, node, frame)
    if how:
        return transforms.wrap(how, engine.eval(node.args[0], frame), options)
    base = engine.eval(node.func.value, frame) if isinstance(node.func, ast.Attribute) and not path else None
    given, named = arguments(engine, node, frame)
    if base is not None and base.cls is None and base.kind is not Kind.FUNCTION:
        own = methods.call(engine, node, base, given, frame)
        return own if own is not None else unknown(engine, [base, *given, *named.values()], frame)
    return _of_module(engine, node, given, named, frame)


def _of_module(engine: Engine, node: ast.Call, given: list[Value], named: dict[str, Value], frame: Frame) -> Value:
    """Call a function, class or object of the module."""
    function = engine.eval(node.func, frame)
    if function.kind is Kind.FUNCTION and function.callee is not None:
        return engine.invoke(function.callee, given, named, frame)
    of = class_of(node.func, frame.scope, engine.module)
    if of is not None:
        return _instance(of, [*given, *named.values()], frame)
    if function.cls is not None:
        return _call_instance(engine, function, given, named, frame)
    return unknown(engine, [function, *given, *named.values()], frame)


def arguments(engine: Engine, node: ast.Call, frame: Frame) -> tuple[list[Value], dict[str, Value]]:
    """Evaluate a call's arguments; of those that are spread the join stands under a name of its own."""
    given: list[Value] = []
    named: dict[str, Value] = {}
    spread = False
    for part in node.args:
        value = engine.eval(part, frame)
        spread = spread or isinstance(part, ast.Starred)
        if not spread:
            given.append(value)
        else:
            its = element(value) if isinstance(part, ast.Starred) else value
            named[SPREAD] = join_all([named[SPREAD], its]) if SPREAD in named else its
    for keyword in node.keywords:
        value = engine.eval(keyword.value, frame)
        named[keyword.arg or SPREAD_NAMES] = value if keyword.arg else element(value)
    return given, named


def unknown(engine: Engine, values: list[Value], frame: Frame) -> Value:
    """Return what comes of a call of which nothing is known; functions given to it may be called by it, or later."""
    for value in values:
        if value.callee is not None and frame.codes != QUIET:
            engine.invoke(value.callee, [], {SPREAD: UNKNOWN}, frame.within(doubt=True))
    held = [traced_in(value) for value in values]
    return DOUBT if True in held or None in held else UNKNOWN


def _instance(of: Class, values: list[Value], frame: Frame) -> Value:
    if of.is_tree or of.is_open:
        return Value(Kind.BOX, frame.level, item=join_all(values), cls=of)
    return Value(Kind.UNKNOWN, frame.level, cls=of)


def _call_instance(engine: Engine, value: Value, given: list[Value], named: dict[str, Value], frame: Frame) -> Value:
    found = value.cls.method("__call__") if value.cls is not None else None
    if found is None:
        return unknown(engine, [*given, *named.values()], frame)
    callee = Callee(found[0], None, scope=engine.module.scopes[found[0]])
    return engine.invoke(callee, [value, *given], named, frame)
