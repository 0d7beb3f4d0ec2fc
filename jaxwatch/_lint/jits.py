"""Which functions of a module are traced, and with what: all ways by which code is given to jax."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxwatch._lint import transforms
from jaxwatch._lint.classes import Class
from jaxwatch._lint.control import BEGIN
from jaxwatch._lint.engine import Machine
from jaxwatch._lint.evidence import Shape, annotated, used
from jaxwatch._lint.frames import CONCRETE, EACH_CALL, KEPT, Frame
from jaxwatch._lint.invocations import default_of, kept, places, run, statics
from jaxwatch._lint.scopes import FUNCTIONS, FunctionNode, Module, Scope, Site, arguments
from jaxwatch._lint.values import DOUBT, STATIC, TRACED, TREE, Callee, Kind, Value, box_of

FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Root:
    """A function that is traced: the transforms around it, the outermost first, and where that is written."""

    callee: Callee
    scope: Scope
    site: ast.AST
    decorates: bool = False

    @property
    def layers(self) -> list[Callee]:
        """The transforms and partials around the function."""
        found, callee = [], self.callee
        while callee.inner is not None:
            found.append(callee)
            callee = callee.inner
        return found

    @property
    def node(self) -> FunctionNode:
        """The function itself."""
        node = self.callee.base().node
        assert isinstance(node, FUNCTIONS)  # noqa: S101 -- `roots` lets nothing else through
        return node


def roots(machine: Machine) -> Iterator[Root]:
    """Yield what decorators and calls of the module hand to jax."""
    module = machine.module
    for node in module.scopes:
        if isinstance(node, FunctionDef) and node.decorator_list and machine.begin():
            outer = module.outer(node)
            value = transforms.defined(machine, node, Frame(outer))
            if value.callee is not None and value.callee.inner is not None:
                yield Root(value.callee, outer, node, decorates=True)
    for site in module.calls:
        found = _wrapped_by(machine, site)
        if found is not None:
            yield found


def _wrapped_by(machine: Machine, site: Site) -> Root | None:
    frame = Frame(site.scope)
    path = machine.path(site.call.func, frame) or transforms.applied(machine, site.call, frame)[0]
    if path not in transforms.TRANSFORMS or path in transforms.HAIKU or path in transforms.AS_IS:
        return None
    value = machine.eval(site.call, frame) if machine.begin() else STATIC
    if value.callee is None or not isinstance(value.callee.base().node, FUNCTIONS):
        return None
    return Root(value.callee, site.scope, site.call)


def look(machine: Machine) -> None:
    """Run all that is traced in a module, and note what is at fault."""
    for root in list(roots(machine)):
        if machine.begin():
            _run(machine, root)
    for site in machine.module.calls:
        if machine.path(site.call.func, Frame(site.scope)) in BEGIN and machine.begin():
            machine.eval(site.call, Frame(site.scope, root=True))


def _run(machine: Machine, root: Root) -> None:
    codes = max((transforms.codes_of(layer.how) for layer in root.layers), key=_RANK.__getitem__, default=())
    known = {"partial", "method", *transforms.HAIKU_FUNCTIONS} | transforms.TRANSFORMS
    doubt = any(layer.how not in known for layer in root.layers)
    if not codes:
        return
    scope = machine.module.scopes[root.node]
    frame = Frame(scope, 1, codes, root.callee.base().closure, doubt=doubt, running=(root.node,))
    for name, value in parameters(machine, root).items():
        frame.env[name] = value
    run(machine, root.node, frame)


_RANK: dict[tuple[str, ...], int] = {(): 0, CONCRETE: 1, EACH_CALL: 2, KEPT: 3}


def parameters(machine: Machine, root: Root) -> dict[str, Value]:
    """Return what is known of each parameter of a function that is traced."""
    node, module = root.node, machine.module
    fixed = {**_left(root), **_bound(root)}
    shapes = used(node, module.scopes[node])
    filtered = any(layer.how in transforms.FILTERED for layer in root.layers)
    found = {}
    for at, argument in enumerate(arguments(node)):
        value = fixed.get(argument.arg)
        if value is None:
            value = _free(machine, root, argument, shapes.get(argument.arg, Shape.EITHER), filtered=filtered)
        first = at == 0 and isinstance(module.parents.get(node), ast.ClassDef)
        found[argument.arg] = _self(value, module, node) if first and not _is_static_method(machine, node) else value
    return found


def _bound(root: Root) -> dict[str, Value]:
    """Return what partials and methods bind."""
    found: dict[str, Value] = {}
    for layer in root.layers:
        given = zip(places(layer.inner), layer.given, strict=False)
        found |= {name: replace(value, owner=0) for name, value in [*given, *layer.named]}
    return found


def _left(root: Root) -> dict[str, Value]:
    """Return the parameters that no transform makes tracers; what jit made a tracer stays one within."""
    layers = [
        layer for layer in root.layers if layer.how in transforms.TRANSFORMS - transforms.AS_IS - transforms.HAIKU
    ]
    jits = [layer for layer in layers if layer.how in transforms.JITS]
    told: dict[str, list[Value | None]] = {}
    for layer in jits or layers:
        names, held = places(layer.inner), statics(layer, Frame(root.scope))
        test = kept(layer, held) if held is not None else None
        for argument in arguments(root.node):
            place = names.index(argument.arg) if argument.arg in names else -1
            left = DOUBT if test is None else STATIC if test(place, argument.arg) else None
            told.setdefault(argument.arg, []).append(left)
    return {name: values[0] for name, values in told.items() if values[0] is not None and None not in values}


def _is_static_method(machine: Machine, node: FunctionNode) -> bool:
    marks = getattr(node, "decorator_list", [])
    outer = Frame(machine.module.outer(node))
    return any(machine.path(mark, outer) in {"builtins.staticmethod", "builtins.classmethod"} for mark in marks)


def _self(value: Value, module: Module, node: FunctionNode) -> Value:
    """Return a method's self: of a class that is a tree its fields are traced, else it is an object from outside."""
    parent = module.parents[node]
    of = Class(parent, module.scopes[parent], module) if isinstance(parent, ast.ClassDef) else None
    if of is None or value.kind in {Kind.STATIC, Kind.UNKNOWN}:
        return Value(Kind.UNKNOWN, 0, cls=of)
    if of.is_tree or of.is_open or of.is_plain is None:
        return Value(Kind.BOX, 1, item=DOUBT, cls=of)
    return Value(Kind.UNKNOWN, 0, cls=of)


