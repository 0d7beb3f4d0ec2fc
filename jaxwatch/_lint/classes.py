"""Classes of the module: whether an instance can be an argument of a jitted function, and what its fields are then."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxwatch._lint.names import path_of
from jaxwatch._lint.scopes import Module, Scope
from jaxwatch._lint.tables import words

# Bases and decorators by which a class becomes a pytree; those in the second are static in what is no array.
_TREES = words(
    """
    typing.NamedTuple collections.namedtuple flax.struct.dataclass flax.struct.PyTreeNode chex.dataclass
    flax.training.train_state.TrainState jax.tree_util.register_dataclass jax.tree.register_dataclass
    jax_dataclasses.pytree_dataclass
    """
)
_OPEN = words(
    """
    equinox.Module jax.tree_util.register_pytree_node_class jax.tree_util.register_pytree_with_keys_class
    flax.nnx.Module flax.nnx.Object flax.nnx.Pytree simple_pytree.Pytree treex.Module
    """
)
# Bases and decorators that make none.
_PLAIN = words(
    """
    builtins.object abc.ABC typing.Generic typing.Protocol flax.linen.Module haiku.Module dataclasses.dataclass
    builtins.Exception enum.Enum
    """
)
_REGISTER = ("register_pytree", "register_dataclass", "register_static")
FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class of this module, with its bases as far as they are of this module too."""

    node: ast.ClassDef
    scope: Scope
    module: Module

    def marks(self) -> list[str]:
        """Return the paths of all bases and decorators; "" for what is not known."""
        found = []
        for each in self.line():
            outer = each.scope.parent or each.module.top
            for mark in [*each.node.bases, *each.node.decorator_list]:
                bare = mark.func if isinstance(mark, ast.Call) else mark
                bare = bare.value if isinstance(bare, ast.Subscript) else bare
                bare = _partial(bare, mark, outer)
                if class_of(bare, outer, each.module) is None:
                    found.append(path_of(bare, outer))
        return found

    def line(self) -> "Iterator[Class]":
        """Yield the class and its bases in this module."""
        todo, seen = [self], {self.node}
        while todo:
            each = todo.pop(0)
            yield each
            for base in each.node.bases:
                of = class_of(base, each.scope.parent or each.module.top, each.module)
                if of is not None and of.node not in seen:
                    seen.add(of.node)
                    todo.append(of)

    def method(self, name: str) -> tuple[FunctionDef, Scope] | None:
        """Return a method and the scope of its class."""
        for each in self.line():
            for statement in each.node.body:
                if isinstance(statement, FunctionDef) and statement.name == name:
                    return statement, each.scope
        return None

    def field(self, name: str) -> ast.AnnAssign | None:
        """Return the line in which a field is declared."""
        for each in self.line():
            for statement in each.node.body:
                target = statement.target if isinstance(statement, ast.AnnAssign) else None
                if isinstance(statement, ast.AnnAssign) and isinstance(target, ast.Name) and target.id == name:
                    return statement
        return None

    def assigned(self, name: str) -> tuple[ast.expr, Scope] | None:
        """Return what ``self.name`` is set to, if that is done in one place of the class."""
        found = [each for of in self.line() for each in of.attributes().get(name, [])]
        return found[0] if len(found) == 1 else None

    def attributes(self) -> dict[str, list[tuple[ast.expr, Scope]]]:
        """Return all that is set in the class's body, and on self in its methods; read once."""
        if self.node not in self.module.attributes:
            found: dict[str, list[tuple[ast.expr, Scope]]] = {}
            for statement in self.node.body:
                method = isinstance(statement, FunctionDef)
                scope = self.module.scopes[statement] if method else self.scope
                for node in ast.walk(statement) if method else [statement]:
                    for name, value in _set_by(node, on_self=method):
                        found.setdefault(name, []).append((value, scope))
            self.module.attributes[self.node] = found
        return self.module.attributes[self.node]

    def names_static(self, name: str) -> bool:
        """Whether the class's registration names a field in ``meta_fields``."""
        marks = [ast.unparse(mark) for each in self.line() for mark in each.node.decorator_list]
        return any("meta_fields" in mark and f"'{name}'" in mark.partition("meta_fields")[2] for mark in marks)

    @property
    def is_tree(self) -> bool:
        """Whether all of an instance's fields are traced, but for those that say otherwise."""
        return any(mark in _TREES for mark in self.marks())

    @property
    def is_open(self) -> bool:
        """Whether an instance is a tree of which fields that are no arrays stay Python's."""
        return any(mark in _OPEN for mark in self.marks())

    @property
    def is_plain(self) -> bool | None:
        """Whether an instance is no tree: None where that is not known."""
        marks = self.marks()
        if any(mark in _TREES or mark in _OPEN for mark in marks) or _registered(self):
            return False
        return True if all(mark in _PLAIN for mark in marks) else None


def _partial(bare: ast.expr, mark: ast.expr, scope: Scope) -> ast.expr:
    """Look through ``@partial(decorator, …)``."""
    if isinstance(mark, ast.Call) and mark.args and path_of(bare, scope) == "functools.partial":
        return mark.args[0]
    return bare


def _set_by(node: ast.AST, *, on_self: bool) -> Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if on_self and isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            if target.value.id == "self":
                yield target.attr, node.value
        elif isinstance(target, ast.Name) and not on_self and isinstance(node, ast.Assign):
            yield target.id, node.value


def _registered(of: Class) -> bool:
    """Whether a call of the module registers the class as a pytree."""
    for site in of.module.calls:
        function = site.call.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name.startswith(_REGISTER) and any(isinstance(a, ast.Name) and a.id == of.node.name for a in site.call.args):
            return True
    return False


def class_of(node: ast.AST, scope: Scope, module: Module) -> Class | None:
    """Return the class of this module that a name stands for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
        node = ast.Name(node.value, ast.Load())  # an annotation in quotes
    found = scope.find(node.id) if isinstance(node, ast.Name) else None
    if found is None or len(found[1]) != 1:
        return None
    of = found[1][0].node
    return Class(of, module.scopes[of], module) if isinstance(of, ast.ClassDef) else None
