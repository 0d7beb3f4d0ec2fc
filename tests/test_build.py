"""What is told of what runs here; that nothing is imported or started for it, tests/test_metrics.py shows."""

import importlib.metadata

import jax
import pytest

from jaxwatch import _build, _core
from jaxwatch._build import Build, build
from jaxwatch._metrics import FAMILIES


def test_its_fields_are_the_labels_of_the_metric() -> None:
    (family,) = (family for family in FAMILIES if family.name == "jaxwatch_build_info")

    assert Build._fields == family.labels


def test_versions_and_core_are_those_in_use() -> None:
    found = build()

    assert found.version == importlib.metadata.version("jaxwatch")
    assert (found.jax_version, found.core, found.process_index) == (jax.__version__, _core.CORE.name, "")


def test_a_checkout_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    _build._version.cache_clear()
    assert build().version == ""
    _build._version.cache_clear()
