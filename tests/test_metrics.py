"""The collector and its registration, against prometheus_client's own parsers."""

import contextlib
import dataclasses
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from figures import BUSY, hostile, made, process
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from jaxwatch import metrics
from jaxwatch._labels import clean
from jaxwatch._metrics import FAMILIES
from jaxwatch._stats import FunctionStats, ProcessStats, SiteStats
from jaxwatch.errors import BadOptionError, MissingExtraError, NotRegisteredError
from jaxwatch.events import PhaseSeconds

FORMATS: dict[str, tuple[Callable[[CollectorRegistry], bytes], Callable[[str], Iterable[Any]]]] = {
    "text": (generate_latest, parse_text),
    "openmetrics": (generate_openmetrics, parse_openmetrics),
}
Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Log:
    """What a collector told of itself, and what it is to read."""

    def __init__(self, stats: ProcessStats | Exception) -> None:
        self.stats = stats
        self.errors: list[str] = []
        self.overhead: list[tuple[str, float]] = []
        self.collector = metrics.Collector(
            self.read, count_error=self.errors.append, add_overhead=lambda *what: self.overhead.append(what)
        )

    def read(self) -> ProcessStats:
        if isinstance(self.stats, Exception):
            raise self.stats
        return self.stats


def exposed(collector: metrics.Collector, kind: str = "openmetrics") -> dict[str, Any]:
    """Return family → its parsed form, of what a registry with this collector alone exposes."""
    registry = CollectorRegistry()
    registry.register(collector)
    write, parse = FORMATS[kind]
    return {family.name: family for family in parse(write(registry).decode())}


def values(collector: metrics.Collector, kind: str = "openmetrics") -> Values:
    found = [sample for family in exposed(collector, kind).values() for sample in family.samples]
    read = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in found}
    assert len(read) == len(found), "a sample was given twice"
    return read


def value(collector: metrics.Collector, name: str, **labels: str) -> float:
    return values(collector)[f"jaxwatch_{name}", frozenset(labels.items())]


# ------------------------------------------------------------------ what is exposed


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("stats", [process(), process(BUSY)], ids=["idle", "busy"])
def test_every_family_is_there(kind: str, stats: ProcessStats) -> None:
    found = exposed(Log(stats).collector, kind)

    assert {name: (family.type, family.documentation) for name, family in found.items()} == {
        family.name.removesuffix("_total"): (family.kind, family.help) for family in FAMILIES
    }


def test_openmetrics_has_the_units() -> None:
    found = exposed(Log(process()).collector)

    assert {name: f.unit for name, f in found.items()} == {f.name.removesuffix("_total"): f.unit for f in FAMILIES}


def test_what_is_described_is_what_is_collected() -> None:
    collector = Log(process(BUSY)).collector
    described = [(f.name, f.type, f.unit, f.documentation) for f in collector.describe()]

    assert described == [(f.name, f.type, f.unit, f.documentation) for f in collector.collect()]
    assert not any(family.samples for family in collector.describe())


@pytest.mark.parametrize("kind", FORMATS)
def test_there_are_no_created_series(kind: str) -> None:
    names = {name for name, _ in values(Log(process(BUSY)).collector, kind)}

    assert [name for name in names if name.endswith("_created")] == []


@pytest.mark.parametrize("kind", FORMATS)
def test_every_sample_has_the_labels_of_the_table(kind: str) -> None:
    stats = process(BUSY, eager={"a.py:1": SiteStats(count=1, seconds=0.5)}, disk={"hit": 2})
    labels = {family.name: set(family.labels) for family in FAMILIES}
    for name in [family.name for family in FAMILIES if family.kind == "histogram"]:
        labels |= {name + "_sum": labels[name], name + "_count": labels[name], name + "_bucket": labels[name] | {"le"}}

    for name, pairs in values(Log(stats).collector, kind):
        assert {label for label, _ in pairs} == labels[name]


