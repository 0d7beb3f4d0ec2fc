"""The dashboard "jaxwatch fleet": many processes on many hosts, and what each does that the others do not.

It asks for what ``rules/jaxwatch.yml`` records wherever a query over every process would be slow.
"""

# ruff: noqa: INP001 -- a part of a script, no package

from boards import FLEET, FUNCTION, OVERVIEW, dashboard, variables
from panels import (
    PLAIN,
    Json,
    Row,
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
    text,
    thresholds,
)
from queries import PROCESS, SOME, since

JOB = 'job=~"$job"'
JOB_FUNCTION = f'{JOB},function=~"$function"'

RECOMPILED = f"job:jaxwatch_recompilations:increase5m{{{JOB}}}"
COMPILING = f"job_instance:jaxwatch_compile_seconds:rate5m{{{PROCESS}}}"
PROCESSES = f"job:jaxwatch_processes:count{{{JOB}}}"
RANKS = f"job:jaxwatch_ranks:count{{{JOB}}}"
BUILD = f"jaxwatch_build_info{{{PROCESS}}}"

SIGNATURE = "on (job, function, signature)"
PROGRAMS = f"job_function_signature:jaxwatch_programs:count{{{JOB_FUNCTION}}}"
WITH_IT = f"job_function_signature:jaxwatch_program_ranks:sum{{{JOB_FUNCTION}}}"
# Signatures of which the ranks of a job compiled different programs, or only some of them any.
DIVERGENT = f"({PROGRAMS} > 1 or {WITH_IT} < on (job) group_left () {RANKS})"

HELP = """**Is everything here empty?** Then Prometheus has not loaded the recording rules. Put `rules/jaxwatch.yml`
beside `prometheus.yml`, add `rule_files: [rules/jaxwatch.yml]` to it, and reload Prometheus (`kill -HUP`).

These panels say *whether* something is wrong; the next rows *which job*, *which function*, *which process*."""
RULES = "From the recording rules."


def now() -> list[tuple[Json, int]]:
    """Return the panels that say whether anything is wrong, and what to do where there is nothing to see."""
    recompiling = stat(
        "Jobs recompiling",
        f"Jobs with a recompilation in the last 5 minutes. {RULES}",
        f"count({RECOMPILED} > {SOME}) or 0 * count({RECOMPILED})",
        {"unit": "short", "decimals": 0, "noValue": "rules not loaded", "thresholds": thresholds(1, 1)},
        colorMode="background",
    )
    divergent = stat(
        "Divergent signatures",
        "Kinds of arguments for which the ranks of one job compiled different programs, or which only some of them "
        f"compiled. Ranks are the processes of jax.distributed. {RULES}",
        f"count({DIVERGENT}) or 0 * count({RECOMPILED})",
        {"unit": "short", "decimals": 0, "noValue": "rules not loaded", "thresholds": thresholds(1, 1)},
        colorMode="background",
    )
    share = stat(
        "Wall time spent compiling",
        f"Mean over all chosen processes, operations outside watched functions included. {RULES}",
        f"avg({COMPILING})",
        {"unit": "percentunit", "decimals": 1, "min": 0, "thresholds": thresholds(0.05, 0.2)},
        graphMode="area",
    )
    processes = stat(
        "Processes",
        f"Processes with jaxwatch that Prometheus scrapes now. {RULES}",
        f"sum({PROCESSES})",
        {"unit": "short", "decimals": 0, "noValue": "rules not loaded", "thresholds": PLAIN},
    )
    hint = text("Nothing to see?", "What to do where the panels of this dashboard have no data.", HELP)
    return [(recompiling, 4), (divergent, 4), (share, 4), (processes, 3), (hint, 9)]


def jobs() -> list[tuple[Json, int]]:
    """Return the panels by job."""
    slow = f"histogram_quantile(0.99, job_le:jaxwatch_dispatch_duration_seconds_bucket:rate5m{{{JOB}}})"
    columns = {
        "Recompilations": (f"sum by (job) ({RECOMPILED})", "short"),
        "Since": (since(RECOMPILED), "dateTimeFromNow"),
        "Compiling": (f"avg by (job) ({COMPILING})", "percentunit"),
        "Dispatch p99": (slow, "s"),
        "Processes": (f"sum by (job) ({PROCESSES})", "short"),
        "Divergent": (f"count by (job) ({DIVERGENT}) or 0 * {PROCESSES}", "short"),
    }
    known = table(
        ("job",),
        "Which job",
        "Recompilations of the last 5 minutes, since when there have been some, the share of its wall time that a "
        "process spends compiling, and the kinds of arguments for which the ranks differ. A click on a job shows its "
        f"overview. {RULES}",
        columns,
        [
            colored("Recompilations", 145, SOME, 10, decimals=0),
            override("Since", custom__width=130),
            colored("Compiling", 95, 0.05, 0.2, decimals=1),
            override("Dispatch p99", custom__width=115, decimals=0),
            override("Processes", custom__width=90, decimals=0),
            colored("Divergent", 90, 1, 1, decimals=0),
            linked("Job", "This job's overview", OVERVIEW, 110, job="Job"),
        ],
    )
    course = series(
        "Recompilations within 5 minutes, by job",
        f"How many calls were traced or compiled again in the 5 minutes before. {RULES}",
        [query(RECOMPILED, "{{job}}")],
        {"unit": "short", "custom": lines()},
    )
    return [(known, 14), (course, 10)]


