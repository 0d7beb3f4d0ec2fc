"""Whatever a file holds, it is looked at or told to be unreadable, and the others are looked at all the same."""

import ast
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxwatch._lint.check import check
from jaxwatch._lint.rules import RULES
from jaxwatch._lint.run import lint
from jaxwatch._lint.values import (
    ARRAY,
    DOUBT,
    NUMPY,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Value,
    as_traced,
    box,
    box_of,
    depth,
    element,
    join,
    traced_in,
)

HEAD = "import jax\nimport jax.numpy as jnp\n\n\n"
JIT = f"{HEAD}@jax.jit\ndef f(x):\n"
PLANTED = [path.read_text("utf-8") for path in sorted((Path(__file__).parent / "lint_planted").glob("*.py"))]

DEEP = {
    "sum": f"{JIT}    return {' + '.join(['x'] * 20_000)}\n",
    "parentheses": f"{HEAD}y = {'(' * 5_000}1{')' * 5_000}\n",
    "attributes": f"{JIT}    return x{'.T' * 5_000}\n",
    "calls": f"{JIT}    return x{'.sum()' * 5_000}\n",
    "ternary": f"{JIT}    return {'1 if x.ndim else ' * 5_000}2\n",
    "elif": f"{JIT}    if x.ndim == 0:\n        pass\n"
    + "".join(f"    elif x.ndim == {n}:\n        pass\n" for n in range(3_000)),
    "lambdas": f"{HEAD}f = jax.jit({'lambda x: ' * 500}print(x))\n",
    "loops": JIT + "".join(f"{'    ' * n}for i{n} in range(3):\n" for n in range(1, 19)) + f"{'    ' * 19}y = x\n",
    "calls of calls": HEAD
    + "".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x)\n" for n in range(300))
    + "g = jax.jit(f0)\n",
    "itself": f"{JIT}    return f(x) + g(x)\n\n\ndef g(x):\n    return f(x)\n\n\na = a\nb = c\nc = b\njax.jit(b)(a)\n",
    "a class of itself": f"{HEAD}class A(A):\n    def __init__(self):\n        self.f = self.g = jax.jit(self.g)\n",
    "lines": f"{HEAD}" + "".join(f"@jax.jit\ndef f{n}(x):\n    return x.sum()\n\n\n" for n in range(10_000)),
}


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP.keys())
def test_a_source_of_any_depth_or_length_comes_to_an_end(source: str) -> None:
    assert {finding.code for finding in check(source, pedantic=True)} <= {"JW000", "JW101"}


BYTES = {
    "a null byte": b"import jax\nx = '\0'\n",
    "an unknown encoding": b"# coding: nope\nimport jax\n",
    "not its encoding": b"import jax\ns = '\xff\xfe'\n",
    "utf-16": "import jax".encode("utf-16"),
    "no text": bytes(range(256)) * 10,
    "a syntax error": b"def f(:\n",
    "python 2": b"print 'a'\n",
}


@pytest.mark.parametrize("content", BYTES.values(), ids=BYTES.keys())
def test_a_file_that_is_no_python_is_told_and_stops_no_other(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)
    (tmp_path / "b.py").write_text(f"{JIT}    print(x)\n")

    assert [finding.code for _, _, finding in lint([str(tmp_path)]).findings] == ["JW000", "JW101"]


FINE = {
    "a byte order mark": ("\ufeff" + f"{JIT}    print('é', x)\n").encode(),
    "another encoding": f"# -*- coding: latin-1 -*-\n{JIT}    s = 'é'; print(x)\n".encode("latin-1"),
    "lines of windows": f"{JIT}    print(x)\n".replace("\n", "\r\n").encode(),
    "tabs and form feeds": f"{JIT}\f\tprint(x)\n".encode(),
    "an escape that python warns of": f"{JIT}    print('\\d', x)\n".encode(),
}


@pytest.mark.parametrize("content", FINE.values(), ids=FINE.keys())
def test_any_form_of_text_that_python_reads_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.py").write_bytes(content)

    assert [finding.code for _, _, finding in lint([str(tmp_path)]).findings] == ["JW101"]


