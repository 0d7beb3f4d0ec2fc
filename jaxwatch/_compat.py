"""Every private of JAX that jaxwatch reads, one capability flag each, with what is lost where it is gone.

Nothing else in the package touches ``jax._src``. This module imports jax; who must not (exporters, the command) asks
``sys.modules`` first.
"""

import functools
import gc
import inspect
import os
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, NamedTuple

import jax
import jax.monitoring
import jaxlib.version
from jax._src import compiler as _compiler
from jax._src import config as _config
from jax._src import distributed as _distributed
from jax._src import monitoring as _monitoring
from jax._src import pjit as _pjit
from jax._src import source_info_util as _source_info_util
from jax._src import util as _util
from jax._src import xla_bridge as _xla_bridge
from jax._src.interpreters import pxla as _pxla

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
DISK_WRITE_EVENT = "/jax/compilation_cache/cache_misses"  # its name notwithstanding
DISK_SAVED_EVENT = "/jax/compilation_cache/compile_time_saved_sec"
DISK_READ_EVENT = "/jax/compilation_cache/cache_retrieval_time_sec"


def _has_context_names() -> bool:
    try:
        return len(_config.trace_context_names()) == len(_config.trace_context())
    except (AttributeError, NotImplementedError):  # the latter from a jaxlib that is older than jax
        return False


HAS_CONTEXT_NAMES = _has_context_names()
"""The values of JAX's key have names (0.10.2). Without: of configuration ``PUBLIC_FLAGS`` alone are told by name."""

HAS_JIT_INFO = hasattr(ORIGINAL_JIT(lambda: None), "_jit_info")
"""Static and donated arguments can be read off the jitted function. Without: as they were given to ``jaxwatch.jit``."""

HAS_DECORATOR_FORM = (
    next(iter(inspect.signature(ORIGINAL_JIT).parameters.values())).default is not inspect.Parameter.empty
)
"""``jax.jit(**options)`` returns a decorator (0.8.1). Without: ours does; wrong options raise when it is applied."""

HAS_LISTENER_LISTS = all(
    hasattr(_monitoring, name)
    for name in ("get_event_listeners", "get_event_duration_listeners", "get_scalar_listeners")
)
"""Registered listeners can be listed. Without: a program that clears all listeners silences jaxwatch."""

HAS_CACHE_SIZE = hasattr(PJIT_TYPE, "_cache_size")
"""Whether a function was called before it was attached can be asked. Without: it counts as one that was."""

HAS_FRAME_EXCLUSION = hasattr(_source_info_util, "register_exclusion")
"""Frames can be left out where JAX shows the user's. Without: the twin's stands among those of a leaked tracer."""

HAS_DISTRIBUTED_STATE = hasattr(_distributed, "global_state")
"""Whether jax.distributed runs can be asked. Without: ``process_index`` is always null."""

HAS_BACKENDS = hasattr(_xla_bridge, "_backends") and hasattr(_xla_bridge, "_default_backend")
"""Whether a backend is up can be asked without starting one. Without: the backend's name stays empty in metrics."""


def _has_local(module: Any, function: str, name: str) -> bool:
    found = inspect.unwrap(getattr(module, function, int))  # a cache of jaxlib's in C shows what it wraps to gc alone
    codes = [getattr(each, "__code__", None) for each in (found, *gc.get_referents(found))]
    return any(code.co_name == function and name in code.co_varnames + code.co_cellvars for code in codes if code)


HAS_LOWERED_JAXPR = _has_local(_pxla, "_cached_lowering_to_hlo", "closed_jaxpr")
"""A program can be read while it is lowered. Without: ``program`` of a miss is null."""

HAS_DONATED_INPUTS = _has_local(_pxla, "_cached_lowering_to_hlo", "donated_invars")
"""Which inputs of a program are donated can be read. Without: no advice on what could be."""

HAS_LOWERED_MODULE = _has_local(_pxla, "_cached_compilation", "computation")
"""What was lowered can be read while it is compiled. Without: ``fingerprint`` of a miss is null."""

HAS_DISK_KEY = _has_local(_compiler, "compile_or_get_cached", "cache_key")
"""The key in the persistent cache can be read. Without: ``disk`` of a miss has none."""

HAS_HOST_CALLBACKS = _has_local(_pxla, "_cached_compilation", "host_callbacks")
"""Whether a program calls back can be read. Without: it is no reason why one is not stored."""

HAS_CACHE = "trace_context_in_key" in inspect.signature(getattr(_util, "cache", int)).parameters
"""Whether all caches were cleared can be seen. Without: ``cache_lost`` has no cause."""


def _has_tracebacks() -> bool:
    found = getattr(_source_info_util.current(), "traceback", None)
    return all(hasattr(found, name) for name in ("raw_frames", "code_addr2line"))


HAS_TRACEBACKS = _has_tracebacks()
"""The Python frames that made an equation can be read. Without: no lines of a program, and no advice on its loops."""

PUBLIC_FLAGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_device",
    "jax_threefry_partitionable",
    "jax_disable_jit",
)
"""The configuration that is part of JAX's key in every version, and has a public name."""
MESH_NAMES = ("abstract_mesh_context_manager", "mesh_context_manager")
AXIS_NAMES = ("axis_env_state",)


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
    info = getattr(jitted, "_jit_info", None) if HAS_JIT_INFO else None
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


_UNNAMED = "<unnamed function>"
_UNNAMED_ITSELF = "<unnamed wrapped function>" if hasattr(_pjit, "_create_pjit_jaxpr") else _UNNAMED  # up to 0.8.3


