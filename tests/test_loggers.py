"""Lines go the program's way: structlog in all its renderings, the standard library's logging, or stderr."""

import asyncio
import dataclasses
import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from programs import run
from test_events import MISS

from jaxwatch import _limits
from jaxwatch._hub import HUB
from jaxwatch._registry import REGISTRY
from jaxwatch.events import CacheMiss, PhaseSeconds
from jaxwatch.exporters.console import console_exporter

FIELDS = {"function", "call", "what", "seconds", "site", "more", "more_seconds", "elsewhere", "elsewhere_seconds"}
HOSTILE = "\x1b[31mstep\n\u202e\udcff%s {x} %(name)s"


@pytest.fixture(autouse=True)
def _nothing_is_configured() -> Iterator[None]:
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def miss(**values: Any) -> CacheMiss:
    return dataclasses.replace(MISS, seconds=PhaseSeconds(backend_compile=1.0), **values)


def tell_all(way: Any = "auto") -> None:
    """Have a line with every field there is, and one of each kind."""
    clock = [0.0]
    export = console_exporter(lambda: clock[0], way)
    export(miss(reasons=("first_call",), changes=(), site="first.py:1"))
    for site in range(_limits.CONSOLE_STEADY_LINES + 1):
        export(miss(steady=True, site=f"other.py:{site}"))
    export(miss(steady=True, site="other.py:0"))
    clock[0] = _limits.CONSOLE_EVERY_SECONDS
    export(miss(steady=True, site="other.py:0"))
    export(miss(function=HOSTILE))


# ------------------------------------------------------------------ structlog


def pipe(renderer: Any) -> Callable[[io.StringIO], None]:
    def configure(out: io.StringIO) -> None:
        processors: list[Any] = [
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.StackInfoRenderer(),
            structlog.dev.set_exc_info,
            structlog.processors.TimeStamper(),
            structlog.processors.CallsiteParameterAdder(),
            structlog.processors.EventRenamer("message"),
        ]
        if not isinstance(renderer, structlog.dev.ConsoleRenderer):
            processors[-1:] = [structlog.processors.dict_tracebacks, structlog.processors.EventRenamer("message")]
        else:
            del processors[-1]
        structlog.configure(processors=[*processors, renderer], logger_factory=structlog.PrintLoggerFactory(out))

    return configure


def to_standard_library(*renderers: Any) -> Callable[[io.StringIO], None]:
    def configure(_: io.StringIO) -> None:
        structlog.configure(
            processors=[
                structlog.stdlib.filter_by_level,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.stdlib.PositionalArgumentsFormatter(),
                structlog.stdlib.ExtraAdder(),
                *renderers,
            ],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
            cache_logger_on_first_use=True,
        )

    return configure


WAYS = {
    "console, plain": pipe(structlog.dev.ConsoleRenderer(colors=False)),
    "console, coloured": pipe(structlog.dev.ConsoleRenderer(colors=True)),
    "JSON": pipe(structlog.processors.JSONRenderer()),
    "logfmt": pipe(structlog.processors.LogfmtRenderer(bool_as_flag=False)),
    "key=value": pipe(structlog.processors.KeyValueRenderer()),
    "standard library, as keywords": to_standard_library(structlog.stdlib.render_to_log_kwargs),
    "standard library, as extra": to_standard_library(structlog.stdlib.render_to_log_args_and_kwargs),
    "standard library, formatted there": to_standard_library(structlog.stdlib.ProcessorFormatter.wrap_for_formatter),
}


@pytest.fixture
def handler() -> Iterator[logging.StreamHandler[io.StringIO]]:
    """Give the logger "jaxwatch" a handler with structlog's own formatter, and no other one."""
    found = logging.StreamHandler(io.StringIO())
    found.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.dev.ConsoleRenderer(colors=False),
            ],
            foreign_pre_chain=[structlog.stdlib.add_log_level, structlog.stdlib.ExtraAdder()],
        )
    )
    logger = logging.getLogger("jaxwatch")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(found)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield found
    logger.removeHandler(found)
    logger.setLevel(level)
    logger.propagate = propagate


