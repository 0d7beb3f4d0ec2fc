import json
from typing import Any

import pytest
from event_records import Rec, change, eager, miss, record, run_end, run_start, stats, training_run
from hypothesis import given
from hypothesis import strategies as st
from trace_format import Trace, check, nests

from jaxwatch import _trace_events
from jaxwatch._trace_events import TraceEvents

NOON = 1_777_636_800 * 1_000_000  # of event_records


def events_of(records: list[Rec]) -> Trace:
    taker = TraceEvents()
    return [event for one in records for event in taker.add(one)] + list(taker.end())


def slices(events: Trace) -> Trace:
    return [event for event in events if event["ph"] == "X"]


def named(events: Trace, name: str) -> dict[str, Any]:
    (found,) = [event for event in events if event["name"] == name]
    return found


def test_a_miss_is_a_slice_that_ends_when_it_was_told_with_its_phases_in_their_order_within() -> None:
    seconds = {"trace": 0.5, "lower": 0.25, "backend_compile": 2.0, "total": 2.75}
    events = events_of([miss(1, at=10.0, seconds=2.75) | {"seconds": seconds}])

    told = [(one["name"], one["ts"] - NOON, one["dur"]) for one in slices(events)]
    assert told == [
        ("step", 7_250_000, 2_750_000),
        ("trace", 7_250_000, 500_000),
        ("lower", 7_750_000, 250_000),
        ("backend compile", 8_000_000, 2_000_000),
    ]
    check(events)


def test_a_miss_tells_why_where_and_what_to_do() -> None:
    changed = change("weak_type", "lr", "~float32[]", "float32[]")
    (found, *_) = slices(events_of([miss(2, "weak_type", changes=[changed], advice_text="Pass jnp.float32(lr).")]))

    assert found["cat"] == "recompile"
    assert found["args"]["reasons"] == "weak_type"
    assert found["args"]["changes"] == "lr: ~float32[] → float32[] (weak type)"
    assert (found["args"]["advice"], found["args"]["site"]) == ("Pass jnp.float32(lr).", "/home/u/proj/train.py:71")
    assert "via" not in found["args"], "what is not known is left out"


def test_what_compiled_within_a_trace_is_part_of_it_and_has_a_slice_of_its_own_beside() -> None:
    outer = miss(1, at=5.0) | {
        "seconds": {"trace": 1.0, "lower": 0.0, "backend_compile": 1.0, "total": 2.0},
        "compiled_within_seconds": 0.5,
    }
    events = events_of([eager(at=3.2, seconds=0.5), outer])

    assert named(events, "trace")["dur"] == 1_500_000
    assert named(events, "step")["dur"] == 2_500_000
    assert named(events, "cumsum, outside jit")["tid"] != named(events, "step")["tid"]
    check(events)


def test_processes_and_threads_have_names_also_where_a_pid_comes_again() -> None:
    one = [run_start(rank=0), miss(1, rank=0), record("process_stats", rank=0, jax_version="0.10.2"), run_end(rank=0)]
    other = [run_start(rank=1), miss(1, rank=1), run_end(rank=1)]
    events = events_of(one + other)

    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["train.py, rank 0", "train.py, rank 1"]
    assert named(events, "process_labels")["args"] == {"labels": "jax 0.10.2"}
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"MainThread"}
    check(events)


def test_a_guard_a_departure_and_the_run_are_instants() -> None:
    broken = record("violation", function="step", action="warn", limit=1, miss=2)
    events = events_of([run_start(), miss(3, "fast_path", layer="dispatch", seconds=0.0), broken, run_end()])

    instants = [event["name"] for event in events if event["ph"] == "i"]
    assert instants == ["run start", "step: off the fast path", "guard broken: step", "run end"]
    assert slices(events) == []


def test_counters_grow_to_what_the_run_came_to() -> None:
    events = events_of(training_run())

    last = {event["name"]: event["args"] for event in events if event["ph"] == "C"}
    assert last["misses so far"] == {"misses": 8}
    assert last["compile seconds so far"]["seconds"] == pytest.approx(12.4)
    check(events)


def test_a_failed_trace_and_work_ahead_of_time_are_slices() -> None:
    fields: dict[str, Any] = {"function": "f", "definition": "a:1", "site": "a:2", "seconds": 0.5}
    events = events_of(
        [
            record("trace_error", at=1.0, **fields, call=1, error="TypeError"),
            record("ahead_of_time", at=2.0, **fields, signature=None),
        ]
    )

    assert [event["name"] for event in slices(events)] == ["f raised TypeError", "f, ahead of time"]


moments = st.floats(0, 100, allow_nan=False)
of_miss = st.builds(
    lambda at, trace, lower, compiling, within, thread: (
        miss(1, at=at, thread_name=thread)
        | {
            "seconds": {"trace": trace, "lower": lower, "backend_compile": compiling, "total": 0.0},
            "compiled_within_seconds": within,
        }
    ),
    moments, moments, moments, moments, moments, st.sampled_from("ab"),
)  # fmt: skip
of_eager = st.builds(lambda at, seconds: eager(at=at, seconds=seconds), moments, moments)


@given(st.lists(of_miss | of_eager, max_size=30))
def test_slices_nest_whatever_the_order_and_the_lengths_of_events(records: list[Rec]) -> None:
    events = events_of(records)

    check(events)
    assert len([one for one in slices(events) if one["cat"] != "phase"]) == len(records)


def test_tracks_are_bounded_and_nothing_overlaps_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_trace_events, "TRACKS", 6)
    monkeypatch.setattr(_trace_events, "TRACKS_OF_THREAD", 2)
    records = [miss(i, at=10 + i / 10, seconds=5.0, thread_name=f"thread {i % 9}") for i in range(60)]
    events = events_of(records)

    assert len({(one["pid"], one["tid"]) for one in slices(events)}) <= 7
    assert len([one for one in slices(events) if one["cat"] != "phase"]) == 60
    assert all(one["dur"] >= 0 for one in slices(events))


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    name = "\x1b[31m</script>\u202e\ud800" + "x" * 1_000_000
    events = events_of(
        [run_start(program=f"/a/{name}"), miss(1, function=name, thread_name=name), eager(function=name)]
    )

    text = json.dumps(events)
    assert len(text) < 20_000
    assert all(character.isprintable() for character in json.loads(text)[1]["args"]["name"])
    text.encode("utf-8")
    check(events)


@given(st.sampled_from(training_run()), st.data())
def test_a_malformed_record_is_left_out(whole: Rec, data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(sorted(set(whole) - {"schema", "event"})))
    junk = data.draw(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
    )

    json.dumps(events_of([run_start(), {**whole, key: junk}]), allow_nan=False)


@pytest.mark.parametrize("event", [None, 3, ["x"], "invented_later"])
def test_an_unknown_event_is_passed_over(event: Any) -> None:
    assert events_of([{"event": event}, stats()]) == []


def test_the_check_of_the_format_finds_what_overlaps() -> None:
    nests([(0, 10), (0, 5), (5, 10), (10, 11)])
    with pytest.raises(AssertionError, match="overlap"):
        nests([(0, 10), (5, 11)])
