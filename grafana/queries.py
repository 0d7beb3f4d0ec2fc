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
