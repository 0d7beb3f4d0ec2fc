"""The package itself: few names, loaded when asked for, and nothing started."""

import importlib.metadata
import inspect
import json
from typing import Any

import pytest
from programs import ROOT, run

import jaxwatch

HEAVY = ("jax", "jaxlib", "numpy", "prometheus_client", "structlog", "rich", "click", "pytest")
PURE = (
    "_explain",
    "_advisor",
    "_keys",
    "_texts",
    "_words",
    "_history",
    "_histogram",
    "_stats",
    "_limits",
    "_hub",
    "events",
    "errors",
)


def test_there_are_no_more_than_24_names_and_each_is_there() -> None:
    assert len(jaxwatch.__all__) <= 24
    assert len(set(jaxwatch.__all__)) == len(jaxwatch.__all__)
    for name in jaxwatch.__all__:
        assert getattr(jaxwatch, name) is not None
    assert set(jaxwatch.__all__) <= set(dir(jaxwatch))


def test_a_public_name_is_the_same_object_each_time() -> None:
    for name in jaxwatch.__all__:
        assert getattr(jaxwatch, name) is getattr(jaxwatch, name)


def test_public_things_are_documented_and_annotated() -> None:
    for name in jaxwatch.__all__:
        thing: Any = getattr(jaxwatch, name)
        assert inspect.getdoc(thing), name
        if inspect.isfunction(thing):
            hints = inspect.signature(thing)
            assert hints.return_annotation is not hints.empty, name
            assert all(p.annotation is not p.empty for p in hints.parameters.values()), name


@pytest.mark.parametrize("name", ["nothing", "_HOME_", "__path_of_nothing__", "Jit"])
def test_an_unknown_name_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'jaxwatch' has no attribute '{name}'"):
        getattr(jaxwatch, name)


def test_the_version_is_the_packages() -> None:
    assert jaxwatch.__version__ == importlib.metadata.version("jaxwatch")


def test_a_star_import_gives_the_public_names() -> None:
    found: dict[str, Any] = {}
    exec("from jaxwatch import *", found)  # noqa: S102 -- just so

    assert set(jaxwatch.__all__) <= set(found)


@pytest.mark.parametrize(
    "statement",
    [
        "import jaxwatch; dir(jaxwatch)",
        "from jaxwatch import Watch, install, uninstall, configure, errors, events, no_retraces; Watch(name='step')",
        *(f"import jaxwatch.{name}" for name in PURE),
        "import jaxwatch.pytest_plugin as plugin",
    ],
)
def test_importing_loads_and_starts_nothing(statement: str) -> None:
    heavy = [name for name in HEAVY if name != "pytest" or "plugin" not in statement]
    ended = run(f"""
        import json, sys, threading
        {statement}
        loaded = [name for name in {heavy!r} if name in sys.modules]
        print(json.dumps([loaded, threading.active_count()]))
    """)

    assert ended.data() == [[], 1]
    assert ended.err == ""


def test_the_docstring_names_every_file_of_the_way_that_it_tells_of() -> None:
    told = set(__import__("re").findall(r"\b_?[a-z_]+\.py\b", jaxwatch.__doc__ or ""))

    assert told
    assert {name for name in told if not (ROOT / "jaxwatch" / name).exists()} == set()


def test_nobody_within_the_package_imports_the_package_itself() -> None:
    for path in (ROOT / "jaxwatch").rglob("*.py"):
        for line in path.read_text().splitlines():
            assert line.strip() != "import jaxwatch", path


def test_modules_of_the_public_api_can_be_pickled_by_name() -> None:
    import pickle

    for name in ("Watch", "FunctionStats", "JaxwatchError", "RetraceError", "JaxwatchWarning"):
        thing = getattr(jaxwatch, name)
        assert pickle.loads(pickle.dumps(thing)) is thing  # noqa: S301 -- our own
    assert json.dumps(sorted(jaxwatch.__all__))
