"""Every private of JAX that jaxwatch reads, one capability flag each, with what is lost where it is gone.

Nothing else in the package touches ``jax._src``. This module imports jax; who must not (exporters, the command) asks
``sys.modules`` first.
"""

import functools
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.monitoring
import jaxlib.version
from jax._src import config as _config
from jax._src import distributed as _distributed
from jax._src import monitoring as _monitoring
from jax._src import xla_bridge as _xla_bridge

ORIGINAL_JIT: Callable[..., Any] = jax.jit
"""``jax.jit`` as it was when jaxwatch first looked: what ``install`` replaces and ``uninstall`` restores."""

PJIT_TYPE: type = type(ORIGINAL_JIT(lambda: None))
"""The type of what ``jax.jit`` returns."""

# The events of jax.monitoring that tell of a phase; a test checks the names against a real compile.
TRACE_EVENT = "/jax/core/compile/jaxpr_trace_duration"
LOWER_EVENT = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
DISK_REQUEST_EVENT = "/jax/compilation_cache/compile_requests_use_cache"
DISK_HIT_EVENT = "/jax/compilation_cache/cache_hits"

HAS_CONTEXT_NAMES = hasattr(_config, "trace_context_names")
"""The values of JAX's key have names (0.10.2 has them). Without: those of ``PUBLIC_FLAGS`` alone are told."""

HAS_JIT_INFO = hasattr(ORIGINAL_JIT(lambda: None), "_jit_info")
"""Static and donated arguments can be read off the jitted function. Without: as they were given to ``jaxwatch.jit``."""

HAS_DECORATOR_FORM = inspect.signature(ORIGINAL_JIT).parameters["fun"].default is not inspect.Parameter.empty
"""``jax.jit(**options)`` returns a decorator (0.8.1). Without: wrong options raise when it is applied."""

HAS_LISTENER_LISTS = all(
    hasattr(_monitoring, name)
    for name in ("get_event_listeners", "get_event_duration_listeners", "get_scalar_listeners")
)
"""Registered listeners can be listed. Without: a program that clears all listeners silences jaxwatch."""

HAS_DISTRIBUTED_STATE = hasattr(_distributed, "global_state")
"""Whether jax.distributed runs can be asked. Without: ``process_index`` is always null."""

HAS_BACKENDS = hasattr(_xla_bridge, "_backends")
"""Whether a backend is up can be asked without starting one. Without: the backend's name stays empty in metrics."""

PUBLIC_FLAGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_device",
    "jax_threefry_partitionable",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_jit",
)
_MESH_NAMES = {"mesh_context_manager", "abstract_mesh_context_manager"}
_AXIS_NAMES = {"axis_env_state"}


def flags() -> dict[str, bool]:
    """Return the capability flags of the installed JAX by name."""
    return {name: value for name, value in globals().items() if name.startswith("HAS_")}


def jax_versions() -> tuple[str, str]:
    """Return the versions of jax and jaxlib."""
    return str(jax.__version__), str(jaxlib.version.__version__)


# ------------------------------------------------------------------ the jitted function


class JitOptions(NamedTuple):
    """What ``jax.jit`` was told of one function, resolved as JAX resolves it."""

    static_argnums: tuple[int, ...]
    static_argnames: tuple[str, ...]
    texts: tuple[tuple[str, str], ...]  # options that are not at their default, as text


_OPTION_NAMES = (
    "donate_argnums",
    "donate_argnames",
    "static_argnums",
    "static_argnames",
    "keep_unused",
    "inline",
    "device",
    "backend",
    "in_shardings_leaves",
    "out_shardings_leaves",
    "in_layouts_leaves",
    "out_layouts_leaves",
    "compiler_options_kvs",
)


def _option_texts(info: Any) -> dict[str, str]:
    return {name: str(getattr(info, name, None)) for name in _OPTION_NAMES}


_DEFAULTS = _option_texts(getattr(ORIGINAL_JIT(lambda: None), "_jit_info", None))


def jit_options(jitted: Any, given: Mapping[str, Any]) -> JitOptions:
    """Return the options of a jitted function; ``given`` are the keywords, for a JAX that keeps none."""
    info = getattr(jitted, "_jit_info", None)
    if info is None:
        return _given_options(given)
    texts = _option_texts(info).items()
    return JitOptions(
        tuple(getattr(info, "static_argnums", ())),
        tuple(getattr(info, "static_argnames", ())),
        tuple((name.removesuffix("_leaves"), text) for name, text in texts if text != _DEFAULTS[name]),
    )


