"""Figures made by hand, for the tests of what reads them."""

import dataclasses
from typing import Any

from hypothesis import strategies as st

from jaxwatch._stats import FunctionStats, ProcessStats
from jaxwatch.events import PhaseSeconds

BLANK = FunctionStats(
    function="step",
    definition="train.py:7",
    calls=0,
    misses=0,
    traces=0,
    lowerings=0,
    compiles=0,
    trace_errors=0,
    signatures=0,
    seconds=PhaseSeconds(),
    dispatch={},
    misses_by_cause={},
    misses_by_signature={},
    abstracts={},
    miss_seconds={},
    last_miss_unix_seconds=0.0,
    violations={},
    in_library=False,
)
NOTHING = ProcessStats(
    functions=(), eager={}, disk={}, dropped={}, label_overflows={}, exporter_errors={}, overhead_seconds={}
)
BUSY = dataclasses.replace(
    BLANK,
    calls=100,
    misses=3,
    trace_errors=1,
    signatures=2,
    seconds=PhaseSeconds(trace=0.5, lower=0.25, backend_compile=2.0),
    dispatch={2e-05: 90, 0.00045: 7},
    misses_by_cause={("compile", "first_call"): 1, ("compile", "shape"): 1, ("trace", "config"): 1},
    misses_by_signature={"s01": 2, "s02": 1},
    abstracts={"s01": "x: float32[8]", "s02": "x: float32[4]"},
    miss_seconds={1.5: 1, 0.7: 2},
    last_miss_unix_seconds=1_700_000_000.5,
    violations={"warn": 2},
)

hostile = st.text(st.characters(exclude_categories=()), max_size=12)
"""Any text at all: quotes, newlines, backslashes, NUL, lone surrogates."""


def made(**changes: Any) -> FunctionStats:
    """Return the figures of a function that was never called, but for ``changes``."""
    return dataclasses.replace(BLANK, **changes)


def process(*functions: FunctionStats, **changes: Any) -> ProcessStats:
    """Return the figures of a process with these functions."""
    return dataclasses.replace(NOTHING, functions=functions, **changes)
