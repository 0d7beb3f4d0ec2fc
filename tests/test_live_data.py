"""A frame as JSON and back."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from event_records import training_run
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame, from_json, to_json
from jaxwatch._records import MalformedError


def a_frame() -> Frame:
    state = LiveState("one")
    for record in training_run():
        state.add(record)
    return state.frame(1_777_640_000.0)


def as_read(frame: Frame) -> Any:
    return json.loads(json.dumps(to_json(frame), allow_nan=False))


def test_a_frame_comes_back_as_it_was() -> None:
    frame = a_frame()

    assert frame.functions
    assert frame.happened
    assert frame.eager
    assert from_json(as_read(frame)) == frame


def test_texts_are_cleaned_once_more_when_they_come_back() -> None:
    frame = a_frame()
    hostile = replace(frame, program="a\x1b[2Jb", happened=(replace(frame.happened[0], what="x\n\u202ey"),))

    found = from_json(as_read(hostile))

    assert found.program == "a\\x1b[2Jb"
    assert found.happened[0].what == "x\\n\\u202ey"


def test_what_happened_since_a_number_is_given_alone() -> None:
    frame = a_frame()

    assert [one.number for one in frame.since(2).happened] == [one.number for one in frame.happened if one.number > 2]
    assert frame.since(0) == frame
    assert frame.since(10**9).happened == ()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return found + [place for key, inner in items for place in places(inner, (*path, key))]


WHOLE = as_read(a_frame())
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, -1, 1e300, float("nan"), "text", [], {}, [[]], 10**30, "\ud800", [None] * 1_000]
)


@given(st.sampled_from(places(WHOLE)), ODD)
def test_what_is_no_frame_is_refused_whatever_is_wrong(place: tuple[Any, ...], odd: Any) -> None:
    found = copy.deepcopy(WHOLE)
    inner = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = odd

    try:
        frame = from_json(found)
    except MalformedError:
        return
    assert isinstance(frame, Frame)
    json.dumps(to_json(frame), allow_nan=False).encode("ascii")


@pytest.mark.parametrize("found", [None, 3, [], {}, "x", {"schema": "jaxwatch.live/2"}, {"schema": "jaxwatch.live/1"}])
def test_what_is_something_else_altogether_is_refused(found: Any) -> None:
    with pytest.raises(MalformedError):
        from_json(found)


@pytest.mark.parametrize("key", sorted(WHOLE))
def test_every_field_is_needed(key: str) -> None:
    found = {name: value for name, value in WHOLE.items() if name != key}

    with pytest.raises(MalformedError):
        from_json(found)
