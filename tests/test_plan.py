"""How a function's arguments are to be read: its names, statics, place and identity."""

# ruff: noqa: ARG001, ARG002 -- functions of the user's take what they do not use, and are functions of their own

import functools
import gc
import math
import os
import threading
import types
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import pytest

from jaxwatch import _limits, _plan
from jaxwatch._plan import (
    Plan,
    code_of,
    definition_of,
    function_name,
    identity_of,
    in_jax,
    in_library,
    innermost,
    make_plan,
    serial,
)

HERE = os.path.abspath(__file__)


def line_of(function: Any) -> str:
    return f"{HERE}:{function.__code__.co_firstlineno}"


def plain(x: Any, n: Any = 1, *rest: Any, flag: bool = False, **options: Any) -> None: ...


def only_positional(x: Any, /, y: Any) -> None: ...


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return outer


class Model:
    def apply(self, x: Any, n: Any) -> Any:
        return x

    def __call__(self, x: Any) -> Any:
        return x

    @classmethod
    def make(cls, x: Any) -> Any:
        return x

    @staticmethod
    def loss(x: Any) -> Any:
        return x


class Slotted:
    __slots__ = ()

    def __call__(self, x: Any) -> Any:
        return x


class Evil:
    """Answers every question with an error."""

    def __call__(self, x: Any) -> Any:
        return x

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(name)


class Proxy:
    """Answers every question with yet another object."""

    def __call__(self, x: Any) -> Any:
        return x

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__wrapped__":
            raise AttributeError(name)
        return Proxy()


def plan(function: Any, **options: Any) -> Plan:
    return make_plan(function, jax.jit(function, **options), options)


# ------------------------------------------------------------------ parameters


def test_parameters_are_named_by_position_and_keyword() -> None:
    found = plan(plain)

    assert [found.name_of(position) for position in range(4)] == ["x", "n", "rest[0]", "rest[1]"]
    assert [found.keyword_path(name) for name in ("x", "n", "flag")] == ["x", "n", "flag"]
    assert found.keyword_path("mask") == "options['mask']"
    assert {"n", "flag"} <= found.defaults
    assert "x" not in found.defaults


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (only_positional, ("x", "y")),
        (lambda: None, ()),
        (Model().apply, ("x", "n")),
        (Model(), ("x",)),
        (Model.make, ("x",)),
        (Model.loss, ("x",)),
        (functools.partial(plain, 1), ("n",)),
        (wrapped(only_positional), ("x", "y")),
        (Slotted(), ("x",)),
        (Proxy(), ()),  # wraps another and another: Python gives up
    ],
)
def test_parameters_are_those_that_the_caller_gives(function: Any, names: tuple[str, ...]) -> None:
    assert make_plan(function, jax.jit(only_positional), {}).positional == names


@pytest.mark.parametrize("function", [max, math.prod, dict.get, type, int])
def test_what_has_no_signature_is_named_by_number(function: Any) -> None:
    found = make_plan(function, jax.jit(only_positional), {})

    assert found.name_of(20) in ("args[20]", f"args[{20 - len(found.positional)}]")


@pytest.mark.parametrize(
    ("options", "positions", "names"),
    [
        ({}, set(), set()),
        ({"static_argnums": 1}, {1}, {"n"}),
        ({"static_argnums": -1}, {1}, {"n"}),
        ({"static_argnums": (0, 1)}, {0, 1}, {"x", "n"}),
        ({"static_argnames": "n"}, {1}, {"n"}),
        ({"static_argnames": ("x", "n")}, {0, 1}, {"x", "n"}),
        ({"static_argnames": ["n"]}, {1}, {"n"}),
    ],
)
@pytest.mark.parametrize("told", [True, False], ids=["JAX tells", "JAX does not tell"])
def test_statics_are_known_by_position_and_by_name(
    options: dict[str, Any], positions: set[int], names: set[str], told: bool
) -> None:
    def step(x: Any, n: Any) -> Any:
        return x

    jitted: Any = jax.jit(step, **options) if told else object()
    found = make_plan(step, jitted, options)

    assert {position for position in range(2) if found.is_static(position, found.name_of(position))} == positions
    assert {name for name in ("x", "n") if found.is_static(None, name)} == names


# ------------------------------------------------------------------ names and places


