"""The processes of some logs, and the figures of each function in each of them. Pure; bounded."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from jaxwatch import _limits
from jaxwatch._findings import OTHER
from jaxwatch._records import Record, SeenMiss, SeenStats, text, unix_seconds, whole, whole_or_none

# Processes told apart. Beyond, all share the figures of the last one; counted as folded "process".
PROCESSES = 10_000
# Figures of functions, over all processes. Beyond, those of "other"; counted as folded "function".
FIGURES = 50_000
# Misses of one process whose call numbers are kept, to say with which call a later one was compared. The oldest goes.
CALLS_KEPT = 10_000
# Signatures told apart for one function in one process: as the registry does.
SIGNATURES_KEPT = _limits.SIGNATURES_PER_FUNCTION
SIGNATURES_KEPT_IN_ALL = 100_000


class Figures:
    """What is known of one function in one process: of its misses, and by its last ``function_stats``."""

    def __init__(self) -> None:
        self.events = self.largest_call = self.from_disk = 0
        self.seconds = 0.0
        self.signatures: set[str] = set()
        self.distinct = 0  # signatures
        self.stats: SeenStats | None = None

    def add(self, miss: SeenMiss, room: int) -> int:
        """Add a miss; return how many new signatures are kept now."""
        self.events += 1
        self.largest_call = max(self.largest_call, miss.call)
        self.seconds += miss.seconds
        self.from_disk += miss.from_disk
        if miss.signature in self.signatures or room <= 0 or len(self.signatures) >= SIGNATURES_KEPT:
            return 0
        self.signatures.add(miss.signature)
        self.distinct += 1
        return 1

    @property
    def misses(self) -> int:
        """Misses; the log may lack the last ``function_stats`` as well as some events."""
        return max(self.events, self.stats.misses if self.stats else 0)


class Process:
    """One process that wrote into a log."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.rank: int | None = None  # once jax.distributed runs
        self.job = 0  # of the runs of a job that restarts, the how-manieth it is, from 0
        self.first: float | None = None  # seconds since 1970
        self.last = 0.0
        self.now = 0.0  # of the event that was told last
        self.wall_seconds: float | None = None  # as it said itself at its end
        self.exit_code: int | None = None
        self.program: str | None = None
        self.figures: dict[tuple[str, str], Figures] = {}
        self.overhead: Mapping[str, float] = {}  # part → seconds, as it said last
        self._calls: OrderedDict[int, int] = OrderedDict()  # of a dict, the oldest is found in ever longer time

    @property
    def seconds(self) -> float:
        """How long it ran: as it said, or else from its first to its last event."""
        if self.wall_seconds is not None:
            return self.wall_seconds
        return max(0.0, self.last - self.first) if self.first is not None else 0.0

    def saw(self, time: float) -> None:
        """Note that the process was alive at ``time``."""
        self.now = time
        if self.first is None or time < self.first:
            self.first = time
        if time > self.last:  # noqa: PLR1730 -- for every record: a call of max() takes four times as long
            self.last = time

    def remember(self, miss: SeenMiss) -> None:
        """Keep the number of the miss's call."""
        if len(self._calls) >= CALLS_KEPT:
            self._calls.popitem(last=False)
        self._calls[miss.number] = miss.call

    def call_of(self, miss: int | None) -> int | None:
        """Return the number of the call that missed as number ``miss``; None where it is not known."""
        return None if miss is None else self._calls.get(miss)

    def end(self) -> None:
        """Let go of what only further events would need."""
        self._calls.clear()


class Processes:
    """All processes, told apart although pids come again: after a restart, or as pid 1 of each container.

    Args:
        most: Processes told apart; by default ``PROCESSES``.
    """

    def __init__(self, most: int | None = None) -> None:
        self.all: list[Process] = []
        self._most = most
        self.folded: dict[str, int] = {}
        self._current: dict[tuple[int, int | None], Process] = {}  # pid and rank, once jax.distributed runs
        self._latest: dict[int, Process] = {}
        self._jobs: dict[int, int] = {}  # rank → processes that had it
        self._figures = 0
        self._signatures_left = SIGNATURES_KEPT_IN_ALL

    def find(self, record: Record) -> Process:
        """Return the process that wrote ``record``.

        Raises:
            MalformedError: The record does not tell.
        """
        pid, rank, time = whole(record, "pid"), whole_or_none(record, "process_index"), unix_seconds(record)
        process = self._begun(pid, rank, record) if record["event"] == "run" else self._current.get((pid, rank))
        if process is None:
            process = self._known(pid, rank) or self._new(pid, rank)
        process.saw(time)
        if rank is not None and process.rank is None:
            self.give_rank(process, rank)
        return process

    def give_rank(self, process: Process, rank: int) -> None:
        """Note the rank of a process, in the order in which ranks were told first."""
        process.rank, process.job = rank, self._jobs.get(rank, 0)
        self._jobs[rank] = process.job + 1

    def current(self, pid: int, rank: int | None) -> Process | None:
        """Return the process that a record of this pid and rank is of, unless it begins one; None: a new one."""
        return self._current.get((pid, rank)) or (self._latest.get(pid) if rank is None else None)

    def _begun(self, pid: int, rank: int | None, record: Record) -> Process | None:
        """Return the new process that the record begins, if it begins one."""
        if text(record, "phase") != "start":
            return None
        return self._new(pid, rank)

    def _known(self, pid: int, rank: int | None) -> Process | None:
        if (process := self._current.get((pid, rank))) is not None:
            return process
        if rank is None:  # jax.distributed was shut down
            return self._latest.get(pid)
        if (process := self._current.pop((pid, None), None)) is not None:  # it has its rank now
            self._current[pid, rank] = process
        return process

    def _new(self, pid: int, rank: int | None) -> Process:
        if len(self.all) >= (PROCESSES if self._most is None else self._most):
            self.fold("process")
            return self.all[-1]
        process = self._current[pid, rank] = self._latest[pid] = Process(len(self.all))
        self.all.append(process)
        return process

    def figures(self, process: Process, function: str, definition: str, records: int = 1) -> Figures:
        """Return the figures of a function in a process, for so many records of it."""
        if (found := process.figures.get((function, definition))) is not None:
            return found
        key = (function, definition) if self._figures < FIGURES else (OTHER, "")
        if key == (OTHER, ""):
            self.fold("function", records)
        self._figures += 1
        return process.figures.setdefault(key, Figures())

    def count(self, process: Process, miss: SeenMiss) -> None:
        """Count a miss in the figures of its function."""
        figures = self.figures(process, miss.function, miss.definition)
        self._signatures_left -= figures.add(miss, self._signatures_left)
        process.remember(miss)

    def rows(self) -> Iterator[tuple[tuple[str, str], Figures, Process]]:
        """Yield the figures of each function in each process."""
        for process in self.all:
            for key, figures in process.figures.items():
                yield key, figures, process

    def exit_codes(self) -> Mapping[int, int]:
        """Return exit code → processes, of those that did not end well."""
        counts: dict[int, int] = {}
        for process in self.all:
            if process.exit_code:
                counts[process.exit_code] = counts.get(process.exit_code, 0) + 1
        return dict(sorted(counts.items()))

    def fold(self, what: str, records: int = 1) -> None:
        """Count records that are told as "other"."""
        self.folded[what] = self.folded.get(what, 0) + records
