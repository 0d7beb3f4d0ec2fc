"""jaxwatch: what JAX recompiled, why, what it cost, and what to change.

The way of a call through the files::

    _core.py        jaxwatch.jit: jax.jit, and what it returns watched; attach, detach
    _native/core.c  the hot path: counts and times each call (_hook.py: its other half); _wrap.py: its twin in Python
    _listeners.py   jax.monitoring → the active call of the thread (_frames.py), or work ahead of time (_ahead.py)
    _misses.py      the slow path on one page: key → explanation → event → hub
    _departures.py  calls that leave JAX's fast path without a trace; _inner.py calls inlined in another one's trace
    _content.py     what a program is made of (_touched.py), read while it is lowered; _disk.py the persistent cache
    _makeup.py      its equations by line, its unrolled loops (_sources.py, _blocks.py); _program_advice.py what to do
    _bodies.py      what of the user's it holds several times over
    _donation.py    which of its arguments could be donated
    _signature.py   arguments → key of plain data (_plan.py, _context.py, _keys.py, _texts.py, _callsite.py)
    _wrappers.py    where a library stands between: which of the user's arguments a path is
    _history.py     earlier keys; _explain.py what differs; _advisor.py (_buckets.py) what to do: plain data, in and out
    _guards.py      no_retraces, and the error that says why (_violations.py); _policy.py which rule decides about
                    a miss: configure, Watch, stance (_stances.py), steady_after (_steady.py)
    _hub.py         events → exporters/ (log, console: _loggers.py; sinks); _subscribe.py callbacks of the user's
    _registry.py    counters (_counters.py) → stats, metrics.py (_samples.py, _labels.py) → _serve.py, _push.py
    _session.py     the log and console of this process; configure
    _descriptors.py whose a descriptor is, once the program has closed all
    _report.py      events → report → renderers/ (_findings.py, _worth.py, _stored.py, _divergence.py); _unknown.py
    _details.py     what its page shows beside: keys, times; _page/ both pages' files (_pages.py), _output_file.py
    _live.py        events → frames of the page (_site.py, _server.py) and of top (_top.py)
    _follow.py      logs as they grow → _exporter.py (_log_figures.py): metrics of all processes; _columnar/ Parquet
    _lint/          source files: what freezes or fails when JAX traces it; reads them, and imports no jax
    _bundle.py      dashboards, rules and alerts
    _advise/        the workload under several scopes of jit (_scope.py) → a comparison
    _scaling.py     how a function's compile grows with its size: measured (_scaling_probe.py), fitted (_growth.py)
    _progress.py    a line while something compiles for long; _progress_line.py where it is shown
    _notebook.py    %load_ext, %%jaxwatch: the report of a cell (_stretch.py); _cells.py which cell code is from
    _testing/       the pytest plugin's: who compiled what, limits, the baseline, the summary
    _install.py (_earlier.py) _runner.py _cli.py (_commands/) _doctor.py pytest_plugin.py   the doors

Importing jaxwatch imports neither jax nor an exporter's library, and starts nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "jit": "_core",
    "attach": "_core",
    "detach": "_core",
    "stats": "_core",
    "Watch": "_options",
    "FunctionStats": "_stats",
    "configure": "_session",
    "install": "_install",
    "uninstall": "_install",
    "no_retraces": "_guards",
    "stance": "_stances",
    "warm_up": "_stances",
    "serve": "_serve",
    "push": "_push",
    "subscribe": "_subscribe",
    "advise": "_advise.api",
    "JaxwatchError": "errors",
    "JaxwatchWarning": "errors",
    "RetraceError": "errors",
}
_MODULES = ("errors", "events", "metrics")

__all__ = [  # noqa: PLE0604 -- the table above is the one list
    *_HOME,
    *_MODULES,
]

if TYPE_CHECKING:
    from jaxwatch import errors as errors
    from jaxwatch import events as events
    from jaxwatch import metrics as metrics
    from jaxwatch._advise.api import advise as advise
    from jaxwatch._core import attach as attach
    from jaxwatch._core import detach as detach
    from jaxwatch._core import jit as jit
    from jaxwatch._core import stats as stats
    from jaxwatch._guards import no_retraces as no_retraces
    from jaxwatch._install import install as install
    from jaxwatch._install import uninstall as uninstall
    from jaxwatch._options import Watch as Watch
    from jaxwatch._push import push as push
    from jaxwatch._serve import serve as serve
    from jaxwatch._session import configure as configure
    from jaxwatch._stances import stance as stance
    from jaxwatch._stances import warm_up as warm_up
    from jaxwatch._stats import FunctionStats as FunctionStats
    from jaxwatch._subscribe import subscribe as subscribe
    from jaxwatch.errors import JaxwatchError as JaxwatchError
    from jaxwatch.errors import JaxwatchWarning as JaxwatchWarning
    from jaxwatch.errors import RetraceError as RetraceError


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name in _MODULES:
        return importlib.import_module(f"jaxwatch.{name}")
    if name == "__version__":
        metadata = importlib.import_module("importlib.metadata")
        return metadata.version("jaxwatch")
    if name not in _HOME:
        raise AttributeError(f"module 'jaxwatch' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"jaxwatch.{_HOME[name]}"), name)
    return found


def load_ipython_extension(ipython: Any) -> None:
    """Watch what a notebook jits: IPython calls this for ``%load_ext jaxwatch``; see docs/notebooks.md."""
    importlib.import_module("jaxwatch._notebook").load(ipython)


def unload_ipython_extension(_ipython: Any) -> None:
    """Take it back: IPython calls this for ``%unload_ext jaxwatch``."""
    importlib.import_module("jaxwatch._notebook").unload()


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, "__version__"])
