"""What tests look at of events that were published; imports no jax."""

from typing import TypeVar

from jaxwatch.events import CacheMiss, EagerCompile, Event

E = TypeVar("E", bound=Event)


class Events(list[Event]):
    """The events of a test."""

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self if isinstance(event, kind)]

    @property
    def misses(self) -> list[CacheMiss]:
        return self.of(CacheMiss)

    @property
    def eager(self) -> list[EagerCompile]:
        return self.of(EagerCompile)

    @property
    def reasons(self) -> list[tuple[str, ...]]:
        return [miss.reasons for miss in self.misses]

    def last(self) -> CacheMiss:
        return self.misses[-1]

    def changes(self) -> list[tuple[str, str | None, str | None, str | None]]:
        """Return what the last miss tells: reason, path, before, after."""
        return [(change.reason, change.path, change.before, change.after) for change in self.last().changes]
