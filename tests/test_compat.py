"""JAX's privates: each behind a flag, with what is lost where it is gone; and found nowhere else."""

import ast
import copy
import functools
import itertools
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import ROOT, run
from published import Events

import jaxwatch
from jaxwatch import _compat

X = np.ones(3, np.float32)
FLAGS = [name for name in vars(_compat) if name.startswith("HAS_")]


@pytest.fixture(autouse=True)
def _forget_the_last_context() -> Iterator[None]:
    yield
    _compat._last_context = None


# ------------------------------------------------------------------ in one place, each with its fallback


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        if isinstance(node, ast.Attribute):
            names.add(ast.unparse(node))
    return names


def test_privates_of_jax_are_read_nowhere_else() -> None:
    private = ("jax._src", "jax.core", "jax.interpreters", "jax.extend", "jaxlib._jax", "jaxlib.xla_client")
    for path in (ROOT / "jaxwatch").rglob("*.py"):
        if path.name != "_compat.py":
            assert not {name for name in imported(path) if name.startswith(private)}, path


def test_every_flag_is_a_bool_and_says_what_is_lost_without_it() -> None:
    source = (ROOT / "jaxwatch" / "_compat.py").read_text()
    body = ast.parse(source).body
    told = {}
    for node, after in itertools.pairwise(body):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            told[node.targets[0].id] = str(text)

    assert set(_compat.flags()) == set(FLAGS)
    for name, value in _compat.flags().items():
        assert isinstance(value, bool)
        assert "Without: " in told[name], name


def test_the_installed_jax_has_all_that_we_know_of() -> None:
    """Where one is gone, a feature is off: look at the docstring beside the flag."""
    assert all(_compat.flags().values()), _compat.flags()


def test_versions_are_told() -> None:
    assert _compat.jax_versions()[0] == jax.__version__
    assert all(part[0].isdigit() for part in _compat.jax_versions())


# ------------------------------------------------------------------ HAS_CONTEXT_NAMES


@pytest.fixture(params=[True, False], ids=["names", "no names"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", request.param)
    return bool(request.param)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        (lambda: jax.default_matmul_precision("float32"), "jax_default_matmul_precision", "float32"),
        (lambda: jax.numpy_dtype_promotion("strict"), "jax_numpy_dtype_promotion", "strict"),
        (lambda: jax.numpy_rank_promotion("raise"), "jax_numpy_rank_promotion", "raise"),
        (lambda: jax.enable_x64(True), "jax_enable_x64", "True"),
    ],
)
def test_configuration_that_is_part_of_the_key_is_told(names: bool, setting: Any, name: str, value: str) -> None:
    before = dict(_compat.context().config)
    with setting():
        after = dict(_compat.context().config)

    assert {key for key in after if before.get(key) != after[key]} == {name}
    assert after[name] == value
    assert dict(_compat.context().config) == before
    del names


def test_a_miss_for_configuration_is_explained_either_way(names: bool, events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    with jax.default_matmul_precision("float32"):
        step(X)

    assert events.last().reasons == ("config",)
    del names


def test_axis_names_and_meshes_are_told_where_jax_tells_them() -> None:
    seen = []

    def body(x: Any) -> Any:
        seen.append(_compat.context())
        return x

    jax.vmap(body, axis_name="batch")(np.ones(4))
    assert seen[0].axis_env == "batch=4"
    assert _compat.context().axis_env == ""

    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])
    with jax.set_mesh(mesh):
        assert "mesh(data=1)" in _compat.context().mesh
    assert _compat.context().mesh == ""


def test_without_names_there_is_neither_mesh_nor_axis_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", False)
    found = _compat.context()

    assert (found.mesh, found.axis_env) == ("", "")
    assert {name for name, _ in found.config} == set(_compat.PUBLIC_FLAGS)


# ------------------------------------------------------------------ HAS_JIT_INFO


@pytest.mark.parametrize(
    ("given", "nums", "static_names", "texts"),
    [
        ({}, (), (), ()),
        ({"static_argnums": 0}, (0,), (), (("static_argnums", "0"),)),
        ({"static_argnums": (0, 1)}, (0, 1), (), (("static_argnums", "(0, 1)"),)),
        ({"static_argnames": "n"}, (), ("n",), (("static_argnames", "n"),)),
        ({"static_argnames": ["n", "m"]}, (), ("n", "m"), (("static_argnames", "['n', 'm']"),)),
        ({"donate_argnums": 0, "inline": False, "device": None}, (), (), (("donate_argnums", "0"),)),
        ({"in_shardings": np.zeros(2)}, (), (), (("in_shardings", "[0. 0.]"),)),
    ],
)
def test_without_jaxs_own_answer_options_are_as_given(given: Any, nums: Any, static_names: Any, texts: Any) -> None:
    assert _compat.jit_options(object(), given) == (nums, static_names, texts)


