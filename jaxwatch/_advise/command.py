"""``jaxwatch advise`` on the command line: says what it is about to do, asks, does it, tells."""

import json
import os
import sys
from collections.abc import Sequence

from jaxwatch._advise import api, files, spawn
from jaxwatch._advise.outcome import Workload
from jaxwatch._advise.plan import Plan
from jaxwatch._advise.search import LEAST_ROUNDS, ROUNDS, Search
from jaxwatch._program import Program
from jaxwatch.errors import BadOptionError
from jaxwatch.renderers.phrases import counted, duration
from jaxwatch.renderers.terminal import put

_INTERRUPTED = 130


def start(  # noqa: PLR0913 -- one for each option of the command
    argv: Sequence[str],
    *,
    module: bool,
    functions: Sequence[str] | None,
    budget_seconds: float,
    calls: int | None,
    yes: bool,
    json_file: str | None = None,
    html_file: str | None = None,
    png_file: str | None = None,
) -> int:
    """Compare the scopes of a program, and print what was found; return the exit code.

    Raises:
        NoProgramError: There is no such program.
        WorkloadError: It cannot be compared.
        BadOptionError: An option means nothing, or a file cannot be written.
        MissingExtraError: A plot is asked for, and matplotlib is not there.
    """
    workload = _workload(argv, module=module)
    api.checked_bounds(budget_seconds, calls)
    api.checked_functions(functions)
    files.check(html_file, png_file)
    _check_writable(json_file)
    if not _agreed(workload, budget_seconds, yes=yes):
        return 1
    search = Search(
        workload, spawn.run, functions=functions, budget_seconds=budget_seconds, calls=calls, tell=_progress
    )
    try:
        comparison = api.completed(search, lambda: _show_plan(search, search.look()))
    except KeyboardInterrupt:
        _say("interrupted before anything was known.")
        return _INTERRUPTED
    _progress("")
    put(str(comparison), sys.stdout)
    if json_file is not None:
        with open(json_file, "w", encoding="utf-8") as file:
            json.dump(comparison.to_json(), file, indent=1)
    if html_file is not None:
        files.write_html(comparison, html_file)
    if png_file is not None:
        files.write_png(comparison, png_file)
    return _INTERRUPTED if comparison.interrupted else 0


def _workload(argv: Sequence[str], *, module: bool) -> Workload:
    if not module and len(argv) == 1 and ":" in argv[0] and not os.path.exists(argv[0]):
        sys.path.insert(0, os.getcwd())  # as `python -m` would
        return api.named_function(argv[0])
    Program(argv[0], list(argv[1:]), is_module=module).check()
    return Workload(argv=tuple(argv), is_module=module)


def _check_writable(path: str | None) -> None:
    if path is not None and not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        raise BadOptionError(f"{path} cannot be written.", "Give a file in a folder that you may write to.")


def _agreed(workload: Workload, budget_seconds: float, *, yes: bool) -> bool:
    """Say what is about to happen, and ask where there is somebody to ask."""
    _say(
        f"{workload.name} will run once to find its functions, then up to {ROUNDS + 1} times for each scope, until "
        f"{budget_seconds:,.0f} s are spent: with all that it does besides, but its output, which is not shown. "
        f"{spawn.NUMBER} in its environment holds the number of the run."
    )
    if yes or not (sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _show_plan(search: Search, plan: Plan) -> None:
    """Say which scopes will run, how often, and about how long."""
    labels = plan.labels()
    _progress("")
    names = [", ".join(labels[each] for each in plan.functions if each in jitted) or "none" for jitted in plan.scopes]
    count, seconds = len(plan.scopes), search.run_seconds
    fewest, likely = count * 2 * seconds, count * (LEAST_ROUNDS + 1) * seconds
    _say(
        f"{counted(count, 'scope')}: {' | '.join(names)}. {count * 2:,} to {count * (ROUNDS + 1):,} runs of about "
        f"{duration(seconds)}: {duration(fewest)} at least, most likely {duration(likely)}."
    )


def _say(text: str) -> None:
    put(f"jaxwatch advise: {text}", sys.stderr)


def _progress(line: str) -> None:
    """Show what goes on, in one line of a terminal that is written over."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line[:78]}")
        sys.stderr.flush()
