"""The pytest plugin: fixture ``no_retraces``, marker ``@pytest.mark.no_retraces``, option ``--jaxwatch``.

Imports neither jax nor the engine until a test asks for it.
"""

from collections.abc import Generator
from typing import Any

import pytest

_MARKER = "no_retraces(*, allow=1): each watched function may miss its cache `allow` times in the test; later fails it"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--jaxwatch`` and the ini value ``jaxwatch``."""
    text = "watch what the tests jit by jax.jit (as jaxwatch.install() does), from the first import of jax on"
    parser.getgroup("jaxwatch").addoption("--jaxwatch", action="store_true", default=False, help=text)
    parser.addini("jaxwatch", text, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Hook the import of jax before any conftest imports it."""
    options = early_config.known_args_namespace
    if getattr(options, "jaxwatch", False) or early_config.getini("jaxwatch"):
        from jaxwatch._install import install  # noqa: PLC0415 -- only where it is asked for

        install(attach=True)  # plugins, and who calls pytest.main, may have jitted before


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


class BareFixture:
    """What the fixture ``no_retraces`` is: ``with no_retraces(step): …``; never called, it guards the whole test.

    Then each function's first miss in the test is free, and a later one fails the test at its end.
    """

    def __init__(self) -> None:
        self.called = False

    def __call__(self, *functions: Any, action: Any = "raise", allow: int = 0) -> Any:
        """Return ``jaxwatch.no_retraces`` of these arguments."""
        from jaxwatch._guards import no_retraces as guard  # noqa: PLC0415

        self.called = True
        return guard(*functions, action=action, allow=allow)


_KEY = pytest.StashKey[BareFixture]()


@pytest.fixture
def no_retraces(request: pytest.FixtureRequest) -> BareFixture:
    """Forbid traces and compiles: in a ``with`` block of given functions, or in the whole test."""
    found = BareFixture()
    request.node.stash[_KEY] = found
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Guard the test where its marker or the fixture asks for it."""
    marker = item.get_closest_marker("no_retraces")
    bare = item.stash.get(_KEY, None)
    if marker is None and bare is None:
        return (yield)
    from jaxwatch import _guards  # noqa: PLC0415 -- only where it is asked for
    from jaxwatch.errors import RetraceError  # noqa: PLC0415 -- as above

    by = f"{'the marker' if marker else 'the fixture'} no_retraces of {item.nodeid}"
    allow = _allowed(marker)
    action: Any = "raise" if marker is not None else "record"
    with _guards.no_retraces(action=action, allow=allow) as guard:
        guard.by = by
        result = yield
    if bare is not None and not bare.called and guard.broken:
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