def event_name(fun: Callable[..., Any]) -> str:
    """Return the ``fun_name`` of the function's phase events: the first name under partials, or JAX's word for none."""
    word = _UNNAMED_ITSELF
    while not isinstance(name := getattr(fun, "__name__", None), str):
        if not isinstance(fun, functools.partial):
            return word
        fun, word = fun.func, _UNNAMED
    return name


def function_of(jitted: Any) -> Any:
    """Return the user's function of a jitted one, or None; one that was unpickled has no ``__wrapped__``."""
    found = getattr(jitted, "__wrapped__", None)
    try:
        return jitted.__getstate__()["fun"] if found is None else found
    except (AttributeError, KeyError, TypeError):
        return None


def called_before(jitted: Any) -> bool:
    """Whether a jitted function has been called, as far as its cache shows."""
    return not HAS_CACHE_SIZE or jitted._cache_size() > 0  # noqa: SLF001 -- as above


def leave_out(path: str) -> None:
    """Have JAX leave out the frames of a file where it shows those of the user, as it does with its own."""
    if HAS_FRAME_EXCLUSION:
        _source_info_util.register_exclusion(path)


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
        if kind == "jvp" and type(getattr(tracer, "tangent", None)).__name__ == "JaxprTracer":
            kind = "grad"  # 0.6.2 linearizes by a jvp whose tangents are unknown
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


def context_values() -> tuple[Any, ...]:
    """Return the part of JAX's key that is not in the arguments, as it is on this thread now."""
    return tuple(_config.trace_context())


def context_by_name(values: tuple[Any, ...]) -> dict[str, Any]:
    """Return the values of that part by name; for a JAX without names, those that can be asked for one by one."""
    if HAS_CONTEXT_NAMES:
        return dict(zip(_config.trace_context_names(), values, strict=True))
    named = {name: getattr(jax.config, name, None) for name in PUBLIC_FLAGS}
    return named | {name: getattr(getattr(_config, name, None), "value", None) for name in MESH_NAMES + AXIS_NAMES}


# ------------------------------------------------------------------ process


def process_index() -> int | None:
    """Return this process's index where jax.distributed runs, else None; starts no backend."""
    state = _distributed_state()
    return None if state is None else int(state.process_id)


def process_count() -> int | None:
    """Return the number of processes where jax.distributed runs, else None; starts no backend."""
    state = _distributed_state()
    return None if state is None else int(state.num_processes)


def _distributed_state() -> Any:
    state = _distributed.global_state if HAS_DISTRIBUTED_STATE else None
    return None if getattr(state, "client", None) is None else state


def backend_platform() -> str:
    """Return the platform of the backend that is up, or "": a scrape must not start one."""
    if not HAS_BACKENDS or not _xla_bridge._backends:  # noqa: SLF001 -- this file is where that is done
        return ""
    return str(getattr(_xla_bridge._default_backend, "platform", ""))  # noqa: SLF001 -- None until one is chosen


def disk_cache_on() -> bool:
    """Whether JAX's persistent compilation cache is in use."""
    config: Any = jax.config
    return bool(config.jax_compilation_cache_dir) and bool(getattr(config, "jax_enable_compilation_cache", True))


def disk_limits() -> tuple[float, int]:
    """Return from how many seconds of compiling, and how many bytes, on JAX stores a program."""
    config: Any = jax.config
    seconds = config.jax_persistent_cache_min_compile_time_secs
    return float(seconds), int(config.jax_persistent_cache_min_entry_size_bytes)


# ------------------------------------------------------------------ what JAX is working on, read off its frames


def lowered_jaxpr(frame: FrameType | None) -> Any:
    """Return the jaxpr that the frame lowers, or None."""
    return frame.f_locals.get("closed_jaxpr") if HAS_LOWERED_JAXPR and frame is not None else None


def donated_inputs(frame: FrameType | None) -> tuple[bool, ...] | None:
    """Return of each input of the program that the frame lowers whether it is donated; None: not known."""
    found = frame.f_locals.get("donated_invars") if HAS_DONATED_INPUTS and frame is not None else None
    return None if found is None else tuple(map(bool, found))


def lowered_text(frame: FrameType | None, elements: int) -> str | None:
    """Return the module that the frame compiles as text, without locations, constants of more elements left out."""
    module = frame.f_locals.get("computation") if HAS_LOWERED_MODULE and frame is not None else None
    if module is None:
        return None
    return str(module.operation.get_asm(enable_debug_info=False, large_elements_limit=elements))


def bakes_constants(frame: FrameType | None) -> bool:
    """Whether the arrays that the program holds become part of what is compiled, and are not handed to it."""
    return frame is not None and not frame.f_locals.get("num_const_args")


def calls_back(frame: FrameType | None) -> bool:
    """Whether the program that the frame compiles calls back to the host, as far as that can be read."""
    return HAS_HOST_CALLBACKS and frame is not None and bool(frame.f_locals.get("host_callbacks"))


def disk_key(frame: FrameType | None) -> str | None:
    """Return the key in the persistent cache of what is compiled in or above the frame, or None."""
    while HAS_DISK_KEY and frame is not None and frame.f_code.co_name != "compile_or_get_cached":
        frame = frame.f_back
    key = frame.f_locals.get("cache_key") if HAS_DISK_KEY and frame is not None else None
    return key if isinstance(key, str) else None


_token: Any = _util.cache(trace_context_in_key=False)(object) if HAS_CACHE else None


def caches() -> object:
    """Return an object that is another one after ``jax.clear_caches()``."""
    return _token() if HAS_CACHE else None


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
