import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pickle
import sys
import threading
import traceback
import types
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from jaxwatch import _importhook
from jaxwatch._importhook import when_imported
from jaxwatch.errors import JaxwatchWarning

NAME = "pretend_jax"


@pytest.fixture(autouse=True)
def _leaves_nothing_behind() -> Iterator[None]:
    path, modules = list(sys.meta_path), set(sys.modules)
    yield
    left = [finder for finder in sys.meta_path if isinstance(finder, _importhook._Finder)]
    sys.meta_path[:] = path
    _importhook._executed.clear()
    for name in set(sys.modules) - modules:
        if name.startswith("pretend"):
            del sys.modules[name]
    assert not left, "a finder stayed"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a package that stands for jax: a submodule, a resource, and what its body sees of itself."""
    folder = tmp_path / NAME
    folder.mkdir()
    body = "LOADER = __loader__\nSEEN = (__spec__.loader, vars(__loader__).copy())\nfrom . import sub\njit = 1\n"
    (folder / "__init__.py").write_text(body)
    (folder / "sub.py").write_text("class Thing: pass\n")
    (folder / "data.txt").write_text("hello")
    (tmp_path / "pretend_other.py").write_text("")
    (tmp_path / "pretend_another.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


class Log(list[str]):
    def action(self) -> None:
        module = sys.modules[NAME]
        self.append(f"{NAME}.jit = {module.jit}")


def test_the_action_runs_once_right_after_the_module(package: Path) -> None:
    log = Log()
    when_imported(NAME, log.action)
    importlib.import_module("pretend_other")
    assert log == []

    module = importlib.import_module(NAME)
    log.append("imported")
    importlib.reload(module)

    assert log == [f"{NAME}.jit = 1", "imported"]
    assert str(package) in str(module.__file__)


def test_at_once_where_the_module_is_there() -> None:
    log: list[str] = []

    when_imported("json", lambda: log.append("now"))

    assert log == ["now"]


def test_the_action_may_wait_for_the_same_module_and_gets_it(package: Path) -> None:  # noqa: ARG001
    log = Log()
    when_imported(NAME, lambda: (when_imported(NAME, log.action), None)[1])

    importlib.import_module(NAME)

    assert len(log) == 1


@pytest.mark.usefixtures("package")
def test_module_spec_and_loader_are_those_of_a_plain_import() -> None:
    def look() -> dict[str, Any]:
        module = importlib.import_module(NAME)
        spec = module.__spec__
        assert spec is not None
        assert module.LOADER is module.__loader__ is spec.loader is module.SEEN[0]
        found: dict[str, Any] = {
            name: repr(value).split(" object at ")[0] for name, value in vars(module).items() if name != "__builtins__"
        }
        found["loader"] = (type(spec.loader), sorted(vars(spec.loader)))
        found["data"] = importlib.resources.files(NAME).joinpath("data.txt").read_text()
        found["pickled"] = type(pickle.loads(pickle.dumps(module.sub.Thing()))).__name__  # noqa: S301 -- just made
        for name in (NAME, f"{NAME}.sub"):
            del sys.modules[name]
        return found

    plain = look()
    importlib.invalidate_caches()
    remove = when_imported(NAME, lambda: None)
    watched = look()
    remove()

    assert watched == plain


@pytest.mark.usefixtures("package")
def test_called_off_it_never_runs() -> None:
    log = Log()
    remove = when_imported(NAME, log.action)
    remove()
    remove()

    importlib.import_module(NAME)

    assert log == []


@pytest.mark.usefixtures("package")
def test_to_look_for_the_module_is_not_to_import_it() -> None:
    log = Log()
    when_imported(NAME, log.action)

    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
    assert log == []

    importlib.import_module(NAME)
    assert len(log) == 1


@pytest.mark.usefixtures("package")
def test_what_the_action_raises_is_a_warning_and_the_import_goes_on() -> None:
    when_imported(NAME, lambda: 1 / 0)  # type: ignore[arg-type]  # it never returns

    with pytest.warns(JaxwatchWarning, match="could not start when pretend_jax was imported: ZeroDivisionError"):
        module = importlib.import_module(NAME)

    assert module.jit == 1


@pytest.mark.usefixtures("package")
def test_also_where_warnings_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    when_imported(NAME, lambda: 1 / 0)  # type: ignore[arg-type]  # as above
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.import_module(NAME)

    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_module_that_fails_is_not_imported_and_may_succeed_later(package: Path) -> None:
    body = (package / "__init__.py").read_text()
    (package / "__init__.py").write_text(
        "raise ValueError('first')  # longer than before, so compiled anew" + "\n" * 99
    )
    log = Log()
    when_imported(NAME, log.action)

    with pytest.raises(ValueError, match="first") as caught:
        importlib.import_module(NAME)
    assert log == []
    assert not any("jaxwatch" in frame.filename for frame in traceback.extract_tb(caught.value.__traceback__))

    (package / "__init__.py").write_text(body)
    importlib.import_module(NAME)
    assert len(log) == 1


def test_a_module_that_is_missing_raises_as_always() -> None:
    remove = when_imported("pretend_missing", lambda: None)

    with pytest.raises(ModuleNotFoundError, match="No module named 'pretend_missing'"):
        importlib.import_module("pretend_missing")

    remove()


def test_a_warning_of_the_module_is_attributed_to_who_imports_it(package: Path) -> None:
    (package / "__init__.py").write_text("import warnings\nwarnings.warn('old', stacklevel=2)\njit = 1\n")
    log = Log()
    when_imported(NAME, log.action)

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        exec(compile(f"import {NAME}", "the_program.py", "exec"), {})  # noqa: S102

    assert [warning.filename for warning in seen] == ["the_program.py"]
    assert len(log) == 1


# ------------------------------------------------------------------ finders of the program's own


class Finder(importlib.abc.MetaPathFinder):
    """A program's finder: claims a module through ``find``, or nothing."""

    def __init__(self, find: Callable[[str], importlib.machinery.ModuleSpec | None]) -> None:
        self.find = find
        self.asked: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        self.asked.append(fullname)
        return self.find(fullname) if fullname == NAME else None


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.usefixtures("package")
def test_a_finder_of_the_program_that_looks_on_is_asked(place: str) -> None:
    log = Log()
    when_imported(NAME, log.action)
    finder = Finder(lambda _: None)
    sys.meta_path.insert(0 if place == "first" else len(sys.meta_path), finder)

    importlib.import_module(NAME)

    assert len(log) == 1
    assert NAME in finder.asked or place == "last"


