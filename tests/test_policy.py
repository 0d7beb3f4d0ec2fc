"""Which rule decides: a pure function of what the rules say, and what ``Watch`` and the process say at first."""

import os
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _policy
from jaxwatch._options import ACTIONS, Watch
from jaxwatch._policy import Broken, InForce, Process, Said, decide, strictness
from jaxwatch._registry import Subject
from jaxwatch._steady import steady


@pytest.fixture(autouse=True)
def _no_rule_stays() -> Iterator[None]:
    yield
    _policy.reset()


says = st.one_of(st.none(), st.builds(Broken, st.sampled_from(ACTIONS), st.none(), st.text(max_size=3)))
many = st.lists(says, max_size=4)


# ------------------------------------------------------------------ the rule


@given(says, many, many, st.lists(says, min_size=1, max_size=4))
def test_in_a_block_the_innermost_decides_alone(
    base: Said, started: list[Said], elsewhere: list[Said], own: list[Said]
) -> None:
    assert decide(base, started, elsewhere, own) is own[-1]


@given(says, many, many)
def test_blocks_elsewhere_make_it_stricter_and_never_laxer(
    base: Said, started: list[Said], elsewhere: list[Said]
) -> None:
    without = decide(base, started, [], [])
    found = decide(base, started, elsewhere, [])

    assert strictness(found) == max(map(strictness, [without, *elsewhere]))
    assert found is without or strictness(found) > strictness(without)


@given(says, st.lists(says, min_size=1, max_size=4))
def test_the_last_one_started_takes_the_place_of_all_before_it(base: Said, started: list[Said]) -> None:
    assert decide(base, started, [], []) is started[-1]


@given(says)
def test_where_no_stance_covers_a_function_it_is_as_watch_and_configure_say(base: Said) -> None:
    assert decide(base, [], [], []) is base


@given(says, many, many, many)
def test_nothing_is_forbidden_that_no_rule_forbids(
    base: Said, started: list[Said], elsewhere: list[Said], own: list[Said]
) -> None:
    found = decide(base, started, elsewhere, own)
    assert found is None or any(found is said for said in [base, *started, *elsewhere, *own])


def test_strictness_is_in_the_order_of_the_actions() -> None:
    assert [strictness(None), *(strictness(Broken(action, None, "")) for action in ACTIONS)] == [0, 1, 2, 3]


# ------------------------------------------------------------------ what is said at first


def subject(**values: Any) -> Subject:
    return Subject(
        name="step", definition="a.py:1", event_name="step", in_library=False, watch=Watch(**values), plan=None
    )


def at_first(of: Subject, *, new_signature: bool = True, first: bool = False) -> tuple[str, int | None, str] | None:
    said = _policy.said_at_first(of, new_signature=new_signature, first=first)
    return None if said is None else (said.action, said.limit, said.by)


def test_without_any_rule_all_is_free() -> None:
    assert at_first(subject()) is None
    assert not _policy.in_use()


def test_a_watch_wins_over_the_process_field_by_field() -> None:
    Process.on_retrace = "raise"
    Process.max_signatures = 1
    crowded = subject()
    crowded.counters.by_signature["s1"] = 1

    assert at_first(crowded) == ("raise", 1, "configure(max_signatures=1)")
    quiet = subject(on_retrace="record")
    quiet.counters.by_signature["s1"] = 1
    assert at_first(quiet) == ("record", 1, "configure(max_signatures=1)")
    roomy = subject(max_signatures=2)
    roomy.counters.by_signature["s1"] = 1
    assert at_first(roomy) is None
    roomy.counters.by_signature["s2"] = 1
    assert at_first(roomy) == ("raise", 2, "Watch(max_signatures=2)")
    assert at_first(roomy, new_signature=False) is None


def test_the_first_miss_is_free_without_a_limit() -> None:
    Process.on_retrace = "warn"

    assert at_first(subject(), first=True) is None
    assert at_first(subject()) == ("warn", None, "configure(on_retrace='warn')")
    assert at_first(subject(on_retrace="raise")) == ("raise", None, "Watch(on_retrace='raise')")
    assert at_first(subject(on_retrace="record")) is None


