"""One measurement of ``jaxwatch scaling``: compiles a function at one size in this process, and prints figures."""

import importlib
import json
import os
import sys
from typing import Any

import jax

from jaxwatch._core import jit
from jaxwatch._hub import HUB
from jaxwatch.errors import BadScalingError
from jaxwatch.events import CacheMiss, Event

_FORMS = "Write def function(size): ... return step, (its, arguments); or a function that jax.jit takes with an int."


def target_of(text: str) -> Any:
    """Return the function that ``module:function`` names; modules of the current folder are found.

    Raises:
        BadScalingError: There is none.
    """
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise BadScalingError(f"{text!r} names no function.", "Give module:function, as train:make_step.")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise BadScalingError(f"cannot find {text}: {error}.", "Give module:function, as train:make_step.") from error
    if not callable(found):
        raise BadScalingError(f"{text} is no function.", _FORMS)
    return found


def program_of(function: Any, size: int) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return what is to be jitted, its arguments, and the options of jax.jit, at a size.

    A function that is jitted already, or returns no function, is taken as one of a static int.
    """
    if hasattr(function, "lower"):
        return getattr(function, "__wrapped__", function), (size,), {"static_argnums": 0}
    made = function(size)
    if isinstance(made, tuple) and made and callable(made[0]):
        given = made[1] if len(made) == 2 and isinstance(made[1], tuple) else made[1:]  # noqa: PLR2004 -- (step, args)
        return getattr(made[0], "__wrapped__", made[0]), tuple(given), {}
    return function, (size,), {"static_argnums": 0}


def measure(text: str, size: int) -> dict[str, float]:
    """Compile the function at a size, and return what its miss tells.

    Raises:
        BadScalingError: It cannot be found, or compiles nothing.
    """
    function, arguments, options = program_of(target_of(text), size)
    jax.jit(lambda x: x + 1)(1.0)  # starts the backend
    found: list[CacheMiss] = []
    HUB.add("scaling", lambda event: _keep(event, found))
    try:
        jit(function, **options)(*arguments)
    finally:
        HUB.remove("scaling")
    miss = found[-1] if found else None
    if miss is None or not miss.compiles or miss.program is None:
        raise BadScalingError(f"{text} at size {size} compiled nothing that could be measured.", _FORMS)
    seconds = miss.seconds
    return {
        "equations": miss.program.equations,
        "trace": seconds.trace,
        "lower": seconds.lower,
        "compile": seconds.backend_compile,
    }


def _keep(event: Event, found: list[CacheMiss]) -> None:
    if isinstance(event, CacheMiss):
        found.append(event)


def main(text: str, size: int) -> int:
    """Print what was measured, or what is wrong, as one JSON object on the last line."""
    try:
        told: dict[str, Any] = dict(measure(text, size))
    except BadScalingError as error:
        told = {"problem": str(error)}
    except Exception as error:  # noqa: BLE001 -- of the user's function: told by the command
        told = {"problem": f"{text} at size {size} raised {type(error).__name__}: {error}.", "way_out": _FORMS}
    sys.stdout.write(f"\n{json.dumps(told)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
