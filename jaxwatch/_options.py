"""``Watch``, what a user may set for one function, and the environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from jaxwatch.errors import BadWatchError

Action = Literal["record", "warn", "raise"]
ACTIONS: tuple[Action, ...] = get_args(Action)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """How one function is watched: ``jaxwatch.jit(f, watch=jaxwatch.Watch(name="step"))``.

    Attributes:
        name: The function's name in events and metrics; by default its qualified name.
        max_signatures: How many distinct signatures are allowed; one more is a violation, handled as ``on_retrace``
            says. None: as many as ``configure(max_signatures=…)`` says.
        on_retrace: ``record`` (an event and a count), ``warn`` (also a ``JaxwatchWarning``) or ``raise`` (a
            ``RetraceError`` before anything is compiled). It concerns signatures beyond ``max_signatures``; without
            a limit, every miss after the first call's. None: as ``configure(on_retrace=…)`` says, by default
            ``record``.
        enabled: False gives plain ``jax.jit``.

    Raises:
        BadWatchError: A value is of the wrong kind or out of range.
    """

    name: str | None = None
    max_signatures: int | None = None
    on_retrace: Action | None = None
    enabled: bool = True

    def __post_init__(self) -> None:
        """Check the values."""
        if self.name is not None and not (isinstance(self.name, str) and self.name):
            problem = f"Watch(name={self.name!r}) is no name."
            raise BadWatchError(problem, "Give a text that is not empty, or None for the function's own name.")
        limit = self.max_signatures
        if limit is not None and not is_limit(limit):
            problem = f"Watch(max_signatures={limit!r}) allows no signature at all, not even the first call's."
            raise BadWatchError(problem, "Give a whole number from 1, or None for no limit.")
        if self.on_retrace is not None and self.on_retrace not in ACTIONS:
            problem = f"Watch(on_retrace={self.on_retrace!r}) is no action."
            raise BadWatchError(problem, f"Give one of {', '.join(map(repr, ACTIONS))}.")
        if not isinstance(self.enabled, bool):
            problem = f"Watch(enabled={self.enabled!r}) is neither True nor False."
            raise BadWatchError(problem, "Give a bool.")

    @property
    def forbids(self) -> bool:
        """Whether some miss of the function is a violation."""
        return self.max_signatures is not None or self.on_retrace not in {None, "record"}


def is_limit(value: object) -> bool:
    """Whether ``value`` is a number of signatures that allows one at least."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def checked_watch(watch: object) -> Watch:
    """Return ``watch``, or the default for None.

    Raises:
        BadWatchError: It is something else.
    """
    if watch is None:
        return Watch()
    if not isinstance(watch, Watch):
        problem = f"watch={watch!r} is of type {type(watch).__name__}."
        raise BadWatchError(problem, "Give jaxwatch.Watch(…) or None.")
    return watch


def switched_off(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ``JAXWATCH=0`` turns jaxwatch into plain jax.jit."""
    return environ.get("JAXWATCH", "").strip().lower() in {"0", "off", "false", "no"}


def log_path(environ: Mapping[str, str] = os.environ) -> str | None:
    """The file that ``JAXWATCH_LOG`` names, or None."""
    return environ.get("JAXWATCH_LOG") or None


class _Chosen:
    """What the program chose by ``configure``, over the environment."""

    redact: bool | None = None
    progress: bool | None = None
    annotate: bool | None = None


def progress(environ: Mapping[str, str] = os.environ) -> bool | None:
    """Whether a line is shown while something compiles; None: as the door that was taken has it by default."""
    if _Chosen.progress is not None:
        return _Chosen.progress
    told = environ.get("JAXWATCH_PROGRESS", "").strip().lower()
    return True if told in {"1", "on", "true", "yes"} else False if told in {"0", "off", "false", "no"} else None


def choose_progress(chosen: bool | None) -> None:  # noqa: FBT001 -- as below
    """Choose whether a line is shown while something compiles; None: as the environment says."""
    _Chosen.progress = chosen


def annotate(chosen: bool | None) -> None:  # noqa: FBT001 -- as below
    """Choose whether misses are annotated in a trace of ``jax.profiler``; None: as the environment says."""
    _Chosen.annotate = chosen


def annotated(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ``configure(annotate=…)`` or ``JAXWATCH_ANNOTATE=1`` puts misses into a trace of ``jax.profiler``."""
    if _Chosen.annotate is not None:
        return _Chosen.annotate
    return environ.get("JAXWATCH_ANNOTATE", "").strip().lower() in {"1", "on", "true", "yes"}


def redact(chosen: bool | None) -> None:  # noqa: FBT001 -- the one thing that it is for
    """Choose whether values are kept out of events; None: as the environment says."""
    _Chosen.redact = chosen


def redacted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether ``configure(redact=…)`` or ``JAXWATCH_REDACT=1`` keeps the program's values out of events."""
    if _Chosen.redact is not None:
        return _Chosen.redact
    return environ.get("JAXWATCH_REDACT", "").strip().lower() in {"1", "on", "true", "yes"}
