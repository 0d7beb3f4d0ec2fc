"""What is told of a look-up in JAX's persistent cache: stored, not stored and why, read; in processes of their own."""

from pathlib import Path
from typing import Any

import pytest
from cores import CORES, core, run

from jaxwatch import _compat
from jaxwatch._disk import Lookup

PROGRAM = """
    import json
    import jax, numpy as np
    import jaxwatch
    from jaxwatch.events import to_record
    from jaxwatch._hub import HUB

    events = []
    HUB.add("test", events.append)
    {settings}
    def step(x):
        {body}
        return x * 2
    jaxwatch.jit(step)(np.ones(3, np.float32))
    jax.effects_barrier()
    (miss,) = (to_record(event) for event in events if event.kind == "cache_miss")
    print()
    print(json.dumps(miss))
"""
THRESHOLD = "jax_persistent_cache_min_compile_time_secs"
LEAST_BYTES = "jax_persistent_cache_min_entry_size_bytes"


@pytest.fixture(params=CORES)
def kind(request: pytest.FixtureRequest) -> str:
    core(request.param)  # skips where it is not built
    return str(request.param)


def miss(kind: str, folder: Path | None, settings: str = "", body: str = "pass", least: str = "0") -> Any:
    """Run the program with the cache in a folder, and return its miss."""
    variables = {"JAX_COMPILATION_CACHE_DIR": str(folder)} if folder else {}
    text = PROGRAM.format(settings=settings, body=body)
    return run(text, JAXWATCH_CORE=kind, **{THRESHOLD.upper(): least}, **variables).data()


def test_what_is_stored_is_read_by_the_next_process(kind: str, tmp_path: Path) -> None:
    first, second = miss(kind, tmp_path), miss(kind, tmp_path)

    assert (first["persistent_cache"], second["persistent_cache"]) == ("miss", "hit")
    key = first["disk"]["key"]
    assert first["disk"] == {"key": key, "read_seconds": None, "saved_seconds": None, "not_stored": None}
    assert second["disk"]["key"] == key
    assert second["disk"]["not_stored"] is None
    assert 0 < second["disk"]["read_seconds"] <= second["seconds"]["backend_compile"]
    assert isinstance(second["disk"]["saved_seconds"], float)
    if _compat.HAS_DISK_KEY:
        assert any(path.name.startswith(key) for path in tmp_path.iterdir()), "the key names JAX's file"


def test_below_the_threshold_nothing_is_stored_and_the_option_is_named(kind: str, tmp_path: Path) -> None:
    told = [miss(kind, tmp_path, least="1000")["disk"]["not_stored"] for _ in range(2)]

    assert told == [f"compiled in less than {THRESHOLD}=1000"] * 2


def test_what_calls_back_is_told_as_stored_only_where_it_is(kind: str, tmp_path: Path) -> None:
    told = miss(kind, tmp_path, body='jax.debug.print("{}", x)')
    stored = any(path.name.startswith("jit_step-") for path in tmp_path.iterdir())

    assert told["persistent_cache"] == "miss"
    assert (told["disk"]["not_stored"] is None) is stored
    if not stored and _compat.HAS_HOST_CALLBACKS:
        assert told["disk"]["not_stored"] == "it calls back to the host"


def test_where_the_cache_is_off_nothing_is_told(kind: str, tmp_path: Path) -> None:
    off = 'jax.config.update("jax_enable_compilation_cache", False)'

    for told in (miss(kind, None), miss(kind, tmp_path, settings=off)):
        assert (told["persistent_cache"], told["disk"]) == (None, None)


# ------------------------------------------------------------------ why not, in JAX's order

REST = "compiled too fast but for the look-up, or it could not be written"


@pytest.mark.parametrize(
    ("process", "calls_back", "seconds", "limits", "text"),
    [
        (1, True, 0.0, (1.0, 5), "only process 0 stores"),
        (0, True, 0.0, (1.0, 5), "it calls back to the host"),
        (None, False, 0.5, (1.0, 5), f"compiled in less than {THRESHOLD}=1"),
        (None, False, 1.0, (1.0, 5), f"smaller than {LEAST_BYTES}=5, {REST}"),
        (None, False, 1.0, (1.0, 0), REST),
    ],
)  # fmt: skip
def test_the_first_obstacle_in_jaxs_order_is_told(  # noqa: PLR0913, PLR0917 -- a case
    process: int | None,
    calls_back: bool,
    seconds: float,
    limits: tuple[float, int],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_compat, "disk_cache_on", lambda: True)
    monkeypatch.setattr(_compat, "process_index", lambda: process)
    monkeypatch.setattr(_compat, "disk_limits", lambda: limits)
    lookup = Lookup("k", calls_back=calls_back)

    entry = lookup.entry(seconds)
    assert entry is not None
    assert (entry.key, entry.not_stored) == ("k", text)
    lookup.written = True
    entry = lookup.entry(seconds)
    assert entry is not None
    assert entry.not_stored is None
