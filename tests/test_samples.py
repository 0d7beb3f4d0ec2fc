"""Samples of the metric families, made of figures by hand."""

from collections.abc import Iterable
from itertools import pairwise

import pytest
from figures import BUSY, made, process
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch._histogram import SIZE, Cell, as_seconds, upper_seconds
from jaxwatch._labels import Labels
from jaxwatch._metrics import FAMILIES, REASONS_AT_0
from jaxwatch._samples import MAKERS, Exemplar, Histogram, Sample, Scrape, classic
from jaxwatch._stats import ProcessStats, SiteStats
from jaxwatch.events import PhaseSeconds

DISPATCH = next(family.buckets for family in FAMILIES if family.name == "jaxwatch_dispatch_duration_seconds")
durations = st.lists(st.integers(256, 20_000_000_000), max_size=50)  # ns; what a dispatch bucket can tell apart


def samples(name: str, stats: ProcessStats) -> dict[tuple[str, ...], float]:
    found = MAKERS[f"jaxwatch_{name}"](Scrape(stats, Labels()))
    return {sample.labels: sample.value for sample in found if isinstance(sample, Sample)}


def histogram(name: str, stats: ProcessStats) -> Histogram:
    (found,) = MAKERS[f"jaxwatch_{name}"](Scrape(stats, Labels()))
    assert isinstance(found, Histogram)
    return found


def fine(nanoseconds: Iterable[int]) -> dict[float, int]:
    cell = Cell()
    for duration in nanoseconds:
        cell.add(duration)
    return as_seconds(cell.counts())


def test_every_family_but_the_build_is_made_of_figures() -> None:
    assert {*MAKERS, "jaxwatch_build_info"} == {family.name for family in FAMILIES}


@given(durations)
def test_a_duration_is_counted_in_its_bucket_or_within_6_percent_above(nanoseconds: list[int]) -> None:
    counts = classic(DISPATCH, fine(nanoseconds))

    assert all(a <= b for a, b in pairwise(counts))
    assert counts[-1] == len(nanoseconds)
    for bound, count in zip(DISPATCH, counts, strict=False):
        assert count <= sum(n * 1e-9 <= bound for n in nanoseconds)
        assert count >= sum(n * 1e-9 <= bound / 1.0626 for n in nanoseconds)


def test_what_lasted_longer_than_the_fine_buckets_reach_is_in_none_of_the_classic_ones() -> None:
    hours = fine([4 * 3600 * 10**9])

    assert classic((1, 300, 1e9), hours) == (0, 0, 0, 1)


@given(durations)
def test_the_sum_of_dispatches_is_within_3_2_percent(nanoseconds: list[int]) -> None:
    found = histogram("dispatch_duration_seconds", process(made(dispatch=fine(nanoseconds))))

    assert found.seconds == pytest.approx(sum(nanoseconds) * 1e-9, rel=0.032, abs=1e-12)


@given(st.lists(st.integers(0, SIZE - 1), min_size=1, max_size=200))
def test_the_sum_of_dispatches_never_goes_down(cells: list[int]) -> None:
    counts: dict[float, int] = {}
    last = 0.0
    for index in cells:
        bound = upper_seconds(index)
        counts = {bound: counts.pop(bound, 0) + 1, **counts}  # in another order each time
        now = histogram("dispatch_duration_seconds", process(made(dispatch=counts))).seconds
        assert now >= last
        last = now


def test_compile_durations_have_the_exact_sum() -> None:
    found = histogram("compile_duration_seconds", process(BUSY))

    assert found == Histogram(("step",), (0, 0, 0, 0, 0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3), 2.75)


def test_a_functions_children_are_born_at_0() -> None:
    new = process(made(calls=1))

    assert samples("cache_misses_total", new) == {("step", "compile", reason): 0 for reason in REASONS_AT_0}
    assert samples("retrace_violations_total", new) == {("step", a): 0 for a in ("raise", "warn", "record")}
    assert samples("compile_phase_seconds_total", new) == {
        ("step", phase): 0 for phase in ("trace", "lower", "backend_compile")
    }
    assert samples("trace_errors_total", new) == {("step",): 0}
    assert samples("last_cache_miss_timestamp_seconds", new) == {("step",): 0}
    assert histogram("compile_duration_seconds", new).counts == (0,) * 16
    assert histogram("dispatch_duration_seconds", new).counts == (0,) * 20


def test_a_cause_that_came_up_anywhere_is_at_0_for_all_functions() -> None:
    found = samples("cache_misses_total", process(BUSY, made(function="evaluate")))

    assert found["step", "trace", "config"] == 1
    assert found["evaluate", "trace", "config"] == 0
    assert len(found) == 2 * (len(REASONS_AT_0) + 1)


def test_closed_lists_are_at_0_with_nothing_watched() -> None:
    assert samples("persistent_cache_requests_total", process()) == {("hit",): 0, ("miss",): 0}
    assert samples("dropped_total", process()) == {(w,): 0 for w in ("event", "key", "log_line", "hook_call")}
    assert samples("label_overflow_total", process()) == {(label,): 0 for label in ("function", "signature", "site")}
    assert samples("overhead_seconds_total", process()) == {(p,): 0 for p in ("call", "miss", "export", "scrape")}


