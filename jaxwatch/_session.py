"""What a process of the user's has running: its log, its console lines, and what is written when it ends.

Imports no jax. Nothing starts before the first function is watched, or ``configure`` is called.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, Literal

from jaxwatch import _limits, _options, _policy, _scope, _steady
from jaxwatch._build import build
from jaxwatch._hub import HUB
from jaxwatch._origin import loaded_compat, origin
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, JaxwatchWarning, LogUnwritableError
from jaxwatch.events import Event, FunctionStatsEvent, ProcessStatsEvent, Run
from jaxwatch.exporters.console import console_exporter
from jaxwatch.exporters.jsonl import LogFile

_OWN = os.path.join(os.path.dirname(__file__), "")
_STARTED = time.monotonic()


class _Session:
    """The one session of the process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.started = False
        self.log: LogFile | None = None
        self.exit_code: int | None = None
        self.ticker: threading.Event | None = None


SESSION = _Session()


def start() -> None:
    """Set up what the environment asks for, once; called when the first function is watched."""
    if SESSION.started:
        return
    with SESSION.lock:
        if SESSION.started:
            return
        SESSION.started = True
        atexit.register(_end)
        if "console" not in HUB.names:
            HUB.add("console", console_exporter())
        if _options.progress():
            _show_progress()
        path = _options.log_path()
        if path is not None and SESSION.log is None:
            try:
                _open_log(path)
            except LogUnwritableError as error:  # the program goes on without
                with contextlib.suppress(OSError, ValueError):  # a stderr that is closed
                    warnings.warn(str(error), JaxwatchWarning, stacklevel=2)
        _steady_of_environment()


def _steady_of_environment() -> None:
    text = os.environ.get(_steady.VARIABLE, "").strip()
    if not text or _policy.Process.steady is not None:
        return
    try:
        _policy.Process.steady = _steady.steady(text, by=f"{_steady.VARIABLE}={{}}")
    except BadOptionError as error:  # the program goes on without
        warnings.warn(str(error), JaxwatchWarning, stacklevel=2)


def _show_progress() -> None:
    from jaxwatch import _progress_line  # noqa: PLC0415 -- most programs show none

    _progress_line.follow()


def configure(  # noqa: PLR0913 -- each by keyword, and each of its own
    *,
    log: Any = None,
    console: bool | Literal["logging"] | None = None,
    redact: bool | None = None,
    steady_after: str | None = None,
    max_signatures: int | None = None,
    on_retrace: _options.Action | None = None,
    progress: bool | None = None,
    annotate: bool | None = None,
) -> None:
    """Set what jaxwatch does in this process; what is left out stays as it is.

    Args:
        log: A file that JSON lines are appended to, in place of that of ``JAXWATCH_LOG``.
        console: Whether recompiles are told: by structlog where the program configured it, else by the logger
            "jaxwatch" of the standard library where that has handlers, else on stderr. ``"logging"``: by that logger
            in any case.
        redact: Whether values of static arguments, and the program's own arguments, are kept out of all that is told;
            in place of ``JAXWATCH_REDACT``. Names, paths, shapes and keys of dictionaries are told in any case.
        steady_after: When the warm-up is over: ``"300 s"`` from now, ``"200 calls"`` of a function, ``"300 s, 3
            calls"`` for both, ``"0 s"``: now, ``"never"``. From then on each miss is a violation and a warning on the
            console; never a Python warning, and never an error. In place of ``JAXWATCH_STEADY_AFTER``.
        max_signatures: As ``Watch``'s, for all functions whose ``Watch`` has none.
        on_retrace: As ``Watch``'s, for all functions whose ``Watch`` has none.
        progress: Whether a line tells what compiles and for how long, from 2 s on, on stderr where that is a terminal,
            or below a notebook's cell; in place of ``JAXWATCH_PROGRESS``.
        annotate: Whether misses are put into the traces of ``jax.profiler``, in place of ``JAXWATCH_ANNOTATE``.

    Raises:
        LogUnwritableError: The log cannot be opened.
        BadOptionError: A value is of the wrong kind.
    """
    if log is not None and not isinstance(log, str | os.PathLike):
        raise BadOptionError(f"configure(log={log!r}) is no path.", "Give a str or a pathlib.Path.")
    if console is not None and not isinstance(console, bool) and console != "logging":
        raise BadOptionError(f"configure(console={console!r:.80}) is no choice.", "Give a bool, or 'logging'.")
    _check_flags(redact=redact, progress=progress, annotate=annotate)
    _check_rule(max_signatures, on_retrace)
    begun = None if steady_after is None else _steady.steady(steady_after, by="configure(steady_after={})")
    if redact is not None:
        _options.redact(redact)
    if annotate is not None:
        _options.annotate(annotate)
    if log is not None:
        with SESSION.lock:
            _open_log(log)
    start()
    process = _policy.Process
    if steady_after is not None:
        process.steady = begun
    process.max_signatures = process.max_signatures if max_signatures is None else max_signatures
    process.on_retrace = process.on_retrace if on_retrace is None else on_retrace
    if console:
        HUB.add("console", console_exporter(way="logging" if console == "logging" else "auto"))
    elif console is not None:
        HUB.remove("console")
    if progress is not None:
        _options.choose_progress(progress)
        _show_progress()


