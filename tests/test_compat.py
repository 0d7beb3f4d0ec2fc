"""JAX's privates: each behind a flag, with what is lost where it is gone; and found nowhere else."""

import ast
import copy
import functools
import itertools
import re
import types
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
VERSIONS = ROOT / "docs" / "versions.md"
FLAGS = [name for name in vars(_compat) if name.startswith("HAS_")]


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


def test_the_installed_jax_lacks_what_the_table_says_and_a_new_one_nothing() -> None:
    """Where one more is gone, a feature is off: look at the docstring beside the flag."""
    rows = re.findall(rf"^\| {re.escape(jax.__version__)} \|.*$", VERSIONS.read_text(), re.MULTILINE)
    lacks = {name for name, value in _compat.flags().items() if not value}

    assert lacks == set(re.findall(r"HAS_\w+", "".join(rows)))


def test_versions_are_told() -> None:
    assert _compat.jax_versions()[0] == jax.__version__
    assert all(part[0].isdigit() for part in _compat.jax_versions())


# ------------------------------------------------------------------ each flag in both states

EVERY = """
    import json
    import jax, jax.monitoring, numpy as np
    from jaxwatch import _compat
    for name in {off!r}:
        assert name in _compat.flags()
        setattr(_compat, name, False)
    import jaxwatch
    from jaxwatch._hub import HUB
    from jaxwatch._registry import REGISTRY

    events = []
    HUB.add("test", events.append)
    x = np.arange(4, dtype=np.float32)
    step = jaxwatch.jit(lambda x, n: x * n, static_argnames="n")
    plain = jax.jit(lambda x, n: x * n, static_argnames="n")
    def same(*args, **kwargs):
        return step(*args, **kwargs).tolist() == plain(*args, **kwargs).tolist()
    results = [same(x, n=2), same(x, n=2), same(x[:2], n=2), same(x, n=3)]
    with jax.default_matmul_precision("float32"):
        results.append(same(x, n=2))
    made = jaxwatch.jit(static_argnums=1)(lambda x, n: x[:n])
    jax.devices()
    stats = jaxwatch.stats(step)
    print(json.dumps({{
        "results": results, "calls": stats.calls, "misses": stats.misses, "compiles": stats.compiles,
        "reasons": [list(event.reasons) for event in events if event.kind == "cache_miss"],
        "changes": [[c.path, c.before, c.after] for e in events if e.kind == "cache_miss" for c in e.changes],
        "made": made(x, 2).tolist(),
        "process": [_compat.process_index(), _compat.process_count()],
        "backend": _compat.backend_platform(),
        "dropped": REGISTRY.snapshot().dropped,
    }}))
"""


@pytest.mark.parametrize("off", [(), *((name,) for name in FLAGS), tuple(FLAGS)], ids=",".join)
def test_with_whichever_flag_off_results_counts_and_reasons_are_right(off: tuple[str, ...]) -> None:
    told = run(EVERY.format(off=off)).data()

    assert told["results"] == [True] * 5
    assert (told["calls"], told["misses"], told["compiles"]) == (5, 4, 4)
    assert told["reasons"] == [["first_call"], ["shape"], ["static"], ["config"]]
    assert told["changes"] == [
        ["x", "float32[4]", "float32[2]"],
        ["n", "2", "3"],
        ["jax_default_matmul_precision", "None", "float32"],
    ]
    assert told["made"] == [0, 1]
    assert told["process"] == [None, None]
    assert told["backend"] == ("" if "HAS_BACKENDS" in off else "cpu")
    assert not any(told["dropped"].values()), told["dropped"]


# ------------------------------------------------------------------ what is read off JAX's frames, and its caches

READ = """
    import json, jax, numpy as np
    from jaxwatch import _compat
    for name in {off!r}:
        setattr(_compat, name, False)
    import jaxwatch
    from jaxwatch._hub import HUB
    from jaxwatch._registry import REGISTRY
    from jaxwatch.events import to_record

    events = []
    HUB.add("test", events.append)
    step = jaxwatch.jit(lambda x: (jax.debug.print("{{}}", x), x * 2)[1])
    step(np.ones(3))
    jax.clear_caches()
    step(np.ones(3))
    jax.effects_barrier()
    told = [to_record(event) for event in events if event.kind == "cache_miss"]
    print(json.dumps([told[0]["program"], told[0]["disk"], told[1]["changes"], REGISTRY.snapshot().dropped]))
"""


