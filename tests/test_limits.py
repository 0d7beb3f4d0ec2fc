"""Every bound has a positive default, and a comment that says what happens at it."""

import inspect
import re

from programs import ROOT

from jaxwatch import _limits

BOUNDS = {name: value for name, value in vars(_limits).items() if name.isupper()}


def test_every_bound_is_a_positive_number() -> None:
    assert BOUNDS
    assert all(isinstance(value, int | float) and value > 0 for value in BOUNDS.values())


def test_every_bound_stands_under_a_comment() -> None:
    blocks = inspect.getsource(_limits).split("\n\n")[1:]

    for block in blocks:
        if re.search(r"^[A-Z_]+ = ", block, re.MULTILINE):
            assert block.lstrip().startswith("#"), block


def test_every_bound_is_used_somewhere() -> None:
    texts = "".join(path.read_text() for path in (ROOT / "jaxwatch").rglob("*.py") if path.name != "_limits.py")

    assert not [name for name in BOUNDS if f"_limits.{name}" not in texts]
