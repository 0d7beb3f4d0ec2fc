"""Figures → Markdown."""

import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax

from benchmarks.bounds import Bound


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine() -> dict[str, str]:
    """Return what the figures depend on."""
    return {
        "jax": str(jax.__version__),
        "python": sys.version.split()[0],
        "processor": _processor(),
        "platform": platform.platform(),
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        return platform.processor()
    return f"{len(names)} x {names[0]}" if names else platform.processor()


def ratios(first: str, rows: Mapping[Any, Mapping[str, Any]], reference: str) -> str:
    """Return the table of rows → columns → figures, against the column ``reference``, whose nanoseconds are told."""
    columns = [name for name in next(iter(rows.values())) if name != reference]
    lines = [
        [str(name), f"{row[reference].nanoseconds:,.0f} ns", *(row[column].cell() for column in columns)]
        for name, row in rows.items()
    ]
    return table([first, reference, *columns], lines)


def section(name: str, figures: Any) -> str:
    """Return one section of the report."""
    return f"### {name[0].upper()}{name[1:]}\n\n{_SECTIONS[name](figures)}\n"


def _breakdown(found: Any) -> str:
    def rows(figures: Mapping[str, Any]) -> str:
        lines = ([name, f"{figure.nanoseconds:.1f} ns", figure.cell()] for name, figure in figures.items())
        return table(["scalar call", "median", "against the first"], lines)

    reads = (
        f"One clock read alone: {found.read_nanoseconds:.1f} ns; clock_gettime: {found.system_read_nanoseconds:.1f} ns."
    )
    return (
        f"In place, around JAX's own call:\n\n{rows(found.in_place)}\n\n"
        f"Alone, with nothing in the place of JAX's call:\n\n{rows(found.alone)}\n\n{reads}"
    )


def _misses(programs: Mapping[str, Any]) -> str:
    head = ["program", "jaxwatch, a miss", "compile reported", "share", "worst", "misses"]
    return table(
        head,
        (
            [
                name,
                f"{share.microseconds:,.0f} µs",
                f"{share.compile_seconds * 1e3:,.1f} ms",
                f"{share.share:.2%}",
                f"{share.worst:.2%}",
                str(share.misses),
            ]
            for name, share in programs.items()
        ),
    )


def _import(took: Any) -> str:
    rows = [
        ["`import jaxwatch`", f"{took.package:.1f} ms"],
        [
            "`import jaxwatch; jaxwatch.jit`: all that watches, the probe of the native core included",
            f"{took.engine:.1f} ms",
        ],
        ["whole process with it, less one without, in pairs", f"{took.process:.0f} ± {took.noise:.0f} ms"],
    ]
    return table(["jax imported already", "median"], rows)


def _memory(sizes: Any) -> str:
    rows = [
        ["jax.jit's own, per function never called", f"{sizes.plain_function:,.0f}"],
        ["jaxwatch, per function", f"{sizes.function:,.0f}"],
        ["the twin, per function", f"{sizes.twin_function:,.0f}"],
        ["per signature, scalar", f"{sizes.scalar_signature:,.0f}"],
        ["per signature, 100 leaves", f"{sizes.hundred_leaves_signature:,.0f}"],
    ]
    return table(["what", "bytes"], rows)


def _flat(flat: Any) -> str:
    head = ["distinct keys", "kept", "dropped, counted", "resident at half", "resident at the end", "seconds"]
    row = [f"{flat.keys:,}", f"{flat.kept:,}", f"{flat.dropped:,}", f"{flat.kib[0]:,} KiB", f"{flat.kib[-1]:,} KiB"]
    return table(head, [[*row, f"{flat.seconds:.0f}"]])


def _scrape(scrapes: Mapping[str, Any]) -> str:
    head = ["1,000 functions", "scrape", "against formatting the same samples", "series", "size"]
    rows = (
        [name, f"{s.milliseconds:,.0f} ms", f"{s.formatting.ratio:.2f}", f"{s.series:,}", f"{s.kilobytes:,.0f} kB"]
        for name, s in scrapes.items()
    )
    return table(head, rows)


def _under_load(found: Any) -> str:
    low, high = found.against_own.quartiles
    text = (
        f"{found.scrape_milliseconds:,.0f} ms a scrape of {found.series:,} series while 8 threads make "
        f"{found.calls_per_second:,.0f} calls a second; against prometheus_client's own objects with "
        f"{found.own_series:,}: {found.against_own.ratio:.2f} [{low:.2f}, {high:.2f}]\n\n"
    )
    head = ["in each window", "dispatch p50", "p99", "time a call, against no scrape"]
    rows = (
        [name, f"{p50 * 1e6:,.1f} µs", f"{p99 * 1e6:,.1f} µs", found.throughput[name].cell()]
        for name, (p50, p99) in found.latency.items()
    )
    return text + table(head, rows)


def _fleet(found: Any) -> str:
    text = (
        f"{found.hosts:,} hosts of {found.series_of_a_host:,} series each: {found.head_series:,} series, "
        f"{found.samples_per_second:,.0f} samples a second, {found.resident_megabytes:,.0f} MB resident; all recording "
        f"rules take {found.rules_seconds:.2f} s.\n\n"
    )
    rows = ([one.dashboard, one.title, f"{one.seconds:.2f} s", one.failed] for one in found.panels)
    return text + table(["dashboard", "panel", "its queries", "failed"], rows)


def _columns(found: Any) -> str:
    head = ["", "seconds", "peak memory", "size"]
    rows = [
        [f"{found.events:,} events of {found.hosts:,} hosts, logs", "", "", f"{found.log_megabytes:,.0f} MB"],
        [
            "`jaxwatch export --parquet`",
            f"{found.export_seconds:,.1f}",
            f"{found.export_peak_megabytes:,.0f} MB",
            f"{found.parquet_megabytes:,.0f} MB",
        ],
        ["`jaxwatch report DIR`", f"{found.report_seconds:,.1f}", f"{found.report_peak_megabytes:,.0f} MB", ""],
        [f"`jaxwatch report LOG…`, of {found.python_events:,} events", f"{found.python_seconds:,.1f}", "", ""],
    ]
    return table(head, rows)


def _reported(found: Mapping[str, Any]) -> str:
    rows = [
        [
            f"{one.events:,} events, {one.mix}, {one.form}",
            f"{one.log_megabytes:,.0f} MB",
            f"{one.seconds:,.1f}",
            f"{one.cpu_seconds:,.1f}",
            f"{one.peak_megabytes:,.0f} MB",
        ]
        for name, one in found.items()
        if name != "page"
    ]
    text = table(["`jaxwatch report`", "size", "seconds", "of the CPU", "peak memory"], rows)
    if (page := found.get("page")) is not None:
        told = f"{page.misses:,} misses: {page.page_megabytes:.1f} MB, shown after {page.seconds:.1f} s"
        text += f"\nThe page of a run with {told} in Chromium, {page.cpu_seconds:.1f} s of the CPU.\n"
    return text


def _grown(found: Any) -> str:
    def seconds(value: float) -> str:
        return f"{value:,.2f} s"

    rows = (
        [name, f"{p.equations:,}", seconds(p.seconds), seconds(p.expected), seconds(p.saved), p.unseen, p.told, p.kept]
        for name, p in found.promises.items()
    )
    head = ["program, blocks", "equations", "compiling", "expected gain", "gain", "unseen", "told", "kept"]
    text = table(head, ([str(cell) for cell in row] for row in rows))
    lines = (
        [name, phase, f"{g.exponent:.2f}", f"{g.low:.2f} to {g.high:.2f}", f"{g.floor_seconds * 1e3:,.0f} ms"]
        for name, phases in found.growth.items()
        for phase, g in phases.items()
    )
    return f"{text}\n\n{table(['program', 'phase', 'exponent', 'or', 'floor'], lines)}"


def _advised(programs: Any) -> str:
    head = [
        "program",
        "recommended",
        "best, measured again",
        "ratio",
        "advice took",
        "measured again, without jaxwatch",
    ]
    rows = (
        [
            each.program,
            each.recommended or "no difference",
            each.best,
            f"{each.ratio:.2f}",
            f"{each.advice_seconds:.0f} s",
            ", ".join(f"{scope}: {seconds:.2f} s" for scope, seconds in each.seconds.items()),
        ]
        for each in programs
    )
    return table(head, rows)


def _bodies(found: Any) -> str:
    rows = (
        [name, *[f"{value * 1e3:,.0f} ms" for value in (f.plain, f.shared, f.expected)], f"{f.compile_ratio:.2f}"]
        for name, f in found.items()
    )
    return table(["program", "trace and lower", "with a jit within", "expected gain", "XLA's compile, ratio"], rows)


def _exact(found: Mapping[str, int]) -> str:
    return table(list(found), [[f"{value:,}" for value in found.values()]])


def checked(kept: Iterable[Bound]) -> str:
    """Return the table of bounds."""
    rows = ([b.what, f"{b.value:,.4g}", f"{b.most:,.4g}", b.noise, "yes" if b.kept else "**no**"] for b in kept)
    return table(["bound", "measured", "at most", "noise", "kept"], rows)


def _inner_jit(programs: Mapping[str, Any]) -> str:
    """Return the table of an inner jit against none: seconds without, ratio with, and what one call of it adds."""
    phases = list(next(iter(programs.values())).ratios)
    rows = (
        [
            name,
            *(
                f"{1e3 * saved.plain_seconds[phase]:,.1f} ms, {saved.ratios[phase]:.2f}, "
                f"{saved.added_microseconds[phase]:+,.0f} µs"
                for phase in phases
            ),
        ]
        for name, saved in programs.items()
    )
    return table(["inner jit, without → with, by call of it", *phases], rows)


_SECTIONS: Mapping[str, Callable[[Any], str]] = {
    "inner jit": _inner_jit,
    "hot path": lambda rows: ratios("call", rows, "jax.jit"),
    "threads": lambda rows: ratios("threads", rows, "jax.jit"),
    "threads, exact": _exact,
    "misses": _misses,
    "import": _import,
    "memory": _memory,
    "memory, flat": _flat,
    "scrape": _scrape,
    "scrape, under load": _under_load,
    "fleet": _fleet,
    "columns": _columns,
    "report": _reported,
    "growth": _grown,
    "advise": _advised,
    "bodies": _bodies,
    "breakdown": _breakdown,
    "soak": lambda found: str(found.table()),
}
