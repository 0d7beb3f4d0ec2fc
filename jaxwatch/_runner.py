"""``jaxwatch run``: an unchanged program, with what it jits watched, and a report when it has ended."""

import atexit
import contextlib
import functools
import os
import shlex
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Literal, TextIO

from jaxwatch import _install, _options, _output_file, _session
from jaxwatch._hub import HUB
from jaxwatch._origin import origin
from jaxwatch._program import Program
from jaxwatch._report import Report, ReportBuilder
from jaxwatch.errors import ReportUnwritableError
from jaxwatch.events import Event, Run, to_record

_INTERRUPTED = 130  # what a shell makes of a death by SIGINT
_TOO_LARGE = 2**63  # what does not fit into a C long, the interpreter takes for -1


class _Watch:
    """What is kept of the run for its report."""

    def __init__(
        self, program: Program, clock: Callable[[], float] = time.monotonic, *, html: str | None = None
    ) -> None:
        self.path = program.path
        self.folder = os.getcwd() if program.is_module else os.path.dirname(program.path)
        self.name = program.name
        self.argv = tuple(program.args)
        self.exit_code = 0
        self._pid = os.getpid()
        self._clock = clock
        self._started = clock()
        self.html = html
        self._builder = ReportBuilder(details=html is not None)
        self._lock = threading.RLock()  # a garbage collection during `add` may publish
        self.export(self._run("start", 0.0))  # the page's axis begins here, not at the first compile

    def export(self, event: Event, /) -> None:
        """Take an event; an exporter of the hub."""
        if self.is_here:
            with self._lock:
                self._builder.add(to_record(event))

    @property
    def is_here(self) -> bool:
        """Whether this is the process that was started, and no fork of it."""
        return os.getpid() == self._pid

    def _run(self, phase: Literal["start", "end"], wall_seconds: float) -> Run:
        return Run(
            origin=origin(),
            phase=phase,
            argv=self.argv[:0] if _options.redacted() else self.argv,
            program=self.path,
            wall_seconds=wall_seconds,
            exit_code=self.exit_code if phase == "end" else None,
            jax_version=None,
        )

    def report(self) -> Report:
        """Return the report of the run, which ends now."""
        for event in _session.stats_events():
            self.export(event)
        self.export(self._run("end", self._clock() - self._started))
        with self._lock:
            return self._builder.build(folder=self.folder)


def start(  # noqa: PLR0913 -- one for each option of the command
    argv: list[str],
    *,
    module: bool,
    log: str | None = None,
    html: str | None = None,
    quiet: bool = False,
    port: int | None = None,
    push: str | None = None,
    job: str | None = None,
) -> Callable[[], int]:
    """Make everything ready to run a program as ``python`` would, with ``jax.jit`` watched and a report at the end.

    Args:
        argv: The program and its arguments.
        module: Whether the first is a module's name, as after ``python -m``.
        log: A file for the event log.
        html: A file for the report as a page.
        quiet: Report in one line, and tell nothing while the program runs.
        port: Serve the metrics there; 0 takes any free one.
        push: Push the metrics to this Pushgateway, now and then and at the end.
        job: The label ``job`` of what is pushed; by default the program's name.

    Returns:
        What runs the program, and returns 0 if it comes to its end. To be called from ``__main__``, on the main thread,
        with nothing to do afterwards: what the program raises comes out for the interpreter to handle, which is how
        exit codes, tracebacks and signals stay Python's own.

    Raises:
        NoProgramError: There is no such program.
        LogUnwritableError: The log cannot be written.
        ReportUnwritableError: The page cannot be written.
        PortTakenError: The port cannot be had.
        BadOptionError: ``push`` is no address.
    """
    program = Program(argv[0], argv[1:], is_module=module)
    program.check()
    watch = _Watch(program, html=None if html is None else _output_file.check(html, "--html"))
    command = None if log is None else f"jaxwatch report {shlex.quote(log)} --all"
    # First registered, so last run: after the program's own handlers, when its threads have ended.
    atexit.register(_report_at_exit, watch, sys.stderr, command, quiet=quiet)
    program.prepare()
    try:
        if log is not None or quiet:
            _session.configure(log=log, console=False if quiet else None)
        if port is not None:
            _serve(port)
        if push is not None:
            _push(push, job or os.path.basename(program.name) or program.name)
    except BaseException:
        atexit.unregister(_report_at_exit)
        raise
    if not quiet:
        from jaxwatch import _progress_line  # noqa: PLC0415 -- not with --quiet

        _progress_line.follow(by_default=True)
    HUB.add("report", watch.export)
    _install.install()
    return functools.partial(_run, program, watch)