def _free(machine: Machine, root: Root, argument: ast.arg, use: Shape, *, filtered: bool) -> Value:
    node, module = root.node, machine.module
    if argument in {node.args.vararg, node.args.kwarg}:
        return box_of(DOUBT if filtered else TREE, 1)
    default = default_of(node, argument.arg)
    if default is not None and not _is_passed(root, argument.arg, module):
        value = machine.eval(default, Frame(module.outer(node)))
        return STATIC if value.kind in {Kind.STATIC, Kind.UNKNOWN} else replace(value, owner=0)
    shape = annotated(argument.annotation, module.outer(node), module)
    if isinstance(shape, Class):
        held = shape.is_tree or shape.is_open or shape.is_plain is None
        return Value(Kind.BOX, 1, item=DOUBT if filtered else TREE, cls=shape) if held else DOUBT
    if shape is Shape.EITHER:
        shape = use
    if filtered:
        return {Shape.ARRAY: TRACED, Shape.BOX: box_of(DOUBT, 1)}.get(shape, DOUBT)
    return {Shape.ARRAY: TRACED, Shape.NUMBER: TRACED, Shape.BOX: box_of(TREE, 1)}.get(shape, Value(Kind.TREE, 1))


def _is_passed(root: Root, name: str, module: Module) -> bool:
    """Whether an argument with a default is ever passed: where no call is seen, of a decorated function it may be."""
    calls = _calls_of(root, module)
    spread = any(isinstance(part, ast.Starred) for site in calls for part in site.call.args)
    names = {word.arg for site in calls for word in site.call.keywords}
    return bool(passed_by(root, name, module)) or spread or None in names or (root.decorates and not calls)


def _calls_of(root: Root, module: Module) -> list[Site]:
    called = names_of(root, module)
    found = [site for site in module.calls if called and _last(site.call.func) in called and not _is_other(root, site)]
    return [*found, *(site for site in module.calls if site.call.func is root.site)]


def _is_other(root: Root, site: Site) -> bool:
    """Whether a call by the same name is of something else: of a name that is bound again, or of another object."""
    function = site.call.func
    if isinstance(function, ast.Attribute):
        return not isinstance(function.value, ast.Name)
    found = site.scope.find(function.id) if isinstance(function, ast.Name) else None
    own = {root.node, root.site}
    return found is None or not all(binding.node in own for binding in found[1])


def passed_by(root: Root, name: str, module: Module) -> list[tuple[ast.expr, Scope]]:
    """Return what calls of the module give for a parameter of a jitted function, and where."""
    node = root.node
    names = places(root.callee)
    at = names.index(name) if name in names else -1
    method = isinstance(module.parents.get(node), ast.ClassDef)
    found = []
    for site in _calls_of(root, module):
        call = site.call
        place = at - 1 if method and isinstance(call.func, ast.Attribute) and root.decorates else at
        if 0 <= place < len(call.args) and not any(isinstance(part, ast.Starred) for part in call.args[: place + 1]):
            found.append((call.args[place], site.scope))
        found += [(word.value, site.scope) for word in call.keywords if word.arg == name]
    return found


def names_of(root: Root, module: Module) -> set[str]:
    """Return the names by which the module calls what the transform returns."""
    if root.decorates:
        return {getattr(root.node, "name", "")}
    parent = module.parents.get(root.site)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        return {_last(parent.targets[0])} - {""}
    return set()


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
