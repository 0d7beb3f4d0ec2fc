"""The pytest plugin: markers, the fixture ``no_retraces``, options ``--jaxwatch…``; the work is in ``_testing``.

Imports neither jax nor the engine until a test, or an option, asks for it.
"""

import sys
from collections.abc import Generator
from typing import Any

import pytest

from jaxwatch._testing import options

_MARKERS = (
    "no_retraces(*, allow=1): each watched function may miss its cache `allow` times in the test; later fails it",
    "max_traces(n, *functions): each watched function (or those of these names) may miss its cache n times in the test",
    "max_compiles(n): all watched functions together may miss their caches n times in the test",
)
_ASKED = pytest.StashKey[options.Asked]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and ini values."""
    options.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Hook the import of jax before any conftest imports it, for as long as this run of pytest takes."""
    if not options.watches(early_config, early_config.known_args_namespace):
        return
    from jaxwatch import _install  # noqa: PLC0415 -- only where it is asked for

    if not _install.installed():
        early_config.add_cleanup(_install.uninstall)
    _install.install(attach=True)  # plugins, and who calls pytest.main, may have jitted before


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers; begin to record where that is asked for."""
    for text in _MARKERS:
        config.addinivalue_line("markers", text)
    asked = config.stash[_ASKED] = options.asked(config)
    if asked.records:
        from jaxwatch._testing import reporting  # noqa: PLC0415 -- only where it is asked for

        reporting.begin(config, asked)


class BareFixture:
    """What the fixture ``no_retraces`` is: ``with no_retraces(step): …``; never called, it guards the whole test.

    Then each function's first miss in the test is free, and a later one fails the test at its end.
    """

    def __init__(self) -> None:
        self.called = False

    def __call__(self, *functions: Any, action: Any = "raise", allow: int = 0) -> Any:
        """Return ``jaxwatch.no_retraces`` of these arguments."""
        from jaxwatch._guards import no_retraces as guard  # noqa: PLC0415 -- only where it is asked for

        self.called = True
        return guard(*functions, action=action, allow=allow)


_BARE = pytest.StashKey[BareFixture]()


@pytest.fixture
def no_retraces(request: pytest.FixtureRequest) -> BareFixture:
    """Forbid traces and compiles: in a ``with`` block of given functions, or in the whole test."""
    found = BareFixture()
    request.node.stash[_BARE] = found
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Guard the test where its marker or the fixture asks for it."""
    marker, bare = item.get_closest_marker("no_retraces"), item.stash.get(_BARE, None)
    if marker is None and bare is None:
        return (yield)
    from jaxwatch._testing import calls  # noqa: PLC0415 -- only where it is asked for

    return (yield from calls.guarded(item, marker, None if bare is None else lambda: bare.called))


@pytest.hookimpl(wrapper=True, specname="pytest_runtest_call")
def pytest_runtest_call_limited(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hold the test to its limits."""
    most = item.config.stash[_ASKED].max_compiles
    if most is None and not any(map(item.get_closest_marker, ("max_traces", "max_compiles"))):
        return (yield)
    from jaxwatch._testing import calls  # noqa: PLC0415 -- only where it is asked for

    return (yield from calls.limited(item, most))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    """Lift what is in force for a test while a fixture is set up within its call."""
    calls = sys.modules.get("jaxwatch._testing.calls")  # not there: nothing is in force
    if calls is None:
        return (yield)
    with calls.setting_up(request.config, request.fixturename or ""):
        return (yield)