@pytest.mark.parametrize("off", ["", "HAS_LOWERED_JAXPR", "HAS_DISK_KEY", "HAS_HOST_CALLBACKS", "HAS_CACHE"])
def test_without_one_what_it_tells_is_lost_and_nothing_else(off: str, tmp_path: Path) -> None:
    program, disk, changes, dropped = run(
        READ.format(off=[off] if off else []),
        JAX_COMPILATION_CACHE_DIR=str(tmp_path),
        JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="1000",
    ).data()
    has = {name: value and name != off for name, value in _compat.flags().items()}

    assert (program is not None) is has["HAS_LOWERED_JAXPR"]
    assert (disk["key"] is not None) is has["HAS_DISK_KEY"]
    assert ("clear_caches" in changes[0]["note"]) is has["HAS_CACHE"]
    if not has["HAS_HOST_CALLBACKS"]:
        assert disk["not_stored"].startswith("compiled in less than")
    assert not any(dropped.values())


def test_nothing_is_read_off_a_frame_that_is_not_there() -> None:
    assert (_compat.lowered_jaxpr(None), _compat.disk_key(None)) == (None, None)
    assert _compat.donated_inputs(None) is None
    assert not _compat.calls_back(None)
    assert not _compat.bakes_constants(None)


@pytest.mark.skipif(not _compat.HAS_CACHE, reason="this JAX does not show it")
def test_the_caches_are_others_only_after_they_were_cleared() -> None:
    first = _compat.caches()
    assert _compat.caches() is first
    jax.clear_caches()  # type: ignore[no-untyped-call]  # JAX's
    assert _compat.caches() is not first


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


# ------------------------------------------------------------------ HAS_FRAME_EXCLUSION


LEAKED = """
    import jax, numpy as np
    from jaxwatch import _compat
    _compat.HAS_FRAME_EXCLUSION = {excludes}
    from jaxwatch import _wrap
    import jaxwatch
    from jax._src import source_info_util
    print(source_info_util.is_user_filename(_wrap.__file__), source_info_util.is_user_filename("train.py"))
    leaked = []
    jaxwatch.jit(leaked.append)(np.zeros(3))
    try:
        leaked[0] + 1
    except jax.errors.UnexpectedTracerError as error:
        print(_wrap.__file__ in str(error))
"""


@pytest.mark.parametrize("excludes", [True, False])
def test_frames_of_the_twin_are_shown_only_where_jax_cannot_leave_them_out(excludes: bool) -> None:
    ended = run(LEAKED.format(excludes=excludes), JAXWATCH_CORE="python")

    assert ended.code == 0, ended.err
    shown, in_error = ended.out.splitlines()
    assert shown == f"{not excludes} True"
    assert in_error == "False" or not excludes


# ------------------------------------------------------------------ HAS_DISTRIBUTED_STATE, HAS_BACKENDS


def test_this_process_is_told_only_where_jax_is_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (_compat.process_index(), _compat.process_count()) == (None, None)

    state = types.SimpleNamespace(client=object(), process_id=3, num_processes=8)
    monkeypatch.setattr(_compat, "_distributed", types.SimpleNamespace(global_state=state))
    assert (_compat.process_index(), _compat.process_count()) == (3, 8)

    monkeypatch.setattr(_compat, "_distributed", types.SimpleNamespace())
    monkeypatch.setattr(_compat, "HAS_DISTRIBUTED_STATE", False)
    assert (_compat.process_index(), _compat.process_count()) == (None, None)


def test_the_backend_is_told_where_one_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    jax.devices()
    assert _compat.backend_platform() == jax.default_backend()

    monkeypatch.setattr(_compat, "_xla_bridge", types.SimpleNamespace())
    monkeypatch.setattr(_compat, "HAS_BACKENDS", False)
    assert _compat.backend_platform() == ""


def test_neither_import_nor_asking_nor_watching_starts_a_backend() -> None:
    ended = run("""
        import jax, jaxwatch
        from jax._src import xla_bridge
        from jaxwatch import _compat, _context, _origin
        step = jaxwatch.jit(lambda x: x)
        assert (_compat.process_index(), _compat.backend_platform()) == (None, "")
        _origin.origin(), jaxwatch.stats(step), _compat.flags(), _context.context()
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


# ------------------------------------------------------------------ the function of a jitted one


def module_level(x: Any) -> Any:
    return x


class Unnamed:
    __name__ = 3  # which is no name

    def __call__(self, x: Any) -> Any:
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
        (functools.partial(functools.partial(Unnamed())), "<unnamed function>"),
        (Unnamed(), _compat._UNNAMED_ITSELF),
    ],
)
def test_the_name_in_events_is_the_first_under_partials(function: Any, name: str) -> None:
    assert _compat.event_name(function) == name
