"""Where a jit is made: in a loop, or in a function that makes it at each call."""

import ast
import re

from jaxwatch._lint import transforms
from jaxwatch._lint.classes import Class
from jaxwatch._lint.engine import Machine
from jaxwatch._lint.frames import Frame
from jaxwatch._lint.jits import Root, roots
from jaxwatch._lint.names import text_of
from jaxwatch._lint.scopes import COMPREHENSIONS, FUNCTIONS, FunctionNode, Scope, Site, arguments

# Of functions that run once, by custom.
_ONCE = re.compile(
    r"_*(test|main|init|setup|set_up|create|make|build|bench|run|warm|compile|get_|load|restore|profile|time)|$",
    re.IGNORECASE,
)
_INITIAL = re.compile(r"(^|[._])init", re.IGNORECASE)
_JITS = frozenset({"jax.jit", "equinox.filter_jit", "flax.nnx.jit", "jax.pmap"})
_CACHES = frozenset({"functools.lru_cache", "functools.cache", "functools.cached_property"})


def look(machine: Machine) -> None:
    """Note which jits of a module are made again and again."""
    for root in list(roots(machine)):
        if root.decorates and any(layer.how in _JITS for layer in root.layers):
            _check_definition(machine, root)
    for site in machine.module.calls:
        if machine.path(site.call.func, Frame(site.scope)) in _JITS and site.call.args:
            _check_place(machine, site)


def _check_place(machine: Machine, site: Site) -> None:
    if site.scope.node in machine.traced:
        return  # it is made while tracing alone
    if site.loops and not _is_kept(machine, site) and _is_made_in_loop(machine, site):
        machine.add("JW604", site.call, text_of(site.call))
    elif not site.loops and _is_called(machine, site) and isinstance(site.scope.node, FUNCTIONS):
        outer = site.scope.node
        if not _is_cached(machine, outer):
            again = _runs_again(machine, outer) or _works_on_arguments(machine, site, outer)
            machine.add("JW605", site.call, text_of(site.call), certain=again and not _is_given(site))


def _check_definition(machine: Machine, root: Root) -> None:
    """A decorated function that a loop defines anew in each round, and calls there."""
    node: ast.AST | None = machine.module.parents.get(root.node)
    while node is not None and not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        name = getattr(root.node, "name", "")
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and _calls(node, name):
            machine.add("JW604", root.node.decorator_list[0], f"jit of {name}")  # type: ignore[union-attr]  # no lambda
            return
        node = machine.module.parents.get(node)


def _calls(loop: ast.AST, name: str) -> bool:
    calls = [part.func for part in ast.walk(loop) if isinstance(part, ast.Call)]
    return any(isinstance(function, ast.Name) and function.id == name for function in calls)


def _is_made_in_loop(machine: Machine, site: Site) -> bool:
    """Whether the loop makes the same jit in each round, and calls it there."""
    called = _is_called(machine, site) or _is_used_within(machine, site)
    return called and _depends_not_alone(machine, site.call.args[0], site)


def _is_called(machine: Machine, site: Site) -> bool:
    """Whether what jit returns is called at once."""
    parent = machine.module.parents.get(site.call)
    return isinstance(parent, ast.Call) and parent.func is site.call


def _is_fresh(machine: Machine, function: ast.expr, scope: Scope) -> bool:
    """Whether the function that is jitted is another object each time, so that nothing of jax's caches fits."""
    if isinstance(function, ast.Lambda):
        return True
    if isinstance(function, ast.Call):
        path = machine.path(function.func, Frame(scope))
        return path == "functools.partial" or path in transforms.TRANSFORMS
    found = scope.find(function.id) if isinstance(function, ast.Name) else None
    if found is None or not isinstance(scope.node, FUNCTIONS):
        return False
    where, bindings = found
    return where is scope and any(isinstance(binding.node, FUNCTIONS) for binding in bindings)


