"""What differs between two keys: all of it, and nothing else."""

import dataclasses
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys_made import keys, keys_and_changes

from jaxwatch import _limits
from jaxwatch._explain import ORDER, Difference, compare, differences, nearest, reasons_of
from jaxwatch._keys import Form, Key, Leaf, Node, Param, Static, Tree
from jaxwatch.events import REASONS, Change


def key(**arguments: Tree) -> Key:
    return Key(params=tuple(Param(name, "positional", tree) for name, tree in arguments.items()))


def vector(size: int) -> Leaf:
    return Leaf((size,), "float32", sharding="", placement="uncommitted", layout="")


@given(keys_and_changes())
def test_all_that_was_changed_is_told_and_nothing_else(case: tuple[Key, Key, set[tuple[str, str | None]]]) -> None:
    before, after, told = case

    assert {(change.reason, change.path) for change in compare(before, after)} == told


@given(keys())
def test_equal_keys_differ_in_nothing(made: Key) -> None:
    assert compare(made, made) == ()
    assert compare(made, dataclasses.replace(made)) == ()


@given(keys(), keys())
def test_no_change_is_told_whose_sides_are_equal_without_a_note(before: Key, after: Key) -> None:
    for change in differences(before, after):
        assert change.before != change.after or change.note


@given(keys(), keys())
def test_the_way_back_tells_the_same_places(before: Key, after: Key) -> None:
    there = {(change.reason, change.path, change.before, change.after) for change in differences(before, after)}
    back = {(change.reason, change.path, change.after, change.before) for change in differences(after, before)}

    assert {entry[:2] for entry in there} == {entry[:2] for entry in back}
    assert there == back


@given(keys(), keys())
def test_the_most_telling_comes_first(before: Key, after: Key) -> None:
    told = [ORDER.index(change.reason) for change in compare(before, after)]

    assert told == sorted(told)
    assert [ORDER.index(reason) for reason in reasons_of(compare(before, after))] == sorted(set(told))


def test_the_order_knows_every_reason() -> None:
    assert set(ORDER) == set(REASONS)


# ------------------------------------------------------------------ the nearest earlier key


def distance(found: Sequence[Difference]) -> tuple[int, int]:
    """Return how far apart two keys are: kinds of difference, then differences."""
    return len({difference.reason for difference in found}), len(found)


def told_nearest(earlier: Sequence[Key], made: Key) -> tuple[int, tuple[Change, ...]] | None:
    """Return what ``nearest`` is to return, by comparing with every key."""
    far = [distance(list(differences(kept, made))) for kept in earlier]
    return (far.index(min(far)), compare(earlier[far.index(min(far))], made)) if far else None


def spread(earlier: Sequence[Key], made: Key, rounds: int) -> list[Key]:
    """Return the keys, and others like ``made`` that differ from it in what an outline leaves out, or in nothing."""
    unknown = tuple(
        dataclasses.replace(param, tree=Leaf(*param.tree[:3])) if isinstance(param.tree, Leaf) else param
        for param in made.params
    )
    others = [dataclasses.replace(made, params=unknown), dataclasses.replace(made, params=made.params[::-1]), made]
    return [*earlier, *others[:rounds]]


@given(st.lists(keys(), max_size=6), keys(), st.integers(0, 3), st.randoms(use_true_random=False))
def test_the_nearest_key_differs_least_and_is_the_earliest_of_several(
    earlier: list[Key], made: Key, rounds: int, order: random.Random
) -> None:
    kept = spread(earlier, made, rounds)
    order.shuffle(kept)

    assert nearest(kept, made) == told_nearest(kept, made)


@given(st.lists(keys_and_changes(), min_size=1, max_size=5))
def test_so_it_is_among_keys_that_differ_in_little(cases: list[tuple[Key, Key, set[tuple[str, str | None]]]]) -> None:
    kept = [key for before, after, _ in cases for key in (after, before)]
    for key in kept:
        others = [other for other in kept if other is not key]
        assert nearest(others, key) == told_nearest(others, key)


@given(st.lists(st.tuples(*[st.integers(1, 3)] * 3), max_size=12), st.tuples(*[st.integers(1, 3)] * 3))
def test_so_it_is_among_keys_of_one_kind(sizes: list[tuple[int, ...]], size: tuple[int, ...]) -> None:
    def made(sizes: tuple[int, ...]) -> Key:
        x, y, dtype = sizes
        return key(x=vector(x), y=vector(y)._replace(dtype=f"int{dtype}", placement=f"committed to cpu:{x}"))

    kept = list(map(made, sizes))
    assert nearest(kept, made(size)) == told_nearest(kept, made(size))


