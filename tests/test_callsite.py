"""The user's frame, seen through jax and jaxwatch."""

import sys
import threading
from typing import Any

import jax
import numpy as np
import pytest
from published import Events

import jaxwatch
from jaxwatch import _compat
from jaxwatch._callsite import Site, user_site

X = np.ones(3, np.float32)


def here() -> str:
    return f"{__file__}:{sys._getframe(1).f_lineno}"


def test_it_is_the_innermost_frame_that_is_nobodys_but_the_users() -> None:
    assert user_site() == Site(here(), False)

    found: list[Site] = []
    jax.jit(lambda _x: found.append(user_site()))(X)
    assert found[0].text.startswith(__file__)
    assert not found[0].ahead_of_time


def test_a_depth_beyond_the_stack_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxwatch import _callsite

    monkeypatch.setattr(_callsite, "whose", lambda _file: "skipped")
    assert user_site() == Site("<unknown>", False)


@pytest.mark.parametrize("where", ["<string>", "<stdin>", "/tmp/ipykernel_1/2.py", "a b.py", "ü.py", "x\ny.py"])  # noqa: S108 -- a name alone
def test_code_of_any_origin_is_the_users(where: str, events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    exec(compile("\n\nstep(x)", where, "exec"), {"step": step, "x": X})  # noqa: S102 -- as a notebook does

    assert events.last().site == f"{where}:3"


def test_on_a_thread_of_its_own_it_is_the_first_frame_of_the_thread(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)

    def work() -> None:
        step(X)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert events.last().site == f"{__file__}:{work.__code__.co_firstlineno + 1}"


def test_work_ahead_of_time_is_seen_to_be() -> None:
    found: list[tuple[str, Site]] = []

    def listen(event: str, value: float, **kwargs: str | int) -> None:
        del value, kwargs
        found.append((event, user_site(2)))

    def last(event: str) -> bool:
        (site,) = [site for name, site in found if name == event]
        assert site.text.startswith(__file__)
        found.clear()
        return site.ahead_of_time

    jax.monitoring.register_scalar_listener(listen)
    try:
        jax.jit(lambda x: x + 1)(X)
        assert last(_compat.COMPILE_EVENT) is False
        lowered = jax.jit(lambda x: x + 2).lower(X)
        found.clear()
        lowered.compile()
        assert last(_compat.COMPILE_EVENT) is True
    finally:
        _compat.unregister(listen, listen, listen)


def test_code_that_a_library_made_without_a_file_is_the_librarys(events: Events) -> None:
    step = jaxwatch.jit(lambda x: x + 1)
    made: dict[str, Any] = {"__file__": "/v/lib/python3.11/site-packages/lib/__init__.py", "step": step}
    exec(compile("def make(x):\n    return step(x)", "<string>", "exec"), made)  # noqa: S102 -- as a dataclass's __init__
    made["make"](X)

    assert events.last().site.startswith(f"{__file__}:")
    assert events.last().via == "<string>:2"
