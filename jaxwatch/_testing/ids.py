"""Names of tests and fixtures that are the same in every process and on every machine."""

from typing import Any

import pytest


def of(item: pytest.Item) -> str:
    """Return a test's nodeid, without the group that pytest-xdist appends with ``--dist loadgroup``."""
    marker = item.get_closest_marker("xdist_group")
    if marker is None or "@" not in item.nodeid:
        return item.nodeid
    group = marker.args[0] if marker.args else marker.kwargs.get("name", "default")
    return item.nodeid.removesuffix(f"@{group}")


def of_fixture(definition: Any) -> str:
    """Return a fixture's name behind the folder, file or class that it is defined for."""
    base = getattr(definition, "baseid", "") or ""
    return f"{base}::{definition.argname}" if base else str(definition.argname)


def file_of(nodeid: str) -> str:
    """Return the file's part of a nodeid."""
    return nodeid.partition("::")[0]