@pytest.mark.parametrize("tells", [True, False])
def test_a_static_that_changes_is_explained_either_way(
    tells: bool, events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not tells:
        monkeypatch.setattr(_compat, "jit_options", lambda _jitted, given: _compat._given_options(given))
    step = jaxwatch.jit(lambda x, n: x * n, static_argnums=1)
    step(X, 2)
    step(X, n=2)
    step(X, 3)

    assert events.reasons == [("first_call",), ("call_form",), ("static",)]
    assert events.last().changes[0].path == "n"


def test_options_at_their_default_are_not_told() -> None:
    assert _compat.jit_options(jax.jit(lambda x: x), {}).texts == ()
    told = _compat.jit_options(jax.jit(lambda x: x, keep_unused=True, donate_argnums=0), {}).texts
    assert dict(told)["keep_unused"] == "True"
    assert dict(told)["donate_argnums"] == "(0,)"


# ------------------------------------------------------------------ HAS_LISTENER_LISTS


def test_without_lists_listeners_are_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[Any] = []
    for kind in ("event_listener", "event_duration_secs_listener", "scalar_listener"):
        monkeypatch.setattr(jax.monitoring, f"register_{kind}", registered.append)
    monkeypatch.setattr(_compat, "HAS_LISTENER_LISTS", False)
    monkeypatch.setattr(_compat, "_once", set())

    def event(name: str, **kwargs: Any) -> None: ...
    def duration(name: str, seconds: float, **kwargs: Any) -> None: ...
    def scalar(name: str, value: float, **kwargs: Any) -> None: ...

    assert _compat.register_missing(event, duration, scalar) == ["event", "event_duration", "scalar"]
    assert _compat.register_missing(event, duration, scalar) == []
    assert registered == [event, duration, scalar]

    _compat.unregister(event, duration, scalar)
    assert _compat.register_missing(event, duration, scalar) == ["event", "event_duration", "scalar"]


# ------------------------------------------------------------------ HAS_DISTRIBUTED_STATE, HAS_BACKENDS


def test_this_process_is_told_only_where_jax_is_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (_compat.process_index(), _compat.process_count()) == (None, None)

    state = types.SimpleNamespace(client=object(), process_id=3, num_processes=8)
    monkeypatch.setattr(_compat, "_distributed", types.SimpleNamespace(global_state=state))
    assert (_compat.process_index(), _compat.process_count()) == (3, 8)

    monkeypatch.setattr(_compat, "_distributed", types.SimpleNamespace())
    assert (_compat.process_index(), _compat.process_count()) == (None, None)


def test_the_backend_is_told_where_one_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    jax.devices()
    assert _compat.backend_platform() == jax.default_backend()

    monkeypatch.setattr(_compat, "_xla_bridge", types.SimpleNamespace())
    assert _compat.backend_platform() == ""


def test_neither_import_nor_asking_nor_watching_starts_a_backend() -> None:
    ended = run("""
        import jax, jaxwatch
        from jax._src import xla_bridge
        from jaxwatch import _compat, _origin
        step = jaxwatch.jit(lambda x: x)
        assert (_compat.process_index(), _compat.backend_platform()) == (None, "")
        _origin.origin(), jaxwatch.stats(step), _compat.flags(), _compat.context()
        assert not xla_bridge._backends, xla_bridge._backends
    """)
    assert ended.code == 0, ended.err


# ------------------------------------------------------------------ arguments


def test_what_an_older_or_newer_array_does_not_say_is_not_told() -> None:
    array = types.SimpleNamespace()
    assert _compat.committed(array) is False
    assert _compat.committed(types.SimpleNamespace(_committed=True)) is True
    assert _compat.layout(array) is None
    assert _compat.memory_kind(array) is None


def test_a_layout_is_told_where_it_is_not_row_major() -> None:
    assert _compat.layout(jnp.ones((2, 3))) is None
    order = types.SimpleNamespace(layout=types.SimpleNamespace(major_to_minor=(1, 0)))
    assert _compat.layout(types.SimpleNamespace(format=order)) == "major_to_minor=(1, 0)"


def test_a_memory_kind_is_told_where_it_is_not_the_devices_own() -> None:
    device = jax.devices()[0]
    usual = jax.sharding.SingleDeviceSharding(device)
    assert _compat.memory_kind(usual) is None
    other = types.SimpleNamespace(memory_kind="pinned_host", device_set={device})
    assert _compat.memory_kind(other) == "pinned_host"
    assert _compat.memory_kind(types.SimpleNamespace(memory_kind=None)) is None


def test_an_unknown_kind_of_tracer_is_told_as_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        val = 1

    monkeypatch.setattr(_compat, "is_tracer", lambda value: isinstance(value, Odd))
    assert _compat.transform_of(Odd()) == "trace"
    endless = Odd()
    endless.val = endless  # type: ignore[assignment]  # a circle
    assert _compat.transform_of(endless).count("trace") == 8


def test_a_mesh_without_a_shape_is_told_by_its_text() -> None:
    assert _compat.mesh_text("odd mesh") == "odd mesh"
    assert len(_compat.mesh_text("x" * 1000)) == 200


# ------------------------------------------------------------------ the function of a jitted one


def module_level(x: Any) -> Any:
    return x


def test_the_users_function_is_found_also_where_it_is_not_wrapped() -> None:
    jitted = jax.jit(module_level)
    assert _compat.function_of(jitted) is module_level
    assert _compat.function_of(copy.copy(jitted)) is module_level
    for other in (len, None, 3, object()):
        assert _compat.function_of(other) is None


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (module_level, "module_level"),
        (functools.partial(functools.partial(module_level)), "module_level"),
        (types.SimpleNamespace(__name__=3), "<unnamed function>"),
    ],
)
def test_the_name_in_events_is_the_first_under_partials(function: Any, name: str) -> None:
    assert _compat.event_name(function) == name
