"""Statements of a traced function, run in order; of two branches both, of a loop twice."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from jaxwatch._lint.expressions import arithmetic
from jaxwatch._lint.frames import Engine, Frame
from jaxwatch._lint.transforms import defined
from jaxwatch._lint.values import MAYBE, UNKNOWN, Kind, Value, element, join

_CATCHES = ("Tracer", "Concretization", "TypeError", "Exception", "ValueError")


def run_all(engine: Engine, statements: Sequence[ast.stmt], frame: Frame) -> bool:
    """Run statements; return whether they never come to their end."""
    for statement in statements:
        handler = _HANDLERS.get(type(statement))
        if handler is None:
            for child in ast.iter_child_nodes(statement):
                engine.eval(child, frame)
        elif handler(engine, statement, frame):
            return True
    return False


def _expression(engine: Engine, node: ast.Expr, frame: Frame) -> bool:
    engine.eval(node.value, frame)
    function = node.value.func if isinstance(node.value, ast.Call) else None
    if isinstance(function, ast.Attribute) and _is_at(function.value):
        engine.report("JW502", node.value, node.value, frame)
    return False


def _is_at(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "at"


def _assign(engine: Engine, node: ast.Assign, frame: Frame) -> bool:
    value = engine.eval(node.value, frame)
    for target in node.targets:
        engine.store(target, value, frame)
    return False


def _annotated(engine: Engine, node: ast.AnnAssign, frame: Frame) -> bool:
    if node.value is not None:
        engine.store(node.target, engine.eval(node.value, frame), frame)
    return False


def _augmented(engine: Engine, node: ast.AugAssign, frame: Frame) -> bool:
    added = engine.eval(node.value, frame)
    before = engine.eval(node.target, frame)
    engine.store(node.target, arithmetic(before, added, node.op, frame), frame)
    return False


def _define(engine: Engine, node: ast.FunctionDef, frame: Frame) -> bool:
    frame.env[node.name] = defined(engine, node, frame)
    return False


def _return(engine: Engine, node: ast.Return, frame: Frame) -> bool:
    frame.returned.append(engine.eval(node.value, frame) if node.value is not None else Value(Kind.STATIC))
    return True


def _ends(engine: Engine, node: ast.Raise, frame: Frame) -> bool:
    for part in (node.exc, node.cause):
        if part is not None:
            engine.eval(part, frame)
    return True


def _jump(_engine: Engine, _node: ast.stmt, _frame: Frame) -> bool:
    return True


def _if(engine: Engine, node: ast.If, frame: Frame) -> bool:
    engine.truth(node.test, frame, "JW301")
    yes, no = frame.within(), frame.within()
    engine.refined(node.test, yes, holds=True)
    engine.refined(node.test, no, holds=False)
    ends, other_ends = engine.body(node.body, yes), engine.body(node.orelse, no)
    if ends is other_ends:
        frame.env = joined(yes.env, no.env)
    else:
        frame.env = no.env if ends else yes.env
        frame.doubt = frame.doubt or (no if ends else yes).doubt
    return ends and other_ends


def joined(one: dict[str, Value], other: dict[str, Value]) -> dict[str, Value]:
    """Return what is known of variables where they may be as in either; what only one has, as in that."""
    return {
        name: join(one[name], other[name]) if name in one and name in other else one.get(name, other.get(name, UNKNOWN))
        for name in {**one, **other}
    }


def _for(engine: Engine, node: ast.For, frame: Frame) -> bool:
    over = element(engine.eval(node.iter, frame))
    _rounds(engine, node.body, frame, lambda: engine.store(node.target, over, frame))
    engine.body(node.orelse, frame)
    return False


def _while(engine: Engine, node: ast.While, frame: Frame) -> bool:
    _rounds(engine, node.body, frame, lambda: engine.truth(node.test, frame, "JW302"))
    engine.body(node.orelse, frame)
    return False


def _rounds(engine: Engine, body: list[ast.stmt], frame: Frame, begin: Callable[[], object]) -> None:
    for _ in range(2):  # what a round leaves behind is what the next one finds
        before = dict(frame.env)
        begin()
        engine.body(body, frame)
        if {name: value.kind for name, value in before.items()} == {
            name: frame.env[name].kind for name in before if name in frame.env
        }:
            break
    begin()


def _assert(engine: Engine, node: ast.Assert, frame: Frame) -> bool:
    engine.truth(node.test, frame, "JW303")
    engine.refined(node.test, frame, holds=True)
    return False


def _with(engine: Engine, node: ast.With, frame: Frame) -> bool:
    doubt, codes = frame.doubt, frame.codes
    for item in node.items:
        engine.eval(item.context_expr, frame)
        path = engine.path(getattr(item.context_expr, "func", item.context_expr), frame)
        if path in {"jax.ensure_compile_time_eval", "jax.disable_jit", "jax.core.eval_context"}:
            frame.doubt = True
        if item.optional_vars is not None:
            engine.store(item.optional_vars, UNKNOWN, frame)
    ends = engine.body(node.body, frame)
    frame.doubt, frame.codes = doubt, codes
    return ends


def _try(engine: Engine, node: ast.Try, frame: Frame) -> bool:
    told = [ast.unparse(handler.type) if handler.type else "Exception" for handler in node.handlers]
    caught = frame.caught
    frame.caught = caught or any(name in text for text in told for name in _CATCHES)
    ends = engine.body(node.body, frame)
    frame.caught = caught
    after = frame.within()
    others = [engine.body(handler.body, frame.within()) for handler in node.handlers]
    frame.env = after.env
    engine.body(node.orelse, frame)
    engine.body(node.finalbody, frame)
    return ends and all(others)


def _match(engine: Engine, node: ast.Match, frame: Frame) -> bool:
    subject = engine.eval(node.subject, frame)
    values = any(isinstance(part, ast.MatchValue) for case in node.cases for part in ast.walk(case.pattern))
    if values and subject.kind in MAYBE:
        engine.report("JW301", node.subject, node.subject, frame, doubt=subject.kind is Kind.DOUBT)
    for case in node.cases:
        branch = frame.within()
        for part in ast.walk(case.pattern):
            if isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
                branch.env[part.name] = UNKNOWN
        if case.guard is not None:
            engine.truth(case.guard, branch, "JW301")
        engine.body(case.body, branch)
        frame.env = joined(frame.env, branch.env)
    return False


def _delete(engine: Engine, node: ast.Delete, frame: Frame) -> bool:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.env.pop(target.id, None)
        else:
            engine.store(target, UNKNOWN, frame)
    return False


def _nothing(_engine: Engine, _node: ast.stmt, _frame: Frame) -> bool:
    return False


_HANDLERS: dict[type[ast.stmt], Callable[[Engine, Any, Frame], bool]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.FunctionDef: _define,
    ast.AsyncFunctionDef: _define,
    ast.ClassDef: _nothing,
    ast.Return: _return,
    ast.Raise: _ends,
    ast.Continue: _jump,
    ast.Break: _jump,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Assert: _assert,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.Match: _match,
    ast.Delete: _delete,
    ast.Import: _nothing,
    ast.ImportFrom: _nothing,
    ast.Global: _nothing,
    ast.Nonlocal: _nothing,
    ast.Pass: _nothing,
}
