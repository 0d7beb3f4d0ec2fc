"""Write the dashboards: ``python grafana/build_dashboards.py``. Their JSON is committed; a test compares the two.

Every panel has a description and a unit; the data source is a variable, and so are job, instance and function.
"""

# ruff: noqa: INP001 -- a script and its parts, no package

import json
import sys
from pathlib import Path

from panels import (
    Json,
    areas,
    bar,
    bars,
    dashboard,
    laid_out,
    lines,
    override,
    query,
    series,
    source_variable,
    stat,
    table,
    thresholds,
    variable,
)

FOLDER = Path(__file__).parent / "dashboards"
OVERVIEW = "jaxwatch-overview"

PROCESS = 'job=~"$job",instance=~"$instance"'
FUNCTION = f'{PROCESS},function=~"$function"'
# What a user can avoid: not the first call of a function, and not a call that merely left the fast path.
AVOIDABLE = f'{FUNCTION},reason!="first_call",layer!="dispatch"'

PROCESSES = f"count(jaxwatch_build_info{{{PROCESS}}})"
RECOMPILED = f"sum(increase(jaxwatch_cache_misses_total{{{AVOIDABLE}}}[5m]))"
SOME = 0.5  # increase() extrapolates: one recompilation may read as 0.9

Row = list[tuple[Json, int]]  # panels with their widths, of 24


def dispatch_quantile(q: float) -> str:
    """Return the query of a quantile of the dispatch time, over all chosen functions and processes."""
    rate = f"rate(jaxwatch_dispatch_duration_seconds_bucket{{{FUNCTION}}}[$__rate_interval])"
    return f"histogram_quantile({q}, sum by (le) ({rate}))"


def alarms() -> Row:
    """Return the panels that say whether anything is wrong, and since when."""
    recompiled = stat(
        "Recompilations, last 5 minutes",
        "Calls that were traced or compiled again; first calls do not count. A healthy job has 0 once it is warm.",
        RECOMPILED,
        {"unit": "short", "decimals": 0, "min": 0, "thresholds": thresholds(SOME, 10)},
        colorMode="background",
        graphMode="area",
    )
    since = stat(
        "Recompiling since",
        "The first moment of the chosen time range at which the number at the left was above 0; nothing where it is 0 "
        "now.",
        f"1000 * min_over_time(timestamp({RECOMPILED} > {SOME})[$__range:$__interval]) and {RECOMPILED} > {SOME}",
        {"unit": "dateTimeFromNow", "noValue": "not now", "thresholds": thresholds(colors=("text",))},
    )
    share = stat(
        "Wall time spent compiling",
        "Share of the wall time in which a process traces, lowers and compiles, watched functions and eager operations "
        "together; mean over the processes. Above 100 % where threads compile at once.",
        f"(sum(rate(jaxwatch_compile_phase_seconds_total{{{FUNCTION}}}[$__rate_interval])) + "
        f"(sum(rate(jaxwatch_eager_compile_seconds_total{{{PROCESS}}}[$__rate_interval])) or vector(0))) / {PROCESSES}",
        {"unit": "percentunit", "decimals": 1, "min": 0, "thresholds": thresholds(0.05, 0.2)},
        graphMode="area",
    )
    return [(recompiled, 5), (since, 4), (share, 5)]


def state() -> Row:
    """Return the panels that say how fast calls from the cache are, and how warm the disk cache is."""
    dispatch = stat(
        "Dispatch, p99",
        "99 of 100 calls that hit the cache returned to Python within this time; the device may still be working.",
        dispatch_quantile(0.99),
        {"unit": "s", "decimals": 0, "min": 0, "thresholds": thresholds(0.001, 0.01)},
        graphMode="area",
    )
    disk = stat(
        "Disk cache hit rate",
        "Share of the look-ups in JAX's persistent compilation cache that found the program, since the processes "
        "started. Off: there were none.",
        f'sum(jaxwatch_persistent_cache_requests_total{{{PROCESS},result="hit"}}) '
        f"/ (sum(jaxwatch_persistent_cache_requests_total{{{PROCESS}}}) > 0)",
        {
            "unit": "percentunit",
            "decimals": 0,
            "noValue": "off",
            "thresholds": thresholds(0.3, 0.8, colors=("red", "orange", "green")),
        },
    )
    processes = stat(
        "Processes",
        "Processes with jaxwatch that Prometheus scrapes now.",
        PROCESSES,
        {"unit": "short", "decimals": 0, "thresholds": thresholds(colors=("text",))},
    )
    return [(dispatch, 4), (disk, 3), (processes, 3)]


def causes() -> Row:
    """Return the panels that say what is compiled, and why."""
    came_up = f"sum by (reason) (increase(jaxwatch_cache_misses_total{{{FUNCTION}}}[$__range] @ end())) > 0"
    reasons = series(
        "Cache misses per minute, by reason",
        "Calls that did not run straight from the cache, by the first reason. shape: pad, or use buckets of sizes. "
        "weak_type, dtype: give the dtype from the first call on. static: mark less as static.",
        [
            query(
                f"60 * sum by (reason) (rate(jaxwatch_cache_misses_total{{{FUNCTION}}}[$__rate_interval])) "
                f"and on (reason) {came_up}",
                "{{reason}}",
            )
        ],
        {"unit": "short", "custom": bars()},
        side="right",
    )
    spent = f"jaxwatch_compile_phase_seconds_total{{{FUNCTION}}}"
    rate = f"sum by (function) (rate({spent}[$__rate_interval]))"
    worst = f"topk(8, sum by (function) (increase({spent}[$__range] @ end()))) > 0"
    shares = series(
        "Wall time spent compiling, by function",
        "Share of the wall time in which a process traces, lowers and compiles the function; mean over the processes. "
        "The 8 functions that cost most in the chosen time range.",
        [query(f"{rate} / on () group_left () {PROCESSES} and on (function) {worst}", "{{function}}")],
        {"unit": "percentunit", "custom": areas()},
        side="right",
    )
    return [(reasons, 12), (shares, 12)]


