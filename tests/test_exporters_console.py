"""Lines for a person: few, on stderr, or the program's own way."""

import dataclasses
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from programs import run
from test_events import ALL, MISS

from jaxwatch import _limits
from jaxwatch.events import CacheMiss, Change, Event, PhaseSeconds, Violation
from jaxwatch.exporters.console import console_exporter


class Clock:
    """A clock that stands still until it is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def export(clock: Clock) -> Callable[[Event], None]:
    return console_exporter(clock)


@pytest.fixture(autouse=True)
def _structlog_as_it_was() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()


def miss(seconds: float = 1.0, **values: Any) -> CacheMiss:
    return dataclasses.replace(MISS, seconds=PhaseSeconds(backend_compile=seconds), **values)


FIRST = miss(reasons=("first_call",), changes=())


# ------------------------------------------------------------------ where structlog is not configured


def test_a_recompile_is_one_line_on_stderr(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    export(miss(1.314))
    found = capsys.readouterr()

    assert found.out == ""
    (line,) = found.err.splitlines()
    assert "[warning  ] recompiled" in line
    for part in ("function=step", "call=2", "what='x: float32[8] → float32[4]'", "seconds=1.314", "site=train.py:71"):
        assert part in line


@pytest.mark.parametrize(
    "event",
    [
        FIRST,
        miss(_limits.CONSOLE_SECONDS_LOST * 0.9),
        dataclasses.replace(miss(), layer="dispatch", reasons=("fast_path",)),
        Violation(origin=MISS.origin, function="step", action="record", limit=0, miss=1),
        *(event for event in ALL.values() if event.kind != "cache_miss"),
    ],
)
def test_all_else_is_not_worth_a_line(event: Event, export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    export(event)

    assert capsys.readouterr() == ("", "")


def test_one_site_is_told_once_in_a_while_and_then_with_what_was_not_told(
    export: Any, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    for second in range(3):
        clock.now = second
        export(miss(1.0, call=10 + second))
    (line,) = capsys.readouterr().err.splitlines()
    assert "call=10" in line
    assert "more" not in line

    clock.now = _limits.CONSOLE_EVERY_SECONDS
    export(miss(1.0, call=20))
    (line,) = capsys.readouterr().err.splitlines()
    assert "call=20" in line
    assert "more=2" in line
    assert "more_seconds=2.0" in line

    clock.now = 2 * _limits.CONSOLE_EVERY_SECONDS
    export(miss(1.0, call=30))
    assert "more" not in capsys.readouterr().err


def test_other_sites_and_functions_are_told_apart(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    export(miss())
    export(miss(site="train.py:99"))
    export(miss(function="other"))

    assert len(capsys.readouterr().err.splitlines()) == 3


def test_many_small_losses_are_told_when_they_have_added_up(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    small = _limits.CONSOLE_SECONDS_LOST / 4
    for call in range(5):
        export(miss(small, call=call))

    (line,) = capsys.readouterr().err.splitlines()
    assert "more=3" in line


def test_sites_are_bounded(export: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_limits, "CONSOLE_SITES", 2)
    for site in ("a", "b", "c", "a"):
        export(miss(site=site))

    assert len(capsys.readouterr().err.splitlines()) == 4


def test_a_miss_without_changes_is_told_by_its_reason(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    export(miss(reasons=("cache_lost",), changes=(Change(reason="cache_lost"),)))

    assert "what='cache lost'" in capsys.readouterr().err


def test_a_process_without_stderr_is_left_in_peace(
    export: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As under pythonw."""
    monkeypatch.setattr(sys, "stderr", None)
    export(miss())
    monkeypatch.undo()

    assert capsys.readouterr().out == ""


# ------------------------------------------------------------------ where it is


def test_configured_as_json_all_misses_go_that_way_with_their_fields(export: Any) -> None:
    out = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(out),
    )
    export(FIRST)
    export(miss(0.001))

    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["event"], first["level"], first["what"]) == ("compiled", "info", "first call")
    assert (second["event"], second["level"], second["seconds"]) == ("recompiled", "warning", 0.001)
    assert second["function"] == "step"


def test_configured_for_the_standard_library_records_reach_its_handlers(
    export: Any, caplog: pytest.LogCaptureFixture
) -> None:
    structlog.configure(
        processors=[structlog.stdlib.render_to_log_kwargs],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    with caplog.at_level(logging.INFO):
        export(FIRST)
        export(miss())

    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "compiled"),
        ("WARNING", "recompiled"),
    ]
    assert caplog.records[1].function == "step"  # type: ignore[attr-defined]  # given as extra
    assert caplog.records[0].name == "jaxwatch"


def test_configured_for_a_console_the_program_chooses_where(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    structlog.configure(processors=[structlog.dev.ConsoleRenderer(colors=False)])
    export(miss())
    found = capsys.readouterr()

    assert "recompiled" in found.out
    assert found.err == ""


def test_a_level_that_the_program_filters_out_is_not_told(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    export(FIRST)
    export(miss())

    assert capsys.readouterr() == ("", "")


def test_configured_lines_are_limited_too(export: Any) -> None:
    with structlog.testing.capture_logs() as caught:
        structlog.configure(processors=structlog.get_config()["processors"])
        for call in range(5):
            export(miss(call=call))

    assert [entry["call"] for entry in caught] == [0]


# ------------------------------------------------------------------ in a program


def test_a_programs_stdout_is_its_own() -> None:
    ended = run("""
        import jaxwatch
        from jaxwatch import _limits
        _limits.CONSOLE_SECONDS_LOST = 0.0
        step = jaxwatch.jit(lambda x: x + 1)
        print(step(1.0))
        print(step(1))
    """)

    assert ended.out == "2.0\n2\n"
    (line,) = ended.err.splitlines()
    assert "recompiled" in line
    assert "what='x: ~float32[] → ~int32[]'" in line


def test_a_quiet_program_does_not_load_structlog() -> None:
    ended = run("""
        import sys
        import jaxwatch
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0), step(1.0)
        print([name for name in ("structlog", "rich", "click", "prometheus_client") if name in sys.modules])
    """)

    assert ended.out == "[]\n"
    assert ended.err == ""