def test_figures_come_out() -> None:
    collector = Log(process(BUSY, disk={"hit": 2}, overhead_seconds={"call": 0.5})).collector

    assert value(collector, "calls_total", function="step") == 100
    assert value(collector, "cache_misses_total", function="step", layer="compile", reason="shape") == 1
    assert value(collector, "cache_misses_total", function="step", layer="compile", reason="dtype") == 0
    assert value(collector, "compile_duration_seconds_sum", function="step") == 2.75
    assert value(collector, "compile_duration_seconds_count", function="step") == 3
    assert value(collector, "compile_duration_seconds_bucket", function="step", le="1.0") == 2
    assert value(collector, "dispatch_duration_seconds_bucket", function="step", le="2e-05") == 90
    assert value(collector, "dispatch_duration_seconds_bucket", function="step", le="+Inf") == 97
    assert value(collector, "persistent_cache_requests_total", result="hit") == 2
    assert value(collector, "overhead_seconds_total", part="call") == 0.5
    assert value(collector, "exporter_errors_total", exporter="prometheus") == 0


@given(text=hostile, kind=st.sampled_from(sorted(FORMATS)))
def test_any_text_makes_a_valid_exposition(text: str, kind: str) -> None:
    stats = process(
        made(
            function=text or "f",
            misses_by_signature={"s" + text: 1},
            abstracts={"s" + text: text},
            misses_by_cause={("compile", "shape"): 1},
        ),
        made(function=text or "f", definition=text),
        eager={text: SiteStats(count=1, seconds=1.0)},
        exporter_errors={text: 1},
    )
    log = Log(stats)
    found = values(log.collector, kind)

    assert log.errors == []
    read = next(pairs for name, pairs in found if name == "jaxwatch_signature_info")
    assert dict(read)["abstract"] == clean(text)
    assert ("jaxwatch_eager_compiles_total", frozenset({("site", clean(text))})) in found


@given(st.lists(st.lists(st.tuples(st.integers(0, 140), st.integers(0, 30)), max_size=30), max_size=5))
def test_a_counter_never_goes_down_and_never_leaves(scrapes: list[list[tuple[int, int]]]) -> None:
    log = Log(process())
    functions: dict[int, FunctionStats] = {}
    last: dict[tuple[str, ...], float] = {}
    for misses in scrapes:
        for function, signature in misses:
            functions[function] = missed(functions.pop(function, None), function, f"s{signature}")
        log.stats = process(*reversed(functions.values()))  # in another order each time
        counters = [family for family in log.collector.collect() if family.type == "counter"]
        now = {(s.name, *s.labels.values()): s.value for family in counters for s in family.samples}
        assert {key: value for key, value in last.items() if now.get(key, -1.0) < value} == {}
        last = now
    calls = sum(count for key, count in last.items() if key[0] == "jaxwatch_calls_total")
    assert calls == sum(map(len, scrapes))
    assert log.errors == []


def missed(stats: FunctionStats | None, number: int, signature: str) -> FunctionStats:
    """Return the figures of a function after one more miss; there are seven names, and two in three are libraries'."""
    old = stats or made(function=f"f{number % 7}", definition=f"m.py:{number}", in_library=number % 3 > 0)
    return dataclasses.replace(
        old,
        calls=old.calls + 1,
        seconds=PhaseSeconds(trace=old.seconds.trace + 0.1 * number),
        misses_by_signature={**old.misses_by_signature, signature: old.misses_by_signature.get(signature, 0) + 1},
    )


def test_a_sum_that_shrank_by_rounding_is_given_as_before() -> None:
    log = Log(process(made(seconds=PhaseSeconds(trace=0.1 + 0.2 + 0.3)), eager={"a": SiteStats(count=1, seconds=0.6)}))
    before = values(log.collector)
    log.stats = process(made(seconds=PhaseSeconds(trace=0.6)), eager={"a": SiteStats(count=1, seconds=0.6 - 1e-16)})

    assert 0.1 + 0.2 + 0.3 > 0.6 > 0.6 - 1e-16
    assert values(log.collector) == before


def test_a_sum_that_started_anew_is_given_as_it_is() -> None:
    log = Log(process(made(seconds=PhaseSeconds(trace=5.0))))
    log.collector.collect()
    log.stats = process(made(seconds=PhaseSeconds(trace=1.0)))

    assert value(log.collector, "compile_phase_seconds_total", function="step", phase="trace") == 1.0


# ------------------------------------------------------------------ a scrape never fails


