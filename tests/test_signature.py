"""Arguments of every kind as plain data."""

# ruff: noqa: ARG001 -- functions of the user's take what they do not use, and are functions of their own

import collections
import dataclasses
import enum
import functools
import gc
import json
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from programs import run

from jaxwatch import _compat, _limits
from jaxwatch._explain import compare, reasons_of
from jaxwatch._keys import Key, Leaf, Node, Static
from jaxwatch._plan import make_plan
from jaxwatch._signature import key_of


def key(function: Callable[..., Any], *args: Any, options: Any = None, redact: bool = False, **kwargs: Any) -> Key:
    chosen = options or {}
    return key_of(make_plan(function, jax.jit(function, **chosen), chosen), args, kwargs, redact=redact)


def f(x: Any, n: Any = 1, *rest: Any, **options: Any) -> Any:
    return x


def leaves(tree: Any, path: str) -> dict[str, str]:
    """Return path → text of all leaves, and of Nones."""
    if isinstance(tree, Node) and tree.children:
        return {p: text for label, child in tree.children for p, text in leaves(child, path + label).items()}
    return {path: str(tree)}


def paths(made: Key) -> dict[str, str]:
    return {path: text for param in made.params for path, text in leaves(param.tree, param.name).items()}


class Pair(NamedTuple):
    a: Any
    b: Any


class Bare(NamedTuple):
    """A state that holds nothing, as optax has them."""


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "b"], meta_fields=["mode"])
@dataclasses.dataclass
class Layer:
    w: Any
    b: Any
    mode: Any = "train"


@jax.tree_util.register_pytree_node_class
class Plain:
    """A pytree whose children have no keys."""

    def __init__(self, *values: Any, aux: Any = None) -> None:
        self.values, self.aux = values, aux

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        return self.values, self.aux

    @classmethod
    def tree_unflatten(cls, aux: Any, values: Any) -> "Plain":
        return cls(*values, aux=aux)


