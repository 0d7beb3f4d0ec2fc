"""Options of a jit: such as fit no parameter, statics without a hash, a self that is an array argument."""

import ast
from collections.abc import Iterator

from jaxwatch._lint import transforms
from jaxwatch._lint.classes import Class
from jaxwatch._lint.engine import Machine
from jaxwatch._lint.frames import Frame
from jaxwatch._lint.invocations import default_of, kept, places, positional, statics
from jaxwatch._lint.jits import Root, passed_by, roots
from jaxwatch._lint.names import text_of
from jaxwatch._lint.scopes import FUNCTIONS, Scope, arguments
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import Callee

_OPTIONS = {
    "static_argnums": "JW603",
    "donate_argnums": "JW603",
    "static_argnames": "JW602",
    "donate_argnames": "JW602",
}
_UNHASHABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = words(
    """
    builtins.list builtins.dict builtins.set builtins.bytearray collections.defaultdict collections.deque
    collections.OrderedDict
    """
)
_ARRAY_MAKERS = ("numpy.", "jax.numpy.")
_JITS = frozenset({"jax.jit", "equinox.filter_jit", "flax.nnx.jit"})


def look(machine: Machine) -> None:
    """Note what is at fault in the options of a module's jits."""
    for root in list(roots(machine)):
        layer = root.callee
        if layer.how in _JITS:
            _check_options(machine, root, layer)
            _check_hashes(machine, root, layer)
            _check_self(machine, root, layer)


def _check_options(machine: Machine, root: Root, layer: Callee) -> None:
    node = root.node
    names = places(layer.inner)
    every = {argument.arg for argument in arguments(node)}
    if any(each.how not in transforms.TRANSFORMS | {"partial", "method"} for each in root.layers):
        return  # what a decorator that is not known returns may have other parameters
    for option, written in _written(layer.call):
        values = transforms.as_tuple(transforms.literal(written, root.scope))
        if transforms.UNREADABLE in values:
            continue
        for value in values:
            if isinstance(value, int) and not isinstance(value, bool) and _OPTIONS[option] == "JW603":
                if node.args.vararg is None and not -len(names) <= value < len(names):
                    machine.add("JW603", written, f"{option}={value}")
            elif isinstance(value, str) and node.args.kwarg is None and (value not in every or _is_hidden(node, value)):
                machine.add("JW602", written, f"{option}={value!r}")


def _is_hidden(node: ast.AST, name: str) -> bool:
    return isinstance(node, FUNCTIONS) and any(argument.arg == name for argument in node.args.posonlyargs)


def _written(call: ast.Call | None) -> Iterator[tuple[str, ast.expr]]:
    for keyword in call.keywords if call is not None else ():
        if keyword.arg in _OPTIONS:
            yield keyword.arg, keyword.value


def _check_hashes(machine: Machine, root: Root, layer: Callee) -> None:
    """Defaults of static arguments, and what calls of this module give for them."""
    held = statics(layer, Frame(root.scope))
    if held is None or not (held.numbers or held.names):
        return
    test, node = kept(layer, held), root.node
    names = places(layer.inner)
    for argument in [*positional(node), *node.args.kwonlyargs]:
        at = names.index(argument.arg) if argument.arg in names else -1
        default = default_of(node, argument.arg)
        if not test(at, argument.arg):
            continue
        if default is not None and _is_unhashable(machine, default, machine.module.outer(node)):
            machine.add("JW601", default, f"{argument.arg}={text_of(default)}")
        for given, scope in passed_by(root, argument.arg, machine.module):
            if _is_unhashable(machine, given, scope):
                machine.add("JW601", given, f"{argument.arg}={text_of(given)}")


def _is_unhashable(machine: Machine, node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, _UNHASHABLE):
        return True
    if isinstance(node, ast.Tuple):
        return any(_is_unhashable(machine, part, scope) for part in node.elts)
    if not isinstance(node, ast.Call):
        return False
    path = machine.path(node.func, Frame(scope))
    last = path.rpartition(".")[2]
    arrays = path.startswith(_ARRAY_MAKERS) and last in {
        "array",
        "asarray",
        "zeros",
        "ones",
        "arange",
        "full",
        "linspace",
        "eye",
    }
    return path in _MAKERS or arrays


def _check_self(machine: Machine, root: Root, layer: Callee) -> None:
    """A method that is jitted where the class is no tree: its self is an argument like the others."""
    module, node = machine.module, root.node
    parent = module.parents.get(node)
    if not isinstance(parent, ast.ClassDef) or not root.decorates or layer.how != "jax.jit" or not positional(node):
        return
    outer = Frame(module.outer(node))
    marks = {machine.path(mark, outer) for mark in getattr(node, "decorator_list", [])}
    if marks & {"builtins.staticmethod", "builtins.classmethod"}:
        return
    held = statics(layer, Frame(root.scope))
    of = Class(parent, module.scopes[parent], module)
    first = positional(node)[0]
    if held is None or kept(layer, held)(0, first.arg) or of.is_plain is False:
        return
    machine.add("JW606", node, getattr(node, "name", ""), certain=of.is_plain is True and first.arg == "self")
