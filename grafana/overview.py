"""The dashboard "jaxwatch overview": is any job recompiling now, since when, which function, why, and at what cost?"""

# ruff: noqa: INP001 -- a part of a script, no package

from boards import FLEET, FUNCTION, OVERVIEW, dashboard, raw_variable, variables
from panels import (
    PLAIN,
    Json,
    Row,
    areas,
    bar,
    bars,
    colored,
    lines,
    linked,
    override,
    query,
    series,
    stat,
    table,
    thresholds,
)
from queries import (
    FUNCTIONS,
    PROCESS,
    PROCESSES,
    SOME,
    all_dispatch_quantile,
    all_reasons_per_minute,
    all_recompilations,
    compile_seconds,
    recompilations,
    since,
)

EAGER = f"jaxwatch_eager_compile_seconds_total{{{PROCESS}}}"


def alarms() -> list[tuple[Json, int]]:
    """Return the panels that say whether anything is wrong, since when, and what it costs."""
    recompiled = stat(
        "Recompilations, last 5 minutes",
        "Calls that were traced or compiled again; first calls do not count. A healthy job has 0 once it is warm.",
        all_recompilations(),
        {"unit": "short", "decimals": 0, "min": 0, "thresholds": thresholds(SOME, 10)},
        colorMode="background",
        graphMode="area",
    )
    began = stat(
        "Recompiling since",
        "Since when the number at the left has been above 0 without a break.",
        since(all_recompilations()),
        {"unit": "dateTimeFromNow", "noValue": "not now", "thresholds": PLAIN},
    )
    share = stat(
        "Wall time spent compiling",
        "Share of the wall time in which a process traces, lowers and compiles, watched functions and operations "
        "outside them together; mean over the processes. Above 100 % where threads compile at once.",
        f"({compile_seconds(FUNCTIONS)} + (sum(rate({EAGER}[$__rate_interval])) or vector(0))) / {PROCESSES}",
        {"unit": "percentunit", "decimals": 1, "min": 0, "thresholds": thresholds(0.05, 0.2)},
        graphMode="area",
    )
    return [(recompiled, 4), (began, 4), (share, 4)]


def state() -> list[tuple[Json, int]]:
    """Return the panels that say what was spent, how fast calls from the cache are, and how warm the disk cache is."""
    seconds = compile_seconds(FUNCTIONS, how="increase", window="$__range")
    spent = stat(
        "Seconds compiling",
        "Seconds that all processes together traced, lowered and compiled within the chosen time range.",
        f"{seconds} + (sum(increase({EAGER}[$__range])) or vector(0))",
        {"unit": "s", "decimals": 1, "min": 0, "thresholds": PLAIN},
    )
    dispatch = stat(
        "Dispatch, p99",
        "99 of 100 calls that hit the cache returned to Python within this time; the device may still be working.",
        all_dispatch_quantile(0.99),
        {"unit": "s", "decimals": 0, "min": 0, "thresholds": thresholds(0.001, 0.01)},
    )
    disk = stat(
        "Disk cache hits",
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
        {"unit": "short", "decimals": 0, "thresholds": PLAIN},
    )
    return [(spent, 3), (dispatch, 3), (disk, 3), (processes, 3)]


def jobs() -> Json:
    """Return the table of the jobs."""
    columns = {
        "Recompilations": (all_recompilations("job"), "short"),
        "Since": (since(all_recompilations("job")), "dateTimeFromNow"),
        "Compiling": (
            f"{compile_seconds(FUNCTIONS, 'job')} / on (job) count by (job) (jaxwatch_build_info{{{PROCESS}}})",
            "percentunit",
        ),
    }
    return table(
        ("job",),
        "Which job",
        "Recompilations of the last 5 minutes, since when there have been some, and the share of its wall time that a "
        "process of the job spends compiling. A click on a job shows its processes.",
        columns,
        [
            colored("Recompilations", 145, SOME, 10, decimals=0),
            override("Since", custom__width=120),
            colored("Compiling", 95, 0.05, 0.2, decimals=1),
            linked("Job", "This job's processes", FLEET, 110, job="Job"),
        ],
    )