CALLEES = [
    "jax.jit",
    "jax.vmap",
    "jax.grad",
    "jax.lax.scan",
    "jax.lax.cond",
    "jax.lax.switch",
    "jax.lax.while_loop",
    "jax.lax.fori_loop",
    "jax.lax.map",
    "jax.tree.map",
    "jax.tree.reduce",
    "jax.vjp",
    "jax.jvp",
    "jax.eval_shape",
    "jax.pure_callback",
    "jax.debug.print",
    "jax.random.normal",
    "jnp.zeros",
    "jnp.arange",
    "jnp.where",
    "jnp.apply_along_axis",
    "max",
    "float",
    "range",
    "sum",
    "list",
    "zip",
    "enumerate",
    "map",
    "filter",
    "abs",
    "getattr",
    "setattr",
    "isinstance",
    "any",
    "sorted",
    "dict",
    "callable",
    "type",
    "x.reshape",
    "x.at[0].set",
    "x.item",
    "f",
    "functools.partial",
    "np.array",
    "math.sqrt",
]


@pytest.mark.parametrize("callee", CALLEES)
@pytest.mark.parametrize("given", ["", "x", "f", "*x", "**x", "f, *x", "x, x, x, x", "a=x", "f, 1, static_argnums=f()"])
def test_a_call_with_any_arguments_is_no_fault_of_ours(callee: str, given: str) -> None:
    outside = callee.replace("x.", "f.")
    source = f"import functools, math\nimport numpy as np\n{JIT}    return {callee}({given})\n\n\n{outside}({given})\n"

    assert not [finding for finding in check(source, pedantic=True) if finding.code == "JW000"]


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9), source=st.sampled_from(PLANTED))
def test_parts_of_programs_put_elsewhere_are_no_fault_of_ours(seed: int, source: str) -> None:
    """Statements and expressions change places: most of it is nonsense, and all of it is Python."""
    pick = random.Random(seed)  # noqa: S311 -- no secret
    tree = ast.parse(source)
    parts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
    ]

    class Shuffle(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            super().generic_visit(node)
            for name, value in ast.iter_fields(node):
                if (
                    isinstance(value, ast.expr)
                    and isinstance(getattr(value, "ctx", ast.Load()), ast.Load)
                    and pick.random() < 0.05
                ):
                    setattr(node, name, pick.choice(parts))
            return node

    body = tree.body
    tree.body = pick.sample(body, len(body) // 3)
    try:
        text = ast.unparse(Shuffle().visit(tree))
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, TypeError, AttributeError):
        return

    assert not [finding for finding in check(text, pedantic=True) if "a fault of jaxwatch" in finding.message]


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_is_looked_at(text: str) -> None:
    for finding in check(f"import jax\n{text}"):
        assert finding.code in RULES
        assert finding.line >= 1
        assert finding.column >= 1
        assert "a fault of jaxwatch" not in finding.message


# ------------------------------------------------------------------ values


LEAVES = st.sampled_from([UNKNOWN, STATIC, TRACED, TREE, DOUBT, NUMPY, ARRAY])
VALUES = st.recursive(
    LEAVES, lambda inner: st.one_of(st.lists(inner, max_size=4).map(box), inner.map(box_of)), max_leaves=12
)


@given(value=VALUES)
def test_a_value_joined_with_itself_is_itself(value: Value) -> None:
    assert join(value, value) == value


@given(one=VALUES, other=VALUES)
def test_a_join_says_of_tracers_no_more_than_both_do(one: Value, other: Value) -> None:
    held = traced_in(join(one, other))

    assert held is not True or traced_in(one) or traced_in(other)
    assert held is not False or not (traced_in(one) and traced_in(other))


@given(value=VALUES)
def test_what_comes_out_of_a_trace_is_traced_in_all_its_leaves(value: Value) -> None:
    def leaves(of: Value) -> list[Value]:
        inner = list(of.items or ([of.item] if of.item else []))
        return [leaf for part in inner for leaf in leaves(part)] if inner else [of] if of.items is None else []

    assert all(traced_in(leaf) for leaf in leaves(as_traced(value)))


@given(value=VALUES)
def test_containers_in_containers_do_not_grow_without_end(value: Value) -> None:
    wrap: list[Callable[[Value], Value]] = [lambda v: box([v]), box_of]
    for turn in range(40):
        value = wrap[turn % 2](value)

    assert depth([value]) <= 6
    element(value)
