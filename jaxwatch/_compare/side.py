"""One side of a comparison: what the records of a run, or of the processes of a job, come to. Pure; bounded."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxwatch import _records
from jaxwatch._findings import Finding, Findings, cause_of, merged
from jaxwatch._records import Record, SeenMiss
from jaxwatch._report import ReportBuilder
from jaxwatch._report_data import Report

# Programs (a function and a signature) whose phases and keys are compared. Beyond, none is added; counted as folded.
PROGRAMS = 50_000
# Signatures counted for the causes of all functions. Beyond, those misses are counted without one.
SIGNATURES = 100_000
# Fingerprints, keys on disk and versions that are told apart of one thing.
_SEVERAL = 16

VERSIONS = {
    "jaxwatch": "version",
    "jax": "jax_version",
    "jaxlib": "jaxlib_version",
    "backend": "backend",
    "core": "core",
}
PHASES = ("trace", "lower", "backend_compile")
_LINE = re.compile(r":\d+")

CauseKey = tuple[str, str, tuple[tuple[str, str], ...]]
"""What makes a cause the same on both sides: its kind, reason and differences; no line and no value."""


@dataclass(frozen=True, slots=True)
class SideCause:
    """The misses of one function for one cause.

    Attributes:
        key: What it is on either side.
        finding: All about it, for words.
        signatures: How often each key was compiled for it, by a short id that is the same with another JAX.
        unsigned: Further misses, whose id was not kept.
    """

    key: CauseKey
    finding: Finding
    signatures: Mapping[str, int]
    unsigned: int


@dataclass(frozen=True, slots=True)
class SideProgram:
    """What was compiled for one key of a function.

    Attributes:
        seconds: Of each of ``PHASES``, summed over ``misses``; of the last one, only where XLA compiled.
        misses: How often.
        compiled: How often XLA compiled it: not served by JAX's persistent cache.
        fingerprints: Of the lowered text.
        disk_keys: Of JAX's persistent cache.
    """

    seconds: tuple[float, float, float]
    misses: int
    compiled: int
    fingerprints: frozenset[str]
    disk_keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class SideFunction:
    """One watched function; those of one name in one file are one."""

    function: str
    file: str
    calls: int
    calls_exact: bool
    misses: int
    seconds: float
    causes: tuple[SideCause, ...]
    programs: Mapping[str, SideProgram]


@dataclass(frozen=True, slots=True)
class SideEager:
    """What one file compiled outside of watched functions.

    Attributes:
        again: Compiles that the report has a finding of, without the first of each process.
        functions: Operations, or unwatched jits, with how often each was compiled.
        sites: ``file:line``, with how often.
    """

    file: str
    count: int
    seconds: float
    again: int
    functions: Mapping[str, int]
    sites: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its figures in sum, and by function."""

    report: Report
    versions: Mapping[str, tuple[str, ...]]  # of ``VERSIONS``; empty where no record tells
    functions: tuple[SideFunction, ...]
    eager: tuple[SideEager, ...]
    folded: tuple[tuple[str, int], ...]


def file_of(place: str) -> str:
    """Return the file of ``file:line``."""
    file, _, line = place.rpartition(":")
    return file if line.isdigit() else place


class _Program:
    def __init__(self) -> None:
        self.seconds = [0.0, 0.0, 0.0]
        self.misses = self.compiled = 0
        self.fingerprints: set[str] = set()
        self.disk_keys: set[str] = set()

    def add(self, miss: SeenMiss) -> None:
        self.misses += 1
        self.seconds[0] += miss.before_xla[0]
        self.seconds[1] += miss.before_xla[1]
        if not miss.from_disk:
            self.compiled += 1
            self.seconds[2] += max(0.0, miss.seconds - sum(miss.before_xla))
        key = None if miss.disk is None else miss.disk.key
        for found, kept in ((miss.fingerprint, self.fingerprints), (key, self.disk_keys)):
            if found is not None and len(kept) < _SEVERAL:
                kept.add(found)

    def build(self) -> SideProgram:
        trace, lower, compiling = self.seconds
        return SideProgram(
            seconds=(trace, lower, compiling),
            misses=self.misses,
            compiled=self.compiled,
            fingerprints=frozenset(self.fingerprints),
            disk_keys=frozenset(self.disk_keys),
        )