def functions() -> list[tuple[Json, int]]:
    """Return the panels by function and reason."""
    again = f"job_function_reason:jaxwatch_recompilations:increase5m{{{JOB_FUNCTION}}}"
    seconds = f"job_function:jaxwatch_compile_seconds:rate5m{{{JOB_FUNCTION}}}"
    known = table(
        ("function", "job"),
        "Which function",
        "Share of its wall time that a process of the job spends tracing, lowering and compiling the function, and "
        "recompilations in all processes, both over the last 5 minutes; the 20 that take most. A click on a function "
        f"tells more. {RULES}",
        {
            "Compiling": (f"topk(20, {seconds} / on (job) group_left () {PROCESSES})", "percentunit"),
            "Again": (f"sum by (job, function) ({again}) and on (job, function) topk(20, {seconds})", "short"),
        },
        [
            bar("Compiling", 190, 1),
            colored("Again", 90, SOME, 10, decimals=0),
            override("Job", custom__width=120),
            linked("Function", "This function", FUNCTION, 140, job="Job", function="Function"),
        ],
    )
    why = series(
        "Why: recompilations within 5 minutes, by job and reason",
        f"By the first reason. shape: arrays of other sizes came. static: another value of a static argument. {RULES}",
        [query(f"sum by (job, reason) ({again}) > 0", "{{job}}: {{reason}}")],
        {"unit": "short", "custom": bars()},
        side="right",
    )
    return [(known, 12), (why, 12)]


def processes() -> list[tuple[Json, int]]:
    """Return the panels by process."""
    rank = f"* on (job, instance) group_left (process_index) {BUILD}"
    worst = f"topk(20, {COMPILING})"
    again = f"job_instance:jaxwatch_recompilations:increase5m{{{PROCESS}}}"
    known = table(
        ("instance", "process_index", "job"),
        "Which process",
        "The 20 processes that spend most of their wall time compiling, and their recompilations, both over the last "
        "5 minutes. Rank is the process's index under jax.distributed. A rank that stands alone keeps all others "
        f"waiting. A click on a process shows its overview. {RULES}",
        {
            "Compiling": (f"{worst} {rank}", "percentunit"),
            "Again": (f"({again} and on (job, instance) {worst}) {rank}", "short"),
        },
        [
            bar("Compiling", 190, 1),
            colored("Again", 90, SOME, 10, decimals=0),
            override("Rank", custom__width=70),
            override("Job", custom__width=120),
            linked("Instance", "This process's overview", OVERVIEW, 140, job="Job", instance="Instance"),
        ],
    )
    spread = series(
        "Wall time spent compiling: how far processes differ",
        "The process that compiles most, the middle one, and the one that compiles least, of the chosen ones. Lines "
        f"far apart: one process compiles what the others do not. {RULES}",
        [
            query(f"max({COMPILING})", "most"),
            query(f"quantile(0.5, {COMPILING})", "median", ref="B"),
            query(f"min({COMPILING})", "least", ref="C"),
        ],
        {"unit": "percentunit", "custom": lines()},
        side="right",
    )
    return [(known, 12), (spread, 12)]


