"""Calls of the module's own functions: arguments are bound to parameters, through partials and transforms."""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from jaxwatch._lint import transforms
from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.scopes import FUNCTIONS, FunctionNode
from jaxwatch._lint.transforms import UNREADABLE, as_tuple, option
from jaxwatch._lint.values import (
    DOUBT,
    STATIC,
    TREE,
    UNKNOWN,
    Callee,
    Value,
    as_traced,
    box,
    box_of,
    join_all,
    traced_in,
)

_DEEPEST = 7  # calls within calls that are followed
# Arguments that were spread in the call, so that it is not known where they go.
SPREAD, SPREAD_NAMES = "*", "**"


def invoke(engine: Engine, callee: Callee, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
    """Call a function; return what is known of its result."""
    if callee.inner is None:
        return _run(engine, callee, given, named, frame)
    how = callee.how
    if how in {"partial", "method"}:
        return invoke(engine, callee.inner, [*callee.given, *given], {**dict(callee.named), **named}, frame)
    if how in transforms.HAIKU_FUNCTIONS:
        return invoke(engine, callee.inner, given[transforms.own_arguments(callee) :], named, frame)
    if how in transforms.AS_IS or how in transforms.HAIKU:
        return invoke(engine, callee.inner, given, named, frame)
    if how not in transforms.TRANSFORMS:
        doubtful = frame.within(doubt=True)
        result = invoke(engine, callee.inner, given, named, doubtful)
        return DOUBT if traced_in(result) is not False else UNKNOWN
    return _transformed(engine, callee, given, named, frame)


def _transformed(
    engine: Engine, callee: Callee, given: Sequence[Value], named: Mapping[str, Value], frame: Frame
) -> Value:
    how, level = callee.how, frame.level + 1
    values = [as_traced(value, level) for value in given]
    names = {name: as_traced(value, level) for name, value in named.items()}
    static = statics(callee, frame)
    if static is None or callee.inner is None:
        return DOUBT
    keep = kept(callee, static)
    values = [before if keep(at, "") else after for at, (before, after) in enumerate(zip(given, values, strict=True))]
    names = {name: named[name] if keep(-1, name) else value for name, value in names.items()}
    if how in transforms.GRADS | transforms.VALUE_AND_GRADS | transforms.MAPS:
        inside = frame if frame.staged else frame.within(codes=transforms.codes_of(how) if frame.codes else ())
    else:
        inside = frame.traced(transforms.codes_of(how))
    result = invoke(engine, callee.inner, values, names, inside)
    return _result(callee, result, frame)


def _result(callee: Callee, result: Value, frame: Frame) -> Value:
    if callee.how in transforms.SHAPES:
        return STATIC
    if callee.how in transforms.GRADS:
        aux = option(callee.call, "has_aux", frame.scope)
        return box([TREE, as_traced(result)]) if aux is not None else TREE
    out = as_traced(result)
    return box([out, TREE]) if callee.how in transforms.VALUE_AND_GRADS else out


class Statics(NamedTuple):
    """Which arguments a transform leaves as they are, by position and by name."""

    numbers: tuple[object, ...]
    names: tuple[object, ...]
    only: tuple[object, ...] | None = None  # the only ones that it does not leave


def statics(callee: Callee, frame: Frame) -> Statics | None:
    """Return which arguments are static; None where that is not written there."""
    how, call, scope = callee.how, callee.call, frame.scope
    numbers = [
        option(call, name, scope) for name in ("static_argnums", "static_broadcasted_argnums", "nondiff_argnums")
    ]
    names = option(call, "static_argnames", scope)
    only: tuple[object, ...] | None = None
    if how in transforms.GRADS | transforms.VALUE_AND_GRADS:
        argnums = option(call, "argnums", scope)
        if argnums is None and call is not None and len(call.args) > 1:
            argnums = transforms.literal(call.args[1], scope)
        only = (0,) if argnums is None else as_tuple(argnums)
        numbers.append(UNREADABLE if argnums is UNREADABLE else None)
    if UNREADABLE in numbers or names is UNREADABLE:
        return None
    unmapped = _unmapped(how, call, frame)
    return Statics((*(n for value in numbers for n in as_tuple(value)), *unmapped), as_tuple(names), only)


def _unmapped(how: str, call: ast.Call | None, frame: Frame) -> list[object]:
    """Return the positions that a map leaves as they are, which is so outside of other traces alone."""
    if how not in transforms.MAPS or frame.staged:
        return []
    axes = option(call, "in_axes", frame.scope)
    if axes is None and call is not None and len(call.args) > 1:
        axes = transforms.literal(call.args[1], frame.scope)
    if axes is UNREADABLE:
        return list(range(32))
    return [at for at, axis in enumerate(axes) if axis is None] if isinstance(axes, tuple | list) else []


def kept(callee: Callee, static: Statics) -> Callable[[int, str], bool]:
    """Return a test of whether an argument, by position or by name, is left as it is."""
    names = places(callee.inner)

    def keep(at: int, name: str) -> bool:
        if name in names:
            at = names.index(name)
        elif 0 <= at < len(names):
            name = names[at]
        if static.only is not None:
            return at not in static.only
        module = at == 0 and callee.how in transforms.LIFTED
        counted = at in static.numbers or (bool(names) and at - len(names) in static.numbers)
        return module or counted or name in static.names

    return keep


def places(callee: Callee | None) -> list[str]:
    """Return the names of the parameters that a call of a function, or of a wrapped one, gives by position."""
    if callee is None:
        return []
    if callee.inner is None:
        return [argument.arg for argument in positional(callee.node)] if isinstance(callee.node, FUNCTIONS) else []
    if callee.how in transforms.HAIKU_FUNCTIONS:
        return [""] * transforms.own_arguments(callee) + places(callee.inner)
    return places(callee.inner)[len(callee.given) :]


def positional(node: FunctionNode) -> list[ast.arg]:
    """Return the parameters that may be given by position."""
    return [*node.args.posonlyargs, *node.args.args]


def default_of(node: FunctionNode, name: str) -> ast.expr | None:
    """Return the default of a parameter."""
    places = positional(node)
    for argument, default in zip(reversed(places), reversed(node.args.defaults), strict=False):
        if argument.arg == name:
            return default
    for argument, only in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if argument.arg == name:
            return only
    return None


def _run(engine: Engine, callee: Callee, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
    node = callee.node
    unknown = _opaque([*given, *named.values()])
    if not isinstance(node, FUNCTIONS) or node in frame.running or len(frame.running) >= _DEEPEST:
        return unknown
    inner = Frame(
        callee.scope,
        frame.level,
        frame.codes,
        callee.closure,
        frame.doubt,
        frame.caught,
        running=(*frame.running, node),
    )
    _bind(engine, node, given, named, inner)
    return run(engine, node, inner)


def run(engine: Engine, node: FunctionNode, frame: Frame) -> Value:
    """Run a function's body in its frame; return what it may return."""
    if frame.codes:
        engine.traced.add(node)
    if isinstance(node, ast.Lambda):
        return engine.eval(node.body, frame)
    ends = engine.body(node.body, frame)
    if frame.returned:
        return join_all(frame.returned)
    return UNKNOWN if ends else STATIC


def _opaque(values: list[Value]) -> Value:
    held = [traced_in(value) for value in values]
    return DOUBT if True in held or None in held else UNKNOWN


def _bind(engine: Engine, node: FunctionNode, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> None:
    places = [argument.arg for argument in positional(node)]
    rest = dict(named)
    spread = [rest.pop(name) for name in (SPREAD, SPREAD_NAMES) if name in rest]
    for name, value in zip(places, given, strict=False):
        frame.env[name] = value
    outside = Frame(engine.module.outer(node), frame.level)
    for name in [*places, *(argument.arg for argument in node.args.kwonlyargs)]:
        if name in rest:
            frame.env[name] = rest.pop(name)
        elif name not in frame.env:
            default = default_of(node, name)
            known = engine.eval(default, outside) if default is not None else UNKNOWN
            frame.env[name] = join_all(spread) if spread else known
    if node.args.vararg is not None:
        more = [*given[len(places) :]]
        frame.env[node.args.vararg.arg] = box_of(join_all(spread)) if spread else box(more, frame.level)
    if node.args.kwarg is not None:
        frame.env[node.args.kwarg.arg] = box_of(join_all([*rest.values(), *spread]), frame.level)