@jax.tree_util.register_pytree_with_keys_class
class Keyed:
    """A pytree that gives its children one key, as a careless one does."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def tree_flatten_with_keys(self) -> tuple[list[tuple[Any, Any]], None]:
        return [(jax.tree_util.GetAttrKey("v"), value) for value in self.values], None

    @classmethod
    def tree_unflatten(cls, aux: None, values: Any) -> "Keyed":
        del aux
        return cls(*values)


@jax.tree_util.register_pytree_node_class
class Failing(Plain):
    def tree_flatten(self) -> NoReturn:
        raise RuntimeError("not now")


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


@dataclasses.dataclass(frozen=True)
class Config:
    width: int


class Identity:
    """A static that is equal to itself alone."""


class ByValue:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByValue) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"ByValue({self.value})"


class Collides(ByValue):
    def __hash__(self) -> int:
        return 7


class Hostile:
    """Every question to it is an error, but being hashed."""

    def __eq__(self, other: object) -> NoReturn:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        return 3

    def __repr__(self) -> NoReturn:
        raise RuntimeError("repr")

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


class Unhashable:
    __hash__ = None  # type: ignore[assignment]  # as Python does it for a class with __eq__


class Counting(ByValue):
    """Counts how often it is asked."""

    asked: ClassVar[collections.Counter[str]] = collections.Counter()

    def __eq__(self, other: object) -> bool:
        self.asked["eq"] += 1
        return super().__eq__(other)

    def __hash__(self) -> int:
        self.asked["hash"] += 1
        return 1

    def __repr__(self) -> str:
        self.asked["repr"] += 1
        return "Counting()"


def defaulting(factory: Any, **items: Any) -> Any:
    return collections.defaultdict(factory, **items)


X = np.zeros((2, 3), np.float32)


# ------------------------------------------------------------------ leaves


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (X, "float32[2,3]"),
        (np.float64(1.0), "float32[]"),
        (np.int8(1), "int8[]"),
        (np.zeros(0, bool), "bool[0]"),
        (True, "bool[]"),
        (1, "~int32[]"),
        (1.0, "~float32[]"),
        (1j, "~complex64[]"),
        (jnp.zeros((2, 3)), "float32[2,3]"),
        (jnp.asarray(1.0), "~float32[]"),
        (jnp.float32(1.0), "float32[]"),
        (jnp.zeros(2, jnp.bfloat16), "bfloat16[2]"),
        (jax.random.key(0), "key<fry>[]"),
        (jax.random.split(jax.random.key(0), 3), "key<fry>[3]"),
        (jax.random.PRNGKey(0), "uint32[2]"),
        (None, "None"),
    ],
)
def test_a_leaf_is_told_as_jax_sees_it(value: Any, text: str) -> None:
    assert paths(key(f, value)) == {"x": text}


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), object(), "text", 10**100, {1, 2}, b"b"])
def test_what_jax_will_refuse_makes_a_partial_key_and_no_error(value: Any) -> None:
    made = key(f, value)

    assert made.partial
    assert made.opaque
    assert made.signature


def test_where_an_array_is_and_whether_it_must_be_there() -> None:
    (free,), (bound,), (numpy,) = (
        key(f, value).params
        for value in (jnp.zeros(3), jax.device_put(jnp.zeros(3), jax.devices()[0]), np.zeros(3, np.float32))
    )

    assert isinstance(free.tree, Leaf)
    assert isinstance(bound.tree, Leaf)
    assert isinstance(numpy.tree, Leaf)
    assert (free.tree.sharding, free.tree.placement, free.tree.layout) == ("", "uncommitted", "")
    assert bound.tree.placement == f"committed to {jax.devices()[0].platform}:0"
    assert (numpy.tree.sharding, numpy.tree.placement) == ("", "uncommitted")


def test_a_named_sharding_is_told_by_spec_and_mesh() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    spec: Any = PartitionSpec("data", None)  # type: ignore[no-untyped-call]  # JAX does not annotate it
    array = jax.device_put(jnp.zeros((4, 2)), NamedSharding(mesh, spec))

    (param,) = key(f, array).params
    assert isinstance(param.tree, Leaf)
    assert param.tree.sharding == "P('data', None) on mesh(data=1)"


@pytest.mark.parametrize(
    ("memory", "order", "text"),
    [
        (None, None, ""),
        ("pinned_host", None, "pinned_host"),
        (None, "major_to_minor=(1, 0)", "major_to_minor=(1, 0)"),
        ("pinned_host", "major_to_minor=(1, 0)", "pinned_host, major_to_minor=(1, 0)"),
    ],
)
def test_memory_and_layout_are_told_where_they_are_not_as_usual(
    memory: str | None, order: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = key(f, jnp.zeros((2, 3)))
    monkeypatch.setattr(_compat, "memory_kind", lambda sharding: memory if sharding else None)
    monkeypatch.setattr(_compat, "layout", lambda array: order if array is not None else None)
    made = key(f, jnp.zeros((2, 3)))

    assert isinstance(made.params[0].tree, Leaf)
    assert made.params[0].tree.layout == text
    told = [(change.reason, change.before, change.after) for change in compare(usual, made)]
    assert told == ([("layout", "default", text)] if text else [])


def test_a_deleted_array_is_read_without_an_error() -> None:
    array = jnp.zeros((2, 3))
    array.delete()

    assert paths(key(f, array)) == {"x": "float32[2,3]"}
    assert not key(f, array).partial


@pytest.mark.parametrize(
    ("around", "transform"),
    [
        (lambda g: lambda: jax.jit(g)(1.0), "trace"),
        (lambda g: lambda: jax.grad(g)(1.0), "grad"),
        (lambda g: lambda: jax.vmap(g)(jnp.zeros(8)), "vmap[8]"),
        (lambda g: lambda: jax.vmap(g, axis_size=4, in_axes=0)(jnp.zeros(4)), "vmap[4]"),
        (lambda g: lambda: jax.vmap(jax.grad(g))(jnp.zeros(8)), "grad of vmap[8]"),
        (lambda g: lambda: jax.jit(jax.grad(g))(1.0), "grad of trace"),
        (lambda g: lambda: g(1.0), ""),
    ],
)
def test_what_surrounds_a_traced_argument_is_told_and_its_place_is_not_known(around: Any, transform: str) -> None:
    seen = []

    def inner(x: Any) -> Any:
        seen.append(key(f, x))
        return x * 1.0

    around(inner)()
    assert seen[0].transform == transform
    (param,) = seen[0].params
    assert isinstance(param.tree, Leaf)
    assert (param.tree.placement is None) is bool(transform)


# ------------------------------------------------------------------ paths


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"w": X, "b": None}, {"x['b']": "None", "x['w']": "float32[2,3]"}),
        ({"a": {"b": [X, (X,)]}}, {"x['a']['b'][0]": "float32[2,3]", "x['a']['b'][1][0]": "float32[2,3]"}),
        ({1: X}, {"x[1]": "float32[2,3]"}),
        (Pair(X, None), {"x.a": "float32[2,3]", "x.b": "None"}),
        (Layer(X, {"k": X}), {"x.w": "float32[2,3]", "x.b['k']": "float32[2,3]"}),
        (Layer({}, (X, [])), {"x.w": "dict()", "x.b[0]": "float32[2,3]", "x.b[1]": "list()"}),
        (Pair(Bare(), {}), {"x.a": "Bare()", "x.b": "dict()"}),
        (Plain(X, X), {"x[<flat index 0>]": "float32[2,3]", "x[<flat index 1>]": "float32[2,3]"}),
        (collections.OrderedDict(b=X, a={}), {"x['b']": "float32[2,3]", "x['a']": "dict()"}),
        (collections.defaultdict(list, a=X, b=[]), {"x['a']": "float32[2,3]", "x['b']": "list()"}),
        ({}, {"x": "dict()"}),
        ((), {"x": "tuple()"}),
        ([[]], {"x[0]": "list()"}),
        (Plain(), {"x": "Plain()"}),
        ({"a": Plain()}, {"x[0]": "Plain()"}),  # an empty node of the user's has no key path of JAX's
    ],
)
def test_a_tree_is_told_by_paths_as_jax_writes_them(value: Any, expected: dict[str, str]) -> None:
    assert paths(key(f, value)) == expected


def test_arguments_are_named_by_parameter_star_and_keyword() -> None:
    made = key(f, 1, 2, 3, {"a": 4}, mask=5, bias=6)

    assert list(paths(made)) == ["x", "n", "rest[0]", "rest[1]['a']", "options['bias']", "options['mask']"]
    assert [param.form for param in made.params] == ["positional"] * 4 + ["keyword"] * 2
    assert key(f, x=1, n=2).abstract == "(n=~int32[], x=~int32[])"


def test_the_order_of_keywords_is_no_difference() -> None:
    assert key(f, x=1, n=2) == key(f, n=2, x=1)


def test_children_of_one_key_are_all_read() -> None:
    (change,) = compare(key(f, Keyed(1, 2.0, 3)), key(f, Keyed(1.0, 2.0, 3)))

    assert (change.reason, change.path) == ("dtype", "x.v")


# ------------------------------------------------------------------ what differs between two calls


def told(one: Any, two: Any, **options: Any) -> tuple[str, ...]:
    return reasons_of(compare(key(f, one, **options), key(f, two, **options)))


@pytest.mark.parametrize(
    ("one", "two", "reasons"),
    [
        (X, X + 1, ()),
        (X, X[:1], ("shape",)),
        (X, jnp.zeros((2, 3)), ()),
        (1, 1.0, ("dtype",)),
        (1, True, ("dtype", "weak_type")),
        (1.0, np.float32(1), ("weak_type",)),
        (X, None, ("structure",)),
        ((X,), [X], ("structure",)),
        ({"a": X}, {"b": X}, ("structure",)),
        ({"a": X}, {"a": {}}, ("structure",)),
        ({}, None, ("structure",)),
        (Pair(X, X), (X, X), ("structure",)),
        (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=1, a=2), ("structure",)),
        (collections.OrderedDict(a=1), {"a": 1}, ("structure",)),
        (defaulting(list, a=1), defaulting(int, a=1), ("metadata",)),
        (defaulting(list, a=1), defaulting(list, b=1), ("structure",)),
        (Layer(X, X), Layer(X, X, "test"), ("metadata",)),
        (Layer(X, X, 1), Layer(X, X, 1.0), ()),
        (Layer(X, X, ("a" * 200, 1)), Layer(X, X, ("a" * 200, 2)), ("metadata",)),
        (Layer(X, X, "a" * 200 + "1"), Layer(X, X, "a" * 200 + "2"), ("metadata",)),
        (Layer(X, X, lambda: 1), Layer(X, X, lambda: 1), ("metadata",)),
        (Layer(X, X, Config(1)), Layer(X, X, Config(2)), ("metadata",)),
        (Layer(X, X, Config(1)), Layer(X, X, Config(1)), ()),
        (Plain(X, aux=("a", 1)), Plain(X, aux=("a", 2)), ("metadata",)),
        (Plain(X, aux=1), Plain(X, aux=(1,)), ("metadata",)),
        (Plain(X, aux=Identity()), Plain(X, aux=Identity()), ("metadata",)),
        (Plain(X), Plain(X, X), ("structure",)),
    ],
)
def test_two_calls_differ_as_their_keys_do(one: Any, two: Any, reasons: tuple[str, ...]) -> None:
    assert told(one, two) == reasons


@pytest.mark.parametrize(
    ("one", "two", "reasons"),
    [
        (1, 1, ()),
        (1, 2, ("static",)),
        (1, 1.0, ("static",)),
        (1, True, ("static",)),
        (0.0, -0.0, ()),
        ((1,), (1.0,), ()),
        (((1, 2), 3), ((True, 2.0), 3), ()),
        (frozenset({1, "a"}), frozenset({"a", 1.0}), ()),
        (float("nan"), float("nan"), ("static",)),
        pytest.param("a" * 1000 + "1", "a" * 1000 + "2", ("static",), id="long texts"),
        pytest.param(10**5000, 10**5000 + 1, ("static",), id="huge ints"),
        (Mode.TRAIN, Mode.TEST, ("static",)),
        (Mode.TRAIN, Mode.TRAIN, ()),
        (Config(1), Config(1), ()),
        (Config(1), Config(2), ("static",)),
        (ByValue(1), ByValue(1), ()),
        (ByValue(1), ByValue(2), ("static",)),
        (Collides(1), Collides(2), ("static",)),
        (Identity(), Identity(), ("static",)),
        (f, f, ()),
        (lambda: 1, lambda: 1, ("static",)),
        (Identity, ByValue, ("static",)),
        pytest.param(Hostile(), Hostile(), (), id="hostile"),
        (None, ..., ("static",)),
    ],
)
def test_two_static_values_differ_as_jax_finds_them(one: Any, two: Any, reasons: tuple[str, ...]) -> None:
    assert told(one, two, options={"static_argnums": 0}) == reasons


@pytest.mark.parametrize("value", [1, "a", (1, "b"), None, Mode.TRAIN, ByValue(3), Identity(), float("nan"), f])
def test_a_static_value_does_not_differ_from_itself(value: Any) -> None:
    assert told(value, value, options={"static_argnums": 0}) == ()


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnums": -1}, {"static_argnames": "n"}])
@pytest.mark.parametrize("by_name", [True, False])
def test_a_static_is_one_by_position_and_by_name(options: dict[str, Any], by_name: bool) -> None:
    def step(x: Any, n: Any) -> Any:
        return x

    made = key(step, 1, n=3, options=options) if by_name else key(step, 1, 3, options=options)
    assert isinstance(made.params[1].tree, Static)
    assert made.params[1].tree.text == "3"


@pytest.mark.parametrize("value", [[1], {"a": 1}, Unhashable(), np.zeros(3)])
def test_an_unhashable_static_is_read_without_an_error(value: Any) -> None:
    made = key(f, value, options={"static_argnums": 0})

    assert isinstance(made.params[0].tree, Static)
    assert made.opaque


# ------------------------------------------------------------------ exactly where JAX compiles


def always() -> int:
    return 1


partial: Any = jax.tree_util.Partial
POOL: tuple[Any, ...] = (
    *(
        X,
        jnp.zeros((2, 3)),
        X.astype(np.float64),
        X.astype(np.float16),
        X.astype(np.int64),
        np.asfortranarray(X),
        X[::-1],
    ),
    *(1, 1.0, True, 1j, np.float32(1), np.float64(1), np.int32(1), jnp.float32(1), jnp.asarray(1.0), np.uint32(3)),
    *(None, (), [], {}, (X,), [X], [None], [[]], (1, 2), (1, 2.0), (1.0, 2), Bare(), Pair(X, X), Pair(X, None)),
    *({"a": X}, {"b": X}, {"a": X, "b": X}, collections.OrderedDict(a=X), collections.OrderedDict(a=X, b=1)),
    *(collections.OrderedDict(b=1, a=X), defaulting(list, a=X), defaulting(int, a=X), Pair(None, X)),
    *(Layer(X, X), Layer(X, X, "test"), Layer(X, X, 1), Layer(X, X, 1.0), Layer(X, X, True), Layer(X, X, always)),
    *(
        Layer(X, X, Config(1)),
        Layer(X, X, Config(2)),
        Layer(X, {}),
        Layer(X, ()),
        Layer(X, None),
        Plain(X),
        Plain(X, X),
    ),
    *(Plain(X, aux=1), Plain(X, aux=(1,)), Plain(X, aux=(1.0,)), Plain(X, aux=Mode.TEST), Keyed(X), Keyed(X, 1)),
    *(jax.random.key(0), jax.random.key(0, impl="rbg"), jax.random.PRNGKey(0), jnp.zeros(3, jnp.bfloat16)),
    *(jax.device_put(X, jax.devices()[0]), partial(always, X), partial(f, X)),
)
NAN = float("nan")
STATICS = (
    *(1, 1.0, True, 1 + 0j, "1", b"1", 0.0, -0.0, NAN, float("nan"), None, ..., 10**30, float(10**30), 1j, -0.0 + 1j),
    *((1,), (1.0,), (True,), ((1,), 2), ((1.0,), 2), (NAN,), (NAN,), (float("nan"),), (1, (2, 3)), (1, 2, 3)),
    *(frozenset([1]), frozenset([1.0]), frozenset("ab"), frozenset("ba"), "x" * 300, "x" * 299 + "y"),
    *(Mode.TRAIN, Mode.TEST, Config(1), Config(1), Config(2), (Config(1),), (Config(2),), ByValue(1), ByValue(1)),
    *(ByValue(2), Collides(1), Collides(1), Identity(), Identity(), f, always, lambda: 1, lambda: 1, len, int, Config),
    *(np.float32(1), np.float64(1), np.int32(1), np.dtype("float32"), range(3), range(3), functools.partial(f)),
    *(Pair(1, 2), Pair(1, 2), (1, 2), jax.nn.relu),
)


@pytest.mark.parametrize(("pool", "static"), [(POOL, False), (STATICS, True)], ids=["arguments", "statics"])
def test_a_key_differs_from_all_earlier_ones_just_where_jax_compiles(pool: tuple[Any, ...], static: bool) -> None:
    compiled: list[str] = []

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del duration_secs
        if event == _compat.COMPILE_EVENT:
            compiled.append(str(kwargs.get("fun_name")))

    def body(x: Any) -> Any:
        return 0

    options: dict[str, Any] = {"static_argnums": 0} if static else {"keep_unused": True}
    jitted = jax.jit(body, **options)
    plan = make_plan(body, jitted, options)
    earlier: list[Key] = []
    wrong = []
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for value in pool + pool:
            made = key_of(plan, (value,), {})
            compiled.clear()
            jitted(value)
            equal = [kept.abstract for kept in earlier if compare(kept, made) == ()]
            if ("jit(body)" in compiled) == bool(equal):
                wrong.append((made.abstract, equal))
            earlier.append(made)
    finally:
        _compat.unregister(listen, listen, listen)

    assert wrong == []


SHARDED = """
    import json
    import jax, numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P
    from jaxwatch import _compat
    from jaxwatch._explain import compare
    from jaxwatch._plan import make_plan
    from jaxwatch._signature import key_of

    def body(x): return 0
    jitted = jax.jit(body, keep_unused=True)
    plan = make_plan(body, jitted, {})
    compiled = []
    def listen(event, duration_secs, **kwargs):
        if event == _compat.COMPILE_EVENT and kwargs["fun_name"] == "jit(body)":
            compiled.append(1)
    jax.monitoring.register_event_duration_secs_listener(listen)
    four, two = jax.make_mesh((4,), ("d",)), jax.make_mesh((2, 2), ("d", "m"))
    one = jax.make_mesh((1,), ("d",), devices=jax.devices()[:1])
    x = np.zeros((4, 8), np.float32)
    places = [None, *jax.devices()[:2], jax.sharding.SingleDeviceSharding(jax.devices()[0])]
    places += [NamedSharding(four, spec) for spec in (P(), P("d"), P("d", None), P(None, "d"), P(None), P(("d",)))]
    places += [NamedSharding(two, spec) for spec in (P(), P("d"), P("m"), P("d", "m"), P(("d", "m")), P(None, "m"))]
    places += [NamedSharding(one, spec) for spec in (P(), P("d"))]
    earlier, wrong = [], []
    for place in places + places:
        array = x if place is None else jax.device_put(x, place)
        key = key_of(plan, (array,), {})
        compiled.clear()
        jitted(array)
        equal = [other for other, kept in earlier if not compare(kept, key)]
        # some older JAX finds the program of another spec on one device, where the key is another all the same
        found = not compiled and getattr(place, "mesh", None) == one and not all(_compat.flags().values())
        if bool(compiled) == bool(equal) and not found:
            wrong.append([str(place), list(map(str, equal))])
        earlier.append((place, key))
    print(json.dumps(wrong))