def divergence() -> list[tuple[Json, int]]:
    """Return the panels of what the ranks of a job compiled differently."""
    forms = f"job_function_signature_abstract:jaxwatch_signature_info:group{{{JOB_FUNCTION}}}"
    form = f"* {SIGNATURE} group_left (abstract) {forms}"
    known = table(
        ("function", "abstract", "signature", "job"),
        "Divergence: what the ranks of a job do not do alike",
        "Kinds of arguments for which ranks compiled different programs (more than 1), or which some of a job's ranks "
        "compiled and others not (Have it is less than Ranks). While one rank compiles all others wait, and different "
        "programs may hang the job. Harmless: a function that only rank 0 calls, and the seconds until all are "
        f"scraped. {RULES}",
        {
            "Programs": (f"({PROGRAMS} and {SIGNATURE} {DIVERGENT}) {form}", "short"),
            "Have it": (f"({WITH_IT} and {SIGNATURE} {DIVERGENT}) {form}", "short"),
            "Ranks": (f"({DIVERGENT} * 0 + on (job) group_left () {RANKS}) {form}", "short"),
        },
        [
            colored("Programs", 100, 2, 2, decimals=0),
            override("Arguments", custom__wrapText=True),
            *(override(column, custom__width=75, decimals=0) for column in ("Have it", "Ranks")),
            override("Signature", custom__width=130),
            override("Job", custom__width=90),
            linked("Function", "This function", FUNCTION, 90, job="Job", function="Function"),
        ],
    )
    having = f"job_function_signature_fingerprint:jaxwatch_program_ranks:count{{{JOB_FUNCTION}}}"
    info = f'jaxwatch_program_info{{{PROCESS},function=~"$function"}} and {SIGNATURE} {DIVERGENT}'
    ranked = (
        f'({info}) * on (job, instance) group_left (process_index) jaxwatch_build_info{{{PROCESS},process_index!=""}}'
    )
    one = f"topk by (job, function, signature, fingerprint) (1, {ranked})"
    each = "on (job, function, signature, fingerprint)"
    program = table(
        ("function", "signature", "fingerprint", "instance", "process_index"),
        "Which rank has which program",
        "Each program of the signatures at the left, how many ranks have it, and one of them. The program with the "
        "fewest ranks is the one to look at. It reads the programs of all chosen processes.",
        {"Ranks": (f"sum without (job) (bottomk(50, {one} * {each} group_left () {having}))", "short")},
        [
            override("Ranks", custom__width=70, decimals=0),
            override("Rank", custom__width=60),
            override("Signature", custom__width=125),
            override("Fingerprint", custom__width=150),
            linked("Instance", "This process's overview", OVERVIEW, 120, instance="Instance"),
        ],
        descending=False,
    )
    return [(known, 13), (program, 11)]


def itself() -> list[tuple[Json, int]]:
    """Return the panels of what runs where, and of jaxwatch itself."""
    labels = ("job", "version", "jax_version", "jaxlib_version", "backend", "core")
    versions = table(
        labels,
        "What runs",
        "Processes by versions, backend and core of jaxwatch (python: no C compiler was there, a call costs about 1 µs "
        "more). A job whose processes differ may compile different programs.",
        {"Processes": (f"count by ({', '.join(labels)}) ({BUILD})", "short")},
        [override("Processes", custom__width=105, decimals=0), override("Job", custom__minWidth=100)],
    )
    range_ = "[$__range]"
    own = table(
        ("job",),
        "jaxwatch itself",
        "Share of the wall time that jaxwatch takes in a process, from the recording rules; then, within the chosen "
        "time range: label values folded into other, exceptions in exporters, and what was dropped. None of it "
        "touches the program; each is something that these dashboards do not show.",
        {
            "Takes": (f"avg by (job) (job_instance:jaxwatch_overhead_seconds:rate5m{{{PROCESS}}})", "percentunit"),
            "Folded": (f"sum by (job) (increase(jaxwatch_label_overflow_total{{{PROCESS}}}{range_}))", "short"),
            "Errors": (f"sum by (job) (increase(jaxwatch_exporter_errors_total{{{PROCESS}}}{range_}))", "short"),
            "Dropped": (f"sum by (job) (increase(jaxwatch_dropped_total{{{PROCESS}}}{range_}))", "short"),
        },
        [
            colored("Takes", 90, 0.01, 0.05, decimals=2),
            colored("Folded", 90, SOME, 1000, decimals=0),
            *(colored(column, 90, SOME, SOME, decimals=0) for column in ("Errors", "Dropped")),
        ],
    )
    return [(versions, 14), (own, 10)]


def fleet() -> Json:
    """Return the dashboard."""
    rows: list[Row] = [
        ("Now", 5, now()),
        ("Which job", 7, jobs()),
        ("Which function", 8, functions()),
        ("Which process", 8, processes()),
        ("Divergence", 9, divergence()),
        ("Versions, and jaxwatch itself", 6, itself()),
    ]
    about = (
        "Many processes on many hosts: which job, which function, which process recompiles, and where the ranks of a "
        "job differ. It needs the recording rules of rules/jaxwatch.yml."
    )
    return dashboard(FLEET, "jaxwatch fleet", about, variables(), rows)
