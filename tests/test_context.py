"""What of JAX's key lies beside the arguments: told by name, and as far as it goes where JAX names nothing."""

import types
from typing import Any

import jax
import numpy as np
import pytest
from published import Events

import jaxwatch
from jaxwatch import _compat, _context

X = np.ones(3, np.float32)
MESH = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
SET_MESH: Any = getattr(jax, "set_mesh", None) or vars(jax.sharding)["use_mesh"]  # 0.6.2
STATES: Any = vars(_compat)["_config"]  # where JAX keeps the context managers that have no public name in some version


@pytest.fixture(autouse=True)
def _forget_the_last_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_context, "_last", None)


@pytest.fixture(params=[True, False], ids=["names", "no names"])
def names(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param and not _compat.HAS_CONTEXT_NAMES:
        pytest.skip("this JAX names nothing")
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", request.param)
    return bool(request.param)


@pytest.mark.parametrize(
    ("setting", "name", "value"),
    [
        (lambda: jax.default_matmul_precision("float32"), "jax_default_matmul_precision", "float32"),
        (lambda: jax.numpy_dtype_promotion("strict"), "jax_numpy_dtype_promotion", "strict"),
        (lambda: jax.numpy_rank_promotion("raise"), "jax_numpy_rank_promotion", "raise"),
        (lambda: jax.threefry_partitionable(False), "jax_threefry_partitionable", "False"),
        (lambda: STATES.enable_x64(True), "jax_enable_x64", "True"),
    ],
)
def test_configuration_that_is_part_of_the_key_is_told(names: bool, setting: Any, name: str, value: str) -> None:
    before = dict(_context.context().config)
    with setting():
        after = dict(_context.context().config)

    assert {key for key in after if before.get(key) != after[key]} == {name}
    assert after[name] == value
    assert dict(_context.context().config) == before
    del names


def test_configuration_that_is_no_part_of_the_key_is_not_told(names: bool) -> None:
    before = _context.context()
    with jax.debug_nans(True), jax.debug_infs(True):
        assert _context.context() == before
    del names


@pytest.mark.usefixtures("names")
def test_a_miss_for_configuration_is_explained_either_way(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    with jax.default_matmul_precision("float32"):
        step(X)

    assert events.last().reasons == ("config",)
    assert events.changes() == [("config", "jax_default_matmul_precision", "None", "float32")]


def test_without_names_configuration_that_has_none_is_told_as_other(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", False)
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    with STATES.random_seed_offset(7):
        step(X)

    assert events.last().reasons == ("config",)
    ((_, name, before, after),) = events.changes()
    assert name == _context.OTHERS
    assert "1 x 7" not in str(before)
    assert "1 x 7" in str(after)


def test_without_names_a_lost_entry_is_known_from_a_change_without_a_name(
    events: Events, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", False)
    step = jaxwatch.jit(lambda x: x + 1)
    step(X)
    step.clear_cache()
    step(X)

    assert events.last().reasons == ("cache_lost",)


def test_without_names_public_flags_and_the_rest_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", False)

    assert {name for name, _ in _context.context().config} == {*_compat.PUBLIC_FLAGS, _context.OTHERS}


def test_axis_names_and_meshes_are_told() -> None:
    seen = []

    def body(x: Any) -> Any:
        seen.append(_context.context())
        return x

    jax.vmap(body, axis_name="batch")(np.ones(4))
    assert seen[0].axis_env == "batch=4"
    assert _context.context().axis_env == ""

    with SET_MESH(MESH):
        assert "mesh(data=1)" in _context.context().mesh
    assert _context.context().mesh == ""


class Equal:
    """A value without a text of its own."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


def test_without_names_a_value_without_a_text_is_told_by_what_it_is_equal_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compat, "HAS_CONTEXT_NAMES", False)

    def others(value: object) -> str:
        monkeypatch.setattr(_compat, "context_values", lambda: (value,))
        return dict(_context.context().config)[_context.OTHERS]

    assert others(Equal(1)) == others(Equal(1)) == "1 x Equal 0001"
    assert others(Equal(2)) == "1 x Equal 0002"


def test_what_is_not_known_of_a_mesh_is_left_out() -> None:
    assert _context.mesh_text(MESH) == "mesh(data=1)"
    assert _context.mesh_text("odd mesh") == "odd mesh"
    assert len(_context.mesh_text("x" * 1000)) == 200
    assert _context.mesh_text(types.SimpleNamespace(shape={"a": 2, "b": 4})) == "mesh(a=2, b=4)"
