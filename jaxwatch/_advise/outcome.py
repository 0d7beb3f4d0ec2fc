"""What a run is told to do, and what it tells: plain data that goes through JSON between two processes. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Ended = Literal["end", "calls", "time", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is run: a program with its arguments, or a function of a module.

    Attributes:
        argv: The program and its arguments; empty where it is a function.
        is_module: The program is a module's name, as after ``python -m``.
        function: ``module:function``; empty where it is a program.
        path: ``sys.path`` of the process that named the function.
    """

    argv: tuple[str, ...] = ()
    is_module: bool = False
    function: str = ""
    path: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What people call it."""
        return self.function or " ".join(self.argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one process is told to do.

    Attributes:
        workload: What to run.
        look: Wait for the result of each outermost call, and keep samples of some: a closer look, which takes longer.
        calls: End the program after so many outermost calls; None: let it run.
        limit_seconds: End it after so long.
        answer: The file that the outcome is written to.
    """

    workload: Workload
    look: bool
    calls: int | None
    limit_seconds: float
    answer: str

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Order":
        """Return what ``to_json`` wrote."""
        fields = json.loads(text)
        workload = fields.pop("workload")
        named = Workload(**{**workload, "argv": tuple(workload["argv"]), "path": tuple(workload["path"])})
        return cls(workload=named, **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A watched function as a run saw it; all jitted objects of one name and definition together.

    Attributes:
        name: Its name in events.
        definition: ``file:line``.
        in_library: Whether its file belongs to an installed package.
        calls: Calls, those within others included.
        outermost: Those of them that were not within the call of another watched function.
        compile_seconds: Tracing, lowering and compiling it.
        seconds: Of the outermost calls, until they had returned.
        nested: Definitions of the watched functions that were called within its own calls, as ``(name, definition)``.
    """

    name: str
    definition: str
    in_library: bool
    calls: int
    outermost: int
    compile_seconds: float
    seconds: float
    nested: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Outermost calls in which JAX compiled nothing, each waited for, in seconds.

    Attributes:
        calls: How many.
        median: Of their durations.
        low: A quarter was shorter.
        high: A quarter was longer.
        dispatch_share: The part of the duration, 0 to 1, after which the call had returned: Python's and JAX's
            dispatch, and the device's work as far as it had been done by then.
    """

    calls: int
    median: float
    low: float
    high: float
    dispatch_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one run of the workload came to.

    Attributes:
        ended: At its ``end``, after so many ``calls`` or at the limit in ``time``, as told; or by an ``error``.
        error: The exception's type and text; empty where there was none.
        calls: Outermost calls of watched functions.
        total_seconds: From the begin of the first outermost call to the end of the program, with all arrays ready.
        first_call_seconds: The first outermost call, until its result was ready; without ``look`` until it returned.
        compile_seconds: Tracing, lowering and compiling from then on: of watched functions and of all else.
        misses: Calls of watched functions that did not run straight from the cache.
        eager_compiles: Compiles outside of watched functions.
        disk_hits: Compiles that JAX's persistent cache answered: the run was not cold.
        peak_bytes: The most memory: of the devices where JAX tells it, else of the process.
        on_device: Whether it is the devices'.
        later_seconds: From one outermost call's begin to the next one's, mean of the second half; None of one call.
        steady: None where there was no such call, or no ``look``.
        curve: ``(calls, seconds)``: when so many outermost calls had been made; at most some hundred points.
        functions: Watched functions that were called.
        samples: Results of some calls; see ``samples.py``.
        stderr: The end of what it wrote to stderr, where it ended by an error.
    """

    ended: Ended
    error: str = ""
    calls: int = 0
    total_seconds: float = 0.0
    first_call_seconds: float = 0.0
    compile_seconds: float = 0.0
    misses: int = 0
    eager_compiles: int = 0
    disk_hits: int = 0
    peak_bytes: int = 0
    on_device: bool = False
    later_seconds: float | None = None
    steady: Steady | None = None
    curve: tuple[tuple[int, float], ...] = ()
    functions: tuple[Function, ...] = ()
    samples: Mapping[str, Any] = field(default_factory=dict)
    stderr: str = ""

    def to_json(self) -> str:
        """Return it as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Outcome":
        """Return what ``to_json`` wrote."""
        fields = json.loads(text)
        steady = fields.pop("steady")
        functions = [
            Function(**{**each, "nested": tuple((name, where) for name, where in each["nested"])})
            for each in fields.pop("functions")
        ]
        curve = tuple((calls, seconds) for calls, seconds in fields.pop("curve"))
        return cls(
            **fields, steady=None if steady is None else Steady(**steady), curve=curve, functions=tuple(functions)
        )
