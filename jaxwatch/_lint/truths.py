"""Tests: whether what is asked for its truth is traced, and what is known of names where a test holds."""

import ast
from dataclasses import replace

from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.values import CERTAIN, STATIC, UNKNOWN, Kind, Value, join_all

# What tests of this kind say of a name: where they hold, it is no tracer.
_TYPE_TESTS = frozenset(
    {"builtins.isinstance", "builtins.callable", "numpy.isscalar", "jax.numpy.isscalar", "builtins.issubclass"}
)

# In the name of a function that asks whether something is traced.
_ASKS = ("tracer", "tracing", "trace_state", "jax_transform", "concrete", "isinstance")


def truth(engine: Engine, test: ast.expr, frame: Frame, code: str) -> Value:
    """Evaluate a test, and report with ``code`` if it is traced; return its value."""
    if isinstance(test, ast.BoolOp):
        return _each(engine, test, frame, code)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        value = truth(engine, test.operand, frame, code)
        return STATIC if value.kind is not Kind.DOUBT else value
    value = engine.eval(test, frame)
    if value.kind in CERTAIN:
        engine.report(code, test, test, frame)
    elif value.kind is Kind.DOUBT:
        engine.report(code, test, test, frame, doubt=True)
    return STATIC if value.kind in CERTAIN else value


def _each(engine: Engine, test: ast.BoolOp, frame: Frame, code: str) -> Value:
    branch, values = frame.within(), []
    for operand in test.values:
        values.append(truth(engine, operand, branch, code))
        engine.refined(operand, branch, holds=isinstance(test.op, ast.And))
    return join_all(values)


def refine(engine: Engine, test: ast.expr, frame: Frame, *, holds: bool) -> None:
    """Note in the frame what is known where the test holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        refine(engine, test.operand, frame, holds=not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            for operand in test.values:
                refine(engine, operand, frame, holds=holds)
        elif _of_tracers(test):
            frame.doubt = True
    elif isinstance(test, ast.Call):
        _by_call(engine, test, frame, holds=holds)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _by_comparison(test, frame, holds=holds)


def _of_tracers(test: ast.AST) -> bool:
    """Whether a test asks what kind of value there is: what follows was written for both."""
    names = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in ast.walk(test)}
    return any(word in name.lower() for name in names for word in _ASKS)


def _by_call(engine: Engine, test: ast.Call, frame: Frame, *, holds: bool) -> None:
    path = engine.path(test.func, frame)
    if path not in _TYPE_TESTS:
        frame.doubt = frame.doubt or _of_tracers(test)
        return
    if not test.args:
        return
    kinds = ast.unparse(test.args[1]) if len(test.args) > 1 else ""
    arrays = any(name in kinds for name in ("Array", "jnp.ndarray", "Tracer"))
    numpy = "ndarray" in kinds.replace("jnp.ndarray", "")
    if holds is (not arrays or numpy):
        _forget(test.args[0], frame)


def _forget(node: ast.AST, frame: Frame) -> None:
    if isinstance(node, ast.Name):
        frame.env[node.id] = UNKNOWN
    else:
        frame.doubt = True


def _by_comparison(test: ast.Compare, frame: Frame, *, holds: bool) -> None:
    left, right, op = test.left, test.comparators[0], test.ops[0]
    if isinstance(left, ast.Call) and isinstance(left.func, ast.Name) and left.func.id == "type" and left.args:
        _forget(left.args[0], frame)
    if not isinstance(left, ast.Name):
        return
    if isinstance(op, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and isinstance(op, ast.Is) is holds:
        frame.env[left.id] = replace(STATIC, owner=frame.level)
    elif isinstance(op, ast.Eq) and holds and isinstance(right, ast.Constant) and isinstance(right.value, str):
        frame.env[left.id] = STATIC