def functions() -> Json:
    """Return the table of the functions that cost most."""
    again = recompilations(FUNCTIONS, "job, function", window="$__range")
    last = f"1000 * max by (job, function) (jaxwatch_last_cache_miss_timestamp_seconds{{{FUNCTIONS}}}) > 0"
    columns = {
        "Seconds": (compile_seconds(FUNCTIONS, "job, function", how="increase", window="$__range"), "s"),
        "Again": (again, "short"),
        "Signatures": (f"max by (job, function) (jaxwatch_signatures{{{FUNCTIONS}}})", "short"),
        "Calls": (f"sum by (job, function) (jaxwatch_calls_total{{{FUNCTIONS}}})", "short"),
        "Last miss": (last, "dateTimeFromNow"),
    }
    return table(
        ("function", "job"),
        "Which function",
        "Seconds spent compiling within the chosen time range, all processes added up. Again: recompilations in that "
        "time. Signatures: different kinds of arguments, in the process that has seen most. A click on a function "
        "tells more.",
        columns,
        [
            bar("Seconds", 190, 1),
            colored("Again", 80, SOME, 10, decimals=0),
            override("Signatures", custom__width=90, decimals=0),
            override("Calls", custom__width=90),
            override("Last miss", custom__width=140),
            override("Job", custom__width=100),
            linked("Function", "This function", FUNCTION, 130, job="Job", function="Function"),
        ],
    )


def causes() -> list[tuple[Json, int]]:
    """Return the panels that say what changed."""
    reasons = series(
        "Why: cache misses per minute, by first reason",
        "Calls that did not run straight from the cache. shape: an array of another size came; pad, or use buckets of "
        "sizes. weak_type, dtype: give the dtype from the first call on. static: mark less as static. first_call is no "
        "fault.",
        [query(all_reasons_per_minute(), "{{reason}}")],
        {"unit": "short", "custom": bars()},
        side="right",
    )
    misses = f"sum by (function, signature) (jaxwatch_signature_cache_misses_total{{{FUNCTIONS}}})"
    forms = f"group by (function, signature, abstract) (jaxwatch_signature_info{{{FUNCTIONS}}})"
    form = f"on (function, signature) group_left (abstract) topk by (function, signature) (1, {forms})"
    arguments = table(
        ("function", "abstract"),
        "What changed: the arguments it was compiled for",
        "One row for each kind of arguments that a function was compiled for since the processes started; what "
        "differs between the rows of one function is what made JAX compile again. ~ is a weak type: a Python scalar. "
        "At most 10 rows a function: the first that it saw.",
        {"Compiled": (f"sum by (function, abstract) (topk(40, {misses}) * {form})", "short")},
        [
            override("Compiled", custom__width=90, decimals=0),
            linked("Function", "This function", FUNCTION, 110, function="Function"),
            override("Function", custom__width=110),
            override("Arguments", custom__wrapText=True),
        ],
        sort="Function",
        descending=False,
    )
    return [(reasons, 10), (arguments, 14)]


def cost() -> list[tuple[Json, int]]:
    """Return the panels of what compiling costs over time, and calls from the cache."""
    total = f"increase(jaxwatch_compile_duration_seconds_sum{{{FUNCTIONS}}}[$__range] @ end())"
    worst = f"topk(8, sum by (function) ({total})) > 0"
    shares = series(
        "What it costs: wall time spent compiling, by function",
        "Share of the wall time in which a process traces, lowers and compiles the function; mean over the processes. "
        "The 8 functions that cost most in the chosen time range.",
        [
            query(
                f"{compile_seconds(FUNCTIONS, 'function')} / on () group_left () {PROCESSES} and on (function) {worst}",
                "{{function}}",
            )
        ],
        {"unit": "percentunit", "custom": areas()},
        side="right",
    )
    dispatch = series(
        "Dispatch time, p50 and p99",
        "Time until a call that hit the cache returned to Python. It grows when calls leave JAX's fast path, or when "
        "the device's queue is full.",
        [query(all_dispatch_quantile(0.5), "p50"), query(all_dispatch_quantile(0.99), "p99", ref="B")],
        {"unit": "s", "custom": lines()},
    )
    return [(shares, 14), (dispatch, 10)]


def outside() -> list[tuple[Json, int]]:
    """Return what happens outside watched functions, and what jaxwatch itself costs."""
    eager = table(
        ("site",),
        "Eager compiles by line",
        "Compiles outside watched functions since the processes started, by the line of the user's program. Put these "
        "operations under jit, or keep their shapes fixed.",
        {
            "Compiles": (f"topk(15, sum by (site) (jaxwatch_eager_compiles_total{{{PROCESS}}}))", "short"),
            "Seconds": (f"sum by (site) ({EAGER})", "s"),
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
    """Return the dashboard."""
    rows: list[Row] = [
        ("Now", 5, alarms() + state()),
        ("Where", 8, [(jobs(), 9), (functions(), 15)]),
        ("What changed", 9, causes()),
        ("What it costs", 8, cost()),
        ("Outside watched functions", 8, outside()),
    ]
    about = (
        "Is any job recompiling now, since when, which function, what changed, and what does it cost? With "
        "the recording rules loaded it is as quick for a thousand processes as for one."
    )
    return dashboard(OVERVIEW, "jaxwatch overview", about, [*variables(), raw_variable()], rows)