def _serve(port: int) -> None:
    from jaxwatch._serve import serve  # noqa: PLC0415 -- needs prometheus_client

    where = serve(port=port)
    if port == 0:  # else nobody could tell
        told = f"jaxwatch: live on {where.page} and metrics on {where.url}"
        print(told, file=sys.stderr, flush=True)  # noqa: T201 -- for people


def _push(url: str, job: str) -> None:
    from jaxwatch._push import push  # noqa: PLC0415 -- as above

    push(url, job)


def run_program(argv: list[str], *, module: bool, log: str | None = None, quiet: bool = False) -> int:
    """Run a program at once; see ``start``."""
    return start(argv, module=module, log=log, quiet=quiet)()


def _run(program: Program, watch: _Watch) -> int:
    try:
        program.execute()
    except BaseException as error:
        watch.exit_code = _session.SESSION.exit_code = _exit_code(error)
        _hide_frames(error)
        raise
    _session.SESSION.exit_code = 0
    return 0


def _exit_code(error: BaseException) -> int:
    """Return the exit code that the interpreter will make of ``error``."""
    if type(error) is KeyboardInterrupt:  # not of a subclass: so the interpreter has it
        return _INTERRUPTED
    if not isinstance(error, SystemExit):
        return 1
    if error.code is None:
        return 0
    if not isinstance(error.code, int):
        return 1
    return (error.code if abs(error.code) < _TOO_LARGE else -1) & 0xFF


# ------------------------------------------------------------------ tracebacks


def _hide_frames(error: BaseException) -> None:
    """See to it that the interpreter shows ``error`` without frames of ours.

    It puts the frames that the error still passes through in front of the traceback, and then calls
    ``sys.excepthook``, the program's own perhaps. That gets the traceback as it is now, from the program's first frame.
    """
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    if isinstance(error, SystemExit) or not hasattr(sys, "excepthook"):
        error.__traceback__ = trace
        return
    hook = sys.excepthook

    def show(kind: type[BaseException], value: BaseException, seen: types.TracebackType | None) -> None:
        if value is error:
            seen = value.__traceback__ = sys.last_traceback = trace
        sys.excepthook = hook
        try:
            hook(kind, value, seen)
        except BaseException as failure:
            failure.__traceback__ = failure.__traceback__.tb_next if failure.__traceback__ else None
            raise

    sys.excepthook = show


def _is_ours(trace: types.TracebackType) -> bool:
    # _program's own, and those that it puts below the program under the name of "sys"
    return (
        trace.tb_frame.f_globals is globals()
        or trace.tb_frame.f_globals is vars(sys)
        or (trace.tb_frame.f_globals.get("__name__") == "jaxwatch._program")
    )


# ------------------------------------------------------------------ the end


def _report_at_exit(watch: _Watch, stream: TextIO | None, command: str | None, *, quiet: bool) -> None:
    if not watch.is_here or stream is None:
        return
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
        _write(watch, stream, command, quiet=quiet)
    except (Exception, KeyboardInterrupt):  # noqa: BLE001, S110 -- a closed stream, a full disk: the program has ended well
        pass
    if watch.exit_code == _INTERRUPTED:
        _die_of_interrupt()


def _die_of_interrupt() -> None:
    """Let the process die by SIGINT, as it must after a KeyboardInterrupt that nobody caught.

    The interpreter remembers that in a flag, which any ``exec`` of a text takes back: each dataclass of a module that
    was imported for the report is one. An ``exec`` that ends in a KeyboardInterrupt sets it again.
    """
    with contextlib.suppress(KeyboardInterrupt):
        exec("raise KeyboardInterrupt")  # noqa: S102 -- see above


def _write(watch: _Watch, stream: TextIO, command: str | None, *, quiet: bool) -> None:
    from jaxwatch.renderers import RENDERERS, terminal  # noqa: PLC0415 -- not before the program, which may not need it

    if _options.switched_off():
        terminal.put(_nothing(watch, "was not watched: JAXWATCH=0 is set."), stream)
    elif "jax" not in sys.modules:
        terminal.put(_nothing(watch, "never imported jax: nothing to report."), stream)
    else:
        report = watch.report()
        RENDERERS["line" if quiet else "terminal"](report, stream, more=command)
        if watch.html is not None:
            try:
                _output_file.put(watch.html, "--html", functools.partial(RENDERERS["html"], report))
            except ReportUnwritableError as error:  # the folder may be gone by now
                terminal.put(f"jaxwatch: {error}", stream)


def _nothing(watch: _Watch, why: str) -> str:
    from jaxwatch.renderers.cells import clean  # noqa: PLC0415 -- as above

    code = f", exit code {watch.exit_code}," if watch.exit_code else ""
    return f"jaxwatch · {clean(os.path.basename(watch.name) or watch.name)}{code} {why}"
