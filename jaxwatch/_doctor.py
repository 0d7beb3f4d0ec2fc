"""``jaxwatch doctor``: whether jaxwatch works on this machine, with this JAX, and what to mend where it does not.

Each check gives one ``Check``. Nothing here may need jax to be importable before that was looked at.
"""

import ast
import contextlib
import importlib
import inspect
import itertools
import json
import os
import platform
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, TextIO

from jaxwatch import _options, _steady
from jaxwatch.errors import BadOptionError, JaxwatchError
from jaxwatch.events import CacheMiss
from jaxwatch.renderers.cells import clean, left, width
from jaxwatch.renderers.terminal import COLUMNS, put

SCHEMA = "jaxwatch.doctor/1"
_RATE_OFF = 0.01  # a clock that goes so wrong makes latencies wrong by a bucket or more
_BUILD = (
    "With a C compiler there: pip install --force-reinstall --no-cache-dir --no-deps jaxwatch (-v says why it fails). "
    "Without the native core a call costs more, attach cannot be had, and departures from the fast path are not seen. "
    "JAXWATCH_CORE=python says that the twin is meant."
)
_UPDATE = "Update jaxwatch, or report this text as an issue."

VARIABLES = {
    "JAXWATCH": "0 turns all of jaxwatch into plain jax.jit",
    "JAXWATCH_ADVISE": "the number of the run, set by jaxwatch advise for the program that it runs",
    "JAXWATCH_ANNOTATE": "1 puts misses into the traces of jax.profiler",
    "JAXWATCH_CORE": "the core that is to be used: native or python",
    "JAXWATCH_JIT_SCOPE": "the functions that are jitted, as f,g; the others run as they are written. none: none is",
    "JAXWATCH_LOG": "the file that events are appended to",
    "JAXWATCH_PROGRESS": "1 shows a line while something compiles for long, 0 shows none",
    "JAXWATCH_REDACT": "1 keeps values of static arguments out of events",
    "JAXWATCH_STEADY_AFTER": "when the warm-up is over, and each further miss is warned of: 300 s, or 200 calls",
}
"""The environment variables that jaxwatch reads; a test holds them against the code."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one look found."""

    name: str
    text: str  # for people
    data: Any = None  # for machines: plain data
    mend: str | None = None  # what to do; None: all is well


def examine() -> list[Check]:
    """Look at all; jits and calls a tiny function, which starts JAX's default backend.

    Nothing is written to the log of ``JAXWATCH_LOG``: what is compiled here is no part of the program.
    """
    checks = [
        Check("Python", f"{platform.python_version()}, {sys.executable}", platform.python_version()),
        *map(_version, ("jaxwatch", "jax", "jaxlib", "prometheus-client", "structlog")),
    ]
    with _log_left_alone():
        problem = _jax_problem()
        checks += [problem] if problem is not None else _of_engine()
    return checks + [_variable(name) for name in sorted(os.environ) if name.startswith("JAXWATCH")]


@contextlib.contextmanager
def _log_left_alone() -> Iterator[None]:
    path = os.environ.pop("JAXWATCH_LOG", None)
    try:
        yield
    finally:
        if path is not None:
            os.environ["JAXWATCH_LOG"] = path


def _version(package: str) -> Check:
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        if package == "jaxwatch":
            return Check(package, f"of a checkout that is not installed, {_home()}")
        return Check(package, "is not installed.", None, f"pip install {package}")
    return Check(package, f"{found}, {_home()}" if package == "jaxwatch" else found, found)


def _home() -> str:
    return os.path.dirname(os.path.abspath(__file__))


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".split("\n", 1)[0].rstrip(".")


def _jax_problem() -> Check | None:
    try:
        importlib.import_module("jax")
    except ModuleNotFoundError as error:
        if error.name == "jax":
            return Check("import jax", "cannot be imported: it is not there.", mend="pip install jax")
        return Check("import jax", f"cannot be imported: {_why(error)}.", mend="pip install -U jax jaxlib")
    except Exception as error:  # noqa: BLE001 -- a jaxlib that does not fit, a broken installation
        return Check("import jax", f"cannot be imported: {_why(error)}.", mend="pip install -U jax jaxlib")
    try:
        importlib.import_module("jaxwatch._compat")
    except Exception as error:  # noqa: BLE001 -- whatever a newer JAX has changed
        return Check("import jax", f"jaxwatch does not fit this JAX: {_why(error)}.", mend=_UPDATE)
    return None