@pytest.mark.parametrize(
    ("function", "name", "place"),
    [
        (plain, "plain", line_of(plain)),
        (Model.apply, "Model.apply", line_of(Model.apply)),
        (Model().apply, "Model.apply", line_of(Model.apply)),
        (Model.make, "Model.make", line_of(Model.make)),
        (functools.partial(functools.partial(plain, 1), 2), "plain", line_of(plain)),
        (functools.partial(Model().apply, 1), "Model.apply", line_of(Model.apply)),
        (wrapped(plain), "plain", line_of(plain)),
        (wrapped(wrapped(Model().apply)), "Model.apply", line_of(Model.apply)),
        (jax.jit(plain), "plain", line_of(plain)),
        (jax.vmap(jax.grad(plain)), "plain", line_of(plain)),
        (Model(), "Model", line_of(Model.__call__)),
        (Slotted(), "Slotted", line_of(Slotted.__call__)),
        (Proxy(), "Proxy", line_of(Proxy.__call__)),
        (max, "max", "<builtin_function_or_method>"),
        (int, "int", "<type>"),
    ],
)
def test_the_innermost_function_gives_name_and_place(function: Any, name: str, place: str) -> None:
    assert function_name(function) == name
    assert definition_of(function) == place


def test_a_nested_name_is_what_follows_the_last_locals() -> None:
    def inner() -> Any:
        class Net:
            def apply(self) -> None: ...

        return [lambda x: x for _ in "a"][0], Net.apply  # noqa: RUF015 -- a comprehension is what is tested

    a, b = inner()
    assert function_name(a) == "<lambda>"
    assert function_name(b) == "Net.apply"


@pytest.mark.parametrize("attribute", ["__qualname__", "__name__", "__module__", "__doc__", "__wrapped__"])
@pytest.mark.parametrize("value", [3, "", None, object(), "x" * 10_000, 'a"b\n\x00'])
def test_an_odd_attribute_of_the_users_does_no_harm(attribute: str, value: Any) -> None:
    def step(x: Any) -> Any:
        return x

    try:
        setattr(step, attribute, value)
    except TypeError:  # Python itself refuses it
        return
    assert 0 < len(function_name(step)) <= _limits.NAME_CHARACTERS
    assert definition_of(step) == line_of(step)
    assert code_of(step)


def test_wrappers_that_lead_in_a_circle_have_an_end() -> None:
    def one(x: Any) -> Any: ...

    def two(x: Any) -> Any: ...

    one.__wrapped__, two.__wrapped__ = two, one  # type: ignore[attr-defined]  # as broken decorators do

    assert innermost(one) in (one, two)
    assert function_name(one) in ("one", "two")
    assert code_of(one)


def test_an_object_that_raises_for_every_attribute_is_told_by_its_type() -> None:
    assert definition_of(Evil()) == line_of(Evil.__call__)
    assert code_of(Evil())
    assert identity_of(Evil())


# ------------------------------------------------------------------ the same code, the same function


def test_what_a_library_makes_of_two_functions_and_names_as_them_is_two_functions() -> None:
    def wrapped(fun: Any) -> Any:
        def wrapper(*args: Any) -> Any:
            return fun(*args)

        wrapper.__name__ = wrapper.__qualname__ = fun.__name__  # as equinox does, without a ``__wrapped__``
        return wrapper

    def first(x: Any) -> Any:
        return x

    def second(x: Any) -> Any:
        return x + 1

    assert _plan.code_of(wrapped(first)) != _plan.code_of(wrapped(second))
    assert _plan.code_of(wrapped(first)) == _plan.code_of(wrapped(first))
    assert _plan.code_of(wrapped(first)) != _plan.code_of(first)


def test_closures_over_different_functions_are_different_code_and_over_one_made_anew_the_same() -> None:
    def build(kernel: Any) -> Any:
        def step(x: Any) -> Any:
            return kernel(x)

        return step

    def kernel(size: float) -> Any:
        return lambda x: x * size

    def other(x: Any) -> Any:
        return -x

    assert code_of(build(kernel(1.0))) == code_of(build(kernel(2.0)))
    assert code_of(build(kernel(1.0))) == code_of(build(functools.partial(kernel(2.0))))
    assert code_of(build(kernel(1.0))) != code_of(build(other))
    assert code_of(build(3)) == code_of(build(4))


