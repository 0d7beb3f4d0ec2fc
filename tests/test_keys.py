"""Keys as plain data."""

import dataclasses
import json
import pickle
import re

import pytest
from figures import hostile
from hypothesis import given
from keys_made import keys, keys_and_changes

from jaxwatch import _limits
from jaxwatch._explain import compare
from jaxwatch._keys import Key, Leaf, Node, Param, Static, Tree, alike, in_full, shared


def key(tree: Tree, name: str = "x") -> Key:
    return Key(params=(Param(name, "positional", tree),))


@pytest.mark.parametrize(
    ("leaf", "text"),
    [
        (Leaf((8, 128), "float32"), "float32[8,128]"),
        (Leaf((), "float32", weak=True), "~float32[]"),
        (Leaf((0,), "int32"), "int32[0]"),
        (Leaf((), "key<fry>"), "key<fry>[]"),
        (Leaf(("n", 3), "int8"), "int8[n,3]"),
    ],
)
def test_a_leaf_is_told_as_the_schema_says(leaf: Leaf, text: str) -> None:
    assert str(leaf) == text


def test_a_container_tells_its_first_children() -> None:
    leaf = Leaf((), "int32")

    assert str(Node("None")) == "None"
    assert str(Node("tuple", (("[0]", leaf), ("[1]", Node("None"))))) == "tuple([0]: int32[], [1]: None)"
    assert str(Node("Batch", ((".x", leaf),), Static("3", "int:3"))) == "Batch(3, .x: int32[])"
    assert str(Node("list", tuple((f"[{n}]", leaf) for n in range(9)))).endswith("[3]: int32[], …)")


@given(keys())
def test_a_signature_is_s_and_hex_digits_and_a_key_can_be_pickled(made: Key) -> None:
    assert re.fullmatch(r"s[0-9a-f]{12}", made.signature)
    assert pickle.loads(pickle.dumps(made)).signature == made.signature  # noqa: S301 -- our own


@given(keys_and_changes())
def test_keys_that_differ_have_signatures_that_do(case: tuple[Key, Key, set[tuple[str, str | None]]]) -> None:
    before, after, told = case

    assert (before.signature == after.signature) is (not told)


def test_a_signature_takes_the_digest_of_a_static_and_not_its_shortened_text() -> None:
    assert key(Static("a…", "t1", digest="1")).signature != key(Static("a…", "t1", digest="2")).signature
    assert key(Static("a…", "t1", digest="1")).signature == key(Static("a…", "t2", digest="1")).signature


def test_what_is_not_known_of_a_tracer_does_not_enter_the_signature_as_text_none() -> None:
    assert key(Leaf((), "int32")).signature == key(Leaf((), "int32", sharding="")).signature


@given(hostile)
def test_any_name_makes_a_signature(name: str) -> None:
    made = key(Node(name, ((name, Leaf((), "int32")),), Static(name, name)), name)

    assert made.signature.startswith("s")
    assert made.abstract


def test_the_readable_form_says_how_each_argument_was_given_and_what_else_is_unusual() -> None:
    leaf = Leaf((2,), "float32")
    params = (
        Param("x", "positional", leaf),
        Param("args[0]", "positional", leaf, variadic=True),
        Param("y", "keyword", leaf),
    )
    made = Key(params=params, mesh="mesh(d=2)", transform="grad", options=(("donate_argnums", "(0,)"),))

    expected = "(x: float32[2], args[0]=float32[2], y=float32[2]) under grad; mesh(d=2); donate_argnums=(0,)"
    assert made.abstract == expected


def test_the_readable_form_of_a_large_tree_is_bounded_and_made_at_once() -> None:
    tree: Tree = Leaf((), "float32")
    for _ in range(40):  # in full it would have 4 ** 40 leaves
        tree = Node("dict", tuple((f"['{name}']", tree) for name in "abcd"))
    many = Key(params=tuple(Param(f"p{n}", "positional", tree) for n in range(100)))

    assert len(many.abstract) == _limits.ABSTRACT_CHARACTERS
    assert many.abstract.endswith("…")


@pytest.mark.parametrize(
    ("made", "opaque"),
    [
        (key(Leaf((), "int32")), False),
        (key(Static("1", "int:1")), False),
        (key(Static("Mode()", "Mode:7", opaque=True)), True),
        (key(Node("Batch", (), Static("", "", opaque=True))), True),
        (key(Node("tuple", (("[0]", Node("Batch", (), Static("", "", opaque=True))),))), True),
        (dataclasses.replace(key(Leaf((), "int32")), partial=True), True),
    ],
)
def test_a_key_is_opaque_where_any_part_of_it_is(made: Key, opaque: bool) -> None:
    assert made.opaque is opaque


