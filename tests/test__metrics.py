"""The table of metric families, against the one that people read."""

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jaxwatch import _limits
from jaxwatch._metrics import FAMILIES, PREFIX, REASONS_AT_0, VALUES, Family
from jaxwatch._options import ACTIONS
from jaxwatch._stats import FunctionStats, ProcessStats
from jaxwatch.events import REASONS

DOCUMENT = (Path(__file__).parent.parent / "grafana" / "METRICS.md").read_text("utf-8")
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)
LABEL = re.compile(r"^\| `(\w+)` \| ([^|]*) \|$", re.MULTILINE)
BUCKETS = re.compile(r"^- `(\w+)`: (.*), \+Inf$", re.MULTILINE)


def test_the_table_and_its_document_agree() -> None:
    written = [
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)), unit.replace("–", ""), text)  # noqa: RUF001 -- as written
        for name, kind, labels, unit, text in ROW.findall(DOCUMENT)
    ]

    assert written == [(f.name, f.kind, f.labels, f.unit, f.help) for f in FAMILIES]


def test_the_buckets_and_their_document_agree() -> None:
    written = {name: tuple(map(float, bounds.split(", "))) for name, bounds in BUCKETS.findall(DOCUMENT)}

    assert written == {f.name: f.buckets for f in FAMILIES if f.kind == "histogram"}


def test_the_closed_lists_and_their_document_agree() -> None:
    written = {label: tuple(values.split(", ")) for label, values in LABEL.findall(DOCUMENT)}

    assert {label: written[label] for label in VALUES if label != "label"} == {
        label: values for label, values in VALUES.items() if label != "label"
    }
    assert set(VALUES["action"]) == set(ACTIONS)


def test_the_document_states_the_bounds_in_force() -> None:
    bounds = (
        f"at most {_limits.LABEL_FUNCTIONS}, of which {_limits.LABEL_FUNCTIONS_OF_USER} are kept for the user's",
        f"at most {_limits.LABEL_SIGNATURES_PER_FUNCTION} a function and {_limits.LABEL_SIGNATURES} in all",
        f"at most {_limits.LABEL_SITES}, then other",
        f"shortened to {_limits.ABSTRACT_LABEL_CHARACTERS} characters",
    )

    assert [bound for bound in bounds if bound not in DOCUMENT] == []


def test_the_document_states_the_reasons_at_0() -> None:
    assert f"and {', '.join(REASONS_AT_0)} always" in DOCUMENT
    assert set(REASONS_AT_0) <= set(REASONS)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_follows_prometheus_naming(family: Family) -> None:
    assert family.name.startswith(PREFIX)
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert (family.unit == "seconds") == ("_seconds" in family.name)
    assert list(family.buckets) == sorted(set(family.buckets))
    assert bool(family.buckets) == (family.kind == "histogram")
    assert "le" not in family.labels


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.source], ids=lambda family: family.name)
def test_a_family_is_made_of_a_field_that_exists(family: Family) -> None:
    owner, field = family.source.split(".")

    owners = {"FunctionStats": fields(FunctionStats), "ProcessStats": fields(ProcessStats)}
    assert field in {found.name for found in owners[owner]}


def test_names_are_given_once() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES) == 20


def test_the_table_needs_neither_jax_nor_a_client() -> None:
    program = "import sys, jaxwatch._metrics; sys.exit(bool({'jax', 'prometheus_client'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