class SideBuilder:
    """Takes the records of one side, in any order of its processes and threads; keeps sums only."""

    def __init__(self) -> None:
        self._report = ReportBuilder()
        self._findings = Findings()  # of all misses, first calls too; the report's has none of these
        self._signatures: dict[tuple[str, str, CauseKey], dict[str, int]] = {}
        self._signatures_left = SIGNATURES
        self._programs: dict[tuple[str, str], dict[str, _Program]] = {}
        self._programs_left = PROGRAMS
        self._programs_folded = 0
        self._versions: dict[str, set[str]] = {name: set() for name in VERSIONS}

    @property
    def faults(self) -> int:
        """Records so far whose fields are missing or not of their kind."""
        return self._report.faults

    def add(self, record: Record) -> None:
        """Take one record; a malformed one is counted, and leaves no trace."""
        faults = self.faults
        self._report.add(record)
        if self.faults > faults:
            return
        event = record.get("event")
        if event == "cache_miss":
            self._add_miss(_records.miss(record))
        elif event in {"process_stats", "run"}:
            self._add_versions(record)

    def _add_miss(self, miss: SeenMiss) -> None:
        miss = miss._replace(definition=file_of(miss.definition))
        self._findings.add(miss, 0, None)
        counts = self._signatures.setdefault((miss.function, miss.definition, _key_of(miss)), {})
        signature = _signature(miss)
        if signature in counts:
            counts[signature] += 1
        elif self._signatures_left > 0:
            self._signatures_left -= 1
            counts[signature] = 1
        if miss.layer == "dispatch":  # nothing was compiled
            return
        programs = self._programs.setdefault((miss.function, miss.definition), {})
        if signature not in programs:
            if self._programs_left <= 0:
                self._programs_folded += 1
                return
            self._programs_left -= 1
            programs[signature] = _Program()
        programs[signature].add(miss)

    def _add_versions(self, record: Record) -> None:
        for name, field in VERSIONS.items():
            value = record.get(field)
            if isinstance(value, str) and value and len(self._versions[name]) < _SEVERAL:
                self._versions[name].add(value[: _records.TEXT_CHARACTERS])

    def build(self, *, program: str | None = None) -> Side:
        """Return what all that was added comes to; ``program`` is its name where no record has one."""
        report = self._report.build(program=program)
        folded = [*report.folded, ("program", self._programs_folded)]
        return Side(
            report=report,
            versions={name: tuple(sorted(found)) for name, found in self._versions.items()},
            functions=tuple(self._functions(report)),
            eager=tuple(self._eager()),
            folded=tuple((what, count) for what, count in folded if count),
        )

    def _functions(self, report: Report) -> Iterator[SideFunction]:
        causes = self._causes()
        rows: dict[tuple[str, str], list[int]] = {}
        for number, row in enumerate(report.functions):
            rows.setdefault((row.function, file_of(row.definition)), []).append(number)
        for key in {**rows, **causes}:
            found = [report.functions[number] for number in rows.get(key, ())]
            programs = self._programs.get(key, {})
            yield SideFunction(
                function=key[0],
                file=key[1],
                calls=sum(row.calls for row in found),
                calls_exact=all(row.calls_exact for row in found),
                misses=sum(row.misses for row in found),
                seconds=sum(row.seconds for row in found),
                causes=tuple(causes.get(key, {}).values()),
                programs={signature: program.build() for signature, program in programs.items()},
            )

    def _causes(self) -> dict[tuple[str, str], dict[CauseKey, SideCause]]:
        found: dict[tuple[str, str], dict[CauseKey, SideCause]] = {}
        for finding in self._findings.build():
            cause = finding.cause
            key = _without_lines(cause.kind, cause.reason, cause.differences)
            of_function = found.setdefault((cause.function, cause.definition), {})
            earlier = of_function.get(key)
            both = finding if earlier is None else merged(earlier.finding, finding)
            counts = self._signatures.get((cause.function, cause.definition, key), {})
            of_function[key] = SideCause(key, both, counts, max(0, both.count - sum(counts.values())))
        return found

    def _eager(self) -> Iterator[SideEager]:
        by_file: dict[str, list[tuple[str, str, int, float, int]]] = {}
        for place in self._report.eager.places():
            by_file.setdefault(file_of(place[1]), []).append(place)
        for file, places in by_file.items():
            yield SideEager(
                file=file,
                count=sum(count for _, _, count, _, _ in places),
                seconds=sum(seconds for _, _, _, seconds, _ in places),
                again=sum(again for _, _, _, _, again in places),
                functions=_summed((function, count) for function, _, count, _, _ in places),
                sites=_summed((site, count) for _, site, count, _, _ in places),
            )


def _summed(pairs: Iterator[tuple[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in pairs:
        found[name] = found.get(name, 0) + count
    return found


def _signature(miss: SeenMiss) -> str:
    """Return a short id of what was compiled: of the key as it is readable, which is the same with another JAX."""
    if not miss.abstract:
        return miss.signature
    return hashlib.blake2b(miss.abstract.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _key_of(miss: SeenMiss) -> CauseKey:
    cause = cause_of(miss)
    return _without_lines(cause.kind, cause.reason, cause.differences)


def _without_lines(kind: str, reason: str, differences: tuple[tuple[str, str], ...]) -> CauseKey:
    """Return what a cause is on either side: the notes of some hold lines, which shift."""
    return (
        kind,
        reason,
        tuple(sorted({(what, _LINE.sub("", where) if ":" in where else where) for what, where in differences})),
    )
