"""Frozen figures."""

import dataclasses
import inspect
import pickle

import pytest
from figures import BLANK, made, process

from jaxwatch._stats import SiteStats


def test_figures_cannot_be_changed() -> None:
    for figures, name in ((BLANK, "calls"), (process(), "functions"), (SiteStats(count=1, seconds=0.1), "count")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(figures, name, 1)


def test_figures_can_be_sent_to_another_process() -> None:
    figures = process(made(calls=3, dispatch={1e-5: 2}))

    assert pickle.loads(pickle.dumps(figures)) == figures  # noqa: S301 -- our own


def test_quantiles_are_of_the_calls_from_the_cache() -> None:
    figures = made(calls=11, misses=1, dispatch={1e-5: 5, 2e-5: 4, 9e-3: 1})

    assert figures.dispatch_quantile(0.5) == 1e-5
    assert figures.dispatch_quantile(0.9) == 2e-5
    assert figures.dispatch_quantile(0.99) == figures.dispatch_quantile(1) == 9e-3
    assert BLANK.dispatch_quantile(0.5) is None


def test_every_figure_is_described() -> None:
    for kind in (type(BLANK), type(process())):
        for field in dataclasses.fields(kind):
            assert f"\n    {field.name}: " in (inspect.getdoc(kind) or "")
