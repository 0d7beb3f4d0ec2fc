"""The engine: what the parts share. It runs a function's body on what is known of its arguments, within a budget."""

import ast
from collections.abc import Mapping, Sequence

from jaxwatch._lint import expressions, invocations, statements, stores, truths
from jaxwatch._lint.classes import Class
from jaxwatch._lint.frames import Frame
from jaxwatch._lint.names import path_of, text_of
from jaxwatch._lint.rules import RULES, Finding
from jaxwatch._lint.scopes import FUNCTIONS, Binding, Module, Scope
from jaxwatch._lint.transforms import TRANSFORMS, defined
from jaxwatch._lint.values import UNKNOWN, Callee, Kind, Value

# Expressions that are looked at for one traced function with all that it calls, and for a file.
STEPS, STEPS_OF_A_FILE = 30_000, 1_500_000
_LEXICAL_DEPTH = 6


class Machine:
    """An engine for one module; `frames.Engine` says what its parts ask of it."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.findings: dict[tuple[int, int, str], Finding] = {}
        self.traced: set[ast.AST] = set()  # functions that were run under a transform
        self.left = 0
        self.left_of_file = STEPS_OF_A_FILE
        self._known: dict[tuple[Scope, str], Value] = {}
        self._asking: list[tuple[Scope, str]] = []

    def begin(self) -> bool:
        """Begin with another traced function; return whether the file's budget allows it."""
        self.left = min(STEPS, self.left_of_file)
        return self.left > 0

    def eval(self, node: ast.AST | None, frame: Frame) -> Value:
        """See `frames.Engine`; where the budget is used up, nothing is known of any value."""
        self.left -= 1
        self.left_of_file -= 1
        if node is None or self.left < 0:
            return UNKNOWN
        return expressions.evaluate(self, node, frame)

    def body(self, given: Sequence[ast.stmt], frame: Frame) -> bool:
        """See `frames.Engine`."""
        return self.left >= 0 and statements.run_all(self, given, frame)

    def truth(self, test: ast.expr, frame: Frame, code: str) -> Value:
        """See `frames.Engine`."""
        return truths.truth(self, test, frame, code)

    def refined(self, test: ast.expr, frame: Frame, *, holds: bool) -> None:
        """See `frames.Engine`."""
        truths.refine(self, test, frame, holds=holds)

    def store(self, target: ast.AST, value: Value, frame: Frame) -> None:
        """See `frames.Engine`."""
        stores.store(self, target, value, frame)

    def invoke(self, callee: Callee, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
        """See `frames.Engine`."""
        return invocations.invoke(self, callee, given, named, frame)

    def path(self, node: ast.AST, frame: Frame) -> str:
        """See `frames.Engine`."""
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and _in_frames(root.id, frame):
            return ""
        return path_of(node, frame.scope)

    def report(self, code: str, node: ast.AST, what: ast.AST | str, frame: Frame, *, doubt: bool = False) -> None:
        """See `frames.Engine`; what is sure in one run is sure."""
        if not code.startswith(frame.codes):
            return
        if frame.caught and code.startswith(("JW3", "JW4")):
            doubt = True
        certain = not (doubt or frame.doubt or RULES[code].pedantic)
        text = what if isinstance(what, str) else text_of(what)
        self.add(code, node, text, certain=certain)

    def add(self, code: str, node: ast.AST, what: str, *, certain: bool = True) -> None:
        """Note a finding, wherever it is from."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        before = self.findings.get((line, column, code))
        if before is None or (certain and not before.certain):
            message = RULES[code].message.format(what=what)
            self.findings[line, column, code] = Finding(line, column, code, message, certain)

    def lexical(self, name: str, scope: Scope) -> Value:
        """See `frames.Engine`: of one assignment what is assigned, of functions the last."""
        found = scope.find(name)
        if found is None:
            return UNKNOWN
        where, bindings = found
        key = (where, name)
        if key in self._known:
            return self._known[key]
        if key in self._asking or len(self._asking) > _LEXICAL_DEPTH:
            return Value(Kind.UNKNOWN, 0)
        self._asking.append(key)
        try:
            value = self._bound(where, bindings)
        finally:
            self._asking.pop()
        self._known[key] = value
        return value

    def assigned(self, expression: ast.expr, scope: Scope) -> Value:
        """See `frames.Engine`."""
        key = (scope, f"{expression.lineno}:{expression.col_offset}")
        if key in self._asking or len(self._asking) > _LEXICAL_DEPTH:
            return UNKNOWN
        self._asking.append(key)
        try:
            return self.eval(expression, Frame(scope))
        finally:
            self._asking.pop()

    def _bound(self, where: Scope, bindings: list[Binding]) -> Value:
        last = bindings[-1].node
        functions = all(isinstance(binding.node, FUNCTIONS) for binding in bindings)
        if (
            not functions
            and isinstance(bindings[0].node, FUNCTIONS)
            and all(self._is_transform(where, each) for each in bindings[1:])
        ):
            return defined(self, bindings[0].node, Frame(where))  # f = jit(f)
        if isinstance(last, (*FUNCTIONS, ast.ClassDef)) and (functions or len(bindings) == 1):
            return defined(self, last, Frame(where))
        if isinstance(last, ast.expr) and len(bindings) == 1:
            left, self.left = self.left, STEPS // 10
            value = expressions.outside(self.eval(last, Frame(where)))
            self.left = left
            return value
        return Value(Kind.UNKNOWN, 0, cls=self._instance(where, bindings))

    def _is_transform(self, where: Scope, binding: Binding) -> bool:
        return isinstance(binding.node, ast.Call) and path_of(binding.node.func, where) in TRANSFORMS

    def _instance(self, where: Scope, bindings: list[Binding]) -> Class | None:
        """Return the class of a method's self."""
        method = where.node
        parent = self.module.parents.get(method)
        if not isinstance(parent, ast.ClassDef) or not isinstance(method, FUNCTIONS) or isinstance(method, ast.Lambda):
            return None
        first = [argument.arg for argument in (*method.args.posonlyargs, *method.args.args)][:1]
        mine = first and where.bindings.get(first[0]) is bindings and not method.decorator_list
        return Class(parent, self.module.scopes[parent], self.module) if mine else None


def _in_frames(name: str, frame: Frame | None) -> bool:
    while frame is not None:
        if name in frame.env:
            return True
        frame = frame.closure
    return False
