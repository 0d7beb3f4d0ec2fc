"""The dashboard "jaxwatch function": all that is known of one function."""

# ruff: noqa: INP001 -- a part of a script, no package

from boards import FLEET, FUNCTION, dashboard, raw_variable, variables
from panels import (
    PLAIN,
    Json,
    Row,
    areas,
    bar,
    bars,
    colored,
    heatmap,
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
    ONE_FUNCTION,
    PROCESSES,
    SOME,
    all_dispatch_quantile,
    compile_seconds,
    reasons_per_minute,
    recompilations,
    since,
)


def now() -> list[tuple[Json, int]]:
    """Return the panels that say how the function fares."""
    recompiled = stat(
        "Recompilations, last 5 minutes",
        "Calls that were traced or compiled again, in all chosen processes; first calls do not count.",
        recompilations(ONE_FUNCTION),
        {"unit": "short", "decimals": 0, "min": 0, "thresholds": thresholds(SOME, 10)},
        colorMode="background",
        graphMode="area",
    )
    began = stat(
        "Recompiling since",
        "Since when the number at the left has been above 0 without a break.",
        since(recompilations(ONE_FUNCTION)),
        {"unit": "dateTimeFromNow", "noValue": "not now", "thresholds": PLAIN},
    )
    last = stat(
        "Last miss",
        "When a call last did not run straight from the cache, first calls included.",
        f"1000 * max(jaxwatch_last_cache_miss_timestamp_seconds{{{ONE_FUNCTION}}}) > 0",
        {"unit": "dateTimeFromNow", "noValue": "none", "thresholds": PLAIN},
    )
    return [(recompiled, 4), (began, 4), (last, 4)]


def totals() -> list[tuple[Json, int]]:
    """Return the panels of the function's figures."""
    signatures = stat(
        "Signatures",
        "Different kinds of arguments (shapes, dtypes, structure, static values) in the process that has seen most. "
        "Each one costs a compile.",
        f"max(jaxwatch_signatures{{{ONE_FUNCTION}}})",
        {"unit": "short", "decimals": 0, "thresholds": thresholds(4, 11)},
    )
    spent = stat(
        "Seconds compiling",
        "Seconds that all chosen processes together traced, lowered and compiled the function in the chosen time "
        "range.",
        compile_seconds(ONE_FUNCTION, how="increase", window="$__range"),
        {"unit": "s", "decimals": 1, "min": 0, "thresholds": PLAIN},
    )
    count = f"sum(increase(jaxwatch_compile_duration_seconds_count{{{ONE_FUNCTION}}}[$__range]))"
    mean = stat(
        "Mean compile",
        "Seconds of tracing, lowering and compiling for one miss, mean over the chosen time range.",
        f"{compile_seconds(ONE_FUNCTION, how='increase', window='$__range')} / ({count} > 0)",
        {"unit": "s", "decimals": 2, "min": 0, "noValue": "none", "thresholds": thresholds(10, 60)},
    )
    calls = stat(
        "Calls a second",
        "Calls of the function in all chosen processes.",
        f"sum(rate(jaxwatch_calls_total{{{ONE_FUNCTION}}}[$__rate_interval]))",
        {"unit": "short", "decimals": 1, "min": 0, "thresholds": PLAIN},
    )
    return [(signatures, 3), (spent, 3), (mean, 3), (calls, 3)]


def signatures() -> list[tuple[Json, int]]:
    """Return the panels of the signatures."""
    misses = f"jaxwatch_signature_cache_misses_total{{{ONE_FUNCTION}}}"
    forms = f"group by (signature, abstract) (jaxwatch_signature_info{{{ONE_FUNCTION}}})"
    form = f"on (signature) group_left (abstract) topk by (signature) (1, {forms})"
    # One kind of row only: "other" has no readable form, and would be a row of its own without one.
    programs = f"count by (signature) (group by (signature, fingerprint) (jaxwatch_program_info{{{ONE_FUNCTION}}}))"
    known = table(
        ("abstract", "signature"),
        "What it was compiled for",
        "The arguments of each signature, as far as they are told apart: the first 10 that the function saw. What "
        "differs between the rows is what made JAX compile again. ~ is a weak type: a Python scalar. Programs: more "
        "than 1 means that processes compiled different programs for the same arguments; on many hosts, a divergence.",
        {
            "Compiled": (f"sum by (signature) ({misses}) * {form}", "short"),
            "Processes": (f"count by (signature) ({misses} > 0) * {form}", "short"),
            "Programs": (f"{programs} * {form}", "short"),
        },
        [
            override("Compiled", custom__width=90, decimals=0),
            override("Processes", custom__width=90, decimals=0),
            colored("Programs", 90, 2, 2, decimals=0),
            override("Signature", custom__width=130),
            override("Arguments", custom__minWidth=300, custom__wrapText=True),
        ],
    )
    over_time = series(
        "Misses so far, by signature",
        "A step up is a compile. A healthy function has as many flat bands as it has kinds of arguments. other: all "
        "beyond the first 10, as in a storm of ever new ones.",
        [query(f"sum by (signature) ({misses})", "{{signature}}")],
        {"unit": "short", "custom": areas()},
        side="right",
    )
    return [(known, 15), (over_time, 9)]


