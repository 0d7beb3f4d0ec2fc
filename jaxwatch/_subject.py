"""What the engine is to know of a function when it begins to be watched; the same for both cores."""

from collections.abc import Mapping
from typing import Any

from jaxwatch import _compat, _plan
from jaxwatch._options import Watch
from jaxwatch._registry import Subject


def make_subject(jitted: Any, fun: Any, chosen: Watch, options: Mapping[str, Any], cell: Any = None) -> Subject:
    """Return the subject of a function that is about to be watched.

    Args:
        jitted: What ``jax.jit`` returned.
        fun: The user's function that was given to it.
        chosen: How it is to be watched.
        options: The keywords that were given to ``jax.jit``, for a JAX that keeps none.
        cell: The native core's counters; None for the twin's.
    """
    definition = _plan.definition_of(fun)
    return Subject(
        name=chosen.name or _plan.function_name(fun),
        definition=definition,
        event_name=_compat.event_name(fun),
        in_library=_plan.in_library(definition),
        watch=chosen,
        plan=_plan.make_plan(fun, jitted, options),
        cell=cell,
    )