def test_with_nothing_to_read_the_families_are_there_and_the_error_is_counted() -> None:
    log = Log(RuntimeError("no"))

    assert len(exposed(log.collector)) == len(FAMILIES)
    assert value(log.collector, "exporter_errors_total", exporter="prometheus") == 2
    assert log.errors == ["prometheus"] * 2
    assert {name for name, _ in values(log.collector)} == {"jaxwatch_build_info", "jaxwatch_exporter_errors_total"}


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(FunctionStats)])
@pytest.mark.parametrize("wrong", [None, object(), "x", -1, 10**400], ids=["None", "object", "text", "-1", "huge"])
def test_one_figure_that_is_wrong_spoils_no_other_family(field: str, wrong: object) -> None:
    right = Log(process(BUSY, made(function="g")))
    log = Log(process(BUSY, made(**{"function": "g", field: wrong})))
    complete = {name for name, _ in values(right.collector)}
    families = {name.removeprefix("jaxwatch_") for name, _ in values(log.collector)}
    lost = {name.removeprefix("jaxwatch_") for name in complete} - families

    if field not in {"function", "definition"}:
        assert {name.rsplit("_", 1)[0] if "duration" in name else name for name in lost} <= LOST.get(field, set())
    assert bool(lost) <= bool(log.errors)


LOST = {
    "calls": {"calls_total"},
    "signatures": {"signatures"},
    "trace_errors": {"trace_errors_total"},
    "seconds": {"compile_duration_seconds", "compile_phase_seconds_total"},
    "dispatch": {"dispatch_duration_seconds"},
    "misses_by_cause": {"cache_misses_total"},
    "misses_by_signature": {"signature_cache_misses_total"},
    "abstracts": {"signature_info"},
    "miss_seconds": {"compile_duration_seconds"},
    "last_miss_unix_seconds": {"last_cache_miss_timestamp_seconds"},
    "violations": {"retrace_violations_total"},
}


def test_errors_counted_elsewhere_and_here_never_go_down() -> None:
    log = Log(process(exporter_errors={"prometheus": 3, "jsonl": 1}))
    assert value(log.collector, "exporter_errors_total", exporter="prometheus") == 3
    log.stats = RuntimeError("no")
    assert value(log.collector, "exporter_errors_total", exporter="prometheus") == 4
    assert value(log.collector, "exporter_errors_total", exporter="jsonl") == 1
    log.stats = process(exporter_errors={"prometheus": 5, "jsonl": 1})
    assert value(log.collector, "exporter_errors_total", exporter="prometheus") == 5 + 0


def test_where_errors_and_overhead_go_may_fail_too() -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError

    collector = metrics.Collector(refuse, count_error=refuse, add_overhead=refuse)  # type: ignore[arg-type]  # it raises

    assert len(collector.collect()) == len(FAMILIES)


def test_a_scrapes_own_time_is_told() -> None:
    log = Log(process())
    log.collector.collect()

    ((part, seconds),) = log.overhead
    assert part == "scrape"
    assert 0 <= seconds < 60


