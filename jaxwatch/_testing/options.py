"""What the user asked for, from the command line and the ini file."""

import argparse
import os
from dataclasses import dataclass
from typing import Any

import pytest

from jaxwatch import _limits

_WATCH = "watch what the tests jit by jax.jit (as jaxwatch.install() does), from the first import of jax on"
_REPORT = f"tell the N tests and fixtures that took longest to compile (default {_limits.REPORT_ROWS}; 0: all)"
_LIMIT = "fail a test in whose call watched functions miss their caches more than N times in all"
_BASELINE = "fail a test that misses more than this file, which is to be committed, says"
_UPDATE = "write the baseline anew from what runs, in place of failing tests"
_STRICT = "fail also a test that misses and is not in the baseline yet"


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be done beside watching."""

    report: int | None  # rows; 0: all
    max_compiles: int | None
    baseline: str | None  # absolute path
    update: bool
    strict: bool

    @property
    def records(self) -> bool:
        """Whether it is to be recorded who compiles what."""
        return self.report is not None or self.baseline is not None


def add(parser: pytest.Parser) -> None:
    """Add the options and their values in the ini file."""
    group = parser.getgroup("jaxwatch")
    group.addoption("--jaxwatch", action="store_true", default=False, help=_WATCH)
    number = _limits.REPORT_ROWS
    group.addoption("--jaxwatch-report", nargs="?", const=number, type=_report, metavar="N", help=_REPORT)
    group.addoption("--jaxwatch-max-compiles", type=_limit, metavar="N", help=_LIMIT)
    group.addoption("--jaxwatch-baseline", metavar="FILE", help=_BASELINE)
    group.addoption("--jaxwatch-update-baseline", action="store_true", default=False, help=_UPDATE)
    group.addoption("--jaxwatch-baseline-strict", action="store_true", default=False, help=_STRICT)
    parser.addini("jaxwatch", _WATCH, type="bool", default=False)
    parser.addini("jaxwatch_report", _REPORT, default="")
    parser.addini("jaxwatch_max_compiles", _LIMIT, default="")
    parser.addini("jaxwatch_baseline", _BASELINE + " (relative to the ini file)", default="")
    parser.addini("jaxwatch_baseline_strict", _STRICT, type="bool", default=False)


def watches(config: pytest.Config, namespace: argparse.Namespace) -> bool:
    """Whether anything is asked for that needs plain ``jax.jit`` to be watched: all of it does."""
    names = "jaxwatch", "jaxwatch_report", "jaxwatch_max_compiles", "jaxwatch_baseline"
    given = (getattr(namespace, name, None) for name in names)  # 0 is a number that was given
    return any(value is not None and value is not False for value in given) or any(map(config.getini, names))


def asked(config: pytest.Config) -> Asked:
    """Return what is asked for; the command line comes before the ini file.

    Raises:
        pytest.UsageError: A value means nothing.
    """
    path = config.getoption("jaxwatch_baseline")
    if path:
        path = os.path.abspath(os.path.join(config.invocation_params.dir, path))
    elif config.getini("jaxwatch_baseline"):
        path = os.path.join((config.inipath or config.rootpath / "ini").parent, config.getini("jaxwatch_baseline"))
    update = config.getoption("jaxwatch_update_baseline")
    if update and not path:
        raise pytest.UsageError("--jaxwatch-update-baseline needs a file: give --jaxwatch-baseline FILE. [baseline]")
    return Asked(
        report=_chosen(config, "jaxwatch_report", _report),
        max_compiles=_chosen(config, "jaxwatch_max_compiles", _limit),
        baseline=path or None,
        update=update,
        strict=config.getoption("jaxwatch_baseline_strict") or config.getini("jaxwatch_baseline_strict"),
    )


def _chosen(config: pytest.Config, name: str, kind: Any) -> int | None:
    given: int | None = config.getoption(name)
    text = config.getini(name).strip()
    if given is not None or not text:
        return given
    try:
        number: int = kind(text)
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"{name} in {config.inipath}: {error}") from None
    return number


def _report(text: str) -> int:
    return _number(text, f"Write --jaxwatch-report={_limits.REPORT_ROWS}, or put the option last.")


def _limit(text: str) -> int:
    return _number(text, "Give 0 or more.")


def _number(text: str, way_out: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number. {way_out} [bad-option]")
    return int(text)
