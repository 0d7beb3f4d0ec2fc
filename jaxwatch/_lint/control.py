"""Functions that trace those that are given to them: jax.lax's loops and branches, callbacks, tree maps."""

import ast

from jaxwatch._lint.frames import Engine, Frame, Handler
from jaxwatch._lint.transforms import TRANSFORMS, wrap
from jaxwatch._lint.values import (
    DOUBT,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Callee,
    Kind,
    Value,
    as_traced,
    box,
    element,
    join_all,
    traced_in,
)


def argument(engine: Engine, node: ast.Call, at: int, names: str, frame: Frame) -> Value | None:
    """Return an argument by position or by one of its names; None where it is not given."""
    if at < len(node.args) and not any(isinstance(part, ast.Starred) for part in node.args[: at + 1]):
        return engine.eval(node.args[at], frame)
    for keyword in node.keywords:
        if keyword.arg in names.split():
            return engine.eval(keyword.value, frame)
    return None


def _enter(engine: Engine, function: Value | None, given: list[Value], frame: Frame) -> Value:
    """Trace a function from here."""
    if function is None or function.callee is None:
        return TREE
    inside = frame.traced()
    return as_traced(engine.invoke(function.callee, [as_traced(value, inside.level) for value in given], {}, inside))


def _scan(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    function = argument(engine, node, 0, "f", frame)
    init = argument(engine, node, 1, "init", frame) or UNKNOWN
    xs = argument(engine, node, 2, "xs", frame) or STATIC
    none = xs.kind is Kind.STATIC
    if function is None or function.callee is None:
        return box([as_traced(init), TREE])
    inside = frame.traced()
    given = [as_traced(init, inside.level), STATIC if none else as_traced(xs, inside.level)]
    result = engine.invoke(function.callee, given, {}, inside)
    both = result.items is not None and len(result.items) == 2  # noqa: PLR2004 -- the carry, and what is stacked
    return box([as_traced(init), as_traced(result.items[1]) if both and result.items is not None else TREE])


def _while_loop(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    init = argument(engine, node, 2, "init_val", frame) or UNKNOWN
    for at, name in ((0, "cond_fun"), (1, "body_fun")):
        _enter(engine, argument(engine, node, at, name, frame), [init], frame)
    return as_traced(init)


def _fori_loop(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    for at, name in ((0, "lower"), (1, "upper")):
        argument(engine, node, at, name, frame)
    init = argument(engine, node, 3, "init_val", frame) or UNKNOWN
    _enter(engine, argument(engine, node, 2, "body_fun", frame), [TRACED, init], frame)
    return as_traced(init)


def _cond(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    argument(engine, node, 0, "pred", frame)
    functions = [argument(engine, node, at, name, frame) for at, name in ((1, "true_fun"), (2, "false_fun"))]
    given = [engine.eval(part, frame) for part in node.args[3:]]
    given += [engine.eval(keyword.value, frame) for keyword in node.keywords if keyword.arg == "operand"]
    return join_all([_enter(engine, function, given, frame) for function in functions])


def _switch(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    argument(engine, node, 0, "index", frame)
    branches = argument(engine, node, 1, "branches", frame) or UNKNOWN
    given = [engine.eval(part, frame) for part in node.args[2:]]
    functions = branches.items if branches.items is not None else (element(branches),)
    return join_all([_enter(engine, function, given, frame) for function in functions])


def _map(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    function = argument(engine, node, 0, "f fun", frame)
    xs = argument(engine, node, 1, "xs", frame) or UNKNOWN
    return _enter(engine, function, [xs], frame)


def _along_axis(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    return _enter(engine, argument(engine, node, 0, "func1d", frame), [TRACED], frame)


def _differentiate(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """``vjp(f, *primals)``, ``jvp(f, primals, tangents)``, ``linearize(f, *primals)``."""
    function = argument(engine, node, 0, "fun", frame)
    given = [engine.eval(part, frame) for part in node.args[1:]]
    if path.endswith("jvp") and given:
        given = list(given[0].items) if given[0].items is not None else [element(given[0])]
    if function is not None and function.callee is not None and frame.staged:
        engine.invoke(function.callee, [as_traced(value, frame.level) for value in given], {}, frame)
    return box([TREE, UNKNOWN if path.endswith(("vjp", "linearize")) else TREE])


def _eval_shape(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    function = argument(engine, node, 0, "fun", frame)
    given = [engine.eval(part, frame) for part in node.args[1:]]
    if function is not None and function.callee is not None:
        inside = frame.traced(("JW3", "JW4", "JW5"))
        engine.invoke(function.callee, [as_traced(value, inside.level) for value in given], {}, inside)
    return STATIC


def _tree_map(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """``jax.tree.map(f, tree, *rest)``: the function is called on leaves, here and now."""
    function = argument(engine, node, 0, "f", frame)
    trees = [engine.eval(part, frame) for part in node.args[1:]]
    leaves = [_leaf(tree) for tree in trees]
    if path.endswith("with_path"):
        leaves = [STATIC, *leaves]
    if path.endswith("reduce"):
        leaves = [leaves[-1] if len(leaves) > 1 else UNKNOWN, *leaves[:1]]
    result = UNKNOWN
    if function is not None and function.callee is not None:
        result = engine.invoke(function.callee, leaves, {}, frame)
    traced = traced_in(join_all(trees))
    if path.endswith("reduce"):
        return result if function is not None and function.callee is not None else DOUBT if traced else UNKNOWN
    held = traced_in(result) if function is not None and function.callee is not None else traced
    return Value(Kind.TREE) if held else DOUBT if held is None or traced else UNKNOWN


def _leaf(tree: Value) -> Value:
    held = traced_in(tree)
    return TRACED if held and tree.kind is not Kind.BOX else TREE if held else DOUBT if held is None else UNKNOWN


def _associative(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    function = argument(engine, node, 0, "fn", frame)
    elems = argument(engine, node, 1, "elems", frame) or UNKNOWN
    if function is not None and function.callee is not None:
        engine.invoke(function.callee, [elems, elems], {}, frame)
    return elems


def _callback(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """A function that runs on the host, at each call, on numpy's arrays."""
    for part in node.args[1:]:
        engine.eval(part, frame)
    return TREE if path.endswith(("pure_callback", "io_callback")) else STATIC


def _partial(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    if not node.args:
        return UNKNOWN
    how = engine.path(node.args[0], frame)
    if how in TRANSFORMS:
        return UNKNOWN
    function = engine.eval(node.args[0], frame)
    if function.callee is None or any(isinstance(part, ast.Starred) for part in node.args):
        return UNKNOWN
    given = tuple(engine.eval(part, frame) for part in node.args[1:])
    named = tuple((word.arg or "**", engine.eval(word.value, frame)) for word in node.keywords)
    return Value(Kind.FUNCTION, callee=Callee(how="partial", inner=function.callee, given=given, named=named))


def transform(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """Return a transform's result: a function, as long as it is known what it wraps."""
    function = argument(engine, node, 0, "fun f func fn", frame)
    if function is None:
        return UNKNOWN
    called = function.cls.method("__call__") if function.cls is not None and function.callee is None else None
    if called is not None:  # an object that is called
        own = Callee(called[0], None, scope=engine.module.scopes[called[0]])
        function = Value(Kind.FUNCTION, callee=Callee(how="method", inner=own, given=(function,)))
    return wrap(path, function, node)


HANDLERS: dict[str, Handler] = {
    "jax.lax.scan": _scan,
    "flax.nnx.scan": transform,
    "equinox.internal.scan": _scan,
    "jax.lax.while_loop": _while_loop,
    "flax.nnx.while_loop": _while_loop,
    "jax.lax.fori_loop": _fori_loop,
    "flax.nnx.fori_loop": _fori_loop,
    "jax.lax.cond": _cond,
    "flax.nnx.cond": _cond,
    "jax.lax.switch": _switch,
    "flax.nnx.switch": _switch,
    "jax.lax.map": _map,
    "jax.numpy.apply_along_axis": _along_axis,
    "jax.lax.associative_scan": _associative,
    "jax.vjp": _differentiate,
    "jax.jvp": _differentiate,
    "jax.linearize": _differentiate,
    "jax.eval_shape": _eval_shape,
    "equinox.filter_eval_shape": _eval_shape,
    "jax.tree.map": _tree_map,
    "jax.tree.map_with_path": _tree_map,
    "jax.tree.reduce": _tree_map,
    "jax.pure_callback": _callback,
    "jax.experimental.io_callback": _callback,
    "jax.debug.callback": _callback,
    "jax.debug.print": _callback,
    "jax.debug.breakpoint": _callback,
    "functools.partial": _partial,
    "jax.tree_util.Partial": _partial,
    "haiku.scan": _scan,
    "haiku.cond": _cond,
    "haiku.fori_loop": _fori_loop,
    "haiku.while_loop": _while_loop,
    "haiku.switch": _switch,
    "numpyro.contrib.control_flow.scan": _scan,
    "numpyro.contrib.control_flow.cond": _cond,
    **dict.fromkeys(TRANSFORMS, transform),
}
# Those by which a trace begins, wherever they are called.
BEGIN = frozenset(
    name for name, handler in HANDLERS.items() if handler in {_scan, _while_loop, _fori_loop, _cond, _switch, _map}
)
