"""What functions of libraries give, and which of them are at fault in a traced function."""

import ast

from jaxwatch._lint.builtin_calls import BUILTINS
from jaxwatch._lint.frames import Engine, Frame, Handler
from jaxwatch._lint.numpy_calls import call_math, call_numpy, held_by, values_of
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import (
    ARRAY,
    CERTAIN,
    DOUBT,
    MASK,
    STATIC,
    TRACED,
    TREE,
    UNKNOWN,
    Kind,
    Value,
    box,
    box_of,
    element,
    join_all,
)

_STATIC_JNP = words(
    """
    shape ndim size dtype issubdtype result_type promote_types finfo iinfo isscalar iscomplexobj isrealobj
    can_cast broadcast_shapes set_printoptions get_printoptions
    """
)
_SIZED = words(
    """
    nonzero unique argwhere flatnonzero where union1d intersect1d setdiff1d unique_values extract
    """
)
_SHAPED = {
    "zeros": 0,
    "ones": 0,
    "full": 0,
    "empty": 0,
    "eye": 0,
    "identity": 0,
    "tri": 0,
    "broadcast_to": 1,
    "reshape": 1,
    "tile": 1,
    "linspace": 2,
    "repeat": 1,
}
# Which argument of a function of jax is a size, or a shape.
_SIZES = {
    **{f"jax.random.{name}": 1 for name in ("normal", "uniform", "exponential", "gumbel", "laplace", "bits", "split")},
    "jax.nn.one_hot": 1,
    "jax.lax.top_k": 1,
    "jax.lax.iota": 1,
    "jax.lax.dynamic_slice": 2,
}
_MASKS = words(
    """
    isnan isinf isfinite isclose isin logical_and logical_or logical_not logical_xor greater greater_equal less
    less_equal equal not_equal
    """
)
_CLOCK = words(
    """
    time.time time.time_ns time.perf_counter time.perf_counter_ns time.monotonic time.monotonic_ns
    time.process_time time.process_time_ns time.localtime time.gmtime time.strftime time.ctime
    datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today time.thread_time
    timeit.default_timer
    """
)
_DRAWN = ("numpy.random.", "random.", "secrets.", "uuid.uuid1", "uuid.uuid4", "os.urandom")
_GENERATORS = frozenset(
    {"numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator", "random.Random"}
)
_ENVIRONMENT = ("os.getenv", "os.environ.", "os.environb.", "os.getenvb")
_WRITES = ("logging.", "absl.logging.", "warnings.warn", "time.sleep", "builtins.open", "builtins.input", "numpy.save")
_PRINTS = frozenset(
    {"builtins.print", "pprint.pprint", "pprint.pp", "rich.print", "sys.stdout.write", "sys.stderr.write"}
)
_STATIC_JAX = words(
    """
    jax.devices jax.local_devices jax.device_count jax.local_device_count jax.process_index jax.process_count
    jax.default_backend jax.typeof jax.lax.axis_size jax.lax.broadcast_shapes
    jax.numpy.broadcast_shapes jax.ShapeDtypeStruct jax.core.get_aval
    """
)
_ARRAYS = ("jax.numpy.", "jax.random.", "jax.nn.", "jax.scipy.", "jax.image.", "jax.ops.", "jax.lax.", "jax.dlpack.")
_LOSSES = ("optax.", "rlax.", "distrax.", "chex.", "jaxopt.", "einops.", "flax.linen.", "flax.nnx.", "equinox.nn.")


def handler_of(path: str) -> Handler | None:
    """Return what handles a call of ``path``."""
    if path in BUILTINS:
        return BUILTINS[path]
    if path in _PRINTS:
        return _faulty("JW101")
    if path in _CLOCK:
        return _faulty("JW202")
    for beginnings, code in ((_DRAWN, "JW201"), (_ENVIRONMENT, "JW203"), (_WRITES, "JW105")):
        if path.startswith(beginnings):
            return _faulty(code)
    for beginning, handler in _BY_BEGINNING.items():
        if path.startswith(beginning):
            return handler
    return None