def _of_engine() -> list[Check]:
    try:
        engine: Any = importlib.import_module("jaxwatch._core")
    except JaxwatchError as error:  # JAXWATCH_CORE asks for what cannot be had
        return [Check("core", "none can be used.", None, str(error)), _disk_cache(), *_flags()]
    looks: tuple[tuple[str, Callable[[Any], Check]], ...] = (
        ("core", _core),
        ("clock", _clock),
        ("watching", _watching),
        ("backend", _backend),
    )
    return [*(_carefully(name, look, engine) for name, look in looks), _disk_cache(), *_flags()]


def _carefully(name: str, look: Callable[[Any], Check], engine: Any) -> Check:
    try:
        return look(engine)
    except Exception as error:  # noqa: BLE001 -- what is broken is to be told, with the rest
        return Check(name, f"failed: {_why(error)}.", None, _UPDATE)


# ------------------------------------------------------------------ the engine


def _core(engine: Any) -> Check:
    name, reason = engine.CORE.name, engine.CORE.reason
    data = {"name": name, "reason": reason}
    if name == "native":
        return Check("core", f"native: {reason}", data)
    if os.environ.get("JAXWATCH_CORE") == "python":
        return Check("core", f"the Python twin: {reason}", data)
    built = "not built" not in reason
    mend = _UPDATE if built else _BUILD
    return Check("core", f"the Python twin: {reason}", data, mend)


def _clock(engine: Any) -> Check:
    hooks = engine.CORE.hooks
    if hooks is None:
        return Check("clock", "the system's", {"name": "perf_counter_ns", "rate": 1.0})
    name, rate = hooks.native.clock()
    off = abs(rate - 1)
    mend = None if off < _RATE_OFF else "JAXWATCH_CORE=python uses the system's clock."
    return Check("clock", f"{name}, {100 * off:.2f} % off the system's clock", {"name": name, "rate": rate}, mend)


def _add_one(x: Any) -> Any:
    return x + 1


def _watching(engine: Any) -> Check:
    """Jit a function and call it twice, and see that the first call was told as a miss with its phases."""
    if _options.switched_off():
        return Check("watching", "nothing: JAXWATCH=0 is set, jaxwatch.jit is plain jax.jit", {"on": False})
    jax: Any = importlib.import_module("jax")
    if jax.config.jax_disable_jit:
        text = "nothing: jax_disable_jit is on, and JAX compiles nothing."
        return Check("watching", text, {"on": True, "miss": None}, "Unset JAX_DISABLE_JIT.")
    compat: Any = importlib.import_module("jaxwatch._compat")
    try:
        compat.ORIGINAL_JIT(lambda x: x - 1)(1.0)
    except Exception as error:  # noqa: BLE001 -- no such backend, no driver, a broken cache
        text = f"JAX itself fails: {_why(error)}."
        return Check("watching", text, {"on": True, "miss": None}, "Mend JAX first: jaxwatch has no part in it.")
    return _chain(engine)


def _chain(engine: Any) -> Check:
    hub: Any = importlib.import_module("jaxwatch._hub").HUB
    told: list[Any] = []
    hub.add("doctor", told.append)
    try:
        function = engine.jit(_add_one)
        function(1.0), function(1.0)
        calls = engine.stats(function).calls
    finally:
        hub.remove("doctor")
    misses = [event for event in told if isinstance(event, CacheMiss)]
    if len(misses) != 1 or calls != 2:  # noqa: PLR2004 -- as called above
        text = f"of 2 calls of a new function {calls} were counted, and {len(misses)} misses told in place of 1."
        return Check("watching", text, {"on": True, "miss": None}, _UPDATE)
    phases = {name.removeprefix("backend_"): seconds for name, seconds in asdict(misses[0].seconds).items()}
    data = {"on": True, "miss": phases}
    if lost := [name for name, seconds in phases.items() if not seconds]:
        return Check("watching", f"a miss was told without the seconds of {' and '.join(lost)}.", data, _UPDATE)
    parts = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in phases.items())
    return Check("watching", f"works: a first call was told with {parts}; a second one hit the cache", data)


def _backend(_engine: Any) -> Check:
    compat: Any = importlib.import_module("jaxwatch._compat")
    platform_name = compat.backend_platform() or None
    return Check("backend", platform_name or "none was started", platform_name)