def test_what_is_equal_is_nearer_than_what_comes_first_and_differs_in_one_thing() -> None:
    assert nearest([key(x=vector(1)), key(x=vector(2))], key(x=vector(2))) == (1, ())


def test_the_nearest_is_found_among_keys_that_differ_in_more_than_can_be_named() -> None:
    def tree(different: int) -> Key:
        return key(**{f"p{n:03}": vector(2 if n < different else 1) for n in range(100)})

    found = nearest([tree(90), tree(40), tree(60)], tree(0))

    assert found is not None
    assert found[0] == 1
    assert len(found[1]) == _limits.CHANGES_NAMED


# ------------------------------------------------------------------ bounds


@given(st.integers(0, 100))
def test_at_most_20_are_named_and_the_last_tells_how_many_more(different: int) -> None:
    before = key(params=Node("dict", tuple((f"[{n}]", vector(1)) for n in range(100))))
    after = key(params=Node("dict", tuple((f"[{n}]", vector(2 if n < different else 1)) for n in range(100))))

    told = compare(before, after)
    assert len(told) == min(different, _limits.CHANGES_NAMED)
    assert [change.path for change in told] == [f"params[{n}]" for n in range(len(told))]
    notes = [change.note for change in told if change.note]
    left = different - _limits.CHANGES_NAMED
    assert notes == ([f"and {left} more differences"] if left > 0 else [])


def test_a_rare_reason_is_named_among_many_of_another() -> None:
    before = key(**{f"p{n:03}": vector(1) for n in range(99)}, z=Leaf((), "int32"))
    after = key(**{f"p{n:03}": vector(2) for n in range(99)}, z=Leaf((), "int32", weak=True))

    told = compare(before, after)
    assert len(told) == _limits.CHANGES_NAMED
    assert reasons_of(told) == ("shape", "weak_type")
    assert told[-1].note == "and 80 more differences"


def test_a_note_that_is_there_stays_beside_how_many_more_there_are() -> None:
    def made(serial: int) -> Key:
        return key(**{f"s{n:03}": Static("f", f"f:{serial}", by_identity=True) for n in range(30)})

    assert compare(made(1), made(2))[-1].note == (
        "the class has no __eq__: another object is another key, whatever it holds; and 10 more differences"
    )


def test_texts_of_large_trees_are_cut() -> None:
    wide = Node("dict", tuple((f"['{'k' * 60}{n}']", vector(n)) for n in range(50)))

    (change,) = compare(key(x=wide), key(x=vector(1)))
    assert change.before is not None
    assert len(change.before) <= 2 * _limits.REPR_CHARACTERS


# ------------------------------------------------------------------ single kinds


def test_a_leaf_that_differs_in_two_ways_is_told_twice() -> None:
    told = compare(key(x=Leaf((4,), "float32")), key(x=Leaf((5,), "int32")))

    assert [(change.reason, change.before, change.after) for change in told] == [
        ("shape", "float32[4]", "int32[5]"),
        ("dtype", "float32[4]", "int32[5]"),
    ]


def test_what_is_not_known_of_a_tracer_is_never_claimed_to_differ() -> None:
    assert compare(key(x=Leaf((4,), "float32")), key(x=vector(4))) == ()


def test_another_sharding_is_not_also_another_placement() -> None:
    one = vector(4)._replace(placement="committed to cpu:0")
    split = vector(4)._replace(sharding="P('d') on mesh(d=2)", placement="committed to cpu:0 and 1 more")

    told = compare(key(x=one), key(x=split))
    assert [(change.reason, change.before, change.after) for change in told] == [
        ("sharding", "one device", "P('d') on mesh(d=2)")
    ]


@pytest.mark.parametrize("given_first", [True, False])
def test_a_default_given_or_left_out_is_a_call_form(given_first: bool) -> None:
    with_it = Key(
        params=(Param("x", "positional", vector(1)), Param("n", "keyword", Leaf((), "int32"), defaulted=True))
    )
    without = Key(params=(Param("x", "positional", vector(1)),))

    (change,) = compare(with_it, without) if given_first else compare(without, with_it)
    assert (change.reason, change.path) == ("call_form", "n")
    assert (change.before, change.after) == (("given", "left out") if given_first else ("left out", "given"))
    assert change.note is not None
    assert "int32[]" in change.note


