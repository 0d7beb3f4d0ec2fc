"""The program of ``jaxwatch run``: found, and then executed as the interpreter itself would.

What differs from ``python PROGRAM`` and cannot be helped: our frames lie below the program's (``sys._getframe``), and
what we import is loaded before it. Measured against the interpreter by ``tests/test_runner.py``.
"""

import ast
import builtins
import importlib.machinery
import importlib.util
import io
import marshal
import os
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

from jaxwatch.errors import NoProgramError

# How many frames of ``_hidden`` lie below the program.
_HIDING = 8


class Program:
    """A file, a folder or archive with a ``__main__.py``, or a module.

    Attributes:
        name: As it was given.
        args: Its arguments.
        is_module: Whether ``name`` is a module's, as after ``python -m``.
    """

    def __init__(self, name: str, args: list[str], *, is_module: bool) -> None:
        self.name = name
        self.args = args
        self.is_module = is_module
        self._has_main = not is_module and _importer(name) is not None
        self._main: dict[str, Any] = {}

    @property
    def path(self) -> str:
        """Its absolute path, or a module's name."""
        return self.name if self.is_module or os.path.isabs(self.name) else os.path.join(os.getcwd(), self.name)

    def check(self) -> None:
        """Look whether the program is there, without running anything of it.

        Raises:
            NoProgramError: It is not, or cannot be read.
        """
        if self.is_module:
            _check_module(self.name)
        elif self._has_main:
            importer: Any = _importer(self.name)
            if importer.find_spec("__main__") is None:
                problem = f"{self.name} holds no __main__.py."
                raise NoProgramError(problem, "Give a Python file, or -m and a module.")
        else:
            try:
                with open(self.path, "rb"):
                    pass
            except (OSError, ValueError) as error:
                reason = (getattr(error, "strerror", None) or str(error)).lower()
                problem = f"cannot run {self.name}: {reason}."
                raise NoProgramError(problem, "Give a Python file that can be read, or -m and a module.") from error

    def prepare(self) -> None:
        """Make ``sys.argv`` and ``__main__`` what they are when a program starts."""
        sys.argv = [self.name, *self.args]
        main = types.ModuleType("__main__")
        main.__loader__ = importlib.machinery.BuiltinImporter
        if sys.version_info < (3, 14):  # annotations are made when they are asked for since
            main.__annotations__ = {}
        self._main = vars(main)
        self._main["__builtins__"] = builtins
        if not self.is_module and not self._has_main:
            compiled = self.name.endswith(".pyc")
            kind = importlib.machinery.SourcelessFileLoader if compiled else importlib.machinery.SourceFileLoader
            main.__file__ = self.path
            self._main["__cached__"] = None
            main.__loader__ = kind("__main__", self.path)
        sys.modules["__main__"] = main

    def execute(self) -> None:
        """Run it; whatever it raises comes out, with a traceback that begins with the program's own frames."""
        if self.is_module or self._has_main:
            import runpy  # noqa: PLC0415 -- what `python -m` runs; its frames are in that one's tracebacks too

            run: Any = runpy._run_module_as_main  # type: ignore[attr-defined]  # noqa: SLF001 -- as above
            if self.is_module:
                sys.argv[0] = "-m"
                _set_first_path(os.getcwd())
                _below_nothing(run, self.name)
            else:
                _set_first_path(self.path, always=True)
                _below_nothing(run, "__main__", False)  # noqa: FBT003 -- runpy's own, positional
            return
        _set_first_path(os.path.dirname(os.path.realpath(self.path)))
        code = self._code()
        _below_nothing(exec, code, self._main)
        for name in ("__file__", "__cached__"):  # the interpreter takes them away too, before exit handlers run
            self._main.pop(name, None)

    def _code(self) -> types.CodeType:
        with open(self.path, "rb") as file:
            source = file.read()
        if self.name.endswith(".pyc"):
            if source[:4] != importlib.util.MAGIC_NUMBER:
                raise RuntimeError("Bad magic number in .pyc file")  # as Python says it
            loaded: types.CodeType = marshal.loads(source[16:])  # noqa: S302 -- a program that the user runs
            return loaded
        try:
            return compile(source, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            if _is_plain_text(source):
                error.__traceback__ = None
                raise
        # Python says of a *file* that is no text something else than of a string. Nothing of it will run.
        options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001 -- as multiprocessing
        raise SystemExit(subprocess.call([sys.executable, *options, self.name, *self.args]))  # noqa: S603 -- itself


def _importer(name: str) -> object | None:
    """Return what finds ``__main__`` in a folder or archive; None for a file."""
    from pkgutil import get_importer  # noqa: PLC0415 -- the run alone needs it

    try:
        return get_importer(name)
    except ValueError:  # a NUL in the name
        return None


def _check_module(name: str) -> None:
    top = name.partition(".")[0]
    find = importlib.machinery.PathFinder.find_spec
    first = [] if sys.flags.safe_path else [os.getcwd()]
    if top in sys.builtin_module_names or top in sys.modules or find(top, [*first, *sys.path]) is not None:
        return
    if importlib.machinery.FrozenImporter.find_spec(top) is None:
        problem = f"there is no module named {top} in {os.getcwd()} or among what is installed."
        raise NoProgramError(problem, "Give a module's name after -m, without .py.")


def _set_first_path(folder: str, *, always: bool = False) -> None:
    """Put ``folder`` where the interpreter put the folder of jaxwatch's own script."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
    elif always:
        sys.path.insert(0, folder)


def _is_plain_text(source: bytes) -> bool:
    import tokenize  # noqa: PLC0415 -- for a program that does not compile

    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return "\0" not in source.decode(encoding)
    except (SyntaxError, ValueError, LookupError):
        return False


def _below_nothing(run: Callable[..., object], *args: object) -> None:
    """Call ``run`` such that a warning that looks below the program's first frame finds what it always finds there.

    There is nothing below it, which ``warnings`` calls line 1 of "sys" (line 0 of "<sys>" since 3.13). Hence some
    frames of just that name, in place of ours.
    """
    file, line = ("<sys>", 0) if sys.version_info >= (3, 13) else ("sys", 1)
    tree = ast.parse(
        "lambda self, run, args, deep: self(self, run, args, deep - 1) if deep else run(*args)", mode="eval"
    )
    ast.increment_lineno(tree, line - 1)
    hidden = eval(compile(tree, file, "eval"), vars(sys))  # noqa: S307 -- the line above
    hidden(hidden, run, args, _HIDING)
