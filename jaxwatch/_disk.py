"""What became of one look-up in JAX's persistent compilation cache: read, stored, or not stored, and why."""

from jaxwatch import _compat
from jaxwatch.events import DiskEntry, DiskResult


class Lookup:
    """One look-up; it begins when JAX asks and is filled by the events that follow."""

    __slots__ = ("calls_back", "found", "key", "read_seconds", "saved_seconds", "written")

    def __init__(self, key: str | None, *, calls_back: bool) -> None:
        self.key = key
        self.calls_back = calls_back  # the program calls back to the host
        self.found = self.written = False
        self.read_seconds: float | None = None
        self.saved_seconds: float | None = None  # what it took to compile, less what it took to read

    @property
    def result(self) -> DiskResult | None:
        """Whether it was found; None where the cache is off, though JAX asks."""
        return None if not _compat.disk_cache_on() else "hit" if self.found else "miss"

    def entry(self, compile_seconds: float) -> DiskEntry | None:
        """Return what is told of it, after a compile of so many seconds; None where the cache is off."""
        if self.result is None:
            return None
        kept = self.found or self.written
        return DiskEntry(
            key=self.key,
            read_seconds=self.read_seconds,
            saved_seconds=self.saved_seconds,
            not_stored=None if kept else self._why_not_stored(compile_seconds),
        )

    def _why_not_stored(self, compile_seconds: float) -> str:
        """As JAX decides it, in its order (``_cache_write`` in its ``compiler.py``)."""
        if _compat.process_index():
            return "only process 0 stores"
        if self.calls_back:
            return "it calls back to the host"
        seconds, size = _compat.disk_limits()
        if compile_seconds < seconds:
            return f"compiled in less than jax_persistent_cache_min_compile_time_secs={seconds:g}"
        rest = "compiled too fast but for the look-up, or it could not be written"
        return f"smaller than jax_persistent_cache_min_entry_size_bytes={size}, {rest}" if size > 0 else rest
