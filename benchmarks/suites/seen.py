"""What jaxwatch saw in the watched runs, out of their logs; so that agreement is not that of two plain runs."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jaxwatch._reader import read_log
from jaxwatch._report import ReportBuilder


class Seen(NamedTuple):
    """The sum over processes.

    Attributes:
        misses: Of watched functions.
        eager: Compiles outside of them.
        unknown: Misses for which no reason was found.
        compile_seconds: Tracing, lowering and compiling.
        overhead_seconds: What jaxwatch itself took, as it says.
        cores: ``native``, ``python``: what was in use.
        faults: ``(what, how many)``: lines of the log that jaxwatch's own reader or report passes over, and what
            exporters raised. None is to be there.
    """

    misses: int = 0
    eager: int = 0
    unknown: int = 0
    compile_seconds: float = 0.0
    overhead_seconds: float = 0.0
    cores: tuple[str, ...] = ()
    faults: tuple[tuple[str, int], ...] = ()


def seen(logs: Iterable[Path]) -> Seen:
    """Return what the logs tell; each is of one run and may hold several processes."""
    return total(_of_one(log) for log in logs if log.exists())


def total(parts: Iterable[Seen]) -> Seen:
    """Return the sum."""
    found, faults = Seen(), Counter[str]()
    for part in parts:
        faults.update(dict(part.faults))
        found = Seen(
            found.misses + part.misses,
            found.eager + part.eager,
            found.unknown + part.unknown,
            found.compile_seconds + part.compile_seconds,
            found.overhead_seconds + part.overhead_seconds,
            tuple(sorted({*found.cores, *part.cores})),
        )
    return found._replace(faults=tuple(sorted(faults.items())))


def _of_one(log: Path) -> Seen:
    reading, builder, last = read_log([log]), ReportBuilder(), dict[int, Any]()
    unknown = 0
    for record in reading:
        faults_before = builder.faults
        builder.add(record)
        if builder.faults > faults_before:
            continue
        if record["event"] == "process_stats":
            last[record["pid"]] = record
        elif record["event"] == "cache_miss":
            unknown += "unknown" in record["reasons"]
    report = builder.build(program=log.name)
    faults = Counter({"log lines not read": reading.faults, "malformed events": report.faults})
    for record in last.values():
        faults.update({f"exporter {name} raised": count for name, count in record["exporter_errors"].items()})
    return Seen(
        sum(row.misses for row in report.functions),
        report.eager_count,
        unknown,
        report.compile_seconds,
        sum(seconds for _, seconds in report.overhead),
        tuple(sorted({record["core"] for record in last.values()})),
        tuple((what, count) for what, count in sorted(faults.items()) if count),
    )
