"""Where each nanosecond of a scalar call goes: core.c built without this and that, each variant hooked in one process.

The variants are made by replacing lines of ``core.c``; where a line is no longer there, that is said and nothing is
measured. Each adds something to the one before it. They are timed twice: in place, where JAX's dispatch of some
microseconds and its noise is around them, and alone, with nothing in the place of JAX's own call.
"""

import importlib.util
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks._paired import Figure, Run, against, calls_in, interleaved
from benchmarks.cases import loop
from jaxwatch import _compat, _core, _departures, _frames, _hook, _misses, _native

_HOOKED = "static PyObject *hooked(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *names) {\n"
_BEGUN = "    uint64_t begun = ticks();\n"
_PASSED = "    int64_t passed = (int64_t)(ticks() - begun);"
_COUNTED = "        cell->dispatch[bucket(ns)]++;\n    recycle(frame);"
_CALL = "    PyObject *result = cell->call(self, args, nargsf, names);"
_ALONE = {_CALL: "    PyObject *result = Py_NewRef(Py_None);"}
_METHODS = '    {"clock", core_clock,'
_READS = """static PyObject *core_reads(PyObject *Py_UNUSED(module), PyObject *number) {
    long count = PyLong_AsLong(number);
    uint64_t begun = system_ns(), last = 0;
    for (long i = 0; i < count; i++) last = ticks();
    uint64_t passed = system_ns() - begun;
    return Py_BuildValue("dK", (double)passed / (double)count, (unsigned long long)last);
}
"""
_NO_CLOCK = {_BEGUN: "    uint64_t begun = 0;\n", _PASSED: "    int64_t passed = 5000;"}
_SYSTEM_CLOCK = {"    counter_is_used = counter_is_invariant();": "    counter_is_used = 0;"}
_READS_ADDED = {
    "static PyObject *core_setup(": f"{_READS}\nstatic PyObject *core_setup(",
    _METHODS: f'    {{"reads", core_reads, METH_O, ""}},\n{_METHODS}',
}
_TABLE = "    Cell *cell = find(self)->cell;\n"
_FIRST = "call pointer and table alone"
VARIANTS: Mapping[str, Mapping[str, str]] = {
    _FIRST: {_TABLE: f"{_TABLE}    if (cell) return cell->call(self, args, nargsf, names);\n"},
    "… with the frame, its list, the references": _NO_CLOCK | {_COUNTED: "        ;\n    recycle(frame);"},
    "… with the histogram": _NO_CLOCK,
    "… with one clock read": {_PASSED: "    int64_t passed = (int64_t)(begun & 8191);"},
    "… with two: all of it": _READS_ADDED,
    "all of it, by clock_gettime": _SYSTEM_CLOCK | _READS_ADDED,
}


@dataclass(frozen=True, slots=True)
class Breakdown:
    """What each part adds to a scalar call."""

    in_place: dict[str, Figure]
    alone: dict[str, Figure]
    read_nanoseconds: float  # one read of the clock in use, in a loop of nothing else
    system_read_nanoseconds: float  # of clock_gettime

    def record(self) -> dict[str, Any]:
        """Return the figures as JSON has them."""
        return asdict(self)


def measure(*, quick: bool) -> Breakdown:
    """Build the variants, and run them interleaved.

    Raises:
        SystemExit: There is no compiler, or ``core.c`` has changed.
    """
    rounds = 300 if quick else 2000
    plain: dict[str, Run] = {"jax.jit": _run(None), "jax.jit again (noise)": _run(None)}
    with tempfile.TemporaryDirectory() as folder:
        natives = {name: _built(changes, folder) for name, changes in VARIANTS.items()}
        in_place = plain | {name: _run(native) for name, native in natives.items()}
        alone = {name: _run(_built({**changes, **_alone(name)}, folder)) for name, changes in VARIANTS.items()}
        _set_up(_core.CORE.hooks.native if _core.CORE.hooks else None)
        own, system = (
            min(native.reads(1_000_000)[0] for _ in range(5)) for native in natives.values() if hasattr(native, "reads")
        )
        return Breakdown(_timed(in_place, "jax.jit", rounds), _timed(alone, _FIRST, rounds), own, system)


def _alone(name: str) -> Mapping[str, str]:
    """Return the change that leaves JAX's call out of a variant."""
    return {_TABLE: f"{_TABLE}    if (cell) return Py_NewRef(Py_None);\n"} if name == _FIRST else _ALONE


def _timed(runs: Mapping[str, Run], reference: str, rounds: int) -> dict[str, Figure]:
    for run in runs.values():
        run(50)
    calls = calls_in(runs[reference], 250_000.0)
    return against(reference, interleaved(runs, calls=calls, rounds=rounds))


def _run(native: Any) -> Run:
    fun = jax.jit(lambda x: x)
    if native is not None:
        native.hook(fun, native.Cell(), None)
    return loop("fun(x)", fun=fun, x=jnp.float32(1))


def _set_up(native: Any) -> None:
    if native is not None:
        native.setup(_compat.PJIT_TYPE, _frames.Frame, _misses.finish, _hook._refused, _departures.left)  # noqa: SLF001


def _built(changes: Mapping[str, str], folder: str) -> Any:
    """Return the extension module of a changed ``core.c``; nobody asks it for frame objects, so it makes none."""
    source = _changed(changes)
    path = os.path.join(tempfile.mkdtemp(dir=folder), "core.c")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    library = path.removesuffix(".c") + str(sysconfig.get_config_var("EXT_SUFFIX"))
    compiler, *options = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC")))
    found = shutil.which(compiler)
    if found is None:
        raise SystemExit(f"--breakdown needs the C compiler {compiler}.")
    flags = [
        *options,
        *shlex.split(str(sysconfig.get_config_var("CFLAGS"))),
        "-std=c11",
        "-O2",
        "-D_GNU_SOURCE=1",
        "-w",
    ]
    command = [found, *flags, "-fPIC", "-shared", f"-I{sysconfig.get_path('include')}", path, "-o", library]
    subprocess.run(command, check=True)  # noqa: S603 -- the compiler that built Python
    spec = importlib.util.spec_from_file_location("variant.core", library)
    assert spec is not None, "its suffix is an extension module's"  # noqa: S101 -- for the type checker
    assert spec.loader is not None, "as above"  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _set_up(module)
    return module


def _changed(changes: Mapping[str, str]) -> str:
    with open(os.path.join(os.path.dirname(_native.__file__), "core.c"), encoding="utf-8") as file:
        source = file.read()
    for before, after in changes.items():
        if source.count(before) != 1:
            raise SystemExit(
                f"--breakdown does not know core.c any more: {before!r} is in it {source.count(before)} times."
            )
        source = source.replace(before, after)
    return source
