"""Selectors and expressions that more than one dashboard asks for."""

# ruff: noqa: INP001 -- a part of a script, no package

PROCESS = 'job=~"$job",instance=~"$instance"'
FUNCTIONS = f'{PROCESS},function=~"$function"'
ONE_FUNCTION = f'{PROCESS},function="$function"'  # its name is no pattern: where one is chosen, Grafana escapes no dots
# What a user can avoid: not the first call of a function, and not a call that merely left the fast path.
RECOMPILED = 'reason!="first_call",layer!="dispatch"'

PROCESSES = f"count(jaxwatch_build_info{{{PROCESS}}})"
SOME = 0.5  # increase() extrapolates: one recompilation may read as 0.9


def by(labels: str) -> str:
    """Return the clause that groups by these labels; of none, nothing."""
    return f" by ({labels}) " if labels else ""


def recompilations(chosen: str, labels: str = "", *, window: str = "5m") -> str:
    """Return the query of the recompilations in the window, by these labels."""
    return f"sum{by(labels)}(increase(jaxwatch_cache_misses_total{{{chosen},{RECOMPILED}}}[{window}]))"


def since(count: str) -> str:
    """Return the query of the time, in ms, since which ``count`` is above 0 without a break; nothing where it is 0.

    Where it was so from the start of the chosen time range, or of the job, it is that start.
    """
    healthy = f"max_over_time(timestamp({count} <= {SOME})[$__range:$__interval])"
    start = f"min_over_time(timestamp({count})[$__range:$__interval])"
    return f"1000 * ({healthy} or {start}) and {count} > {SOME}"


def compile_seconds(chosen: str, labels: str = "", *, how: str = "rate", window: str = "$__rate_interval") -> str:
    """Return the query of the seconds that watched functions were traced, lowered and compiled.

    ``how`` is ``rate``, a share of the wall time, or ``increase``.
    """
    return f"sum{by(labels)}({how}(jaxwatch_compile_duration_seconds_sum{{{chosen}}}[{window}]))"


def dispatch_quantile(chosen: str, q: float) -> str:
    """Return the query of a quantile of the dispatch time, over all chosen functions and processes."""
    rate = f"rate(jaxwatch_dispatch_duration_seconds_bucket{{{chosen}}}[$__rate_interval])"
    return f"histogram_quantile({q}, sum by (le) ({rate}))"


def reasons_per_minute(chosen: str) -> str:
    """Return the query of the cache misses a minute by reason, of the reasons that came up in the chosen time range."""
    misses = f"jaxwatch_cache_misses_total{{{chosen}}}"
    came_up = f"sum by (reason) (increase({misses}[$__range] @ end())) > 0"
    return f"60 * sum by (reason) (rate({misses}[$__rate_interval])) and on (reason) {came_up}"


# ------------------------------------------------------------------ recorded where it can be, else of each process

# The rules keep no instance. With all instances chosen their series match (a label that is not there is an empty one),
# and $raw matches no job; with some chosen, or without the rules, it is the other way round. What matches nothing costs
# nothing, so a thousand processes are as cheap as one.
EACH = f'{FUNCTIONS},job=~"$raw"'
_RECORDED = 'job:jaxwatch_processes:count{job=~"$job",instance=~"$instance"}'
RAW_DEFINITION = (
    f'query_result(label_replace(absent({_RECORDED}), "raw", ".*", "", "") '
    f'or label_replace(count({_RECORDED}), "raw", "-", "", ""))'
)


def all_recompilations(labels: str = "") -> str:
    """As ``recompilations`` of the last 5 minutes, over all chosen processes."""
    recorded = f"sum{by(labels)}(job_function_reason:jaxwatch_recompilations:increase5m{{{FUNCTIONS}}})"
    return f"({recorded} or {recompilations(EACH, labels)})"


def all_reasons_per_minute() -> str:
    """As ``reasons_per_minute``, over all chosen processes."""
    recorded = f"60 * sum by (reason) (job_function_reason:jaxwatch_cache_misses:rate5m{{{FUNCTIONS}}}) > 0"
    return f"{recorded} or ({reasons_per_minute(EACH)})"


def all_dispatch_quantile(q: float, chosen: str = FUNCTIONS) -> str:
    """As ``dispatch_quantile``, over all chosen processes."""
    recorded = f"sum by (le) (job_function_le:jaxwatch_dispatch_duration_seconds_bucket:rate5m{{{chosen}}})"
    each = f'{chosen},job=~"$raw"'
    return f"histogram_quantile({q}, {recorded}) or {dispatch_quantile(each, q)}"