def _depends_not_alone(machine: Machine, function: ast.expr, site: Site) -> bool:
    """Whether the function is not one that the loop itself goes over, or makes out of what it goes over."""
    if isinstance(function, ast.Lambda):
        return True
    targets = {name for loop in site.loops for name in _targets(loop)}
    if isinstance(function, ast.Name):
        found = site.scope.find(function.id)
        if function.id in targets or found is None:
            return False
        assigned = [binding.node for binding in found[1] if not isinstance(binding.node, FUNCTIONS)]
        inside = {id(part) for loop in site.loops for part in ast.walk(loop)}
        return not any(node is None or id(node) in inside for node in assigned)
    used = {part.id for part in ast.walk(function) if isinstance(part, ast.Name)}
    inside = {id(part) for loop in site.loops for part in ast.walk(loop)}
    for name in used - targets:
        found = site.scope.find(name)
        if found is not None and any(id(binding.node) in inside for binding in found[1] if binding.node is not None):
            return False
    wrapped = isinstance(function, ast.Call) and _is_fresh(machine, function, site.scope)
    return not used & targets and (wrapped or isinstance(function, ast.Attribute))


def _targets(loop: ast.AST) -> set[str]:
    parts: list[ast.AST] = []
    if isinstance(loop, ast.For | ast.AsyncFor):
        parts = [loop.target]
    elif isinstance(loop, COMPREHENSIONS):
        parts = [generator.target for generator in loop.generators]
    return {name.id for part in parts for name in ast.walk(part) if isinstance(name, ast.Name)}


def _is_used_within(machine: Machine, site: Site) -> bool:
    """Whether the jitted function gets a name, and is called by it in the same round."""
    statement = machine.module.parents.get(site.call)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    return _calls(site.loops[-1], target.id)


def _is_kept(machine: Machine, site: Site) -> bool:
    """Whether an ``if`` around it lets it be made once alone: ``if key not in cache``, ``if step is None``."""
    node: ast.AST | None = machine.module.parents.get(site.call)
    while node is not None and node not in site.loops:
        if isinstance(node, ast.If) and any(
            isinstance(p, ast.NotIn | ast.Is | ast.Not | ast.Eq) for p in ast.walk(node.test)
        ):
            return True
        node = machine.module.parents.get(node)
    return False


def _is_cached(machine: Machine, node: ast.AST) -> bool:
    outer = Frame(machine.module.outer(node))
    marks = getattr(node, "decorator_list", [])
    return any(machine.path(mark.func if isinstance(mark, ast.Call) else mark, outer) in _CACHES for mark in marks)


def _works_on_arguments(machine: Machine, site: Site, outer: FunctionNode) -> bool:
    """Whether the call is on what its function is given, and neither name says that it is done once."""
    call = machine.module.parents.get(site.call)
    own = {argument.arg for argument in arguments(outer)} - {"self", "cls"}
    given = [*call.args, *(word.value for word in call.keywords)] if isinstance(call, ast.Call) else []
    used = {part.id for value in given for part in ast.walk(value) if isinstance(part, ast.Name)}
    once = _ONCE.match(getattr(outer, "name", "")) or _INITIAL.search(text_of(site.call.args[0]))
    return bool(own & used) and once is None and not _is_layer(machine, outer)


def _is_given(site: Site) -> bool:
    """Whether the function that is jitted is an argument of one around it, which cannot jit it any earlier."""
    function = site.call.args[0]
    found = site.scope.find(function.id) if isinstance(function, ast.Name) else None
    return found is not None and all(binding.node is None and not binding.path for binding in found[1])


def _is_layer(machine: Machine, outer: FunctionNode) -> bool:
    """Whether a function is the call of a module of layers, which is traced as a rule."""
    parent = machine.module.parents.get(outer)
    if not isinstance(parent, ast.ClassDef) or getattr(outer, "name", "") != "__call__":
        return False
    of = Class(parent, machine.module.scopes[parent], machine.module)
    return any(mark == "" or mark.endswith(".Module") for mark in of.marks())


def _runs_again(machine: Machine, node: ast.AST, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether a call of the module, in a loop, is of this function, or of one that calls it."""
    name = getattr(node, "name", "")
    if not name or node in seen:
        return False
    for site in machine.module.calls:
        called = site.call.func
        if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) != name:
            continue
        if site.loops or (
            isinstance(site.scope.node, FUNCTIONS) and _runs_again(machine, site.scope.node, seen | {node})
        ):
            return True
    return False
