"""``%load_ext jaxwatch``: notebooks. What is jitted is watched; ``%%jaxwatch`` tells below a cell what it recompiled.

A cell under ``%%jaxwatch`` runs as the cell that it is, its first line made a comment: so ``await``, the value of the
last line, history, tracebacks and names are IPython's own. The report comes when IPython says that the cell has run.
"""

import functools
import shlex
import time
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, NoReturn

from jaxwatch import _install, _options, _progress_line, _session
from jaxwatch._hub import HUB
from jaxwatch._report_data import Report
from jaxwatch._stretch import Calls, Stretch
from jaxwatch.events import Event
from jaxwatch.renderers import headline, notebook, terminal

_NAME = "jaxwatch"
_MAGIC = f"%%{_NAME}"
_OPTIONS = {"--all": "everything", "--quiet": "quiet"}
# Cells under way at once: magics run cells within cells. Beyond, the oldest is forgotten: its end never came.
_RUNS = 8


class Shown(NamedTuple):
    """How a report is shown, as is asked for behind the magic's name."""

    everything: bool = False
    quiet: bool = False


def parsed(line: str) -> Shown | str:
    """Return what is asked for behind the magic's name, or else the first word that means nothing."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # a quote that is not closed
        return line.strip()
    wrong = next((word for word in words if word not in _OPTIONS), None)
    return Shown(**{_OPTIONS[word]: True for word in words}) if wrong is None else wrong


class CellReport:
    """A report as a notebook shows it: as HTML, and as plain text on a terminal."""

    def __init__(self, report: Report, shown: Shown, more: str) -> None:
        self.report, self._shown, self._more = report, shown, more

    def __repr__(self) -> str:
        """Return the text that a terminal gets."""
        if self._shown.quiet:
            return headline.one_line(self.report)
        return terminal.render(self.report, everything=self._shown.everything, more=self._more)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        del include, exclude
        everything, quiet = self._shown
        page = notebook.render(self.report, everything=everything, quiet=quiet, more=self._more)
        return {"text/plain": repr(self), "text/html": page}


class _Run:
    """A cell that runs."""

    def __init__(self, info: Any) -> None:
        self.info = info  # IPython's own, which comes again with the result
        self.shown: Shown | None = None
        self.stretch: Stretch | None = None


class Extension:
    """What is installed in one shell of IPython's.

    Args:
        shell: The shell.
        display: Shows an object as an output of the cell that runs.
        usage_error: What IPython shows without a traceback.
        clock: Gives seconds.
    """

    has_side_effects: ClassVar[bool] = True  # so IPython does not call it to see if a cell is complete

    def __init__(
        self,
        shell: Any,
        display: Callable[[Any], object],
        usage_error: type[Exception],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._shell, self._display, self._usage_error, self._clock = shell, display, usage_error, clock
        self._runs: list[_Run] = []
        self._calls = Calls()
        self._all = Stretch(self._calls)
        self._ran_seconds = 0.0  # in cells: what lies between is the user's
        self._runs_since: float | None = clock()  # the cell that loads this
        self._installs = not _install.installed()

    def load(self) -> None:
        """Watch what is jitted from now on, and was before; have the magic."""
        cleanup = self._shell.input_transformers_cleanup
        places = [place for place, one in enumerate(cleanup) if getattr(one, "__name__", "") == "cell_magic"]
        cleanup.insert(places[0] if places else len(cleanup), self)
        self._shell.events.register("pre_run_cell", self._before)
        self._shell.events.register("post_run_cell", self._after)
        self._shell.register_magic_function(self._magic, "line_cell", _NAME)
        if _options.switched_off():
            return
        HUB.add("notebook", self._export)
        _session.start()
        _progress_line.follow(by_default=True)
        _install.install(attach=True)

    def unload(self) -> None:
        """Take all that away again; what was jitted meanwhile stays watched."""
        self._shell.input_transformers_cleanup.remove(self)
        self._shell.events.unregister("pre_run_cell", self._before)
        self._shell.events.unregister("post_run_cell", self._after)
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop(_NAME, None)
        HUB.remove("notebook")
        _progress_line.follow()
        if self._installs:
            _install.uninstall()

    def _export(self, event: Event, /) -> None:
        self._calls.note(event)
        self._all.export(event)
        for run in self._runs:
            if run.stretch is not None:
                run.stretch.export(event)

    # -------------------------------------------------------------- a cell under the magic

    def __call__(self, lines: list[str]) -> list[str]:
        """Return a cell's lines, as IPython's transformers do: with a first line of ours made a comment.

        What is asked for wrongly stays as it is, for the magic to say so. Where another magic stands below, which must
        come first, our line is left out.
        """
        shown = _asked(lines)
        if shown is None:
            return lines
        if self._runs:  # a magic, %%time say, is about to run these lines
            self._arm(self._runs[-1], shown)
        below = lines[1:]
        return below if any(below) and below[0].startswith("%%") else [f"# {lines[0]}", *below]

    def _before(self, info: Any) -> None:
        """Take IPython's word that a cell is about to run."""
        self._runs = [*self._runs, _Run(info)][-_RUNS:]
        self._runs_since = self._clock() if self._runs_since is None else self._runs_since
        lines = info.raw_cell.splitlines(keepends=True)
        for transform in self._shell.input_transformers_cleanup:
            if transform is self:
                break
            lines = transform(lines)
        if (shown := _asked(lines)) is not None:
            for outer in self._runs:
                outer.shown = None  # of several within each other the innermost tells
            self._arm(self._runs[-1], shown)

    def _arm(self, run: _Run, shown: Shown) -> None:
        run.shown = shown
        run.stretch = run.stretch or Stretch(self._calls)

    def _after(self, result: Any) -> None:
        """Take IPython's word that a cell has run, or was interrupted; show the report if it was asked for."""
        infos = [run.info for run in self._runs]
        info = getattr(result, "info", None)
        place = next((place for place, one in enumerate(infos) if one is info), len(infos) - 1 if info is None else -1)
        run, self._runs = (self._runs[place], self._runs[:place]) if place >= 0 else (None, self._runs)
        if run is not None and run.shown is not None and run.stretch is not None:
            number = getattr(result, "execution_count", None)
            name = "this cell" if number is None else f"cell [{number}]"
            self._show(functools.partial(run.stretch.report, name), name, run.shown, _MAGIC)
        if not self._runs and self._runs_since is not None:
            self._ran_seconds, self._runs_since = self._seconds(), None

    def _seconds(self) -> float:
        """Return how long cells have run in all, so far."""
        return self._ran_seconds + (0.0 if self._runs_since is None else self._clock() - self._runs_since)

    # -------------------------------------------------------------- the magic itself

    def _magic(self, line: str, cell: str | None = None) -> None:
        """Tell what JAX recompiled, why, what it cost and what to change.

        ``%%jaxwatch`` as a cell's first line tells it below the cell, of what is compiled while it runs; ``%jaxwatch``
        of all since ``%load_ext jaxwatch``. ``--all``: nothing is cut short. ``--quiet``: in one line.
        """
        shown = parsed(line)
        if isinstance(shown, str):
            self._refuse(shown)
        if cell is None:
            name = "this notebook"
            self._show(lambda: self._all.report(name, self._seconds()), name, shown, f"%{_NAME}")
        else:  # called by its name, as in what nbconvert makes a script of
            self._shell.run_cell(f"{_MAGIC} {line}\n{cell}", store_history=False).raise_error()

    def _refuse(self, word: str) -> NoReturn:
        text = f"{_NAME} {word!r:.80} means nothing. Give {' or '.join(_OPTIONS)}, or nothing."
        raise self._usage_error(f"{text} [bad-option]")

    def _show(self, report: Callable[[], Report], name: str, shown: Shown, magic: str) -> None:
        if _options.switched_off():
            print(f"jaxwatch · {name} was not watched: JAXWATCH=0 is set.")  # noqa: T201 -- what was asked for
            return
        self._display(CellReport(report(), shown, f"{magic} --all"))


def _asked(lines: list[str]) -> Shown | None:
    """Return what a cell's first line asks for; None where it is not the magic's, or nothing that it could do."""
    name, _, options = (lines[0] if lines else "").strip().partition(" ")
    shown = parsed(options) if name == _MAGIC else None
    return shown if isinstance(shown, Shown) else None


class _Loaded:
    extension: Extension | None = None


def load(shell: Any) -> None:
    """Install the extension in IPython's shell."""
    from IPython.core.error import UsageError  # noqa: PLC0415 -- there, as it calls this
    from IPython.display import display  # noqa: PLC0415

    unload()
    extension = Extension(shell, display, UsageError)
    extension.load()
    _Loaded.extension = extension


def unload() -> None:
    """Take the extension out again."""
    extension, _Loaded.extension = _Loaded.extension, None
    if extension is not None:
        extension.unload()
