"""What a new key is compared with, and what is forgotten at a bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from keys_made import keys
from test_explain import distance

from jaxwatch import _limits
from jaxwatch._advisor import DEFINED_AGAIN
from jaxwatch._explain import differences
from jaxwatch._history import History, Remembered
from jaxwatch._keys import Key, Leaf, Node, Param, Static
from jaxwatch._registry import REGISTRY


def key(size: int, *, opaque: bool = False) -> Key:
    mark = (Param("m", "positional", Static("M", "M", opaque=True)),) if opaque else ()
    return Key(params=(Param("x", "positional", Leaf((size,), "float32")), *mark))


def dropped() -> int:
    return REGISTRY.snapshot().dropped.get("key", 0)


def kept(*sizes: int, identity: str = "f", history: History | None = None) -> History:
    history = history or History()
    for call, size in enumerate(sizes, 1):
        history.keep("code", identity, Remembered(key(size), 100 + call, call))
    return history


def test_a_function_without_any_history_is_called_first() -> None:
    found = History().explain("code", "f", key(1), traced=True, again=False)

    assert (found.reasons, found.changes, found.compared_with) == (("first_call",), (), None)


def test_a_key_is_compared_with_the_nearest_of_the_same_function_object() -> None:
    history = kept(1, 2, identity="f")
    kept(9, identity="g", history=history)

    found = history.explain("code", "f", key(9), traced=True, again=True)
    assert found.reasons == ("shape",)
    assert found.compared_with is not None
    assert found.compared_with.call == 1
    assert found.changes[0].before == "float32[1]"


def test_a_new_object_of_the_same_code_is_told_before_what_else_differs() -> None:
    found = kept(1, identity="f").explain("code", "g", key(2), traced=True, again=False)

    assert found.reasons == ("new_function", "shape")
    assert found.compared_with is not None


def test_other_code_is_not_looked_at() -> None:
    assert kept(1).explain("other code", "f", key(1), traced=True, again=False).reasons == ("first_call",)


@pytest.mark.parametrize(
    ("traced", "opaque", "reason"),
    [(True, False, "cache_lost"), (True, True, "unknown"), (False, False, "unknown"), (False, True, "unknown")],
)
def test_an_equal_key_is_lost_only_where_it_was_traced_anew_and_shows_all_of_itself(
    traced: bool, opaque: bool, reason: str
) -> None:
    history = History()
    history.keep("code", "f", Remembered(key(1, opaque=opaque), 1, 1))

    found = history.explain("code", "f", key(1, opaque=opaque), traced=traced, again=True)
    assert found.reasons == (reason,)
    assert found.changes[0].note


def test_a_key_that_could_not_be_read_is_told_as_unknown() -> None:
    assert kept(1).explain("code", "f", None, traced=True, again=True).reasons == ("unknown",)
    assert History().explain("code", "f", None, traced=True, again=False).reasons == ("first_call",)


def test_a_function_whose_keys_are_gone_is_neither_called_first_nor_new() -> None:
    assert History().explain("code", "f", key(1), traced=True, again=True).reasons == ("unknown",)
    others = kept(1, identity="g")
    assert others.explain("code", "f", key(1), traced=True, again=True).reasons == ("unknown",)


@pytest.mark.parametrize(
    ("before", "now", "by_cell"),
    [([3], 5, True), ([3, 4], 5, True), ([3, 5], 5, False), ([3], None, False), ([None], 5, False)],
)
def test_a_function_that_a_later_cell_made_is_told_as_defined_again(
    before: list[int | None], now: int | None, by_cell: bool
) -> None:
    history = History()
    for number, cell in enumerate(before):
        history.keep("code", f"f{number}", Remembered(key(1), number, 1, cell))

    (change,) = history.explain("code", "new", key(1), traced=True, again=False, cell=now).changes

    assert change.reason == "new_function"
    assert (change.note or "").startswith(DEFINED_AGAIN) is by_cell


def test_an_equal_key_is_not_kept_twice() -> None:
    history = kept(1, 2, 1, 2, 1)

    assert history.keys("code", "f") == [key(1), key(2)]


@given(st.integers(1, 12), st.lists(st.integers(0, 30), max_size=40))
def test_the_first_key_and_the_newest_stay_at_the_bound_and_what_goes_is_counted(bound: int, sizes: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "KEYS_PER_FUNCTION", bound + 1)
        before = dropped()
        found = kept(*sizes).keys("code", "f")

    assert len(found) <= bound + 1
    if sizes:
        assert found[0] == key(sizes[0])
    distinct = len(set(sizes))
    assert dropped() - before >= max(0, distinct - bound - 1)


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=40), st.integers(0, 12) | st.none())
def test_how_a_leaf_varies_is_told_of_the_keys_that_are_kept_and_the_new_one(
    steps: list[tuple[int, bool]], own: int | None
) -> None:
    history = History()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_limits, "KEYS_PER_FUNCTION", 5)
        patch.setattr(_limits, "PATHS_COUNTED", 2)
        for number, (size, asked) in enumerate(steps):
            history.keep("code", "f", Remembered(key(size, opaque=size % 2 == 0), number, 1))
            if not asked:
                continue
            sizes = {made.params[0].tree.shape[0] for made in history.keys("code", "f")} | {own} - {None}  # type: ignore[union-attr]  # a leaf
            expected = (0, sizes) if len(sizes) > 1 else None
            assert history.varying("code", "f", "x", None if own is None else (own,)) == expected
            assert history.varying("code", "f", "m", None) is None
            assert history.varying("code", "f", "nowhere", None) is None


@given(st.lists(st.tuples(st.sampled_from("fg"), keys()), max_size=8), keys())
def test_the_key_that_is_compared_with_is_the_nearest_of_all(kept: list[tuple[str, Key]], made: Key) -> None:
    history = History()
    for number, (identity, earlier) in enumerate(kept):
        history.keep("code", identity, Remembered(earlier, number, 1))

    for identity in "fgh":
        own = history.keys("code", identity)
        known = own or [earlier for name in "fg" for earlier in history.keys("code", name)]
        found = history.explain("code", identity, made, traced=True, again=False).compared_with
        distances = [distance(list(differences(earlier, made))) for earlier in known]
        assert (found is None) == (not known)
        assert found is None or distance(list(differences(found.key, made))) == min(distances)
        if own:
            assert found is not None
            assert found.key == own[distances.index(min(distances))]


def test_the_first_key_is_that_of_the_object_or_else_of_the_newest_other_one_of_its_code() -> None:
    history = kept(1, 2, identity="f")
    kept(3, 4, identity="g", history=history)

    assert history.first("code", "f") == key(1)
    assert history.first("code", "h") == key(3)
    assert history.first("other code", "f") is None


def test_large_keys_are_kept_by_their_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "LEAVES_PER_FUNCTION", 100)

    def large(call: int) -> Key:
        children = tuple((f"[{n}]", Leaf((call,), "float32")) for n in range(39))
        return Key(params=(Param("x", "positional", Node("list", children)),))

    history = History()
    for call in range(5):
        history.keep("code", "f", Remembered(large(call), call, call))
    assert history.keys("code", "f") == [large(0), large(4)]


def test_objects_of_one_code_are_bounded_and_the_one_that_missed_longest_ago_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_limits, "OBJECTS_PER_DEFINITION", 2)
    history = kept(1, identity="f")
    kept(1, identity="g", history=history)
    kept(2, identity="f", history=history)
    before = dropped()
    kept(1, identity="h", history=history)

    assert history.keys("code", "f") == [key(1), key(2)]
    assert history.keys("code", "g") == []
    assert dropped() - before == 1


def test_definitions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "DEFINITIONS", 3)
    history = History()
    before = dropped()
    for number in range(5):
        for size in range(number + 1):
            history.keep(f"code {number}", "f", Remembered(key(size), number, 1))

    assert dropped() - before == 1 + 2
    assert [bool(history.keys(f"code {number}", "f")) for number in range(5)] == [False, False, True, True, True]


def test_in_a_forked_child_the_parents_misses_are_no_events() -> None:
    history = kept(1, 2)
    lock = history.lock
    history.restart_ids()

    assert history.lock is not lock
    found = history.explain("code", "f", key(3), traced=True, again=True).compared_with
    assert found is not None
    assert found.miss == 0


def test_reset_forgets_all() -> None:
    history = kept(1, 2)
    history.reset()

    assert history.keys("code", "f") == []


# ------------------------------------------------------------------ all caches cleared


def lost(history: History, caches: object) -> str | None:
    """Return the note on the loss of the entry of a key that is kept."""
    (change,) = history.explain("code", "f", key(1), traced=True, again=True, caches=caches).changes
    assert change.reason == "cache_lost"
    return change.note


def test_a_lost_entry_is_told_with_its_cause_where_all_caches_were_cleared() -> None:
    first, second = object(), object()
    history = History()
    history.keep("code", "f", Remembered(key(1), 1, 1), caches=first)

    kept_one, cleared = lost(history, first), lost(history, second)
    assert str(kept_one).endswith("its entry is gone from JAX's cache")
    assert cleared == f"{kept_one}: jax.clear_caches() was called"
    history.keep("code", "f", Remembered(key(1), 2, 2), caches=second)
    assert lost(history, second) == kept_one


def test_a_clearing_is_no_cause_of_a_loss_where_it_cannot_be_seen() -> None:
    assert "clear_caches" not in str(lost(kept(1), None))


def test_of_a_key_whose_moment_is_not_known_no_cleared_cache_is_claimed() -> None:
    history, (first, *_) = History(), [Key(params=())]
    history.keep("code", "one", Remembered(first, 1, 1), caches="then")
    history._codes["code"]["one"].caches.clear()

    found = history.explain("code", "one", first, traced=True, again=True, caches="now")

    assert found.reasons == ("cache_lost",)
    assert "clear_caches" not in str(found.changes)
