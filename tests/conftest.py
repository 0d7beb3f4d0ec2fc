"""Shared fixtures."""

import os
import shutil
from collections.abc import Callable

import pytest


@pytest.fixture
def require_program() -> Callable[[str], str]:
    """Return a function that finds a program of the system, or skips the test (fails, with JAXWATCH_REQUIRE_ALL=1)."""

    def find(name: str) -> str:
        if path := shutil.which(name):
            return path
        reason = f"needs the program {name}: apt-get install {name}"
        if os.environ.get("JAXWATCH_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return find
