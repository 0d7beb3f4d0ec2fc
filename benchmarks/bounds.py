"""What ``--check`` holds the figures to: the bounds that README promises, each beside the noise of the same run."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from benchmarks import cases, report, variants

HOT = {cases.SCALAR: 1.02, cases.HUNDRED: 1.01}  # against plain jax.jit
MISS_MICROSECONDS = 300.0  # of a scalar program
MISS_SHARE = 0.01  # of the compile of a training step
READING_SHARE = 0.1  # of trace and lowering alone, of a program that XLA then compiles for minutes
IMPORT_MILLISECONDS = 30.0
ADVICE = 1.05  # the recommended scope against the best, both measured again
SCRAPE = 1.3  # against prometheus_client's own objects with as many series
SOAK_KIB = 16 * 1024  # over the last two thirds
EARLIER = "earlier keys"  # in the names of programs whose misses are compared with all keys that are kept


class Bound(NamedTuple):
    """One figure, what it may be, and how exact it is."""

    what: str
    value: float
    most: float
    noise: str

    @property
    def kept(self) -> bool:
        """Whether the figure is within."""
        return self.value <= self.most


def bounds(found: Mapping[str, Any]) -> list[Bound]:
    """Return all bounds of what was measured, by section."""
    kept = [*_hot(found.get("hot path", {})), *_misses(found.get("misses", {}))]
    if (took := found.get("import")) is not None:
        noise = f"±{took.noise:.0f} ms of a whole process"
        kept.append(Bound("import jaxwatch, ms", took.package, IMPORT_MILLISECONDS, noise))
    if (flat := found.get("memory, flat")) is not None:
        kept.append(Bound("keys kept of one function", flat.kept, flat.keys - flat.dropped, "none: exact"))
        kept.append(Bound("growth over the second half of the keys, KiB", flat.growth, 1024.0, "one arena of Python's"))
    if (load := found.get("scrape, under load")) is not None:
        low, high = load.against_own.quartiles
        kept.append(Bound("scrape under load, ratio", load.against_own.ratio, SCRAPE, f"[{low:.2f}, {high:.2f}]"))
    kept += _reports(found.get("report", {}))
    for each in found.get("advise", ()):
        noise = f"{each.rounds} runs of each scope"
        kept.append(Bound(f"advice on {each.program}, ratio to the best", each.ratio, ADVICE, noise))
    if (exact := found.get("threads, exact")) is not None:
        lost = 2 * exact["made"] - exact["counted"] - exact["timed"]
        kept.append(Bound("calls of 16 threads miscounted", abs(lost), 0, "none: exact"))
    if (soaked := found.get("soak")) is not None:
        kept += _soak(soaked)
    return kept


def _reports(found: Mapping[str, Any]) -> list[Bound]:
    kept = []
    for name, one in found.items():
        if name == "page":
            noise = f"{one.seconds:.1f} s by the clock"
            kept.append(Bound(f"page of {one.misses:,} misses, CPU s", one.cpu_seconds, report.LOAD_SECONDS, noise))
            continue
        if one.mix != report.WORST:
            most = report.SECONDS * one.events / report.EVENTS + report.START_SECONDS
            noise = f"{one.seconds:.1f} s by the clock"
            kept.append(Bound(f"report on {one.events:,} events, {name}, CPU s", one.cpu_seconds, most, noise))
        kept.append(Bound(f"report, {name}, peak MB", one.peak_megabytes, report.MEGABYTES, "1 MB"))
    return kept


def _soak(found: Any) -> list[Bound]:
    exact = "none: exact"
    noise = f"jax.jit alone: {found.plain_growth_kib:+,.0f} KiB"
    return [
        Bound("soak, rounds with other results", found.rounds - found.same_results, 0, exact),
        Bound("soak, counts that are not equal", len(found.broken), 0, exact),
        Bound("soak, objects of the program kept alive", found.alive, 0, exact),
        Bound("soak, descriptors and threads left", len(found.left_open), 0, exact),
        Bound("soak, warnings that jax.jit alone does not give", len(found.other_warnings), 0, exact),
        Bound("soak, growth beyond jax.jit's, KiB", found.growth_kib, SOAK_KIB, noise),
    ]


def _hot(rows: Mapping[str, Any]) -> list[Bound]:
    found = []
    for name, most in HOT.items():
        if (row := rows.get(name)) is not None:
            noise = row[variants.AGAIN]
            low, high = noise.quartiles
            text = f"{noise.ratio:.3f} [{low:.3f}, {high:.3f}]"
            found.append(Bound(f"hot path, {name}, ratio", row[variants.NATIVE].ratio, most, text))
    return found


def _misses(programs: Mapping[str, Any]) -> list[Bound]:
    found = []
    for name, share in programs.items():
        if name.startswith("scalar"):
            found.append(Bound(f"miss, {name}, µs", share.microseconds, MISS_MICROSECONDS, f"of {share.misses} misses"))
        elif name.startswith("reading"):
            found.append(Bound(f"{name}, share", share.share, READING_SHARE, f"worst: {share.worst:.2%}"))
        else:
            worst = f"worst of {share.misses}: {share.worst:.2%}"
            found.append(Bound(f"miss, {name}, share of its compile", share.share, MISS_SHARE, worst))
    return found