@pytest.mark.usefixtures("package")
def test_a_finder_that_asks_the_whole_path_in_its_turn_gets_the_module() -> None:
    log = Log()
    when_imported(NAME, log.action)
    busy: list[bool] = []

    def delegate(name: str) -> importlib.machinery.ModuleSpec | None:
        if busy:
            return None
        busy.append(True)
        try:
            return importlib.util.find_spec(name)
        finally:
            busy.pop()

    sys.meta_path.insert(0, Finder(delegate))

    importlib.import_module(NAME)

    assert len(log) == 1


@pytest.mark.parametrize("between", [True, False])
@pytest.mark.usefixtures("package")
def test_a_finder_that_gives_out_the_module_by_itself_is_overtaken_or_noticed_at_the_next_import(between: bool) -> None:
    log = Log()
    when_imported(NAME, log.action)
    sys.meta_path.insert(0, Finder(importlib.machinery.PathFinder.find_spec))
    if between:
        importlib.import_module("pretend_other")

    importlib.import_module(NAME)
    assert len(log) == (1 if between else 0)

    importlib.import_module("pretend_another")
    assert len(log) == 1


@pytest.mark.usefixtures("package")
def test_a_program_that_replaces_the_path_is_let_be() -> None:
    log = Log()
    when_imported(NAME, log.action)
    sys.meta_path = [finder for finder in sys.meta_path if not isinstance(finder, _importhook._Finder)]

    importlib.import_module(NAME)

    assert log == []


def test_two_who_wait_for_one_module_are_both_served(package: Path) -> None:  # noqa: ARG001
    first, second = Log(), Log()
    when_imported(NAME, first.action)
    when_imported(NAME, second.action)
    importlib.import_module("pretend_other")

    importlib.import_module(NAME)

    assert (len(first), len(second)) == (1, 1)


# ------------------------------------------------------------------ other loaders


def test_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(f"{NAME}/__init__.py", "from . import sub\njit = 1\n")
        archive.writestr(f"{NAME}/sub.py", "x = 1\n")
        archive.writestr("pretend_other.py", "y = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "a.zip"))
    log = Log()
    when_imported(NAME, log.action)
    importlib.util.find_spec(NAME)

    importlib.import_module("pretend_other")
    assert log == []
    module = importlib.import_module(NAME)

    assert len(log) == 1
    assert "exec_module" not in vars(module.__loader__)


@pytest.mark.usefixtures("package")
def test_a_lazy_module_fires_when_it_is_loaded_and_is_not_loaded_by_us() -> None:
    log = Log()
    when_imported(NAME, log.action)
    spec = importlib.util.find_spec(NAME)
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    sys.modules[NAME] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    importlib.import_module("pretend_other")
    assert log == []

    assert module.jit == 1
    assert len(log) == 1


class ClassLoader(importlib.abc.Loader):
    @classmethod
    def create_module(cls, spec: importlib.machinery.ModuleSpec) -> None:
        del spec

    @classmethod
    def exec_module(cls, module: types.ModuleType) -> None:
        vars(module).update(jit=1, seen=(module.__loader__, module.__spec__ and module.__spec__.loader))


def test_a_class_as_loader_stays_as_it_is() -> None:
    loader: Any = ClassLoader
    before = dict(vars(loader))
    sys.meta_path.insert(0, Finder(lambda name: importlib.machinery.ModuleSpec(name, loader)))
    log = Log()
    when_imported(NAME, log.action)

    module = importlib.import_module(NAME)

    assert len(log) == 1
    assert module.seen == (ClassLoader, ClassLoader)
    assert module.__loader__ is loader
    assert dict(vars(loader)) == before


# ------------------------------------------------------------------ threads


@pytest.mark.usefixtures("package")
def test_many_threads_that_import_at_once_see_the_action_done_once() -> None:
    log = Log()
    when_imported(NAME, log.action)
    barrier, seen = threading.Barrier(8), []

    def work() -> None:
        barrier.wait()
        importlib.import_module(NAME)
        seen.append(len(log))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seen == [1] * 8


def test_who_walks_along_the_path_meanwhile_misses_no_finder() -> None:
    remove = when_imported("pretend_missing", lambda: None)
    walk = iter(sys.meta_path)
    next(walk)
    remove()

    assert list(walk) == sys.meta_path