def test_the_weight_of_a_key_is_its_leaves_and_containers() -> None:
    leaf = Leaf((), "int32")

    assert key(leaf).leaves == 1
    assert key(Node("tuple", (("[0]", leaf), ("[1]", Node("list", (("[0]", leaf),)))))).leaves == 4


@given(keys(least=1))
def test_the_shape_of_every_leaf_is_found_by_its_path(made: Key) -> None:
    def below(path: str, tree: Tree) -> list[tuple[str, Leaf]]:
        if isinstance(tree, Leaf):
            return [(path, tree)]
        children = tree.children if isinstance(tree, Node) else ()
        return [entry for label, child in children for entry in below(path + label, child)]

    for param in made.params:
        for path, leaf in below(param.name, param.tree):
            assert made.shape_at(path) == leaf.shape
    assert made.shape_at("nowhere") is None


def test_a_name_that_begins_another_is_not_taken_for_it() -> None:
    node = Node("dict", (("['a']", Leaf((2,), "int32")), ("['a']['b']", Leaf((3,), "int32"))))
    made = Key(params=(Param("x", "positional", Leaf((1,), "int32")), Param("xs", "positional", node)))

    assert made.shape_at("xs['a']") == (2,)
    assert made.shape_at("xs['a']['b']") == (3,)
    assert made.shape_at("xs") is None


@given(keys_and_changes())
def test_what_is_shared_is_equal_and_made_of_the_very_parts(case: tuple[Key, Key, set[tuple[str, str | None]]]) -> None:
    before, after, _ = case
    for old, new in zip(before.params, after.params, strict=True):
        made = shared(new.tree, old.tree)
        assert made == new.tree
        assert (made is old.tree) is (new.tree == old.tree)
        if isinstance(made, Node) and isinstance(old.tree, Node) and len(made.children) == len(old.tree.children):
            for a, b in zip(made.children, old.tree.children, strict=True):
                assert (a is b) is (a == b)


@given(keys_and_changes())
def test_an_argument_is_taken_over_where_it_is_equal(case: tuple[Key, Key, set[tuple[str, str | None]]]) -> None:
    before, after, _ = case
    for old, new in zip(before.params, after.params, strict=True):
        assert alike(new, old) == new
        assert (alike(new, old) is old) is (new == old)
        assert alike(new, None) is new


@given(keys(), keys())
def test_keys_of_one_outline_and_statics_are_all_that_may_differ_in_nothing(before: Key, after: Key) -> None:
    if not compare(before, after):
        assert before.outline == after.outline or before.statics != after.statics


# ------------------------------------------------------------------ in full


def test_in_full_each_leaf_has_a_row_with_all_that_is_known_of_it() -> None:
    leaf = Leaf((3,), "float32", sharding="one", placement="cpu:0", layout="(0,)")
    tree = Node("Batch", (("['a']", leaf), ("['b']", Static("M", "t1", opaque=True))), Static("3", "t2"))
    made = Key(
        params=(
            Param("x", "keyword", tree, defaulted=True),
            Param("n", "positional", Static("I", "t3", by_identity=True)),
        ),
        config=(("jax_enable_x64", "True"),),
        mesh="m",
        axis_env="e",
        transform="jvp",
        options=(("inline", "True"),),
        partial=True,
    )

    assert in_full(made) == {
        "arguments": [
            ["x is given", "keyword, has a default"],
            ["x", "Batch, static 3, t2"],
            ["x['a']", "float32[3], one, cpu:0, (0,)"],
            ["x['b']", "static M, as its own __eq__ compares, t1"],
            ["n is given", "positional"],
            ["n", "static I, compared by identity, t3"],
        ],
        "config": {"jax_enable_x64": "True"},
        "mesh": "m",
        "axis_env": "e",
        "transform": "jvp",
        "options": {"inline": "True"},
        "partial": True,
    }


@given(keys())
def test_in_full_every_key_can_be_written_as_json(made: Key) -> None:
    assert json.loads(json.dumps(in_full(made))) == in_full(made)


def test_in_full_rows_are_bounded_and_what_goes_is_counted() -> None:
    tree = Node("list", tuple((f"[{n}]", Leaf((), "int32")) for n in range(_limits.FULL_LEAVES + 5)))
    rows = in_full(key(tree))["arguments"]

    assert len(rows) == _limits.FULL_LEAVES + 1
    assert rows[-1] == ["and more", "7"]


def test_in_full_what_is_redacted_has_no_token_by_which_it_could_be_guessed() -> None:
    (_, (_, row)) = in_full(key(Static("<int>", "3:123456", opaque=True, redacted=True), "n"))["arguments"]

    assert row == "static <int>, as its own __eq__ compares"
