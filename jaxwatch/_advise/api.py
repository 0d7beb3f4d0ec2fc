"""``jaxwatch.advise``: the comparison for a workload that is a function."""

import importlib
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from jaxwatch._advise import spawn
from jaxwatch._advise.comparison import Comparison
from jaxwatch._advise.outcome import Workload
from jaxwatch._advise.search import Search
from jaxwatch._advise.table import lines
from jaxwatch.errors import BadOptionError

BUDGET_SECONDS = 600.0


def advise(
    workload: Callable[[], Any] | str,
    functions: Sequence[str] | None = None,
    *,
    budget_seconds: float = BUDGET_SECONDS,
    calls: int | None = None,
) -> Comparison:
    """Run a function under several scopes of jit, each in fresh processes with a cold compile cache, and compare.

    The function runs many times, with all that it does besides; ``JAXWATCH_ADVISE`` is set in its environment then.

    Args:
        workload: A function without arguments that can be imported, or ``"module:function"``. All that it jits, and
            its module, by ``jax.jit`` or ``jaxwatch.jit``, is compared.
        functions: Names of jitted functions that may be bypassed; None: all that are not of installed packages.
        budget_seconds: No run is begun that would end later.
        calls: After how many outermost calls of jitted functions a run is ended; None: when the function returns.

    Returns:
        What was found; ``print`` it. After Ctrl-C what was known by then, with ``interrupted``.

    Raises:
        BadOptionError: The workload cannot be imported, or another argument means nothing.
        WorkloadError: It fails by itself, does not end within the budget, or calls nothing that is jitted.
    """
    named = named_function(workload)
    checked_bounds(budget_seconds, calls)
    checked_functions(functions)
    search = Search(named, spawn.run, functions=functions, budget_seconds=budget_seconds, calls=calls)
    return completed(search, search.look)


def completed(search: Search, look: Callable[[], object]) -> Comparison:
    """Carry a search through, and return what is known when it is done or interrupted.

    Raises:
        WorkloadError: As ``Search.look``.
        KeyboardInterrupt: Before anything was known.
    """
    look()
    try:
        search.measure()
    except KeyboardInterrupt:
        search.interrupted = True
    found = search.comparison()
    return replace(found, text="\n".join(lines(found)))


def checked_bounds(budget_seconds: object, calls: object) -> None:
    """Look whether the bounds mean something.

    Raises:
        BadOptionError: One does not.
    """
    number = isinstance(budget_seconds, int | float) and not isinstance(budget_seconds, bool)
    if not number or not 0 < budget_seconds < float("inf"):  # type: ignore[operator]  # a number
        raise BadOptionError(f"A budget of {budget_seconds!r} seconds allows no run.", "Give seconds, more than 0.")
    if calls is not None and (not isinstance(calls, int) or isinstance(calls, bool) or calls < 1):
        raise BadOptionError(f"calls={calls!r} is no number of calls.", "Give a whole number from 1, or None.")


def checked_functions(functions: object) -> None:
    """Look whether it is a list of names, or None.

    Raises:
        BadOptionError: It is not.
    """
    if isinstance(functions, str):
        raise BadOptionError(f"functions={functions!r} is one text.", "Give a list of names.")
    if functions is not None and not functions:
        raise BadOptionError("No function is named.", "Name some, or leave it out: all of the program's are compared.")


def named_function(workload: object) -> Workload:
    """Return a workload that another process can import.

    Raises:
        BadOptionError: It cannot.
    """
    way_out = 'Give a function of a module that can be imported, or "module:function".'
    if isinstance(workload, str):
        module, colon, name = workload.partition(":")
        if not (module and colon and name):
            raise BadOptionError(f"The workload {workload!r} names no function.", way_out)
    elif isinstance(workload, types.FunctionType):
        module, name = workload.__module__, workload.__qualname__
        if module == "__main__":
            problem = f"The workload {name} is of __main__, the program that runs, which no other process can import."
            raise BadOptionError(problem, f"{way_out} Of a program as a whole: jaxwatch advise PROGRAM.")
    else:
        problem = f"The workload {workload!r} is a {type(workload).__name__}, and no function of a module."
        raise BadOptionError(problem, way_out)
    found = _found(module, name, way_out)
    if isinstance(workload, types.FunctionType) and found is not workload:
        problem = f"The workload {name} is not what {module} has under that name: no other process can get at it."
        raise BadOptionError(problem, way_out)
    return Workload(function=f"{module}:{name}", path=tuple(sys.path))


def _found(module: str, name: str, way_out: str) -> object:
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        problem = f"The workload {module}:{name} cannot be imported: {type(error).__name__}: {error}."
        raise BadOptionError(problem, way_out) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise BadOptionError(f"The module {module} has no function {name}.", way_out)
    return found
