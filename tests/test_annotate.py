import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cores
import jax
import numpy as np
import pytest
from trace_format import asked

import jaxwatch
from jaxwatch import _annotate, _options
from jaxwatch._frames import Active
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError


@pytest.fixture(autouse=True)
def _asked_for() -> Iterator[None]:
    _options.annotate(True)
    yield
    _options.annotate(None)


def annotations(folder: Path) -> list[dict[str, Any]]:
    """Return the annotations in the trace that jax.profiler wrote, as its trace viewer shows them."""
    (file,) = folder.rglob("*.trace.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    return [event for event in events if event.get("name", "").startswith("jaxwatch: ")]


def test_misses_are_in_the_profilers_trace_with_their_reason_and_hits_and_what_is_inlined_are_not(
    tmp_path: Path, fresh: None
) -> None:
    """All in one trace, and both cores: to write one takes a second."""
    del fresh

    def fails(x: Any) -> Any:
        raise ZeroDivisionError(x)

    found = {}
    for core in cores.CORES:
        with cores.in_use(core):

            def inner(x: Any) -> Any:
                return x * 2

            inner.__name__ = f"inner_{core}"
            watched_inner = jaxwatch.jit(inner)
            outer = jaxwatch.Watch(name=f"step#{core}")
            step = jaxwatch.jit(lambda batch, f=watched_inner: f(batch["x"]) + 1, watch=outer)
            failing = jaxwatch.jit(fails, watch=jaxwatch.Watch(name=f"fails {core}"))
            found[core] = step, failing
            step({"x": np.ones((3, 3))})
    with jax.profiler.trace(str(tmp_path)):
        for core, (step, failing) in found.items():
            with cores.in_use(core):
                step({"x": np.ones((4, 3))})
                step({"x": np.ones((4, 3))})
                with pytest.raises(ZeroDivisionError):
                    failing(1)

    told = annotations(tmp_path)
    assert [event["name"] for event in told] == [
        *("jaxwatch: step＃native", "jaxwatch: fails native"),  # noqa: RUF001 -- read as text, where # is not
        *("jaxwatch: step＃python", "jaxwatch: fails python"),  # noqa: RUF001 -- as above
    ]
    for missed, failed in (told[:2], told[2:]):
        assert missed["args"]["reason"] == "shape"
        assert missed["args"]["changes"] == "batch[x]: float32[3,3] → float32[4,3]"
        assert missed["args"]["site"].startswith(__file__)
        assert missed["dur"] > 0
        assert failed["args"]["error"] == "ZeroDivisionError"


def test_perfetto_itself_shows_a_miss_within_jaxs_own_annotation_of_the_call(
    tmp_path: Path, fresh: None, require_program: Callable[[str], str]
) -> None:
    del fresh
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0  # with it, a function's slice may end within a miss: Perfetto then leaves one out
    with jax.profiler.trace(str(tmp_path), profiler_options=options):
        jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))(np.ones(3))

    (file,) = tmp_path.rglob("*.trace.json.gz")
    around = (
        "select group_concat(p.name) from slice s join slice p on p.id = s.parent_id where s.name = 'jaxwatch: step'"
    )
    assert asked(file, around, require=require_program) == ["PjitFunction(<lambda>)"]


def test_without_a_profiler_or_where_it_is_not_asked_for_nothing_is_annotated(fresh: None) -> None:
    del fresh
    frames: list[Any] = []

    def body(x: Any) -> Any:
        frames.append(Active.frame())
        return x

    with cores.in_use("python"):
        jaxwatch.jit(body)(1.0)
    assert [frame.annotation for frame in frames] == [None]


@pytest.mark.parametrize("text", ["a,b]", "(", "a#b", "f(x) = [1,2]", 'it\'s, "so"', "\ud800,", "a (b] c)"])
def test_whatever_a_value_holds_the_profiler_reads_back_one_value(text: str) -> None:
    found = _annotate.value(text)

    found.encode("utf-8")
    assert "#" not in found
    assert not set(found) & set("'\"")
    depth = 0
    for character in found:
        depth += (character in "([{") - (character in ")]}")
        assert depth >= 0
        assert character != "," or depth
    assert depth == 0


def test_a_profiler_that_fails_is_counted_and_reaches_nobody(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    del fresh

    class Failing:
        @staticmethod
        def is_enabled() -> bool:
            raise RuntimeError

    monkeypatch.setattr(jax.profiler, "TraceAnnotation", Failing)

    assert jaxwatch.jit(lambda x: x + 1)(1) == 2
    assert REGISTRY.snapshot().dropped.get("event") == 1


def test_the_choice_is_checked_and_the_environment_can_make_it() -> None:
    with pytest.raises(BadOptionError, match="annotate='yes'"):
        jaxwatch.configure(annotate="yes")  # type: ignore[arg-type]  # what is tested
    _options.annotate(None)
    assert _options.annotated({"JAXWATCH_ANNOTATE": "1"})
    assert not _options.annotated({})
    _options.annotate(False)
    assert not _options.annotated({"JAXWATCH_ANNOTATE": "1"})