def functions() -> Row:
    """Return the worst functions, and the time of calls from the cache."""
    here = f"/d/{OVERVIEW}?var-function=${{__data.fields.Function}}&${{datasource:queryparam}}&${{job:queryparam}}"
    link = {"title": "This function alone", "url": f"{here}&${{instance:queryparam}}&${{__url_time_range}}"}
    last = f"1000 * max by (function) (jaxwatch_last_cache_miss_timestamp_seconds{{{FUNCTION}}}) > 0"
    columns = {
        "Compiling": (f"sum by (function) (jaxwatch_compile_duration_seconds_sum{{{FUNCTION}}})", "s"),
        "Misses": (f"sum by (function) (jaxwatch_cache_misses_total{{{FUNCTION}}})", "short"),
        "Again": (f"sum by (function) (jaxwatch_cache_misses_total{{{AVOIDABLE}}})", "short"),
        "Signatures": (f"max by (function) (jaxwatch_signatures{{{FUNCTION}}})", "short"),
        "Calls": (f"sum by (function) (jaxwatch_calls_total{{{FUNCTION}}})", "short"),
        "Last miss": (last, "dateTimeFromNow"),
    }
    worst = table(
        "function",
        "Worst functions by seconds",
        "Since the processes started. Compiling: seconds of tracing, lowering and compiling. Again: misses that are "
        "neither a first call nor mere dispatch. Signatures: of the process that has most. A click on a function shows "
        "it alone.",
        columns,
        [
            bar("Compiling", 200, 1),
            override("Again", custom__cellOptions={"type": "color-text"}, thresholds=thresholds(1, 10)),
            *(override(column, custom__width=95, decimals=0) for column in ("Misses", "Again", "Signatures")),
            override("Calls", custom__width=95),
            override("Last miss", custom__width=150),
            override("Function", links=[link], custom__minWidth=140),
        ],
    )
    dispatch = series(
        "Dispatch time, p50 and p99",
        "Time until a call that hit the cache returned to Python. It grows when calls leave JAX's fast path, or when "
        "the device's queue is full.",
        [query(dispatch_quantile(0.5), "p50"), query(dispatch_quantile(0.99), "p99", ref="B")],
        {"unit": "s", "custom": lines()},
    )
    return [(worst, 15), (dispatch, 9)]


def outside() -> Row:
    """Return what happens outside watched functions, and what jaxwatch itself costs."""
    eager = table(
        "site",
        "Eager compiles by line",
        "Compiles outside watched functions since the processes started, by the line of the user's program. Put these "
        "operations under jit, or keep their shapes fixed.",
        {
            "Compiles": (f"topk(15, sum by (site) (jaxwatch_eager_compiles_total{{{PROCESS}}}))", "short"),
            "Seconds": (f"sum by (site) (jaxwatch_eager_compile_seconds_total{{{PROCESS}}})", "s"),
        },
        [bar("Compiles", 220, 0), override("Seconds", custom__width=110, decimals=1)],
    )
    requests = f"sum by (result) (rate(jaxwatch_persistent_cache_requests_total{{{PROCESS}}}[$__rate_interval]))"
    disk = series(
        "Disk cache look-ups per minute",
        "Look-ups in JAX's persistent compilation cache. Many misses in a job that ran before: its folder is not "
        "shared, or the programs differ.",
        [query(f"60 * {requests}", "{{result}}")],
        {"unit": "short", "custom": bars()},
    )
    parts = f"sum by (part) (rate(jaxwatch_overhead_seconds_total{{{PROCESS}}}[$__rate_interval]))"
    overhead = series(
        "What jaxwatch itself costs",
        "Share of the wall time that jaxwatch took, mean over the processes: measured for misses, exporters and "
        "scrapes; for calls, their number times the price measured at start.",
        [query(f"{parts} / on () group_left () {PROCESSES}", "{{part}}")],
        {"unit": "percentunit", "custom": areas()},
    )
    return [(eager, 10), (disk, 7), (overhead, 7)]


def overview() -> Json:
    """Return the dashboard "jaxwatch overview"."""
    variables = [
        source_variable(),
        variable("job", "Job", "label_values(jaxwatch_build_info, job)"),
        variable("instance", "Instance", 'label_values(jaxwatch_build_info{job=~"$job"}, instance)'),
        variable("function", "Function", f"label_values(jaxwatch_calls_total{{{PROCESS}}}, function)"),
    ]
    rows = [
        ("Now", 5, alarms() + state()),
        ("What is compiled, and why", 9, causes()),
        ("Functions", 9, functions()),
        ("Outside watched functions", 9, outside()),
    ]
    about = "Is any job recompiling now, since when, why, and what does it cost?"
    return dashboard(OVERVIEW, "jaxwatch overview", about, variables, laid_out(rows))


def files() -> dict[Path, str]:
    """Return each dashboard's file and its text."""
    return {FOLDER / "overview.json": json.dumps(overview(), indent=2, ensure_ascii=False) + "\n"}


def main() -> None:
    """Write the files."""
    for path, text in files().items():
        path.write_text(text, "utf-8")
        sys.stdout.write(f"{path.name}: {len(text)} characters\n")


if __name__ == "__main__":
    main()
