"""Scopes of a module: what each name is bound to, where calls stand, and which loops are around them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LOOPS = (ast.For, ast.AsyncFor, ast.While, *COMPREHENSIONS)


_SCOPES = frozenset({*FUNCTIONS, ast.ClassDef})
_LOOPS = frozenset(LOOPS)
_BINDING = frozenset(
    {
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Import,
        ast.ImportFrom,
        ast.Global,
        ast.Nonlocal,
        ast.ExceptHandler,
        ast.MatchAs,
        ast.MatchStar,
        ast.Assign,
        ast.AnnAssign,
        ast.NamedExpr,
        ast.For,
        ast.AsyncFor,
        ast.AugAssign,
        ast.comprehension,
        ast.withitem,
    }
)
# Of what has nothing below it, and is most of a tree, no parent is kept.
_LEAVES = frozenset(
    {ast.Load, ast.Store, ast.Del, ast.Constant, ast.Pass, *ast.operator.__subclasses__(), *ast.cmpop.__subclasses__()}
)
_NOTHING: set[ast.AST] = set()


@dataclass(frozen=True, slots=True)
class Binding:
    """One way by which a name comes to stand for something; neither ``path`` nor ``node``: nothing is known of it."""

    path: str = ""  # of an import
    node: ast.AST | None = None  # a function, a class, or the expression that is assigned


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class or function."""

    node: ast.AST
    parent: "Scope | None" = None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)  # declared global or nonlocal

    @property
    def is_class(self) -> bool:
        """Whether names of this scope are hidden from the scopes within."""
        return isinstance(self.node, ast.ClassDef)

    def bind(self, name: str, binding: Binding) -> None:
        """Note one more binding of ``name``."""
        if name not in self.shared:
            self.bindings.setdefault(name, []).append(binding)

    def visible(self) -> "Iterator[Scope]":
        """Yield the scopes in which a name used here is looked up, from the inside out."""
        yield self
        scope = self.parent
        while scope is not None:
            if not scope.is_class:
                yield scope
            scope = scope.parent

    def find(self, name: str) -> "tuple[Scope, list[Binding]] | None":
        """Return the scope that binds ``name``, and all its bindings there; None for a builtin or an unknown name."""
        for scope in self.visible():
            if name in scope.bindings:
                return scope, scope.bindings[name]
        return None


@dataclass(frozen=True, slots=True)
class Site:
    """A call, the scope that it stands in, and the loops around it within its function."""

    call: ast.Call
    scope: Scope
    loops: tuple[ast.AST, ...]


@dataclass(slots=True)
class Module:
    """All scopes of a source."""

    top: Scope
    scopes: dict[ast.AST, Scope] = field(default_factory=dict)  # of functions and classes, by their node
    calls: list[Site] = field(default_factory=list)
    parents: dict[ast.AST, ast.AST] = field(default_factory=dict)
    attributes: dict[ast.ClassDef, dict[str, list[tuple[ast.expr, Scope]]]] = field(
        default_factory=dict
    )  # of `classes`

    def outer(self, node: ast.AST) -> Scope:
        """Return the scope in which a function or class was defined."""
        return self.scopes[node].parent or self.top


def read(tree: ast.Module) -> Module:
    """Read the scopes of a module. Loops, and does not recurse: depth is no matter here."""
    module = Module(Scope(tree))
    module.scopes[tree] = module.top
    todo: list[tuple[ast.AST, Scope, tuple[ast.AST, ...]]] = [(tree, module.top, ())]
    while todo:
        node, scope, loops = todo.pop()
        kind = type(node)
        if kind in _BINDING:
            _bind(node, scope)
        if kind is ast.Call:
            module.calls.append(Site(cast("ast.Call", node), scope, loops))
        inside, outside, inner = _NOTHING, _NOTHING, scope
        if kind in _SCOPES:
            inner = module.scopes[node] = Scope(node, scope)
            _bind_parameters(node, inner)
            inside = set(_body(node))
        around = loops
        if kind in _LOOPS:
            around, outside = (*loops, node), _once(node)
        for child in reversed([child for child in ast.iter_child_nodes(node) if type(child) not in _LEAVES]):
            module.parents[child] = node
            if child in inside:
                todo.append((child, inner, loops if kind is ast.ClassDef else ()))
            else:
                todo.append((child, scope, loops if child in outside else around))
    module.calls.sort(key=lambda site: (site.call.lineno, site.call.col_offset))
    return module


def _body(node: ast.AST) -> list[ast.AST]:
    body = getattr(node, "body", [])
    return body if isinstance(body, list) else [body]


def _once(node: ast.AST) -> set[ast.AST]:
    """Return what a loop evaluates but once: what it iterates over, and its else."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return {node.iter, *node.orelse}
    return {*node.orelse} if isinstance(node, ast.While) else set()


def _bind_parameters(node: ast.AST, scope: Scope) -> None:
    if isinstance(node, FUNCTIONS):
        for argument in arguments(node):
            scope.bind(argument.arg, Binding())


def arguments(node: FunctionNode) -> list[ast.arg]:
    """Return all parameters, ``*args`` and ``**kwargs`` included."""
    given = node.args
    more = [argument for argument in (given.vararg, given.kwarg) if argument is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *more]


def _bind(node: ast.AST, scope: Scope) -> None:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        scope.bind(node.name, Binding(node=node))
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for name, path in _imported(node):
            scope.bind(name, Binding(path=path))
    elif isinstance(node, ast.Global | ast.Nonlocal):
        scope.shared.update(node.names)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        scope.bind(node.name, Binding())
    else:
        _bind_assigned(node, scope)


def _bind_assigned(node: ast.AST, scope: Scope) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _bind_target(target, node.value, scope)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        _bind_target(node.target, node.value, scope)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.AugAssign | ast.comprehension):
        _bind_target(node.target, None, scope)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _bind_target(node.optional_vars, None, scope)


def _bind_target(target: ast.AST, value: ast.expr | None, scope: Scope) -> None:
    if isinstance(target, ast.Name):
        scope.bind(target.id, Binding(node=value))
        return
    together = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    if together and isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for part, its in zip(target.elts, value.elts, strict=True):
            _bind_target(part, its, scope)
        return
    if isinstance(target, ast.Tuple | ast.List | ast.Starred):
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                scope.bind(name.id, Binding())


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            path = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or path, path
        else:
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