def test_after_the_warm_up_each_miss_is_warned_of_by_the_console_alone() -> None:
    Process.steady = steady("0 s", by="{}")
    said = _policy.said_at_first(subject(), new_signature=False, first=True)

    assert said == Broken("warn", None, "steady_after='0 s'", steady=True)
    Process.on_retrace = "warn"
    assert _policy.said_at_first(subject(), new_signature=True, first=False) == said
    Process.on_retrace = "raise"
    assert at_first(subject()) == ("raise", None, "configure(on_retrace='raise')")


@pytest.mark.parametrize("values", [{"on_retrace": "record"}, {"max_signatures": 5}])
def test_a_function_whose_watch_says_what_it_may_is_not_asked_to_be_steady(values: dict[str, Any]) -> None:
    Process.steady = steady("0 s", by="{}")

    assert at_first(subject(**values)) is None


# ------------------------------------------------------------------ where a stance holds


def stance(action: Any, *subjects: Subject) -> InForce:
    return InForce(subjects, action, (), frozenset(), action)


def said_of(of: Subject) -> str | None:
    said = _policy.verdict(of, "s1", new_signature=True, first=True)
    return None if said is None else said.action


def said_elsewhere(of: Subject) -> str | None:
    found: list[str | None] = []
    thread = threading.Thread(target=lambda: found.append(said_of(of)))
    thread.start()
    thread.join()
    return found[0]


def test_what_was_started_holds_on_all_threads_and_the_last_one_counts() -> None:
    strict, lax = stance("raise"), stance("record")
    _policy.start(strict)
    assert (said_of(subject()), said_elsewhere(subject())) == ("raise", "raise")
    _policy.start(lax)
    assert (said_of(subject()), said_elsewhere(subject())) == (None, None)
    _policy.lift(lax)
    assert said_elsewhere(subject()) == "raise"
    _policy.lift(strict)
    assert said_elsewhere(subject()) is None


def test_a_block_holds_everywhere_where_it_is_stricter_and_in_its_own_thread_where_it_is_laxer() -> None:
    strict, lax = stance("raise"), stance("record")
    _policy.enter(strict)
    assert said_elsewhere(subject()) == "raise"
    _policy.enter(lax)
    assert (said_of(subject()), said_elsewhere(subject())) == (None, "raise")
    _policy.lift(strict)  # out of order, as generators end
    assert (said_of(subject()), said_elsewhere(subject())) == (None, None)
    _policy.lift(lax)
    assert _policy.in_force() == 0


def test_a_context_that_was_copied_in_a_block_outlives_it_without_it() -> None:
    lax = stance("record")
    _policy.start(stance("raise"))
    _policy.enter(lax)
    copied = copy_context()
    assert copied.run(said_of, subject()) is None
    _policy.lift(lax)
    assert copied.run(said_of, subject()) == "raise"


def test_it_is_of_the_functions_that_it_names_alone() -> None:
    mine, other = subject(), subject()
    _policy.start(stance("raise", mine))

    assert (said_of(mine), said_of(other)) == ("raise", None)


def test_allowed_functions_and_signatures_are_free_in_it() -> None:
    mine, other = subject(), subject()
    _policy.start(stance("raise"))
    _policy.enter(InForce((), "raise", (mine,), frozenset({"s2"}), ""))

    assert (said_of(mine), said_of(other)) == (None, "raise")
    assert _policy.verdict(other, "s2", new_signature=True, first=True) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork")
def test_in_a_forked_child_blocks_of_threads_that_are_not_there_hold_no_more() -> None:
    entered, go = threading.Event(), threading.Event()

    def block() -> None:
        strict = stance("raise")
        _policy.enter(strict)
        entered.set()
        go.wait(60)
        _policy.lift(strict)

    thread = threading.Thread(target=block)
    thread.start()
    entered.wait(60)
    child = os.fork()
    if not child:
        os._exit(0 if said_of(subject()) is None else 1)
    assert said_of(subject()) == "raise"
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