def _check_flags(**flags: object) -> None:
    for name, value in flags.items():
        if value is not None and not isinstance(value, bool):
            raise BadOptionError(f"configure({name}={value!r:.80}) is neither True nor False.", "Give a bool.")


def _check_rule(max_signatures: object, on_retrace: object) -> None:
    if max_signatures is not None and not _options.is_limit(max_signatures):
        problem = f"configure(max_signatures={max_signatures!r:.80}) allows no signature at all."
        raise BadOptionError(problem, "Give a whole number from 1.")
    if on_retrace is not None and on_retrace not in _options.ACTIONS:
        problem = f"configure(on_retrace={on_retrace!r:.80}) is no action."
        raise BadOptionError(problem, f"Give one of {', '.join(map(repr, _options.ACTIONS))}.")


def _open_log(path: str | os.PathLike[str]) -> None:
    new = LogFile(path)
    old, SESSION.log = SESSION.log, new
    HUB.add("log", _write)
    new(_run("start"))
    _start_ticker()
    if old is not None:
        old.close()


def _write(event: Event, /) -> None:
    """Hand an event to the log; in a forked child the first one starts the ticker, which forking left behind."""
    if SESSION.ticker is None:
        _start_ticker()
    _append(event)


def _append(event: Event) -> None:
    log = SESSION.log
    while log is not None and not log(event):  # another log took its place meanwhile
        last, log = log, SESSION.log
        if log is last:
            REGISTRY.count_dropped("log_line")
            return


def log_in_use() -> str | None:
    """Return the path of the log, or None."""
    return None if SESSION.log is None else SESSION.log.path


# ------------------------------------------------------------------ figures, now and then and at the end


def _start_ticker() -> None:
    """Write the figures every minute, so that they are there after SIGKILL; only with a log, by a daemon thread."""
    if SESSION.ticker is not None:
        return
    SESSION.ticker = stop = threading.Event()

    def tick() -> None:
        while not stop.wait(_limits.STATS_EVERY_SECONDS):
            write_stats()

    threading.Thread(target=tick, name="jaxwatch-stats", daemon=True).start()


def write_stats() -> None:
    """Write the figures of the process and of each function to the log, as they are now."""
    if SESSION.log is None:
        return
    for event in stats_events():
        _append(event)


def stats_events() -> Iterator[FunctionStatsEvent | ProcessStatsEvent]:
    """Yield the figures of the process and of each function: for the log, and for the report of a live process."""
    snapshot = REGISTRY.snapshot()
    yield ProcessStatsEvent(
        origin=origin(),
        **{name: value for name, value in build()._asdict().items() if name != "process_index"},
        dropped=dict(snapshot.dropped),
        label_overflows=dict(snapshot.label_overflows),
        exporter_errors=dict(snapshot.exporter_errors),
        overhead_seconds=dict(snapshot.overhead_seconds),
    )
    for stats in snapshot.functions:
        yield FunctionStatsEvent(
            origin=origin(),
            function=stats.function,
            definition=stats.definition,
            calls=stats.calls,
            misses=stats.misses,
            signatures=stats.signatures,
            dispatch={f"{bound:.6g}": count for bound, count in stats.dispatch.items()},
            inlined=dict(stats.inlined),
            inlined_read=stats.inlined_read,
            inlined_keys=stats.inlined_keys,
            touched=stats.touched,
        )


def _end() -> None:
    try:
        _tell_unmatched()
        write_stats()
        if SESSION.log is not None:
            _append(_run("end"))
    except Exception:  # noqa: BLE001 -- at exit nothing of ours may be seen
        REGISTRY.count_dropped("log_line")


def _tell_unmatched() -> None:
    """Say which names of ``JAXWATCH_JIT_SCOPE`` are no function's: all that they were to keep ran without jit."""
    every = [(stats.function, stats.definition) for stats in REGISTRY.snapshot().functions]
    functions = [found for found in every if not found[1].startswith(_OWN)]  # the doctor has one of its own
    names = _scope.unmatched(functions) if functions else []
    if names and sys.stderr is not None:
        told = f"jaxwatch: {_scope.VARIABLE} names {', '.join(names)}, and no watched function is called that; it had "
        sys.stderr.write(f"{told}{', '.join(sorted({name for name, _ in functions}))}. [scope-names]\n")


def _run(phase: Literal["start", "end"]) -> Run:
    compat = loaded_compat()
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    return Run(
        origin=origin(),
        phase=phase,
        argv=_argv(),
        program=str(main or (sys.argv[0] if getattr(sys, "argv", None) else "")),
        wall_seconds=time.monotonic() - _STARTED,
        exit_code=SESSION.exit_code,
        jax_version=None if compat is None else compat.jax_versions()[0],
    )


def _argv() -> tuple[str, ...]:
    """Return the program's arguments; with ``redact`` its name alone: a password may be among them."""
    argv = tuple(getattr(sys, "argv", ()))
    return argv[:1] if _options.redacted() else argv


def _after_fork() -> None:
    SESSION.lock = threading.Lock()
    SESSION.ticker = None  # no thread is started here: within the handler it would never come to run


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