def test_many_threads_may_scrape_at_once() -> None:
    log = Log(process(*(made(function=f"f{n % 60}", definition=f"m:{n}", calls=1) for n in range(120))))
    found: list[Values] = []
    threads = [threading.Thread(target=lambda: found.append(values(log.collector))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [dict(one) for one in found] == [found[0]] * 8
    assert log.errors == []


# ------------------------------------------------------------------ other processes


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)


def test_importing_imports_no_client_and_no_jax() -> None:
    program = "import sys, jaxwatch.metrics, jaxwatch._serve; print({'jax', 'prometheus_client'} & set(sys.modules))"

    assert run(program).stdout == "set()\n"


SCRAPE = """
import sys
from prometheus_client import CollectorRegistry
from jaxwatch import metrics
def build():
    family, = [f for f in metrics.Collector().collect() if f.name == "jaxwatch_build_info"]
    return {k: v for k, v in family.samples[0].labels.items() if k != "version"}
"""


def test_a_scrape_imports_no_jax() -> None:
    done = run(SCRAPE + "print(build()); print('jax' in sys.modules)")

    nothing = {"jax_version": "", "jaxlib_version": "", "backend": "", "core": "", "process_index": ""}
    assert done.stdout == f"{nothing}\nFalse\n"


def test_a_scrape_starts_no_backend_and_tells_one_that_is_up() -> None:
    program = """
import jax
print(build()["backend"] == "", build()["jax_version"] == jax.__version__)
jax.numpy.zeros(1)
print(build()["backend"] == jax.default_backend())
"""
    assert run(SCRAPE + program).stdout == "True True\nTrue\n"


def test_a_jax_that_is_being_imported_is_left_alone() -> None:
    program = """
import types
jax = sys.modules["jax"] = types.ModuleType("jax")
jax.__spec__ = types.SimpleNamespace(_initializing=True)
print(build()["jax_version"] == "", "jaxwatch._compat" in sys.modules)
"""
    assert run(SCRAPE + program).stdout == "True False\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_in_the_middle_of_a_scrape_can_scrape() -> None:
    program = """
import os, threading
inside, go = threading.Event(), threading.Event()
def read():
    inside.set(); go.wait(); raise ValueError
collector = metrics.Collector(read)
thread = threading.Thread(target=collector.collect); thread.start(); inside.wait()
if (pid := os.fork()) == 0:
    go.set()
    os._exit(len(collector.collect()))
go.set(); thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(SCRAPE + program).stdout == f"{len(FAMILIES)}\n"


# ------------------------------------------------------------------ registration


@pytest.fixture(params=[CollectorRegistry, lambda: None], ids=["own", "default"])
def registry(request: pytest.FixtureRequest) -> Iterator[CollectorRegistry | None]:
    make: Callable[[], CollectorRegistry | None] = request.param
    found = make()
    yield found
    with contextlib.suppress(NotRegisteredError):
        metrics.unregister(found)


def test_registering_twice_gives_the_same_collector(registry: CollectorRegistry | None) -> None:
    assert metrics.register(registry) is metrics.register(registry)
    assert generate_latest(registry or REGISTRY).count(b"# TYPE jaxwatch_calls_total ") == 1


def test_unregistering_takes_it_out(registry: CollectorRegistry | None) -> None:
    metrics.register(registry)
    metrics.unregister(registry)

    assert b"jaxwatch_" not in generate_latest(registry or REGISTRY)
    with pytest.raises(NotRegisteredError, match="does not have jaxwatch's metrics"):
        metrics.unregister(registry)
    metrics.register(registry)


def test_a_collector_taken_out_by_hand_can_be_put_in_again() -> None:
    registry = CollectorRegistry()
    registry.unregister(metrics.register(registry))
    with pytest.raises(NotRegisteredError):
        metrics.unregister(registry)
    registry.unregister(metrics.register(registry))
    metrics.register(registry)

    assert b"jaxwatch_calls_total" in generate_latest(registry)


def test_two_registries_have_collectors_of_their_own() -> None:
    assert metrics.register(CollectorRegistry()) is not metrics.register(CollectorRegistry())


def test_metrics_of_the_same_names_are_told_of() -> None:
    registry = CollectorRegistry()
    Counter("jaxwatch_calls_total", "mine", registry=registry)

    with pytest.raises(BadOptionError, match="has metrics of these names"):
        metrics.register(registry)
    with pytest.raises(NotRegisteredError):
        metrics.unregister(registry)


def test_what_is_no_registry_is_told_of() -> None:
    with pytest.raises(BadOptionError, match=r"registry=5 is no registry"):
        metrics.register(5)  # type: ignore[arg-type]  # on purpose


def test_without_the_client_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)

    with pytest.raises(MissingExtraError, match="pip install prometheus-client"):
        metrics.register()


def test_the_core_in_use_is_told_once_the_engine_is_loaded() -> None:
    from jaxwatch import _core

    (family,) = [f for f in metrics.Collector().collect() if f.name == "jaxwatch_build_info"]

    assert [sample.labels["core"] for sample in family.samples] == [_core.CORE.name]


@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.0029, 2.5, 1e6])
def test_the_last_miss_stands_as_exemplar_in_the_bucket_that_counts_it(seconds: float) -> None:
    stats = made(last_miss_id=7, last_miss_seconds=seconds, last_miss_unix_seconds=1.7e9, miss_seconds={seconds: 1})
    family = exposed(Log(process(stats)).collector)["jaxwatch_compile_duration_seconds"]

    (bucket,) = (sample for sample in family.samples if sample.exemplar is not None)
    assert bucket.exemplar.labels == {"miss": "7"}
    assert (bucket.exemplar.value, float(bucket.exemplar.timestamp)) == (seconds, 1.7e9)
    assert seconds <= float(bucket.labels["le"])
    lower = [sample for sample in family.samples if float(sample.labels.get("le", "inf")) < seconds]
    assert all(float(sample.labels["le"]) < float(bucket.labels["le"]) for sample in lower)
    assert not any(
        sample.exemplar
        for sample in exposed(Log(process(stats)).collector, "text")["jaxwatch_compile_duration_seconds"].samples
    )
