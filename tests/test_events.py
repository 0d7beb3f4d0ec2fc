"""The public vocabulary of events, and their form in the log."""

import dataclasses
import importlib.util
import json
import pickle
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from figures import hostile
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import events
from jaxwatch.events import (
    REASONS,
    SCHEMA,
    Advice,
    AheadOfTime,
    CacheMiss,
    Change,
    EagerCompile,
    Event,
    FunctionStatsEvent,
    Origin,
    PhaseSeconds,
    ProcessStatsEvent,
    Run,
    TraceError,
    Violation,
    to_record,
)

ORIGIN = Origin(unix_seconds=1_777_636_800.0, pid=7, process_index=None, thread_name="MainThread")
MISS = CacheMiss(
    id=3,
    origin=ORIGIN,
    function="step",
    definition="train.py:3",
    site="train.py:71",
    call=2,
    layer="compile",
    traces=1,
    lowerings=1,
    compiles=1,
    persistent_cache=None,
    seconds=PhaseSeconds(trace=0.25, lower=0.5, backend_compile=1.0),
    reasons=("shape",),
    changes=(Change(reason="shape", path="x", before="float32[8]", after="float32[4]"),),
    compared_with=1,
    fingerprint=None,
    signature="s0123456789ab",
    abstract="(x: float32[4])",
    advice=(Advice(code="pad_or_bucket", text="Pad x to 8 rows and mask."),),
)
ALL: dict[str, Event] = {
    "cache_miss": MISS,
    "eager_compile": EagerCompile(
        origin=ORIGIN, function="multiply", site="train.py:9", seconds=0.1, persistent_cache="miss", count=2
    ),
    "trace_error": TraceError(
        origin=ORIGIN, function="step", definition="a.py:1", site="a.py:9", call=1, error="ValueError", seconds=0.0
    ),
    "ahead_of_time": AheadOfTime(
        origin=ORIGIN, function="step", definition="a.py:1", site="a.py:9", seconds=0.1, signature=None
    ),
    "violation": Violation(origin=ORIGIN, function="step", action="raise", limit=0, miss=None),
    "run": Run(
        origin=ORIGIN,
        phase="start",
        argv=("train.py",),
        program="train.py",
        wall_seconds=0.1,
        exit_code=None,
        jax_version="0.10.2",
    ),
    "function_stats": FunctionStatsEvent(
        origin=ORIGIN, function="step", definition="a.py:1", calls=9, misses=1, signatures=1, dispatch={"1e-05": 8}
    ),
    "process_stats": ProcessStatsEvent(
        origin=ORIGIN,
        version="0.1.0",
        jax_version="0.10.2",
        jaxlib_version="0.10.2",
        backend="cpu",
        core="native",
        dropped={"key": 1},
        label_overflows={},
        exporter_errors={"log": 2},
        overhead_seconds={"miss": 0.5},
    ),
}


@pytest.fixture(scope="session")
def score() -> ModuleType:
    """Return the scorer of the cases: what hand-written readers of the log hold to."""
    path = Path(__file__).with_name("cases") / "score.py"
    spec = importlib.util.spec_from_file_location("jaxwatch_score", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["jaxwatch_score"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ALL)
def test_every_kind_of_event_has_the_form_that_the_scorer_demands(score: ModuleType, kind: str) -> None:
    record = json.loads(json.dumps(to_record(ALL[kind])))

    assert record["event"] == kind == ALL[kind].kind
    assert not score.event_faults(record)


def test_every_event_of_the_module_is_tried_here() -> None:
    assert {kind.__name__ for kind in Event.__subclasses__()} == {type(event).__name__ for event in ALL.values()}


def test_the_closed_lists_are_the_scorers(score: ModuleType) -> None:
    assert set(REASONS) == set(score.REASONS)
    assert set(get_args(events.AdviceCode)) == set(score.ADVICE)
    assert set(get_args(events.Layer)) == set(score.LAYERS)
    assert score.SCHEMA == SCHEMA


@pytest.mark.parametrize("event", ALL.values(), ids=ALL.keys())
def test_events_are_frozen_and_can_be_pickled(event: Event) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.origin = None  # type: ignore[assignment, misc]
    assert pickle.loads(pickle.dumps(event)) == event  # noqa: S301 -- our own


@pytest.mark.parametrize("event", ALL.values(), ids=ALL.keys())
def test_a_record_has_all_fields_and_those_of_their_parts(event: Event) -> None:
    record = to_record(event)
    fields = dataclasses.asdict(event)  # type: ignore[call-overload]  # every Event is a dataclass

    origin = fields.pop("origin")
    assert datetime.fromisoformat("2026-05-01T12:00:00+00:00").timestamp() == origin.pop("unix_seconds")
    time = "2026-05-01T12:00:00.000000+00:00"
    expected = {"schema": SCHEMA, "event": event.kind, "time": time, **origin, **fields}
    if isinstance(event, CacheMiss):
        expected["seconds"]["total"] = event.seconds.total
    if expected.get("id", 0) is None:
        del expected["id"]
    assert record == expected


def test_the_total_is_written_beside_its_parts() -> None:
    assert to_record(MISS)["seconds"] == {"trace": 0.25, "lower": 0.5, "backend_compile": 1.0, "total": 1.75}


def test_no_field_is_called_as_what_structlog_and_logging_keep_for_themselves() -> None:
    names = {field.name for kind in (*Event.__subclasses__(), Origin) for field in dataclasses.fields(kind)}

    assert not names & {"level", "thread", "message", "msg", "args", "event", "exc_info", "name"}


@pytest.mark.parametrize(
    ("layer", "reasons", "told"),
    [
        ("compile", ("first_call",), False),
        ("compile", ("shape",), True),
        ("trace", ("new_function", "shape"), True),
        ("dispatch", ("fast_path",), False),
    ],
)
def test_a_recompile_is_a_miss_that_was_not_the_first_and_not_mere_dispatch(
    layer: Any, reasons: Any, told: bool
) -> None:
    assert dataclasses.replace(MISS, layer=layer, reasons=reasons).is_recompile is told


@given(hostile, hostile, st.none() | hostile)
def test_any_text_survives_the_log(name: str, path: str, before: str | None) -> None:
    change = Change(reason="static", path=path, before=before)
    line = json.dumps(to_record(dataclasses.replace(MISS, function=name, changes=(change,))))

    assert "\n" not in line
    read = json.loads(line)
    assert (read["function"], read["changes"][0]["path"], read["changes"][0]["before"]) == (name, path, before)