@pytest.mark.parametrize("way", WAYS)
def test_all_fields_come_through_every_renderer(way: str, handler: logging.StreamHandler[io.StringIO]) -> None:
    out = io.StringIO()
    WAYS[way](out)
    tell_all()

    told = [line for line in (out.getvalue() or handler.stream.getvalue()).splitlines() if line]
    assert len(told) == 1 + _limits.CONSOLE_STEADY_LINES + 2
    assert "compiled after warm-up" in told[1]
    if way == "standard library, as keywords":
        return  # its format shows the fields where the program asks for them
    assert all(name in told[-2] for name in FIELDS)
    assert "step" in told[-1]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_hostile_comes_through_any(way: str, handler: logging.StreamHandler[io.StringIO]) -> None:
    out = io.StringIO()
    WAYS[way](out)
    console_exporter()(miss(function=HOSTILE, site=HOSTILE))
    (told,) = (out.getvalue() or handler.stream.getvalue()).splitlines()

    assert "\x1b[31mstep" not in told
    assert not {"\u202e", "\udcff", "\r"} & set(told)


def test_no_field_is_one_that_structlog_or_logging_keeps_for_itself() -> None:
    out = io.StringIO()
    WAYS["JSON"](out)
    tell_all()
    added = {"level", "timestamp", "message", "pathname", "filename", "module", "func_name", "lineno", "thread"}
    added |= {"thread_name", "process", "process_name", "qual_name", "qual_module"}
    found = set().union(*map(json.loads, out.getvalue().splitlines())) - added
    of_record = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "extra", "exc_info", "stack_info"}

    assert found == FIELDS
    assert FIELDS & (of_record | {"event", "level", "logger", "timestamp", "positional_args", "exception"}) == set()


def test_what_the_program_bound_is_carried_along() -> None:
    out = io.StringIO()
    WAYS["JSON"](out)
    with structlog.contextvars.bound_contextvars(request_id="r-1"):
        console_exporter()(miss())

    assert json.loads(out.getvalue())["request_id"] == "r-1"


def test_an_asynchronous_logger_of_the_programs_leaves_no_coroutine_behind() -> None:
    with structlog.testing.capture_logs() as caught:
        processors = structlog.get_config()["processors"]
        structlog.configure(processors=processors, wrapper_class=structlog.stdlib.AsyncBoundLogger)

        async def main() -> None:
            console_exporter()(miss())

        asyncio.run(main())  # a coroutine that nobody awaits is a warning, and here an error
    assert [entry["event"] for entry in caught] == ["recompiled"]


@pytest.mark.parametrize("error", [ValueError("mine"), structlog.DropEvent()])
def test_what_a_processor_raises_is_counted_and_the_program_sees_nothing(error: Exception, fresh: None) -> None:
    del fresh

    def failing(*_: Any) -> Any:
        raise error

    structlog.configure(processors=[failing])
    HUB.add("lines", console_exporter())
    try:
        HUB.publish(miss())
    finally:
        HUB.remove("lines")
    dropped = isinstance(error, structlog.DropEvent)  # which is how a processor says that it wants no line
    assert REGISTRY.snapshot().exporter_errors.get("lines", 0) == (0 if dropped else 1)


# ------------------------------------------------------------------ the standard library's logging