"""


def test_and_also_where_arrays_lie_on_several_devices() -> None:
    assert run(SHARDED, XLA_FLAGS="--xla_force_host_platform_device_count=4").data() == []


def test_another_class_of_the_same_name_is_another_key() -> None:
    """As when a cell of a notebook that defines a class runs again."""

    def defined() -> Any:
        @dataclasses.dataclass(frozen=True)
        class Settings:
            n: int = 1

        return Settings()

    assert told(defined(), defined(), options={"static_argnums": 0}) == ("static",)


def test_another_node_type_of_the_same_name_is_another_key() -> None:
    def defined() -> Any:
        @functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=[])
        @dataclasses.dataclass
        class State:
            w: Any = 1.0

        return State()

    assert told(defined(), defined()) == ("metadata",)


# ------------------------------------------------------------------ guarded, bounded, nothing kept


def test_a_tree_that_cannot_be_flattened_makes_a_partial_key() -> None:
    made = key(f, Failing(X), {"a": X})

    assert made.partial
    assert [str(param.tree) for param in made.params] == ["Failing[]", "dict(['a']: float32[2,3])"]


def test_a_static_is_asked_for_its_hash_and_text_once_and_never_compared() -> None:
    value = Counting(1)
    Counting.asked.clear()
    key(f, value, options={"static_argnums": 0})

    assert Counting.asked == {"hash": 1, "repr": 1}


@pytest.mark.parametrize("levels", [_limits.TREE_LEVELS, _limits.TREE_LEVELS + 1, 900])
def test_a_tree_of_too_many_levels_is_told_as_partial(levels: int) -> None:
    tree: Any = X
    for _ in range(levels):  # beyond 1000, JAX itself breaks Python 3.11's recursion limit for good
        tree = (tree,)
    made = key(f, tree)

    assert made.partial is (levels > _limits.TREE_LEVELS)
    assert made.signature
    assert made.abstract
    assert compare(made, dataclasses.replace(made)) == ()


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (lambda: np.zeros(3), None),
        (lambda: jnp.zeros(3), None),
        (lambda: Layer(jnp.zeros(3), np.zeros(2), Config(1)), None),
        (lambda: Plain(jnp.zeros(3), aux=Identity()), None),
        (Identity, {"static_argnums": 0}),
        (lambda: ByValue((1, 2)), {"static_argnums": 0}),
    ],
)
def test_a_key_keeps_nothing_of_the_arguments_alive(make: Callable[[], Any], options: Any) -> None:
    value = make()
    made = key(f, value, options=options)
    alive = weakref.ref(value)
    inner = [weakref.ref(part) for part in jax.tree_util.tree_leaves(value) if isinstance(part, jax.Array)]
    del value
    gc.collect()

    assert alive() is None
    assert [ref() for ref in inner] == [None] * len(inner)
    assert made.signature


def test_values_are_left_out_where_they_are_to_be_and_the_keys_still_differ() -> None:
    one, two = (
        key(f, Layer(X, X, secret), secret, options={"static_argnums": 1}, redact=True) for secret in ("one", "two")
    )

    assert one.signature != two.signature
    for text in (one.abstract, *(str(change) for change in compare(one, two))):
        assert "one" not in text.replace("None", "")
        assert "two" not in text
    assert reasons_of(compare(one, two)) == ("metadata", "static")


# ------------------------------------------------------------------ the same in every process

PROGRAM = """
    import dataclasses, enum, functools, json
    import jax, jax.numpy as jnp, numpy as np
    from jaxwatch._plan import make_plan
    from jaxwatch._signature import key_of

    class Mode(enum.Enum):
        TRAIN = 1
    @dataclasses.dataclass(frozen=True)
    class Config:
        names: frozenset
    class Thing:
        pass
    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["mode"])
    @dataclasses.dataclass
    class Layer:
        w: object
        mode: object

    def f(x, n=1, *rest, **options): return x
    statics = [1, "a", 1.5, float("nan"), Mode.TRAIN, frozenset({"a", "b", "c"}), Thing(), f, (1, frozenset("xyz"))]
    plan = make_plan(f, jax.jit(f, static_argnums=1), {})
    arguments = [
        (1,), (np.zeros(3),), (jnp.zeros((2, 3)),), (jax.random.key(0),), ({"a": 1, "b": None, "c": [2.0]},),
        (Layer(1.0, Mode.TRAIN),), (Layer({}, frozenset({"a", "b", "c"})),), *((1.0, value) for value in statics),
    ]
    keys = [key_of(plan, values, {}) for values in arguments]
    keys.append(key_of(plan, (1,), {"b": 2, "a": 3}))
    print(json.dumps([[key.signature, key.abstract] for key in keys]))
"""


def test_signatures_are_equal_in_every_process_and_distinct_within_one() -> None:
    one, two = (run(PROGRAM, PYTHONHASHSEED=seed).data() for seed in ("1", "2"))

    assert one == two
    assert len({signature for signature, _ in one}) == len(one)
    assert "0x" not in json.dumps(one)
