"""From figures to the samples of each metric family: plain data in, plain data out."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeVar

from jaxwatch import _limits
from jaxwatch._histogram import SIZE, SUB_BITS, upper_seconds
from jaxwatch._labels import Labels, clean, shortened
from jaxwatch._metrics import FAMILIES, OTHER, REASONS_AT_0, VALUES, Family
from jaxwatch._stats import FunctionStats, ProcessStats
from jaxwatch.events import Layer, Reason

# All that lasted longer than the fine buckets reach is in the last of them: no classic bucket can be named for it.
_ENDLESS = upper_seconds(SIZE - 1)
# Middle of a fine bucket, by its upper bound. The narrowest lower bound is upper / (1 + 1/16), so that the middle is at
# most 3.1 % away from anything in the bucket, and a sum of them from the true one.
_MIDDLE = (1 + 1 / (1 + 2**-SUB_BITS)) / 2
# Every function's misses have these children from the start, besides those that have come up in the process.
_CAUSES_AT_0: frozenset[tuple[Layer, Reason]] = frozenset(("compile", reason) for reason in REASONS_AT_0)


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a counter or gauge, by the values of its family's labels."""

    labels: tuple[str, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One of the values that a histogram counted: the miss with that ``id`` in the event log."""

    miss: int
    seconds: float
    unix_seconds: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """One histogram: ``counts`` are cumulative, one for each bound of the family and the last for ``+Inf``."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    seconds: float
    exemplar: Exemplar | None = None


class Scrape:
    """What one scrape found: the figures, and the functions by label; all that share a label are summed."""

    def __init__(self, stats: ProcessStats, labels: Labels) -> None:
        self.stats = stats
        self.labels = labels
        self.functions: dict[str, list[FunctionStats]] = {}
        for function in stats.functions:
            self.functions.setdefault(labels.function(function), []).append(function)


Samples = Iterable[Sample | Histogram]
Key = TypeVar("Key", bound=Hashable)
Maker = Callable[[Scrape], Samples]


def classic(bounds: tuple[float, ...], fine: Mapping[float, int]) -> tuple[int, ...]:
    """Return the cumulative counts of classic buckets for those of fine ones, given by their upper bounds.

    A fine bucket counts into the first classic one that holds all of it: a duration up to 6 % below a classic bound may
    be counted above it, never one above it below.
    """
    cells = [0] * (len(bounds) + 1)
    for upper, count in fine.items():
        cells[bisect_left(bounds, upper) if upper < _ENDLESS else -1] += count
    return tuple(accumulate(cells))


def _summed(field: str) -> Maker:
    def make(scrape: Scrape) -> Iterator[Sample]:
        for label, group in scrape.functions.items():
            yield Sample((label,), sum(getattr(stats, field) for stats in group))

    return make


def _misses(scrape: Scrape) -> Iterator[Sample]:
    causes = _CAUSES_AT_0.union(*(stats.misses_by_cause for stats in scrape.stats.functions))
    for label, group in scrape.functions.items():
        counts = _added(stats.misses_by_cause for stats in group)
        for layer, reason in sorted(causes):
            yield Sample((label, layer, reason), counts.get((layer, reason), 0))


def _signature_misses(scrape: Scrape) -> Iterator[Sample]:
    for label, group in scrape.functions.items():
        if label == OTHER:  # many, and none is told by itself
            scrape.labels.fold_signatures(sum(len(stats.misses_by_signature) for stats in group))
            if misses := sum(sum(stats.misses_by_signature.values()) for stats in group):
                yield Sample((OTHER, OTHER), misses)
            continue
        counts: Counter[str] = Counter()
        for stats in group:
            for signature, count in stats.misses_by_signature.items():
                counts[scrape.labels.signature(label, signature)] += count
        for signature, count in counts.items():
            yield Sample((label, signature), count)


def _named(scrape: Scrape) -> Iterator[tuple[str, list[FunctionStats]]]:
    return ((label, group) for label, group in scrape.functions.items() if label != OTHER)


def _abstracts(scrape: Scrape) -> Iterator[Sample]:
    for label, group in _named(scrape):
        texts: dict[str, str] = {}
        for stats in group:
            for signature, abstract in stats.abstracts.items():
                texts.setdefault(scrape.labels.signature(label, signature), abstract)
        texts.pop(OTHER, None)
        for signature, abstract in texts.items():
            yield Sample((label, signature, shortened(abstract, _limits.ABSTRACT_LABEL_CHARACTERS)), 1)


def _programs(scrape: Scrape) -> Iterator[Sample]:
    for label, group in _named(scrape):
        found = {
            (scrape.labels.signature(label, signature), shortened(fingerprint, _limits.NAME_CHARACTERS))
            for stats in group
            for signature, fingerprints in stats.fingerprints.items()
            for fingerprint in fingerprints[: _limits.LABEL_FINGERPRINTS]
        }
        for signature, fingerprint in sorted(found):
            if signature != OTHER:
                yield Sample((label, signature, fingerprint), 1)


def _compile_durations(scrape: Scrape) -> Iterator[Histogram]:
    bounds = _family("jaxwatch_compile_duration_seconds").buckets
    for label, group in scrape.functions.items():
        counts = classic(bounds, _added(stats.miss_seconds for stats in group))
        yield Histogram((label,), counts, math.fsum(stats.seconds.total for stats in group), _last_miss(group))


def _last_miss(group: Iterable[FunctionStats]) -> Exemplar | None:
    last = max(group, key=lambda stats: stats.last_miss_unix_seconds)
    if not last.last_miss_id:
        return None
    return Exemplar(last.last_miss_id, last.last_miss_seconds, last.last_miss_unix_seconds)


def _dispatch_durations(scrape: Scrape) -> Iterator[Histogram]:
    bounds = _family("jaxwatch_dispatch_duration_seconds").buckets
    for label, group in scrape.functions.items():
        dispatch = _added(stats.dispatch for stats in group)
        # fsum: rounded once, so the sum cannot go down as counts go up, in whatever order the buckets come.
        seconds = math.fsum(upper * _MIDDLE * count for upper, count in dispatch.items())
        yield Histogram((label,), classic(bounds, dispatch), seconds)


def _phases(scrape: Scrape) -> Iterator[Sample]:
    for label, group in scrape.functions.items():
        for phase in VALUES["phase"]:
            yield Sample((label, phase), math.fsum(getattr(stats.seconds, phase) for stats in group))


def _last_misses(scrape: Scrape) -> Iterator[Sample]:
    for label, group in scrape.functions.items():
        yield Sample((label,), max(stats.last_miss_unix_seconds for stats in group))


def _violations(scrape: Scrape) -> Iterator[Sample]:
    for label, group in scrape.functions.items():
        counts = _added(stats.violations for stats in group)
        for action in VALUES["action"]:
            yield Sample((label, action), counts.get(action, 0))


def _eager_compiles(scrape: Scrape) -> Iterator[Sample]:
    counts: Counter[str] = Counter()
    for site, stats in scrape.stats.eager.items():
        counts[scrape.labels.site(site)] += stats.count
    for site, count in counts.items():
        yield Sample((site,), count)


def _eager_seconds(scrape: Scrape) -> Iterator[Sample]:
    seconds: dict[str, list[float]] = {}
    for site, stats in scrape.stats.eager.items():
        seconds.setdefault(scrape.labels.site(site), []).append(stats.seconds)
    for site, parts in seconds.items():
        yield Sample((site,), math.fsum(parts))


def _closed(label: str, field: str) -> Maker:
    def make(scrape: Scrape) -> Iterator[Sample]:
        found: Mapping[str, float] = getattr(scrape.stats, field)
        for value in VALUES[label]:
            yield Sample((value,), found.get(value, 0))

    return make


def _overflows(scrape: Scrape) -> Iterator[Sample]:
    # By now every other family has asked for its labels: this one stands behind them in the table.
    folded = scrape.labels.folded()
    for label in VALUES["label"]:
        yield Sample((label,), scrape.stats.label_overflows.get(label, 0) + folded.get(label, 0))


def _exporter_errors(scrape: Scrape) -> Iterator[Sample]:
    counts: Counter[str] = Counter()
    for exporter, count in scrape.stats.exporter_errors.items():
        counts[clean(exporter)] += count
    for exporter, count in counts.items():
        yield Sample((exporter,), count)


def _added(parts: Iterable[Mapping[Key, int]]) -> Mapping[Key, int]:
    """Return the sums by key; as ``Counter.update``, at a third of its price: "other" may stand for thousands."""
    total: dict[Key, int] = {}
    for part in parts:
        for key, count in part.items():
            total[key] = total.get(key, 0) + count
    return total


def _family(name: str) -> Family:
    return next(family for family in FAMILIES if family.name == name)


MAKERS: Mapping[str, Maker] = {
    "jaxwatch_calls_total": _summed("calls"),
    "jaxwatch_cache_misses_total": _misses,
    "jaxwatch_signature_cache_misses_total": _signature_misses,
    "jaxwatch_signature_info": _abstracts,
    "jaxwatch_program_info": _programs,
    "jaxwatch_signatures": _summed("signatures"),
    "jaxwatch_compile_duration_seconds": _compile_durations,
    "jaxwatch_compile_phase_seconds_total": _phases,
    "jaxwatch_dispatch_duration_seconds": _dispatch_durations,
    "jaxwatch_eager_compiles_total": _eager_compiles,
    "jaxwatch_eager_compile_seconds_total": _eager_seconds,
    "jaxwatch_persistent_cache_requests_total": _closed("result", "disk"),
    "jaxwatch_last_cache_miss_timestamp_seconds": _last_misses,
    "jaxwatch_retrace_violations_total": _violations,
    "jaxwatch_trace_errors_total": _summed("trace_errors"),
    "jaxwatch_dropped_total": _closed("what", "dropped"),
    "jaxwatch_label_overflow_total": _overflows,
    "jaxwatch_exporter_errors_total": _exporter_errors,
    "jaxwatch_overhead_seconds_total": _closed("part", "overhead_seconds"),
}
"""Family → what makes its samples; all but ``jaxwatch_build_info``, which is not made of figures."""