def test_a_closure_whose_cell_is_empty_yet_has_a_code_too() -> None:
    def recursive() -> Any:
        return recursive

    empty = types.FunctionType(recursive.__code__, {}, closure=(types.CellType(),))

    assert code_of(empty) == code_of(recursive)


def test_functions_made_of_one_code_have_one_code_text_and_are_not_the_same() -> None:
    def made() -> Any:
        return lambda x: x

    assert code_of(made()) == code_of(made())
    one, two = made(), made()
    assert identity_of(one) != identity_of(two)
    assert identity_of(one) == identity_of(one)


def test_two_lambdas_of_one_line_are_not_the_same_code() -> None:
    one, two = lambda x: x + 1, lambda x: x * 2

    assert code_of(one) != code_of(two)


def test_code_of_another_layer_is_other_code() -> None:
    texts = {code_of(f) for f in (plain, functools.partial(plain, 1), wrapped(plain), jax.grad(plain))}

    assert len(texts) == 4
    assert code_of(functools.partial(plain, 1)) == code_of(functools.partial(plain, 2))


def test_bound_methods_are_the_same_where_jax_finds_them_equal() -> None:
    one, two = Model(), Model()

    assert identity_of(one.apply) == identity_of(one.apply)
    assert identity_of(one.apply) != identity_of(two.apply)
    assert identity_of(one.apply) != identity_of(one.__call__)
    assert code_of(one.apply) == code_of(two.apply)


def test_the_dead_give_their_serials_to_nobody_and_nothing_is_kept_of_them() -> None:
    seen = set()
    before = len(_plan._known)
    for _ in range(500):
        thing = Model()  # at the same address again and again
        assert serial(thing) not in seen
        seen.add(serial(thing))
        del thing
    gc.collect()

    assert len(_plan._known) <= before + 1


def test_what_cannot_be_referenced_weakly_is_told_by_its_address() -> None:
    thing = Slotted()

    assert serial(thing) == f"0x{id(thing):x}"


def test_threads_that_ask_at_once_get_one_serial() -> None:
    things = [Model() for _ in range(200)]
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append([serial(thing) for thing in things])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({tuple(serials) for serials in found}) == 1
    assert len(set(found[0])) == len(things)


def test_a_finalizer_that_asks_in_the_midst_of_it_does_not_lock_up() -> None:
    class Dying:
        def __del__(self) -> None:
            serial(Model())

    def run() -> None:
        with _plan._lock:
            thing = Dying()
            del thing

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


# ------------------------------------------------------------------ whose code it is


@pytest.mark.parametrize(
    ("function", "jax_own", "library"),
    [
        (plain, False, False),
        (jnp.linalg.norm, True, True),
        (functools.partial(jnp.linalg.norm, ord=2), True, True),
        (functools.reduce, False, True),
        (functools.wraps, False, True),
    ],
)
def test_code_of_jax_and_of_libraries_is_known(function: Any, jax_own: bool, library: bool) -> None:
    assert in_jax(function) is jax_own
    assert in_library(definition_of(function)) is library


def test_what_lies_in_a_closure_is_asked_nothing_unless_it_is_a_function() -> None:
    class Hostile:
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(name)

    hostile = Hostile()

    def step(x: Any) -> Any:
        return hostile, x

    assert code_of(step) == code_of(step)


def test_a_function_is_found_in_a_closure_whatever_stands_before_it() -> None:
    def build(kernel: Any) -> Any:
        a = b = c = d = e = f = g = h = i = j = k = m = n = o = p = q = r = 0

        def step(x: Any) -> Any:
            return kernel(x), a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q, r

        return step

    assert code_of(build(plain)) != code_of(build(wrapped))


@pytest.mark.parametrize(
    ("transformed", "gradient"),
    [
        (jax.grad(math.sin), True),
        (jax.value_and_grad(math.sin), True),
        (jax.vmap(jax.grad(math.sin)), True),
        (functools.partial(jax.grad(math.sin)), True),
        (jax.vmap(math.sin), False),
        (jax.checkpoint(math.sin), False),
        (math.sin, False),
    ],
)
def test_a_gradient_is_told_from_other_functions(transformed: Any, *, gradient: bool) -> None:
    assert make_plan(transformed, jax.jit(transformed), {}).gradient is gradient
