"""jax's transforms and those of its libraries: which functions wrap another one, and with which options."""

import ast

from jaxwatch._lint.frames import CONCRETE, EACH_CALL, KEPT, Engine, Frame
from jaxwatch._lint.names import path_of
from jaxwatch._lint.scopes import Scope
from jaxwatch._lint.tables import words
from jaxwatch._lint.values import UNKNOWN, Callee, Kind, Value

JITS = words(
    """
    jax.jit jax.pmap equinox.filter_jit equinox.filter_pmap flax.nnx.jit flax.nnx.pmap flax.linen.jit haiku.jit
    brax.jit
    """
)
# Their arguments stay what they are, where they are no arrays.
FILTERED = words(
    """
    equinox.filter_jit equinox.filter_pmap equinox.filter_vmap equinox.filter_checkpoint equinox.filter_grad
    equinox.filter_value_and_grad
    """
)
# Of a method; self is the module, as it is.
LIFTED = frozenset(
    {"flax.linen.jit", "flax.linen.remat", "flax.linen.checkpoint", "flax.linen.vmap", "flax.linen.scan"}
)
STAGED = frozenset({"jax.shard_map", "haiku.remat", "jax.checkify.checkify"})
REMATS = frozenset(
    {"jax.checkpoint", "flax.nnx.remat", "equinox.filter_checkpoint", "flax.linen.remat", "flax.linen.checkpoint"}
)
MAPS = words(
    """
    jax.vmap equinox.filter_vmap flax.nnx.vmap flax.linen.vmap jax.numpy.vectorize
    """
)
GRADS = frozenset(
    {"jax.grad", "jax.jacfwd", "jax.jacrev", "jax.hessian", "jax.jacobian", "equinox.filter_grad", "flax.nnx.grad"}
)
VALUE_AND_GRADS = words(
    """
    jax.value_and_grad equinox.filter_value_and_grad flax.nnx.value_and_grad
    """
)
SHAPES = frozenset({"jax.make_jaxpr", "equinox.filter_make_jaxpr"})
AS_IS = words(
    """
    jax.custom_jvp jax.custom_vjp jax.custom_gradient jax.named_call equinox.filter_custom_vjp
    jax.custom_batching.custom_vmap jax.inline equinox.internal.noinline jax.disable_jit
    """
)
HAIKU = frozenset({"haiku.transform", "haiku.transform_with_state", "haiku.without_apply_rng"})
# The functions that they return, and those of flax's modules, and how many of the first arguments are theirs.
HAIKU_FUNCTIONS = frozenset({"haiku.apply", "haiku.init", "flax.linen.apply", "flax.linen.init"})
_OWN = {"haiku.transform": 2, "haiku.transform_with_state": 3, "haiku.without_apply_rng": 1}
TRANSFORMS = JITS | STAGED | REMATS | MAPS | GRADS | VALUE_AND_GRADS | SHAPES | AS_IS | HAIKU | {"flax.linen.scan"}
# Decorators that leave a function as it is, for what matters here.
_NEUTRAL = words(
    """
    builtins.staticmethod builtins.classmethod builtins.property functools.wraps functools.cached_property
    functools.lru_cache functools.cache typing.override typing.no_type_check typing.final
    typing_extensions.override abc.abstractmethod flax.linen.compact flax.linen.nowrap jaxtyping.jaxtyped
    beartype.beartype typeguard.typechecked jax.named_scope haiku.transparent chex.assert_max_traces
    typing_extensions.final functools.singledispatch jax.profiler.annotate_function jax.default_matmul_precision
    """
)
UNREADABLE = object()


def codes_of(how: str) -> tuple[str, ...]:
    """Return which codes can be at fault in what a transform traces."""
    if how in JITS or how in STAGED:
        return KEPT
    if how in REMATS or how in MAPS or how in SHAPES:
        return EACH_CALL
    return CONCRETE if how in GRADS or how in VALUE_AND_GRADS else ()


def defined(engine: Engine, node: ast.AST, frame: Frame) -> Value:
    """Return the value of a function's or class's definition, with its decorators."""
    if isinstance(node, ast.ClassDef):
        return Value(Kind.UNKNOWN, 0)
    value = Value(Kind.FUNCTION, callee=Callee(node, frame, scope=engine.module.scopes[node]))
    for decorator in reversed(getattr(node, "decorator_list", [])):
        value = decorated(engine, decorator, value, frame)
    return value