def _given_options(given: Mapping[str, Any]) -> JitOptions:
    nums, names = given.get("static_argnums"), given.get("static_argnames")
    return JitOptions(
        (nums,) if isinstance(nums, int) else tuple(nums or ()),
        (names,) if isinstance(names, str) else tuple(names or ()),
        tuple((name, str(value)) for name, value in sorted(given.items()) if value is not None and value is not False),
    )


def event_name(fun: Callable[..., Any]) -> str:
    """Return the ``fun_name`` of the function's phase events: the first name under partials, or JAX's word for none."""
    while not isinstance(name := getattr(fun, "__name__", None), str):
        if not isinstance(fun, functools.partial):
            return "<unnamed function>"
        fun = fun.func
    return name


def function_of(jitted: Any) -> Any:
    """Return the user's function of a jitted one, or None; one that was unpickled has no ``__wrapped__``."""
    found = getattr(jitted, "__wrapped__", None)
    try:
        return jitted.__getstate__()["fun"] if found is None else found
    except (AttributeError, KeyError, TypeError):
        return None


# ------------------------------------------------------------------ arguments


def is_tracer(value: object) -> bool:
    """Whether the value is a tracer: the call is inside a trace or a transform."""
    return isinstance(value, jax.core.Tracer)


_KINDS = {"JVPTracer": "jvp", "LinearizeTracer": "grad", "BatchTracer": "vmap", "JaxprTracer": "grad"}


def transform_of(tracer: Any) -> str:
    """Return what surrounds a traced argument: ``grad``, ``vmap[8]``, ``grad of vmap[8]``, ``trace``."""
    words: list[str] = []
    while is_tracer(tracer) and len(words) < 8:  # noqa: PLR2004 -- nobody nests deeper; a bound on odd tracers
        kind = _KINDS.get(type(tracer).__name__, "trace")
        inner = getattr(tracer, "primal", getattr(tracer, "val", None))
        if kind == "vmap":
            size = _batch_size(tracer, inner)
            kind += f"[{size}]" if size is not None else ""
        words.append(kind)
        tracer = inner
    return " of ".join(words)


def _batch_size(tracer: Any, value: Any) -> int | None:
    try:
        return int(value.shape[tracer.batch_dim])
    except Exception:  # noqa: BLE001 -- a ragged or newer kind of batching: its size is then not told
        return None


def committed(array: Any) -> bool:
    """Whether a jax.Array is committed to its devices."""
    found = getattr(array, "committed", None)
    return bool(getattr(array, "_committed", False) if found is None else found)


def memory_kind(sharding: Any) -> str | None:
    """Return the memory kind of a sharding where it is not the devices' default."""
    try:
        kind = sharding.memory_kind
        if kind is None:
            return None
        device = next(iter(sharding.device_set))
        return None if kind == device.default_memory().kind else str(kind)
    except Exception:  # noqa: BLE001 -- a backend without memories has nothing to tell
        return None


def layout(array: Any) -> str | None:
    """Return the order of a jax.Array's dimensions in memory where it is not row-major."""
    try:
        order = tuple(array.format.layout.major_to_minor)
    except Exception:  # noqa: BLE001 -- deleted arrays and older versions do not say
        return None
    return None if order == tuple(range(len(order))) else f"major_to_minor={order}"


# ------------------------------------------------------------------ context


class Context(NamedTuple):
    """The part of JAX's key that is not in the arguments, as text."""

    config: tuple[tuple[str, str], ...]
    mesh: str
    axis_env: str


_last_context: tuple[Any, Context] | None = None


def context() -> Context:
    """Return the configuration, mesh and axis names that are part of JAX's key on this thread now."""
    global _last_context  # noqa: PLW0603 -- one slot; threads that race only lose the shortcut
    if not HAS_CONTEXT_NAMES:
        values = ((name, _text(getattr(jax.config, name, None))) for name in PUBLIC_FLAGS)
        return Context(tuple(values), "", "")
    now = _config.trace_context()
    last = _last_context
    if last is not None and last[0] == now:
        return last[1]
    named = dict(zip(_config.trace_context_names(), now, strict=True))
    found = Context(
        tuple((name, _text(value)) for name, value in named.items() if name not in _MESH_NAMES | _AXIS_NAMES),
        ", ".join(filter(None, (_mesh_text(named[name]) for name in sorted(_MESH_NAMES & named.keys())))),
        ", ".join(filter(None, (_axis_text(named[name]) for name in _AXIS_NAMES & named.keys()))),
    )
    _last_context = now, found
    return found