def test_one_more_of_star_args_is_another_structure() -> None:
    def made(number: int) -> Key:
        return Key(params=tuple(Param(f"args[{n}]", "positional", vector(1), variadic=True) for n in range(number)))

    (change,) = compare(made(1), made(2))
    assert (change.reason, change.path, change.before, change.after) == ("structure", "args[1]", None, "float32[1]")


def test_an_argument_that_is_static_in_one_key_alone_is_told_by_the_options() -> None:
    plain = key(n=Leaf((), "int32"))
    marked = dataclasses.replace(key(n=Static("3", "int:3")), options=(("static_argnames", "('n',)"),))

    assert [change.reason for change in compare(plain, marked)] == ["options"]


def test_children_of_one_label_are_compared_one_by_one() -> None:
    def made(*sizes: int) -> Key:
        return key(x=Node("Odd", tuple((".a", vector(size)) for size in sizes)))

    assert [change.reason for change in compare(made(1, 2), made(3, 2))] == ["shape"]
    assert [change.reason for change in compare(made(1, 2), made(1, 2, 3))] == ["structure"]


def test_the_same_keys_in_another_order_are_another_structure() -> None:
    a, b = ("['a']", vector(1)), ("['b']", vector(1))

    (change,) = compare(key(x=Node("OrderedDict", (a, b))), key(x=Node("OrderedDict", (b, a))))
    assert (change.reason, change.path, change.note) == ("structure", "x", "the same keys in another order")


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (Static("1", "int:1"), Static("2", "int:2"), None),
        (Static("1", "int:1"), Static("1", "Mode:1"), "equal-looking values that do not compare equal"),
        (
            Static("Mode()", "M:1", by_identity=True),
            Static("Mode()", "M:2", by_identity=True),
            "the class has no __eq__: another object is another key, whatever it holds",
        ),
        (
            Static("M(1)", "M:1", by_identity=True),
            Static("M(2)", "M:2", by_identity=True),
            "compared by identity: another object is another key, whatever it holds",
        ),
        (Static("<int>", "1", redacted=True), Static("<int>", "2", redacted=True), "the values are left out"),
    ],
)
def test_a_static_value_is_told_with_what_its_text_does_not_show(
    before: Static, after: Static, note: str | None
) -> None:
    (change,) = compare(key(n=before), key(n=after))
    assert (change.reason, change.path, change.before, change.after) == ("static", "n", before.text, after.text)
    assert change.note == note


def test_values_whose_hashes_agree_and_texts_do_not_are_told_only_where_nothing_else_differs() -> None:
    one, two = (Static(text, "Mode:7", opaque=True) for text in ("Mode(1)", "Mode(2)"))

    (change,) = compare(key(n=one), key(n=two))
    assert (change.reason, change.note) == ("static", "the hashes are equal, the values are not")
    assert [change.reason for change in compare(key(n=one, x=vector(1)), key(n=two, x=vector(2)))] == ["shape"]


@pytest.mark.parametrize("form", ["positional", "keyword"])
def test_position_against_keyword_is_told_once_and_its_value_compared_all_the_same(form: Form) -> None:
    other: Form = "keyword" if form == "positional" else "positional"
    before, after = Key(params=(Param("x", form, vector(1)),)), Key(params=(Param("x", other, vector(2)),))

    assert [(change.reason, change.before) for change in compare(before, after)] == [
        ("call_form", form),
        ("shape", "float32[1]"),
    ]


def test_few_kinds_of_difference_are_nearer_than_few_differences() -> None:
    made = key(**{f"p{n}": vector(1) for n in range(9)})
    shapes = key(**{f"p{n}": vector(2) for n in range(9)})
    mixed = key(**{f"p{n}": vector(1) for n in range(8)}, p8=vector(2)._replace(dtype="int32"))

    found = nearest([mixed, shapes], made)
    assert found is not None
    assert found[0] == 1


def test_comparing_large_trees_takes_no_more_than_their_size() -> None:
    shuffled = list(range(20_000))
    random.Random(1).shuffle(shuffled)  # noqa: S311 -- no secret
    before = key(x=Node("dict", tuple((f"[{n}]", vector(1)) for n in range(20_000))))
    after = key(x=Node("dict", tuple((f"[{n}]", vector(2 if n == 9 else 1)) for n in range(20_000))))

    assert [change.path for change in compare(before, after)] == ["x[9]"]