def decorated(engine: Engine, decorator: ast.expr, value: Value, frame: Frame) -> Value:
    """Return what a decorator makes of a function."""
    how, call = transform_of(engine, decorator, frame)
    if how in TRANSFORMS:
        return wrap(how, value, call)
    return value if how in _NEUTRAL else wrap("unknown", value, call)


def transform_of(engine: Engine, decorator: ast.expr, frame: Frame) -> tuple[str, ast.Call | None]:
    """Return the path of a decorator and the call with its options: ``@jit``, ``@jit(…)``, ``@partial(jit, …)``."""
    found = frame.scope.find(decorator.id) if isinstance(decorator, ast.Name) else None
    if found is not None and len(found[1]) == 1 and isinstance(found[1][0].node, ast.Call):
        decorator, frame = found[1][0].node, Frame(found[0])  # jit_static = partial(jax.jit, static_argnums=0)
    if not isinstance(decorator, ast.Call):
        return engine.path(decorator, frame), None
    how = engine.path(decorator.func, frame)
    if how in {"functools.partial", "toolz.partial", "toolz.curry"} and decorator.args:
        return engine.path(decorator.args[0], frame), decorator
    return how, decorator


def applied(engine: Engine, call: ast.Call, frame: Frame) -> tuple[str, ast.Call | None]:
    """Return the transform that ``partial(jit, …)(f)`` or ``jit(static_argnums=0)(f)`` applies, with its options."""
    if not call.args or isinstance(call.func, ast.Attribute):
        return "", None
    how, options = transform_of(engine, call.func, frame)
    partial = options is not None and engine.path(options.func, frame).endswith("partial")
    bare = (
        options is not None
        and len(options.args) == int(partial)
        and "fun" not in {word.arg for word in options.keywords}
    )
    return (how, options) if how in TRANSFORMS and bare else ("", None)


def wrap(how: str, value: Value, call: ast.Call | None) -> Value:
    """Return the value of a function under a transform."""
    if value.kind is not Kind.FUNCTION or value.callee is None:
        return UNKNOWN
    return Value(Kind.FUNCTION, callee=Callee(how=how, inner=value.callee, call=call))


def own_arguments(callee: Callee) -> int:
    """Return how many of the first arguments are the library's own: parameters, state, key."""
    inner = callee.inner
    if callee.how != "haiku.apply" or inner is None:
        return 1
    stateful = inner.inner is not None and inner.inner.how == "haiku.transform_with_state"
    return _OWN.get(inner.how, 2) + int(stateful)


def option(call: ast.Call | None, name: str, scope: Scope) -> object:
    """Return what an option of a transform is set to; None where it is not, UNREADABLE where that is not known."""
    if call is None:
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return literal(keyword.value, scope)
        if keyword.arg is None:
            return UNREADABLE
    return None


def literal(node: ast.AST, scope: Scope, depth: int = 0) -> object:
    """Return a literal's value, also by way of a name that is assigned once."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    found = scope.find(node.id) if isinstance(node, ast.Name) else None
    if found is not None and len(found[1]) == 1 and found[1][0].node is not None and depth < 3:  # noqa: PLR2004 -- names of names
        return literal(found[1][0].node, found[0], depth + 1)
    return _by_range(node, scope)


def _by_range(node: ast.AST, scope: Scope) -> object:
    """Read ``range(2)`` and ``tuple(range(2))``."""
    if not isinstance(node, ast.Call):
        return UNREADABLE
    path, given = path_of(node.func, scope), [literal(part, scope, 3) for part in node.args]
    if path == "builtins.range" and given and all(isinstance(part, int) for part in given):
        return tuple(range(*[part for part in given if isinstance(part, int)]))
    return given[0] if path in {"builtins.tuple", "builtins.list"} and len(given) == 1 else UNREADABLE


def as_tuple(value: object) -> tuple[object, ...]:
    """Return an option as a tuple: one of it, none of None."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, tuple | list | set | frozenset) else (value,)