def _faulty(code: str) -> Handler:
    def handle(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
        values_of(engine, node, frame)
        if path in _GENERATORS:
            return Value(Kind.DRAWS, frame.level)
        engine.report(code, node, node if code != "JW101" else node.func, frame)
        return UNKNOWN if path.startswith("builtins.") else STATIC

    return handle


def _result(held: bool | None, frame: Frame, *, mask: bool = False) -> Value:  # noqa: FBT001 -- three values
    if frame.staged or held:
        return MASK if mask else TRACED
    return DOUBT if held is None else ARRAY


def _jnp(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    values, name = values_of(engine, node, frame), path.rpartition(".")[2]
    if name in _STATIC_JNP:
        return STATIC
    held = held_by(values)
    words = {word.arg for word in node.keywords}
    if (
        name in _SIZED
        and "size" not in words
        and (name != "where" or len(node.args) == 1)
        and held is not False
        and frame.codes
    ):
        engine.report("JW308", node, node, frame, doubt=held is None)
    _check_shape(engine, node, name, values, frame)
    if name in {"asarray", "array"} and values and values[0].mask:
        return MASK
    return _result(held, frame, mask=name in _MASKS)


def _check_shape(engine: Engine, node: ast.Call, name: str, values: list[Value], frame: Frame) -> None:
    if name == "arange":
        parts = values[: len(node.args)]
    elif (
        name in _SHAPED
        and len(node.args) > _SHAPED[name]
        and "total_repeat_length" not in [word.arg for word in node.keywords]
    ):
        shape = values[_SHAPED[name]]
        parts = [shape, *(shape.items or [])]
    else:
        named = [
            value for word, value in zip(node.keywords, values[len(node.args) :], strict=True) if word.arg == "shape"
        ]
        parts = [part for shape in named for part in (shape, *(shape.items or []))]
    _check_size(engine, node, box(parts), frame)


def _tree(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    values, name = values_of(engine, node, frame), path.rpartition(".")[2]
    held = held_by(values)
    leaf = TREE if held else DOUBT if held is None else UNKNOWN
    if name in {"leaves", "leaves_with_path"}:
        return box_of(leaf if name == "leaves" else box([STATIC, leaf]), frame.level)
    if name in {"flatten", "flatten_with_path"}:
        return box([box_of(leaf, frame.level), STATIC])
    return STATIC if name == "structure" else leaf


def _jax(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    values = values_of(engine, node, frame)
    if path in _STATIC_JAX:
        return STATIC
    if path in _SIZES and _SIZES[path] < len(node.args):
        _check_size(engine, node, values[_SIZES[path]], frame)
    if path.startswith("jax.flatten_util."):
        return box([TRACED if held_by(values) else UNKNOWN, UNKNOWN])
    if path.startswith(_ARRAYS):
        return _result(held_by(values), frame)
    if path in {"jax.device_put", "jax.block_until_ready", "jax.reshard"} and values:
        return values[0]
    return DOUBT if held_by(values) is not False else UNKNOWN


def _check_size(engine: Engine, node: ast.Call, size: Value, frame: Frame) -> None:
    if any(part.kind in CERTAIN for part in (size, *(size.items or []))):
        engine.report("JW307", node, node, frame)


def _passed_on(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """Of a tree, a tree of the same form."""
    values = values_of(engine, node, frame)
    if path == "jax.lax.psum" and values and values[0].kind is Kind.STATIC:
        return STATIC  # the number of devices on an axis
    return values[0] if values and held_by(values[:1]) is not False else UNKNOWN


def _initializer(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    values_of(engine, node, frame)
    return UNKNOWN


def _library(engine: Engine, node: ast.Call, path: str, frame: Frame) -> Value:
    """A function of a library whose small letters say that it is one of arrays."""
    values, name = values_of(engine, node, frame), path.rpartition(".")[2]
    held = held_by(values)
    if held and name.islower() and not name.startswith(("assert", "is_")):
        return TREE
    return DOUBT if held is not False else UNKNOWN


def _container(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    values = values_of(engine, node, frame)
    return box_of(join_all([element(value) for value in values]), frame.level) if values else box([], frame.level)


def _copy(engine: Engine, node: ast.Call, _path: str, frame: Frame) -> Value:
    values = values_of(engine, node, frame)
    if not values:
        return UNKNOWN
    return Value(values[0].kind, frame.level, values[0].items, values[0].item, values[0].callee, values[0].cls)


_BY_BEGINNING: dict[str, Handler] = {
    "jax.numpy.": _jnp,
    "jax.tree.": _tree,
    "jax.lax.p": _passed_on,
    "jax.lax.stop_gradient": _passed_on,
    "jax.lax.with_sharding_constraint": _passed_on,
    "jax.lax.optimization_barrier": _passed_on,
    "jax.nn.initializers.": _initializer,
    "jax.": _jax,
    "numpy.": call_numpy,
    "math.": call_math,
    "copy.": _copy,
    "dataclasses.replace": _copy,
    "collections.": _container,
    **dict.fromkeys(_LOSSES, _library),
}
