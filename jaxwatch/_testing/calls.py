"""What is in force while a test's call runs: ``no_retraces`` and limits; lifted while a fixture is set up within it."""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from jaxwatch import _guards
from jaxwatch._testing.ledger import Ledger, Owner, Tally
from jaxwatch._testing.limits import broken, limits_of
from jaxwatch.errors import RetraceError

_KEY = pytest.StashKey["_Call"]()


class _Call:
    """One test's call."""

    def __init__(self) -> None:
        self.guard: _guards.Guard | None = None
        self.ledger: Ledger | None = None


@contextlib.contextmanager
def setting_up(config: pytest.Config, fixture: str) -> Iterator[None]:
    """Within the block, a fixture is set up: what it compiles is not the test's, even where the test asks for it."""
    call = config.stash.get(_KEY, None)
    with contextlib.ExitStack() as stack:
        if call is not None and call.guard is not None:
            stack.enter_context(_guards.lifted(call.guard))
        if call is not None and call.ledger is not None:
            stack.enter_context(call.ledger.within(Owner("fixture", fixture)))
        yield


def limited(item: pytest.Item, most: int | None) -> Generator[None, Any, Any]:
    """Run a test's call under its limits; fail it at its end, where it does not fail by itself."""
    limits = limits_of(item, most)
    if not limits:
        return (yield)
    call, owner = item.config.stash.setdefault(_KEY, _Call()), Owner("call", item.nodeid)
    before, call.ledger = call.ledger, Ledger()
    ledger = call.ledger
    ledger.begin()
    try:
        with ledger.within(owner):
            result = yield
    finally:
        ledger.end()
        call.ledger = before
    text = broken(limits, ledger.take().get(owner, Tally()), str(item.config.rootpath))
    if text is not None:
        pytest.fail(text, pytrace=False)
    return result


def guarded(item: pytest.Item, marker: pytest.Mark | None, called: Any) -> Generator[None, Any, Any]:
    """Run a test's call under ``no_retraces``.

    Args:
        item: The test.
        marker: Its marker, if it has one.
        called: Of a test that asked for the fixture, says whether it was called; None of others.
    """
    by = f"{'the marker' if marker else 'the fixture'} no_retraces of {item.nodeid}"
    call = item.config.stash.setdefault(_KEY, _Call())
    with _guards.no_retraces(action="raise" if marker is not None else "record", allow=_allowed(marker)) as guard:
        guard.by = by
        before, call.guard = call.guard, guard
        try:
            result = yield
        finally:
            call.guard = before
    if called is not None and not called() and guard.broken:
        raise RetraceError("\n".join(guard.broken))
    return result


def _allowed(marker: pytest.Mark | None) -> int:
    if marker is None:
        return 1
    unknown = set(marker.kwargs) - {"allow"}
    if marker.args or unknown:
        pytest.fail(f"@pytest.mark.no_retraces takes allow=N and nothing else, got {marker.args} {marker.kwargs}")
    allow: int = marker.kwargs.get("allow", 1)
    return allow