def causes() -> list[tuple[Json, int]]:
    """Return the panels of reasons, phases and processes over time."""
    reasons = series(
        "Why: cache misses per minute, by first reason",
        "Calls that did not run straight from the cache. shape: an array of another size came; pad, or use buckets of "
        "sizes. weak_type, dtype: give the dtype from the first call on. static: mark less as static. first_call is no "
        "fault.",
        [query(reasons_per_minute(ONE_FUNCTION), "{{reason}}")],
        {"unit": "short", "custom": bars()},
    )
    spent = f"sum by (phase) (rate(jaxwatch_compile_phase_seconds_total{{{ONE_FUNCTION}}}[$__rate_interval]))"
    phases = series(
        "Wall time spent, by phase",
        "Share of the wall time, mean over the chosen processes. trace: the Python body runs; lower: it becomes an XLA "
        "program; backend_compile: XLA compiles it, or reads it from the disk cache.",
        [query(f"{spent} / on () group_left () {PROCESSES}", "{{phase}}")],
        {"unit": "percentunit", "custom": areas()},
    )
    again = recompilations(ONE_FUNCTION, "job, instance", window="$__range")
    where = table(
        ("instance", "job"),
        "Which process",
        "Recompilations of the function in the chosen time range: the 10 processes with most. One that stands alone "
        "compiles what the others do not. A click on a process shows it in the fleet.",
        {"Again": (f"topk(10, {again})", "short")},
        [bar("Again", 140, 0), linked("Instance", "This process", FLEET, 120, job="Job", instance="Instance")],
    )
    return [(reasons, 9), (phases, 8), (where, 7)]


def dispatch() -> list[tuple[Json, int]]:
    """Return the panels of the calls that ran from the cache."""
    quantiles = series(
        "Dispatch time, p50 and p99",
        "Time until a call that hit the cache returned to Python; the device may still be working.",
        [
            query(all_dispatch_quantile(0.5, ONE_FUNCTION), "p50"),
            query(all_dispatch_quantile(0.99, ONE_FUNCTION), "p99", ref="B"),
        ],
        {"unit": "s", "custom": lines()},
    )
    rates = f"sum by (le) (rate(jaxwatch_dispatch_duration_seconds_bucket{{{ONE_FUNCTION}}}[$__rate_interval]))"
    spread = heatmap(
        "Dispatch time, all calls",
        "Calls from the cache per second, by how long they took to return to Python: the stronger the colour, the "
        "more. A second band well above the first: some calls leave JAX's fast path, or wait for the device.",
        rates,
        "s",
    )
    return [(quantiles, 10), (spread, 14)]


def faults() -> list[tuple[Json, int]]:
    """Return the panels of what went wrong."""
    off = f'sum(jaxwatch_cache_misses_total{{{ONE_FUNCTION},layer="dispatch"}})'
    departed = stat(
        "Processes off the fast path",
        "Processes in which the calls of this function never get onto JAX's fast path: a callback or print in its "
        "body, or an earlier call that raised. Each call then costs some 100 µs more; nothing is compiled.",
        f"{off} or vector(0)",
        {"unit": "short", "decimals": 0, "thresholds": thresholds(SOME, 1)},
    )
    forbidden = series(
        "Forbidden misses per minute",
        "Misses that a guard of the program forbade (max_signatures, on_retrace, no_retraces), by what it does then: "
        "record, warn, or raise.",
        [
            query(
                f"60 * sum by (action) (rate(jaxwatch_retrace_violations_total{{{ONE_FUNCTION}}}[$__rate_interval]))",
                "{{action}}",
            )
        ],
        {"unit": "short", "custom": bars()},
    )
    errors = series(
        "Calls that raised while traced, per minute",
        "The Python body or JAX raised, as for shapes that do not fit; the program got the exception. Such a call "
        "compiles nothing and is tried anew each time.",
        [
            query(
                f"60 * sum(rate(jaxwatch_trace_errors_total{{{ONE_FUNCTION}}}[$__rate_interval]))",
                "raised",
            )
        ],
        {"unit": "short", "custom": bars()},
    )
    return [(departed, 4), (forbidden, 10), (errors, 10)]


def function() -> Json:
    """Return the dashboard."""
    rows: list[Row] = [
        ("Now", 5, now() + totals()),
        ("What changed", 10, signatures()),
        ("Why, how long, and where", 8, causes()),
        ("Calls from the cache", 8, dispatch()),
        ("Guards and faults", 7, faults()),
    ]
    about = "One function: what it was compiled for, why, how long it took, and how fast its calls are."
    return dashboard(FUNCTION, "jaxwatch function", about, [*variables(one_function=True), raw_variable()], rows)
