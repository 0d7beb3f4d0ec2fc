"""The report of misses that could not be explained, from the call to the text; on both cores."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cores
import numpy as np
import pytest
from event_records import Rec, miss, run_start, training_run
from published import Events

import jaxwatch
from jaxwatch import _cli
from jaxwatch._unknown import MOST, UnknownMisses
from jaxwatch.events import to_record

X = np.arange(4, dtype=np.float32)


class Alike:
    """A static that looks the same as another one, and is none."""

    def __init__(self, secret: str = "") -> None:
        self.secret = secret

    def __hash__(self) -> int:
        return 7

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"Alike({self.secret})"


@pytest.fixture(autouse=True, params=cores.CORES)
def _core(request: pytest.FixtureRequest) -> Iterator[None]:
    with cores.in_use(request.param):
        yield


def two_alike(events: Events) -> Rec:
    """Return the record of a miss that cannot be explained."""
    step = jaxwatch.jit(lambda x, mode: x * 2, static_argnames="mode")  # noqa: ARG005 -- it is a part of the key
    step(X, mode=Alike("hidden"))
    step(X, mode=Alike("hidden"))
    assert events.reasons == [("first_call",), ("unknown",)]
    record: Rec = json.loads(json.dumps(to_record(events.last())))
    return record


def report(*records: Rec) -> str:
    found = UnknownMisses()
    for record in records:
        found.add(record)
    return found.report()


def unknown(number: int, **fields: Any) -> Rec:
    return miss(number, "unknown", **fields)


# ------------------------------------------------------------------ from a call


def test_both_keys_are_in_the_event_and_are_plain(events: Events) -> None:
    keys = two_alike(events)["keys"]

    assert len(keys) == 2
    for key in keys:
        rows = dict(key["arguments"])
        assert rows["x"].startswith("float32[4]")
        assert rows["mode"].startswith("static Alike(hidden), as its own __eq__ compares")
        assert rows["mode is given"] == "keyword"
        assert "jax_enable_x64" in key["config"]


def test_a_miss_with_a_reason_holds_no_keys(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x)
    step(X)
    step(X[:2])

    assert [found.keys for found in events.misses] == [(), ()]


def test_the_report_says_what_was_called_and_that_the_keys_read_the_same(events: Events) -> None:
    text = report(run_start(jax_version="0.9.1"), two_alike(events))

    assert text.startswith("# Misses that jaxwatch could not explain\n")
    assert "\njax 0.9.1\n" in text
    assert "\n## <lambda>, call 2\n" in text
    assert "\n- `mode`: static Alike(hidden), as its own __eq__ compares" in text
    assert "Nothing is: as far as they can be read the keys are equal." in text


def test_values_that_are_left_out_of_events_are_not_in_the_report(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAXWATCH_REDACT", "1")
    text = report(two_alike(events))

    assert "static <Alike>" in text
    assert "hidden" not in text


# ------------------------------------------------------------------ of records


def test_where_every_miss_has_a_reason_there_is_no_report() -> None:
    assert report(*training_run()) == report() == ""


def test_what_differs_is_told_by_place() -> None:
    before = {"arguments": [["x", "f32"], ["gone", "1"]], "config": {"a": 1}, "mesh": ""}
    after = {"arguments": [["x", "f64"]], "config": {"a": 2}, "mesh": ""}
    text = report(unknown(2, keys=[before, after]))

    assert "- `x`: f32 → f64\n- `gone`: 1 → None\n- `config`: {'a': 1} → {'a': 2}\n" in text
    assert "Nothing is" not in text


def test_one_key_alone_is_told_as_that() -> None:
    assert "The only key that is known:\n\n- `x`: f32\n" in report(unknown(1, keys=[{"arguments": [["x", "f32"]]}]))


def test_one_of_each_kind_is_told_and_the_others_are_counted() -> None:
    text = report(*(unknown(number, function=f"f{number % 12}") for number in range(1_500)))

    assert text.count("\n## ") == MOST
    assert f"\n1,490 more, of the same functions or beyond the first {MOST}.\n" in text


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"event": 3},
        {"event": "run", "jax_version": 3},
        {"event": "cache_miss", "reasons": "unknown"},
        {"event": "cache_miss", "reasons": [3, None]},
    ],
)
def test_what_is_no_unknown_miss_is_passed_over(record: Rec) -> None:
    assert report(record) == ""


@pytest.mark.parametrize("name", ["function", "definition"])
def test_a_miss_without_a_name_is_counted(name: str) -> None:
    assert "\n1 more, of the same functions" in report(unknown(1, **{name: 3}))


@pytest.mark.parametrize(
    "keys",
    [None, 3, [], [3], [3, 4], [{}, {}], [{"arguments": 3}, {"arguments": [3, ["x"], [1, 2]]}], [None, {}, []], ["x"]],
)
def test_malformed_keys_end_no_report(keys: Any) -> None:
    text = report(unknown(1, keys=keys), unknown(2, function="other"))

    assert "\n## step, call 1\n" in text
    assert "\n## other, call 2\n" in text


def test_a_log_without_any_event_is_an_error_and_no_all_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "junk.jsonl"
    log.write_bytes(b"\x00\xff no json\n")

    assert _cli.main(["report", "--unknown", str(log)]) == 2
    assert "no event in" in capsys.readouterr().err


def test_a_name_that_no_stream_can_write_is_told_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "run.jsonl"
    log.write_text(json.dumps(miss(1, "unknown", function="\ud800", keys=[])) + "\n")

    assert _cli.main(["report", "--unknown", str(log)]) == 0
    assert "\\ud800" in capsys.readouterr().out
