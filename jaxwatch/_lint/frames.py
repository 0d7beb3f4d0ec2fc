"""A run of one function on values of which little is known, and what such runs ask of the engine."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from jaxwatch._lint.scopes import Module, Scope
from jaxwatch._lint.values import Callee, Value

# Which codes can be at fault, by their beginnings: a trace that is kept; one made at each call; values that are there.
KEPT, EACH_CALL, CONCRETE, QUIET = ("JW",), ("JW3", "JW4", "JW5"), ("JW402", "JW5"), ()


@dataclass(slots=True, eq=False)
class Frame:
    """A function while it is run.

    Attributes:
        scope: Its names as they are written.
        level: How many traces it is within; 0 is outside of all.
        codes: The beginnings of codes that can be a fault here.
        closure: The frame of the function around it, if that is being run too.
        doubt: What is found here may be right.
        caught: What fails here is caught.
        root: Traces that begin here are looked at, though nothing here is traced.
        running: The functions that are being run, this one included.
    """

    scope: Scope
    level: int = 0
    codes: tuple[str, ...] = QUIET
    closure: "Frame | None" = None
    doubt: bool = False
    caught: bool = False
    running: tuple[ast.AST, ...] = ()
    root: bool = False
    env: dict[str, Value] = field(default_factory=dict)
    returned: list[Value] = field(default_factory=list)

    def traced(self, codes: tuple[str, ...] = KEPT) -> "Frame":
        """Return a frame for what is traced from here, one level further in."""
        known = self.codes != QUIET or self.root
        codes = KEPT if self.staged else codes
        return self.within(level=self.level + 1, codes=codes if known else QUIET, root=False)

    @property
    def staged(self) -> bool:
        """Whether all of jax's operations are traced here, those on constants too."""
        return self.codes == KEPT

    def within(self, **changes: object) -> "Frame":
        """Return a frame of the same function with its own copy of the variables."""
        return replace(self, **{"env": dict(self.env), **changes})  # type: ignore[arg-type]  # names of fields


class Engine(Protocol):
    """What the parts of an engine ask of one another."""

    module: Module
    traced: set[ast.AST]

    def eval(self, node: ast.AST | None, frame: Frame) -> Value:
        """Return what is known of an expression's value, and report what is at fault in it."""

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> bool:
        """Run statements; return whether they never come to their end."""

    def truth(self, test: ast.expr, frame: Frame, code: str) -> Value:
        """Evaluate a test, and report with ``code`` if it is traced."""

    def refined(self, test: ast.expr, frame: Frame, *, holds: bool) -> None:
        """Note in the frame what is known where the test holds, or does not."""

    def store(self, target: ast.AST, value: Value, frame: Frame) -> None:
        """Assign."""

    def invoke(self, callee: Callee, given: Sequence[Value], named: Mapping[str, Value], frame: Frame) -> Value:
        """Call a function of this module."""

    def report(self, code: str, node: ast.AST, what: ast.AST | str, frame: Frame, *, doubt: bool = False) -> None:
        """Note a finding."""

    def path(self, node: ast.AST, frame: Frame) -> str:
        """Return the full path of what an expression stands for, "" where it is not known."""

    def assigned(self, expression: ast.expr, scope: Scope) -> Value:
        """Return what an attribute is set to elsewhere; UNKNOWN where that depends on itself."""

    def lexical(self, name: str, scope: Scope) -> Value:
        """Return what is known of a name from outside of what is run."""


Handler = Callable[[Engine, ast.Call, str, Frame], Value]  # a call, and the path of what it calls
