"""What a user may set for one function, and by the environment."""

import dataclasses
import pickle
from typing import Any

import pytest

from jaxwatch._options import ACTIONS, Watch, checked_watch, log_path, redacted, switched_off
from jaxwatch.errors import BadWatchError


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"name": "step"},
        {"name": 'a "b"\n\x00é'},
        {"max_signatures": 1},
        {"max_signatures": 10**9},
        {"enabled": False},
        *({"on_retrace": action} for action in ACTIONS),
    ],
)
def test_good_values_are_taken_and_can_be_pickled(values: dict[str, Any]) -> None:
    watch = Watch(**values)

    assert {name: getattr(watch, name) for name in values} == values
    assert pickle.loads(pickle.dumps(watch)) == watch  # noqa: S301 -- our own


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"name": ""}, "name=''"),
        ({"name": 3}, "name=3"),
        ({"name": b"step"}, "name=b'step'"),
        ({"max_signatures": 0}, "max_signatures=0"),
        ({"max_signatures": -1}, "max_signatures=-1"),
        ({"max_signatures": True}, "max_signatures=True"),
        ({"max_signatures": 2.0}, "max_signatures=2.0"),
        ({"max_signatures": "3"}, "max_signatures='3'"),
        ({"on_retrace": "explode"}, "on_retrace='explode'"),
        ({"on_retrace": ["raise"]}, r"on_retrace=\['raise'\]"),
        ({"enabled": 1}, "enabled=1"),
        ({"enabled": None}, "enabled=None"),
    ],
)
def test_bad_values_are_named_in_an_error_that_is_a_value_error(values: dict[str, Any], told: str) -> None:
    with pytest.raises(BadWatchError, match=rf"Watch\({told}\).*Give .*\[bad-watch\]$"):
        Watch(**values)
    assert issubclass(BadWatchError, ValueError)


def test_nothing_but_a_watch_or_none_is_taken_for_one() -> None:
    assert checked_watch(None) == Watch()
    assert checked_watch(Watch(name="a")) == Watch(name="a")
    for wrong in (True, "step", {"name": "step"}, Watch):
        with pytest.raises(BadWatchError, match=r"Give jaxwatch\.Watch"):
            checked_watch(wrong)


def test_a_watch_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Watch().name = "step"  # type: ignore[misc]  # just so


@pytest.mark.parametrize(
    ("values", "forbids"),
    [
        ({}, False),
        ({"on_retrace": "record"}, False),
        ({"max_signatures": 2}, True),
        ({"on_retrace": "warn"}, True),
        ({"name": "step"}, False),
    ],
)
def test_a_watch_forbids_where_it_limits_or_does_more_than_record(values: dict[str, Any], forbids: bool) -> None:
    assert Watch(**values).forbids is forbids


@pytest.mark.parametrize("value", ["0", "off", "OFF", " false ", "no"])
def test_jaxwatch_0_and_its_like_switch_all_off(value: str) -> None:
    assert switched_off({"JAXWATCH": value})


@pytest.mark.parametrize("environment", [{}, {"JAXWATCH": ""}, {"JAXWATCH": "1"}, {"JAXWATCH": "on"}])
def test_nothing_else_switches_it_off(environment: dict[str, str]) -> None:
    assert not switched_off(environment)


def test_the_log_is_where_the_environment_says_and_an_empty_value_is_none() -> None:
    assert log_path({"JAXWATCH_LOG": "run.jsonl"}) == "run.jsonl"
    assert log_path({"JAXWATCH_LOG": ""}) is None
    assert log_path({}) is None


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("TRUE", True), ("yes", True), ("0", False), ("", False)])
def test_values_are_left_out_where_the_environment_says_so(value: str, expected: bool) -> None:
    assert redacted({"JAXWATCH_REDACT": value}) is expected
