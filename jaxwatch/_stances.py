"""``stance`` and ``warm_up``: what becomes of a miss from now on, changeable while the program runs."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, Self, TypeVar

from jaxwatch import _policy
from jaxwatch._guards import decorated, subject_of, written_at
from jaxwatch._options import ACTIONS, Action, switched_off
from jaxwatch.errors import BadOptionError

_P = ParamSpec("_P")
_R = TypeVar("_R")


class stance:  # noqa: N801 -- used as a context manager and decorator, as no_retraces is
    """Say what becomes of misses: ``with stance("raise", step): …``, as a decorator, or from ``start()`` to ``stop()``.

    Each miss counts, a function's first call too; what is in the cache is free. The innermost stance that covers a
    function decides, over its ``Watch`` and over ``configure``; ``no_retraces`` forbids whatever a stance says. A block
    decides in its own thread or task; on others it can make things stricter and never laxer. What was started holds on
    all threads, in place of what was started before.

    Args:
        action: ``record`` (misses are told, and no violation), ``warn`` (a ``JaxwatchWarning`` after the call) or
            ``raise`` (a ``RetraceError`` in the call, before anything is compiled).
        functions: Watched functions; none means all watched ones.
        allow: What is expected: watched functions, and signatures as the log and the metrics name them (``"s0f3…"``).

    Raises:
        BadOptionError: ``action`` or ``allow`` means nothing; or it decorates a generator function.
        NotWatchedError: A function is not watched.
    """

    def __init__(self, action: Action, *functions: Callable[..., Any], allow: Iterable[Any] = ()) -> None:
        if action not in ACTIONS:
            raise BadOptionError(f"stance({action!r:.80}) is no action.", f"Give one of {ACTIONS}.")
        allowed, signatures = _expected(allow)
        off = switched_off()
        self._of = (
            () if off else tuple(map(subject_of, functions)),
            action,
            () if off else tuple(map(subject_of, allowed)),
            signatures,
            f"stance({action!r}) at {written_at()}",
        )
        self._started: _policy.InForce | None = None
        self._entered: list[_policy.InForce] = []

    def start(self) -> Self:
        """Put it in force on all threads, over what was started before; return the stance itself."""
        self.stop()
        self._started = _policy.InForce(*self._of)
        _policy.start(self._started)
        return self

    def stop(self) -> None:
        """End what ``start`` began; nothing happens where it was not started."""
        started, self._started = self._started, None
        if started is not None:
            _policy.lift(started)

    def __enter__(self) -> Self:
        """Put it in force for the block; one that was started ends with the block, too."""
        entered = _policy.InForce(*self._of)
        self._entered.append(entered)
        _policy.enter(entered)
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        """Take out of force what this thread or task entered last: several may be in the block at a time."""
        own = [entered for entered in self._entered if _policy.is_own(entered)]
        leaves = (own or self._entered)[-1]  # none is its own where a fixture, say, is left in another context
        self._entered.remove(leaves)
        _policy.lift(leaves)
        if not self._entered:
            self.stop()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """Return ``function`` with each call of it, and of an ``async def`` all of its run, in a block of its own."""
        return decorated("stance", function, self._again)

    def _again(self) -> "stance":
        fresh = stance.__new__(stance)
        fresh._of, fresh._started, fresh._entered = self._of, None, []  # noqa: SLF001 -- of this very class
        return fresh


def _expected(allow: Any) -> tuple[list[Any], frozenset[str]]:
    """Return the functions and the signatures of ``allow``."""
    if isinstance(allow, str) or callable(allow):
        allow = (allow,)
    try:
        things = list(allow)
    except TypeError:
        things = [allow]
    texts = [thing for thing in things if isinstance(thing, str)]
    functions = [thing for thing in things if not isinstance(thing, str)]
    wrong = next((text for text in texts if not _is_signature(text)), None)
    wrong = wrong if wrong is not None else next((thing for thing in functions if not callable(thing)), None)
    if wrong is not None:
        way_out = "Give watched functions, and signatures as the log and the metrics name them: 's' and a hex digest."
        raise BadOptionError(f"stance(allow=…) has {wrong!r:.80} in it.", way_out)
    return functions, frozenset(texts)


def _is_signature(text: str) -> bool:
    return text[:1] == "s" and len(text) > 1 and set(text[1:]) <= set("0123456789abcdef")


def warm_up(function: Callable[..., Any], *examples: tuple[Any, ...], then: Action = "raise") -> stance:
    """Call ``function`` with each of the examples, wait for the results, and from then on forbid its further misses.

    The calls are real ones: what the function donates is gone afterwards. No stance or limit refuses them.

    Args:
        function: A watched function; with ``functools.partial`` around it, for keyword arguments.
        examples: A tuple of positional arguments each; a ``jax.ShapeDtypeStruct`` within them stands for an array of
            zeros of that shape, dtype and sharding.
        then: The action of the stance that is started.

    Returns:
        The stance ``stance(then, function)``, started: on all threads, until its ``stop()``; or for a ``with`` block.

    Raises:
        BadOptionError: There is no example, one is no tuple, ``then`` is no action, or no array can be made as asked.
        NotWatchedError: The function is not watched.
    """
    watched: Any = function
    while isinstance(watched, functools.partial):
        watched = watched.func
    if not examples:
        raise BadOptionError("warm_up(…) has no example.", "Give a tuple of arguments for each signature to expect.")
    for example in examples:
        if not isinstance(example, tuple):
            problem = f"warm_up(…) has an example of type {type(example).__name__}."
            raise BadOptionError(problem, "Give the arguments of each call as a tuple, of one as (x,).")
    afterwards = stance(then, watched)
    import jax  # noqa: PLC0415 -- who has a watched function has it, and importing jaxwatch must not

    with stance("record", watched):
        for example in examples:
            jax.block_until_ready(function(*map(_filled, example)))  # type: ignore[no-untyped-call]  # JAX's own
    return afterwards.start()


def _filled(argument: Any) -> Any:
    """Return an argument with zeros in the place of each ``ShapeDtypeStruct``; without any, as it is."""
    import jax  # noqa: PLC0415 -- as above

    if not any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree_util.tree_leaves(argument)):
        return argument
    return jax.tree_util.tree_map(_zeros, argument)


def _zeros(leaf: Any) -> Any:
    import jax  # noqa: PLC0415 -- as above
    import numpy as np  # noqa: PLC0415 -- as above

    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if getattr(leaf, "weak_type", False) or jax.numpy.issubdtype(leaf.dtype, jax.dtypes.extended):
        raise BadOptionError(f"warm_up(…) can make no {leaf!r:.200}.", "Give a real value in its place.")
    zeros = np.zeros(leaf.shape, leaf.dtype)
    return jax.numpy.asarray(zeros) if leaf.sharding is None else jax.device_put(zeros, leaf.sharding)