def _text(value: Any) -> str:
    name = getattr(value, "name", None)  # an enum's member, as users write it in lower case
    return (name.lower() if hasattr(type(value), "__members__") and isinstance(name, str) else str(value))[:200]


def _mesh_text(value: Any) -> str:
    if not value:
        return ""
    meshes = value if isinstance(value, tuple) else (value,)
    return ", ".join(mesh_text(mesh) for mesh in meshes if not getattr(mesh, "empty", False))


def mesh_text(mesh: Any) -> str:
    """Return a mesh by its axes: ``mesh(data=4, model=2)``."""
    shape = getattr(mesh, "shape", None)
    if not shape:
        return str(mesh)[:200]
    return "mesh(" + ", ".join(f"{name}={size}" for name, size in dict(shape).items()) + ")"


def _axis_text(value: Any) -> str:
    sizes = getattr(value, "axis_sizes", None)
    return "" if not sizes else ", ".join(f"{name}={size}" for name, size in dict(sizes).items())


# ------------------------------------------------------------------ process


def process_index() -> int | None:
    """Return this process's index where jax.distributed runs, else None; starts no backend."""
    state = getattr(_distributed, "global_state", None)
    if state is None or getattr(state, "client", None) is None:
        return None
    return int(state.process_id)


def process_count() -> int | None:
    """Return the number of processes where jax.distributed runs, else None; starts no backend."""
    state = getattr(_distributed, "global_state", None)
    if state is None or getattr(state, "client", None) is None:
        return None
    return int(state.num_processes)


def backend_platform() -> str:
    """Return the platform of the backend that is up, or "": a scrape must not start one."""
    backends = getattr(_xla_bridge, "_backends", None)
    default = getattr(_xla_bridge, "_default_backend", None)
    if not backends or default is None:
        return ""
    return str(default.platform)


def disk_cache_on() -> bool:
    """Whether JAX's persistent compilation cache is in use."""
    config: Any = jax.config
    return bool(config.jax_compilation_cache_dir) and bool(getattr(config, "jax_enable_compilation_cache", True))


def jax_folder() -> str:
    """Return the folder of the installed jax, with a separator at its end."""
    return os.path.join(os.path.dirname(str(jax.__file__)), "")


# ------------------------------------------------------------------ jax.monitoring


def register_missing(
    event: Callable[..., None], duration: Callable[..., None], scalar: Callable[..., None]
) -> list[str]:
    """Register those of the three listeners that are not registered; return which kinds were missing.

    Each kind is looked at by itself: ``clear_event_listeners`` forgets the scalar ones (0.6.2 to 0.12).
    """
    kinds: tuple[tuple[str, Any, Callable[[Any], None]], ...] = (
        ("event", event, jax.monitoring.register_event_listener),
        ("event_duration", duration, jax.monitoring.register_event_duration_secs_listener),
        ("scalar", scalar, jax.monitoring.register_scalar_listener),
    )
    missing = []
    for kind, listener, register in kinds:
        if _is_registered(kind, listener):
            continue
        with _registering:
            if not _is_registered(kind, listener):  # another thread may have come first
                register(listener)
                _once.add((kind, listener))
                missing.append(kind)
    return missing


_registering = threading.RLock()
_once: set[tuple[str, Callable[..., None]]] = set()  # what was ever registered, for a JAX that cannot say what is


def _is_registered(kind: str, listener: Callable[..., None]) -> bool:
    if not HAS_LISTENER_LISTS:
        return (kind, listener) in _once
    return listener in getattr(_monitoring, f"get_{kind}_listeners")()


def unregister(event: Callable[..., None], duration: Callable[..., None], scalar: Callable[..., None]) -> None:
    """Take the three listeners out again, as far as they are registered."""
    for name, listener in (
        ("_event_listeners", event),
        ("_event_duration_secs_listeners", duration),
        ("_scalar_listeners", scalar),
    ):
        listeners = getattr(_monitoring, name, [])
        if listener in listeners:
            listeners.remove(listener)
    _once.clear()
