"""A pytest plugin, loaded in both runs alike: the same random numbers and nothing of jaxwatch's.

It is copied out of this package before it is used: the checkout is not to be on the path of what is tested.
"""

import random
import sys
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Seed what tests draw from without a seed of their own, so that two runs draw the same."""
    del item
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
    return (yield)