class Keeping(logging.Handler):
    """Keeps its records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Keeping]:
    """Give the logger "jaxwatch" a handler that keeps records."""
    found, logger = Keeping(), logging.getLogger("jaxwatch")
    level = logger.level
    logger.addHandler(found)
    yield found
    logger.removeHandler(found)
    logger.setLevel(level)
    logger.disabled = False


def test_a_program_that_uses_logging_gets_them_by_its_logger(kept: Keeping, capsys: pytest.CaptureFixture[str]) -> None:
    console_exporter()(miss())
    console_exporter()(miss(reasons=("first_call",), changes=()))
    (record,) = kept.records  # the root's level is warning

    assert (record.name, record.levelname, record.msg) == ("jaxwatch", "WARNING", "recompiled %s")
    assert record.getMessage() == (
        "recompiled function=step call=2 what='x: float32[8] → float32[4]' seconds=1.0 site=train.py:71"
    )
    assert record.jaxwatch["call"] == 2  # type: ignore[attr-defined]  # given as extra
    assert "recompiled" not in capsys.readouterr().err
    logging.getLogger("jaxwatch").setLevel(logging.INFO)
    console_exporter()(miss(reasons=("first_call",), changes=()))
    assert kept.records[-1].getMessage().startswith("compiled function=step")


def test_its_level_and_its_being_disabled_are_obeyed(kept: Keeping) -> None:
    logger = logging.getLogger("jaxwatch")
    logger.setLevel(logging.ERROR)
    console_exporter()(miss())
    logger.setLevel(logging.NOTSET)
    logger.disabled = True
    console_exporter()(miss())
    assert kept.records == []


def test_a_record_factory_of_the_programs_with_our_names_does_no_harm(kept: Keeping) -> None:
    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = logging.LogRecord(*args, **kwargs)
        for name in FIELDS:
            setattr(record, name, "theirs")
        return record

    before = logging.getLogRecordFactory()
    logging.setLogRecordFactory(factory)
    try:
        tell_all()
    finally:
        logging.setLogRecordFactory(before)
    assert {record.site for record in kept.records} == {"theirs"}  # type: ignore[attr-defined]  # see above


def test_hostile_names_are_no_format_and_no_second_line(kept: Keeping) -> None:
    console_exporter()(miss(function=HOSTILE))
    (record,) = kept.records

    told = logging.Formatter("%(levelname)s:%(name)s:%(message)s").format(record)
    assert len(told.splitlines()) == 1
    assert "%(name)s" in told
    assert "\x1b" not in told


def test_a_structlog_of_the_programs_comes_before_its_logging_unless_told_otherwise(kept: Keeping) -> None:
    out = io.StringIO()
    WAYS["JSON"](out)
    console_exporter()(miss())
    assert (kept.records, len(out.getvalue().splitlines())) == ([], 1)
    console_exporter(way="logging")(miss())
    assert (len(kept.records), len(out.getvalue().splitlines())) == (1, 1)


def test_configured_so_it_is_logging_in_any_case() -> None:
    ended = run("""
        import logging, jaxwatch
        jaxwatch.configure(console="logging")
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0), step(1)
    """)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.startswith("recompiled function=<lambda> call=2 "), "logging's last resort: bare, on stderr"


def test_what_unconfigured_programs_get_is_on_stderr_and_a_level_silences_it() -> None:
    program = """
        import logging, sys, jaxwatch
        from jaxwatch import _limits
        _limits.CONSOLE_SECONDS_LOST = 0.0
        logging.getLogger("library").addHandler(logging.StreamHandler())  # of another logger
        logging.getLogger("jaxwatch").addHandler(logging.NullHandler())
        step = jaxwatch.jit(lambda x: x + 1)
        step(1.0), step(1)
        logging.getLogger("jaxwatch").setLevel(logging.ERROR)
        other = jaxwatch.jit(lambda x: x + 2)
        other(1.0), other(1)
    """
    ended = run(program)
    (line,) = ended.err.splitlines()
    assert "[warning  ] recompiled" in line


def test_a_program_that_set_up_logging_gets_them_its_own_way() -> None:
    ended = run("""
        import logging, jaxwatch
        logging.basicConfig(format="%(levelname)s|%(name)s|%(message)s")
        logging.captureWarnings(True)
        step = jaxwatch.jit(lambda x: x + 1, watch=jaxwatch.Watch(on_retrace="warn"))
        step(1.0), step(1)
    """)
    lines = ended.err.splitlines()
    assert lines[0].startswith("WARNING|jaxwatch|recompiled function=<lambda> call=2 ")
    assert lines[1].startswith("WARNING|py.warnings|<string>:6: JaxwatchWarning: <lambda> was compiled at ")
