"""A pytest plugin, loaded in both runs alike: the same random numbers, a limit for each test, nothing of jaxwatch's.

It is copied out of this package before it is used: the checkout is not to be on the path of what is tested.
"""

import random
import signal
import sys
from collections.abc import Generator
from types import FrameType

import pytest

TEST_SECONDS = 300


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Seed what tests draw from without a seed of their own, so that two runs draw the same; stop what hangs."""
    random.seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"{item.nodeid} takes more than {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(TEST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
