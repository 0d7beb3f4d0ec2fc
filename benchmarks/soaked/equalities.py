"""Which counts must be equal in the end. All are exact: none is compared within a tolerance."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import jaxwatch
from benchmarks.soaked.counts import Own
from benchmarks.soaked.logs import Logs
from benchmarks.soaked.outlets import Outlets
from benchmarks.soaked.serial import Serial
from jaxwatch import _session, _subscribe
from jaxwatch._registry import REGISTRY
from jaxwatch._stats import FunctionStats, ProcessStats

# grad and vmap compile under names of their own; what is compiled ahead of time is no miss of a call.
_OTHERS_COMPILE = {"loss", "ahead"}
# JAX finds the trace of an equal function, a method or partial of the same parts: then there is a trace and no body.
_FOUND_EQUAL = {"Model.scaled", "_shifted"}
# Under grad and vmap a call is neither a hit nor always a miss; library is attached, where departures are not seen.
_NO_DISPATCH = {"loss", "library"}


@dataclass(frozen=True, slots=True)
class Equality:
    """One statement on counts."""

    what: str
    compared: int  # the sum of what was compared
    wrong: str  # "" where it holds

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def equal(what: str, **counts: Any) -> Equality:
    """State that all of these are the same; numbers, or mappings of names to numbers other than 0."""
    told = {name: _without_zeros(value) for name, value in counts.items()}
    first = next(iter(told.values()))
    compared = sum(first.values()) if isinstance(first, dict) else int(first)
    if all(value == first for value in told.values()):
        return Equality(what, compared, "")
    if isinstance(first, dict):
        names = {name for value in told.values() for name in value}
        told = {
            name: {source: value.get(name, 0) for source, value in told.items()}
            for name in sorted(names)
            if len({value.get(name, 0) for value in told.values()}) > 1
        }
    return Equality(what, compared, str(told)[:600])


def in_order(what: str, **counts: Mapping[str, int]) -> Equality:
    """State that each name's count is at most that of the next source."""
    columns = list(counts.values())
    wrong = {
        name: {source: count.get(name, 0) for source, count in counts.items()}
        for name in sorted({name for column in columns for name in column})
        if any(low.get(name, 0) > high.get(name, 0) for low, high in itertools.pairwise(columns))
    }
    return Equality(what, sum(columns[0].values()), str(wrong)[:600] if wrong else "")


def _without_zeros(value: Any) -> Any:
    return {name: count for name, count in value.items() if count} if isinstance(value, Mapping) else value


def equalities(own: Own, serial: Serial, outlets: Outlets, watched: Mapping[str, Any]) -> list[Equality]:
    """Return all, once nothing is under way any more; ``watched``: the functions that are watched throughout."""
    scraped = _Scraped(outlets.scrape())
    _session.write_stats()
    outlets.logs.leave(outlets.path)
    outlets.logs.count()
    process = REGISTRY.snapshot()
    stats = {one.function: one for one in process.functions}
    return [
        *_of_functions(own, stats, scraped, outlets.logs, {name: jaxwatch.stats(f) for name, f in watched.items()}),
        *_of_phases(own, process, stats, scraped, outlets.logs),
        *_of_guards(own, stats, scraped, outlets.logs),
        *_of_outlets(own, serial, process, outlets),
    ]


class _Scraped:
    """Samples of the last scrape, added up."""

    def __init__(self, samples: Mapping[Any, float]) -> None:
        self._samples = samples

    def by(self, name: str, label: str) -> dict[str, int]:
        """Return label's value → sum of the samples of that name."""
        found: Counter[str] = Counter()
        for (sample, labels), value in self._samples.items():
            if sample == name:
                found[dict(labels)[label]] += int(value)
        return dict(found)


def _each(stats: Mapping[str, FunctionStats], read: Callable[[FunctionStats], int], leave: set[str]) -> dict[str, int]:
    return {name: read(one) for name, one in stats.items() if name not in leave}


def _left_out(counts: Mapping[str, int], leave: set[str]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if name not in leave}


def _of_functions(
    own: Own,
    stats: Mapping[str, FunctionStats],
    scraped: _Scraped,
    logs: Logs,
    watched: Mapping[str, FunctionStats],
) -> list[Equality]:
    raised, mismatched, rejected = own.raised, own.mismatched, own.rejected
    ended = {
        name: sum(one.dispatch.values())
        + sum(count for (layer, _), count in one.misses_by_cause.items() if layer != "dispatch")
        + sum(one.inlined.values())
        + raised[name]
        + mismatched[name]
        + rejected[name]
        for name, one in stats.items()
    }
    return [
        equal(
            "calls of each function: own, stats, metrics, log",
            own=own.calls,
            stats=_each(stats, lambda one: one.calls, set()),
            metrics=scraped.by("jaxwatch_calls_total", "function"),
            log={name: record["calls"] for name, record in logs.stats.items()},
        ),
        equal(
            "misses of each function: stats, metrics, the log's figures, the log's events",
            stats=_each(stats, lambda one: one.misses, set()),
            metrics=scraped.by("jaxwatch_cache_misses_total", "function"),
            log={name: record["misses"] for name, record in logs.stats.items()},
            events=logs.misses,
        ),
        equal(
            "jaxwatch.stats(f) and the process's figures: calls",
            one={name: one.calls for name, one in watched.items()},
            process={name: stats[name].calls for name in watched},
        ),
        equal(
            "calls = hits + misses + inlined + failed",
            calls=_left_out(own.calls, _NO_DISPATCH),
            ended=_left_out(ended, _NO_DISPATCH),
        ),
        equal(
            "hits of each function: stats, metrics, log",
            stats=_each(stats, lambda one: sum(one.dispatch.values()), set()),
            metrics=scraped.by("jaxwatch_dispatch_duration_seconds_count", "function"),
            log={name: sum(record["dispatch"].values()) for name, record in logs.stats.items()},
        ),
        equal(
            "calls that raised in their trace: own, stats, metrics, log",
            own=own.raised + own.mismatched,
            stats=_each(stats, lambda one: one.trace_errors, set()),
            metrics=scraped.by("jaxwatch_trace_errors_total", "function"),
            log=logs.errors,
        ),
    ]


