"""Mutations of a known kind: what is told is what was changed, all of it and nothing else."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation_kinds import KINDS, a_call
from mutations import PLACES, USUAL, Argument, Array, Box, Call, Choose, Claim, Fixed, Mutated, Told, mutated, told
from mutations import Tree as Described

from jaxwatch import _compat, _core
from jaxwatch._explain import compare, nearest, reasons_of
from jaxwatch._keys import Form, Key, Leaf, Node, Param, Static, Tree
from jaxwatch._limits import REPR_CHARACTERS
from jaxwatch.events import Change

T = TypeVar("T")

# ------------------------------------------------------------------ the key of a described call


def leaf_of(array: Array, *, traced: bool) -> Leaf:
    if traced:
        return Leaf(array.shape, array.dtype, array.weak)
    sharding, placement, layout, *_ = PLACES[array.place]
    one, usual = sharding == "one device", layout == "default"
    return Leaf(array.shape, array.dtype, array.weak, "" if one else sharding, placement, "" if usual else layout)


def tree_of(tree: Described | Fixed, *, traced: bool = False) -> Tree:
    if tree is None:
        return Node("None")
    if isinstance(tree, Fixed):
        return Static(repr(tree.value), f"{type(tree.value).__name__}:{tree.value!r}")
    if isinstance(tree, Array):
        return leaf_of(tree, traced=traced)
    children = [(labelled(tree, name), tree_of(child, traced=traced)) for name, child in tree.fields]
    aux = Static("" if tree.held is None else str(tree.held), f"{tree.kind}:{tree.held}")
    return Node(tree.kind, tuple(children), aux if tree.kind in ("Pair", "Twin", "Batch") else None)


def labelled(box: Box, name: str) -> str:
    return {"dict": f"['{name}']", "OrderedDict": f"['{name}']", "list": f"[{name}]", "tuple": f"[{name}]"}.get(
        box.kind, f".{name}"
    )


def param_of(argument: Argument, call: Call) -> Param:
    form: Form = "keyword" if argument.form == "keyword" else "positional"
    variadic = call.several and argument.name != "a"
    tree = tree_of(argument.value, traced=bool(call.transform) and argument.name == "a")
    return Param(argument.name, form, tree, argument.defaulted, variadic)


def key_of(call: Call) -> Key:
    changed = dict(call.config)
    return Key(
        params=tuple(param_of(argument, call) for argument in call.arguments),
        config=tuple((name, changed.get(name, usual)) for name, (usual, _) in USUAL.items()),
        mesh=call.mesh,
        axis_env=call.axes,
        transform=call.transform,
        options=call.options,
    )


# ------------------------------------------------------------------ what is told, and what is to be


def seen(changes: Sequence[Change]) -> list[Told]:
    return sorted((Told(change.reason, change.path, change.before, change.after) for change in changes), key=str)


def cut(side: str | None) -> str | None:
    """Return a text of a container as it is shown where it is long."""
    most = 2 * REPR_CHARACTERS
    return side if side is None or len(side) <= most else side[: most - 1] + "…"


def wanted(before: Call, after: Call, claims: Sequence[Claim]) -> list[Told]:
    return sorted(
        (each._replace(before=cut(each.before), after=cut(each.after)) for each in told(before, after, claims)), key=str
    )


_BESIDE = ("options", "transform", "config", "mesh", "axis_env")
_OF_TREES = ("structure", "metadata", "static", "call_form")


def rank(reason: str) -> int:
    """Return how telling a reason is: what concerns all of the call, then a container's form, then an array's."""
    return 0 if reason in _BESIDE else 1 if reason in _OF_TREES else 2


def check(before: Call, done: Mutated) -> None:
    changes = compare(key_of(before), key_of(done.call))

    assert seen(changes) == wanted(before, done.call, done.claims)
    reasons = reasons_of(changes)
    assert set(reasons) == {claim.reason for claim in done.claims}
    assert list(dict.fromkeys(change.reason for change in changes)) == list(reasons)
    assert [rank(reason) for reason in reasons] == sorted(map(rank, reasons))


# ------------------------------------------------------------------ the pure part


def choosing(draw: st.DrawFn) -> Choose:
    def choose(options: Sequence[T], /) -> T:
        return options[draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]

    return choose


@st.composite
def examples(draw: st.DrawFn, most: int) -> tuple[Call, Mutated]:
    """Draw a call and up to so many mutations of it."""
    choose = choosing(draw)
    call = a_call(choose)
    names = list(KINDS)
    done = mutated(call, [choose(names) for _ in range(choose(range(1, most + 1)))], KINDS, choose)
    while not done.steps:  # none fits
        done = mutated(call, [choose(names)], KINDS, choose)
    return call, done


@settings(max_examples=900)
@given(examples(most=1))
def test_one_mutation_is_told_as_what_it_is(example: tuple[Call, Mutated]) -> None:
    check(*example)


@settings(max_examples=900)
@given(examples(most=6))
def test_of_several_at_once_each_is_told_and_nothing_else(example: tuple[Call, Mutated]) -> None:
    check(*example)


@settings(max_examples=300)
@given(examples(most=4))
def test_the_way_back_tells_the_same_the_other_way_round(example: tuple[Call, Mutated]) -> None:
    call, done = example

    changes = compare(key_of(done.call), key_of(call))
    assert seen(changes) == wanted(done.call, call, done.claims)


@st.composite
def several_earlier(draw: st.DrawFn) -> tuple[Call, list[Mutated]]:
    choose = choosing(draw)
    call, names = a_call(choose), list(KINDS)
    return call, [
        mutated(call, [choose(names) for _ in range(choose(range(5)))], KINDS, choose)
        for _ in range(choose(range(1, 6)))
    ]


@settings(max_examples=300)
@given(several_earlier())
def test_a_call_is_told_against_the_earlier_one_that_least_was_done_to(case: tuple[Call, list[Mutated]]) -> None:
    call, earlier = case
    done = [(len({claim.reason for claim in each.claims}), len(each.claims)) for each in earlier]
    place = done.index(min(done))

    found = nearest([key_of(each.call) for each in earlier], key_of(call))
    assert found is not None
    assert found[0] == place
    assert seen(found[1]) == wanted(earlier[place].call, call, earlier[place].claims)


@settings(max_examples=200)
@given(examples(most=3))
def test_no_mutation_is_no_change(example: tuple[Call, Mutated]) -> None:
    for call in (example[0], example[1].call):
        assert compare(key_of(call), key_of(call)) == ()
        assert nearest([key_of(call)], key_of(call)) == (0, ())


# ------------------------------------------------------------------ really jitted

JITTED = 221  # 13 of each kind first, half of them with another
DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}


@pytest.fixture(scope="module")
def jitted() -> list[dict[str, Any]]:
    """Return what came of the sample, under the core in use, and in two parts: machines are busy."""
    if not _compat.HAS_CONTEXT_NAMES:
        pytest.skip("this JAX does not name all of its configuration")
    program, rows, half = Path(__file__).with_name("mutations_jitted.py"), list[dict[str, Any]](), JITTED // 2
    for part in ((0, half), (half, JITTED)):
        variables = {"JAXWATCH_CORE": _core.CORE.name, **DEVICES}
        ended = programs.run_file(program, *map(str, part), **variables)
        assert ended.code == 0, ended.err
        rows += map(json.loads, ended.out.splitlines())
    return rows


def test_of_really_jitted_calls_just_that_is_told_for_which_jax_built(jitted: list[dict[str, Any]]) -> None:
    assert len(jitted) == JITTED >= 200
    wrong = [
        row
        for row in jitted
        if [miss["changes"] for miss in row["told"]] != [row["expected"]] * any(row["builds alone"])
    ]
    assert wrong == []


def test_the_first_call_alone_is_told_beside_them(jitted: list[dict[str, Any]]) -> None:
    assert [row for row in jitted if row["first"] != [["first_call"]]] == []
    assert [row for row in jitted if any(row["quiet"])] == [], "an equal call is told"


def test_jax_itself_built_for_those_calls_and_no_others(jitted: list[dict[str, Any]]) -> None:
    for row in jitted:
        first, again, then, once_more, back = row["built"]
        assert first, row
        assert bool(then) == any(row["builds alone"]), row
        assert (again, once_more, back) == (0, 0, 0), row


def test_the_sample_has_every_kind_and_some_for_which_jax_builds_nothing(jitted: list[dict[str, Any]]) -> None:
    kinds = Counter(kind for row in jitted for kind in row["kinds"])

    assert set(kinds) == set(KINDS) - {"options"}
    assert min(kinds.values()) >= JITTED // len(kinds)
    assert sum(not any(row["builds alone"]) for row in jitted) >= 5
    assert {"sharding", "placement", "layout", "axis_env"} <= {
        change[0] for row in jitted for change in row["expected"]
    }