def test_a_functions_figures_come_out_as_they_are() -> None:
    stats = process(BUSY)

    assert samples("calls_total", stats) == {("step",): 100}
    assert samples("signatures", stats) == {("step",): 2}
    assert samples("trace_errors_total", stats) == {("step",): 1}
    assert samples("signature_cache_misses_total", stats) == {("step", "s01"): 2, ("step", "s02"): 1}
    assert samples("signature_info", stats) == {
        ("step", "s01", "x: float32[8]"): 1,
        ("step", "s02", "x: float32[4]"): 1,
    }
    assert samples("compile_phase_seconds_total", stats) == {
        ("step", "trace"): 0.5,
        ("step", "lower"): 0.25,
        ("step", "backend_compile"): 2.0,
    }
    assert samples("last_cache_miss_timestamp_seconds", stats) == {("step",): 1_700_000_000.5}
    assert samples("program_info", stats) == {}


def test_functions_beyond_the_bound_are_summed_as_other() -> None:
    many = [
        made(
            function=f"f{n}",
            calls=1,
            seconds=PhaseSeconds(trace=0.1),
            last_miss_unix_seconds=n,
            misses_by_cause={("compile", "shape"): 2},
            misses_by_signature={f"s{n}": 2},
            abstracts={f"s{n}": "x"},
            miss_seconds={0.09: 1},
            dispatch={1e-5: 3},
        )
        for n in range(110)
    ]
    stats = process(*many)

    assert samples("calls_total", stats)["other",] == 10
    assert sum(samples("calls_total", stats).values()) == 110
    assert len(samples("calls_total", stats)) == 101
    assert samples("cache_misses_total", stats)["other", "compile", "shape"] == 20
    assert samples("signature_cache_misses_total", stats)["other", "other"] == 20
    assert not [labels for labels in samples("signature_info", stats) if "other" in labels]
    assert samples("compile_phase_seconds_total", stats)["other", "trace"] == pytest.approx(1.0)
    assert samples("last_cache_miss_timestamp_seconds", stats)["other",] == 109
    found = {sample.labels: sample for sample in MAKERS["jaxwatch_dispatch_duration_seconds"](Scrape(stats, Labels()))}
    assert found["other",].counts[-1] == 30  # type: ignore[union-attr]  # a histogram, as the name says


def test_signatures_beyond_the_bound_are_summed_as_other_and_counted() -> None:
    stats = process(made(misses_by_signature={**{f"s{n}": 1 for n in range(15)}, "other": 7}))
    scrape = Scrape(stats, Labels())
    found = {sample.labels: sample.value for sample in MAKERS["jaxwatch_signature_cache_misses_total"](scrape)}  # type: ignore[union-attr]  # a counter

    assert found["step", "other"] == 5 + 7
    assert len(found) == 11
    overflow = [sample for sample in MAKERS["jaxwatch_label_overflow_total"](scrape) if sample.labels == ("signature",)]
    assert overflow == [Sample(("signature",), 5)]


def test_overflows_of_the_registry_are_added() -> None:
    assert samples("label_overflow_total", process(label_overflows={"site": 4}))["site",] == 4


def test_an_abstract_is_cut_to_200_characters() -> None:
    found = samples("signature_info", process(made(abstracts={"s1": "x" * 2000}, misses_by_signature={"s1": 1})))

    assert [len(text) for _, _, text in found] == [200]


def test_sites_beyond_the_bound_are_summed_as_other() -> None:
    eager = {f"m.py:{n}": SiteStats(count=2, seconds=0.5) for n in range(104)} | {
        "other": SiteStats(count=1, seconds=0.25)
    }
    stats = process(eager=eager)

    assert samples("eager_compiles_total", stats)["other",] == 4 * 2 + 1
    assert samples("eager_compile_seconds_total", stats)["other",] == 4 * 0.5 + 0.25
    assert len(samples("eager_compiles_total", stats)) == 101


def test_names_that_differ_only_in_what_cannot_be_shown_are_summed() -> None:
    assert samples("exporter_errors_total", process(exporter_errors={"a\ud800": 1, "a?": 2})) == {("a?",): 3}
    eager = {"a\0:1": SiteStats(count=1, seconds=0), "a?:1": SiteStats(count=2, seconds=0)}
    assert samples("eager_compiles_total", process(eager=eager)) == {("a?:1",): 3}


def test_a_signatures_program_is_told_and_of_what_is_other_none() -> None:
    stats = made(fingerprints={"s01": ("aa", "cc"), "other": ("bb",)}, misses_by_signature={"s01": 1, "other": 2})

    assert samples("program_info", process(stats)) == {("step", "s01", "aa"): 1, ("step", "s01", "cc"): 1}


def test_the_last_miss_of_all_that_share_a_label_is_the_histograms_exemplar() -> None:
    old = made(last_miss_unix_seconds=5.0, last_miss_id=9, last_miss_seconds=2.0, miss_seconds={2.0: 1})
    new = made(last_miss_unix_seconds=6.0, last_miss_id=3, last_miss_seconds=0.5, miss_seconds={0.5: 1}, function="b")

    made_of = MAKERS["jaxwatch_compile_duration_seconds"](Scrape(process(old, new), Labels()))
    assert [one.exemplar for one in made_of if isinstance(one, Histogram)] == [
        Exemplar(9, 2.0, 5.0),
        Exemplar(3, 0.5, 6.0),
    ]
    assert histogram("compile_duration_seconds", process(made())).exemplar is None
