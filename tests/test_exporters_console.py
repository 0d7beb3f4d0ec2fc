"""Lines for a person: few, on stderr, or the program's own way."""

import dataclasses
import io
import json
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from programs import run
from test_events import ALL, MISS

from jaxwatch import _limits, _loggers
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
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_loggers, "_has_handlers", lambda: False)  # pytest has some; test_loggers looks at real ones
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


# ------------------------------------------------------------------ after the warm-up


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_after_the_warm_up_first_calls_and_small_losses_are_told_too(
    export: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    export(dataclasses.replace(FIRST, steady=True))
    export(miss(0.001, site="train.py:99", steady=True))

    first, second = lines(capsys)
    assert "[warning  ] compiled after warm-up" in first
    assert "what='first call'" in first
    assert "seconds=0.001" in second


def test_what_was_told_of_a_place_during_the_warm_up_holds_nothing_back_after_it(
    export: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    export(miss())
    export(miss(steady=True))
    export(miss())

    first, second = lines(capsys)
    assert "recompiled" in first
    assert "compiled after warm-up" in second


def test_a_storm_after_the_warm_up_is_told_in_few_lines_and_what_was_not_told_with_the_next(
    export: Any, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    most = _limits.CONSOLE_STEADY_LINES
    for site in range(most + 7):
        export(miss(1.0, site=f"train.py:{site}", steady=True))
    export(miss(1.0, site="train.py:0", steady=True))  # one of those that were told
    assert len(lines(capsys)) == most

    clock.now = _limits.CONSOLE_EVERY_SECONDS
    export(miss(1.0, site="train.py:0", steady=True))
    (line,) = lines(capsys)
    assert "more=1 more_seconds=1.0" in line
    assert "elsewhere=7 elsewhere_seconds=7.0" in line

    export(miss(1.0, site="train.py:1", steady=True))
    (line,) = lines(capsys)
    assert "elsewhere" not in line


def test_the_bound_of_the_warm_up_holds_no_other_line_back(export: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for site in range(_limits.CONSOLE_STEADY_LINES + 3):
        export(miss(1.0, site=f"train.py:{site}", steady=True))
    lines(capsys)
    export(miss(1.0, site="eval.py:1"))

    (line,) = lines(capsys)
    assert "recompiled" in line


def test_what_a_forgotten_site_had_not_told_is_told_with_another(
    export: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_limits, "CONSOLE_SITES", 1)
    for _ in range(3):
        export(miss(1.0, site="a"))
    export(miss(1.0, site="b"))

    assert "elsewhere=2 elsewhere_seconds=2.0" in lines(capsys)[-1]


def test_all_events_are_told_or_counted_whatever_threads_they_come_from(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    export = console_exporter(clock)
    threads = [
        threading.Thread(target=lambda: [export(miss(1.0, site=f"a:{n % 40}", steady=True)) for n in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(20):  # each lets so many sites tell what they kept
        clock.now += _limits.CONSOLE_EVERY_SECONDS
        for site in range(40):
            export(miss(1.0, site=f"a:{site}", steady=True))
    clock.now += _limits.CONSOLE_EVERY_SECONDS
    export(miss(1.0, site="a:0", steady=True))  # and the last one what the process kept

    told = lines(capsys)
    sums = sum(int(number) for line in told for number in re.findall(r"(?:more|elsewhere)=(\d+)", line))
    kept = sum(site.untold.number for site in _sites_of(export).values())
    assert len(told) + sums + kept == 4 * 500 + 20 * 40 + 1


def _sites_of(export: Any) -> Any:
    (rate,) = (cell.cell_contents for cell in export.__closure__ if hasattr(cell.cell_contents, "due"))
    return rate._sites


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