# ------------------------------------------------------------------ JAX


def _disk_cache() -> Check:
    jax: Any = importlib.import_module("jax")
    compat: Any = importlib.import_module("jaxwatch._compat")
    if not compat.disk_cache_on():
        return Check("disk cache", "off (jax_compilation_cache_dir)")
    folder = str(jax.config.jax_compilation_cache_dir)
    least = getattr(jax.config, "jax_persistent_cache_min_compile_time_secs", None)
    stored = "" if least is None else f"; compiles from {least:g} s on are stored"
    return Check("disk cache", f"{folder}{stored}", {"folder": folder, "least_seconds": least})


def _flags() -> list[Check]:
    """Return what jaxwatch reads of JAX's privates, with what is lost where one is not there: nothing to mend."""
    compat: Any = importlib.import_module("jaxwatch._compat")
    texts = flag_texts()
    return [_flag(name, texts.get(name, ""), there=there) for name, there in compat.flags().items()]


def _flag(name: str, text: str, *, there: bool) -> Check:
    gained, _, lost = text.partition(" Without: ")
    return Check(name, f"yes. {gained}" if there else f"no: {lost}", there)


def flag_texts() -> dict[str, str]:
    """Return the text that stands below each capability flag in ``_compat``; none where its source is not there."""
    try:
        body = ast.parse(inspect.getsource(importlib.import_module("jaxwatch._compat"))).body
    except (OSError, SyntaxError):
        return {}
    return {
        flag.targets[0].id: " ".join(text.value.value.split()).replace("``", "`")
        for flag, text in itertools.pairwise(body)
        if isinstance(flag, ast.Assign)
        and isinstance(flag.targets[0], ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


# ------------------------------------------------------------------ the environment


def _variable(name: str) -> Check:
    value = os.environ[name]
    if name not in VARIABLES:
        return Check(name, f"{value!r}: no variable of jaxwatch's.", value, f"Give one of {', '.join(VARIABLES)}.")
    mend = None
    if name == "JAXWATCH_LOG" and value and not _can_be_written(value):
        mend = "It cannot be written: give a file in a folder that you may write to."
    if name == _steady.VARIABLE and value.strip():
        with contextlib.suppress(BadOptionError):
            _steady.steady(value, by="")
            return Check(name, f"{value!r}: {VARIABLES[name]}", value)
        mend = _steady.WAY_OUT
    return Check(name, f"{value!r}: {VARIABLES[name]}", value, mend)


def _can_be_written(path: str) -> bool:
    if os.path.isdir(path):
        return False
    there = os.path.exists(path)
    return os.access(path if there else os.path.dirname(os.path.abspath(path)), os.W_OK)


# ------------------------------------------------------------------ what is told


def to_mend(checks: list[Check]) -> list[str]:
    """Return the names of the checks that found something to mend."""
    return [check.name for check in checks if check.mend is not None]


def write(checks: list[Check], stream: TextIO) -> None:
    """Write the checks for people, at 80 columns."""
    faults = to_mend(checks)
    things = "1 thing" if len(faults) == 1 else f"{len(faults)} things"
    result = f"{things} to mend: {', '.join(map(clean, faults))}." if faults else "all is well."
    lines = [f"jaxwatch doctor · {result}", ""]
    column = 2 + max(width(clean(check.name)) for check in checks)
    for check in checks:
        texts = [check.text] if check.mend is None else [check.text, f"→ {check.mend}"]
        told = [line for text in texts for line in _wrapped(text, COLUMNS - column - 2)]
        labels = [clean(check.name)] + [""] * (len(told) - 1)
        lines += [f"  {left(label, column)}{line}" for label, line in zip(labels, told, strict=True)]
    put("\n".join(lines), stream)


def _wrapped(text: str, columns: int) -> list[str]:
    """Return ``text`` in lines; a path may be longer, since who copies it needs all of it."""
    return textwrap.wrap(clean(text), columns, break_long_words=False, break_on_hyphens=False) or [""]


def write_json(checks: list[Check], stream: TextIO) -> None:
    """Write the checks for machines: one JSON object, by name of the check."""
    found = {check.name: {"text": check.text, "data": check.data, "mend": check.mend} for check in checks}
    put(json.dumps({"schema": SCHEMA, "well": not to_mend(checks), "checks": found}, indent=2), stream)