def _of_phases(
    own: Own, process: ProcessStats, stats: Mapping[str, FunctionStats], scraped: _Scraped, logs: Logs
) -> list[Equality]:
    def jax(phase: str, leave: set[str]) -> dict[str, int]:
        return {
            name: count for (kind, name), count in own.phases.items() if kind == phase and name in stats.keys() - leave
        }

    eager = sum(site.count for site in process.eager.values())
    untraced = _FOUND_EQUAL | _OTHERS_COMPILE | {"inner", "library"}  # inlined; called when it was not attached
    return [
        in_order(  # JAX tells of traces too for which it finds an earlier one, where no body runs
            "bodies that ran ≤ traces that stats and failed calls tell ≤ traces that JAX tells",
            bodies=_left_out(own.bodies, untraced),
            told={name: one.traces + own.raised[name] for name, one in stats.items() if name not in untraced},
            jax=jax("trace", untraced),
        ),
        equal(
            "lowerings of each function: jax.monitoring, stats",
            jax=jax("lower", _OTHERS_COMPILE | {"library"}),
            stats=_each(stats, lambda one: one.lowerings, _OTHERS_COMPILE | {"library"}),
        ),
        equal(
            "compiles of each function: jax.monitoring, stats",
            jax=jax("compile", _OTHERS_COMPILE | {"library"}),
            stats=_each(stats, lambda one: one.compiles, _OTHERS_COMPILE | {"library"}),
        ),
        equal(
            "all compiles: jax.monitoring; of calls, outside of any, ahead of time",
            jax=sum(count for (phase, _), count in own.phases.items() if phase == "compile"),
            told=sum(one.compiles for one in stats.values()) + eager + own.ahead_compiles,
        ),
        equal(
            "compiles outside of calls: figures, metrics, log",
            figures=eager,
            metrics=sum(scraped.by("jaxwatch_eager_compiles_total", "site").values()),
            log=logs.by_event["eager_compile"],
        ),
    ]


def _of_guards(own: Own, stats: Mapping[str, FunctionStats], scraped: _Scraped, logs: Logs) -> list[Equality]:
    found: Counter[str] = Counter()
    for one in stats.values():
        found.update(one.violations)
    return [
        equal(
            "misses that a guard forbids: foretold, stats, metrics, log",
            foretold=own.forbidden,
            stats=found,
            metrics=scraped.by("jaxwatch_retrace_violations_total", "action"),
            log=logs.violations,
        ),
        equal(
            "jaxwatch's warnings by slug",
            heard=own.told,
            expected={"retrace": own.forbidden["warn"], "hook-failed": 1},
        ),
    ]


def _of_outlets(own: Own, serial: Serial, process: ProcessStats, outlets: Outlets) -> list[Equality]:
    logs, called = outlets.logs, outlets.callbacks.called
    published = sum(logs.by_event[kind] for kind in _subscribe.PUBLISHED)
    hooks = process.dropped.get("hook_call", 0)
    return [
        equal(
            "events: the log's, those that the three callbacks got or that are counted as dropped",
            log=published,
            quick=called["quick"],
            raising=called["raising"],
            slow=called["slow"] + hooks,
        ),
        equal(
            "what exporters raised, by name",
            counted=process.exporter_errors,
            raised={"raising": called["raising"]},
        ),
        equal(
            "dropped besides: events, log lines",
            found=process.dropped.get("event", 0) + process.dropped.get("log_line", 0),
            none=0,
        ),
        equal("folded into other", found=process.label_overflows, none={}),
        equal("lines of the log that are no whole JSON", found=logs.malformed, none=0),
        equal("ids of misses, each once: events, the last id", events=sum(logs.misses.values()), last=logs.last_id),
        equal("ids of misses without a gap", whole=logs.ids_are_whole, true=True),
        equal("counters that went down from one scrape to the next", found=outlets.fell, none=0),
        equal("failures of what reads and disturbs", found=len(outlets.failures), none=0),
        equal(
            "forked children: ended well, and told of the failed trace under their own pid",
            forked=own.operations["fork"],
            well=serial.children["ended well"],
            log=logs.of_children["trace_error"],
        ),
    ]
