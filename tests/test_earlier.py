"""What was jitted before is found where modules and classes hold it, and looking runs nothing of theirs."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from jaxwatch import _earlier


class Kind:
    """Stands for the type of jitted functions."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, owner: Any) -> Any:
        """Be what a decorator like ``property`` takes."""


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = types.ModuleType("fake_module")
    monkeypatch.setitem(sys.modules, "fake_module", made)
    return made


def made_in(module: str, name: str, **attributes: Any) -> type:
    return type(name, (), {"__module__": module, **attributes})


def names() -> list[str]:
    return sorted(found.name for found in _earlier.jitted_functions(Kind))


def test_globals_and_class_attributes_are_found(module: Any) -> None:
    module.step = Kind("global")
    module.Model = made_in(
        "fake_module",
        "Model",
        plain=Kind("method"),
        static=staticmethod(Kind("static")),
        of_class=classmethod(Kind("class")),
        value=property(Kind("property")),
        Inner=made_in("fake_module", "Inner", plain=Kind("nested")),
    )

    assert names() == ["class", "global", "method", "nested", "property", "static"]


def test_what_several_hold_is_found_once(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    other: Any = types.ModuleType("fake_other")
    monkeypatch.setitem(sys.modules, "fake_other", other)
    module.step = module.alias = other.step = Kind("step")

    assert names() == ["step"]


def test_classes_are_looked_into_where_they_are_defined_and_not_too_deep(module: Any) -> None:
    deep = made_in("fake_module", "Deep", f=Kind("too deep"))
    module.Imported = made_in("somewhere_else", "Imported", f=Kind("imported"))
    module.Outer = made_in("fake_module", "Outer", Inner=made_in("fake_module", "Inner", Deep=deep))
    module.Outer.me = module.Outer  # a circle
    module.Outer.f = Kind("found")

    assert names() == ["found"]


@pytest.mark.parametrize("name", ["jax", "jax.fake", "jaxlib.fake"])
def test_jaxs_own_modules_are_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = types.ModuleType(name)
    made.step = Kind("theirs")
    monkeypatch.setitem(sys.modules, name, made)

    assert names() == []


def test_nothing_of_theirs_runs(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    class Loud:
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            raise RuntimeError(name)

        def __eq__(self, other: object) -> bool:
            ran.append("__eq__")
            raise RuntimeError(other)

        __hash__ = None  # type: ignore[assignment]  # as of a mutable object

    class LoudMeta(type):
        def __getattribute__(cls, name: str) -> Any:
            ran.append(name)
            raise RuntimeError(name)

        def __hash__(cls) -> int:
            raise RuntimeError("hash")

        def __eq__(cls, other: object) -> bool:
            raise RuntimeError(other)

    class LoudModule(types.ModuleType):
        def __getattribute__(self, name: str) -> Any:
            ran.append(name)
            raise RuntimeError(name)

    module.loud = Loud()
    module.meta = LoudMeta("Meta", (), {"__module__": "fake_module", "f": Kind("behind a metaclass")})
    module.odd_home = made_in("fake_module", "Odd")
    module.odd_home.__module__ = module.loud
    module.__getattr__ = ran.append
    module.step = Kind("step")
    monkeypatch.setitem(sys.modules, "fake_loud", LoudModule("fake_loud"))
    monkeypatch.setitem(sys.modules, "fake_object", module.loud)
    monkeypatch.setitem(sys.modules, "fake_none", None)  # how an import is forbidden

    assert names() == ["behind a metaclass", "step"]
    assert ran == []


def test_a_lazy_module_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fake_lazy.py").write_text("raise RuntimeError('loaded')")
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.find_spec("fake_lazy")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    lazy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fake_lazy", lazy)
    spec.loader.exec_module(lazy)

    assert names() == []
    with pytest.raises(RuntimeError, match="loaded"):
        lazy.step  # noqa: B018 -- now it is
