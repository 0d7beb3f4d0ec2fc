"""``jaxwatch run`` against plain ``python``, byte for byte, in real processes."""

# ruff: noqa: E501 -- programs in one line

import dataclasses
import os
import py_compile
import re
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jaxwatch import _runner
from jaxwatch._origin import origin
from jaxwatch._program import Program
from jaxwatch.events import EagerCompile

REPORT = re.compile(
    rb"jaxwatch (?:\xc2\xb7|\xb7|-) [^\n]*\n"
)  # what we add on stderr: the last line, where no jax is imported
ADDRESS = re.compile(rb"0x[0-9a-f]+")
NOTHING = "never imported jax: nothing to report."


class Ended(NamedTuple):
    code: int
    out: bytes
    err: bytes


def python(folder: Path, *args: str, stdin: bytes = b"", options: tuple[str, ...] = (), **environ: str) -> Ended:
    drop = {"PYTHONPATH", "JAXWATCH_LOG", "JAXWATCH", "COLUMNS"}
    env = {name: value for name, value in os.environ.items() if name not in drop}
    checkout = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *options, *args],
        cwd=folder,
        input=stdin,
        capture_output=True,
        env={**env, "PYTHONPATH": checkout, "PYTHONDONTWRITEBYTECODE": "1", **environ},
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def watched(folder: Path, *args: str, stdin: bytes = b"", options: tuple[str, ...] = (), **environ: str) -> Ended:
    return python(folder, "-m", "jaxwatch", "run", *args, stdin=stdin, options=options, **environ)


def compare(folder: Path, *args: str, stdin: bytes = b"", options: tuple[str, ...] = (), **environ: str) -> Ended:
    """Run a program plainly and watched, assert that nothing differs but our report, and return the plain one."""
    plain = python(folder, *args, stdin=stdin, options=options, **environ)
    ours = watched(folder, *args, stdin=stdin, options=options, **environ)

    reports = REPORT.findall(ours.err)
    assert len(reports) == 1, ours.err.decode()
    assert ours.err.endswith(reports[0]), "the report comes last"
    assert (ADDRESS.sub(b"", ours.out), ours.code) == (ADDRESS.sub(b"", plain.out), plain.code)
    assert ADDRESS.sub(b"", ours.err.removesuffix(reports[0])) == ADDRESS.sub(b"", plain.err)
    return plain


def write(folder: Path, text: str, name: str = "prog.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return path


PROGRAMS = {
    "globals": """
        import sys
        print(list(globals()), __name__, __file__, __doc__, __package__, __spec__, __loader__, __annotations__)
        print(__builtins__, sys.modules["__main__"].__dict__ is globals(), sys.argv, sys.path[0], sys.flags)
    """,
    "docstring": '"""What it does."""\nprint(__doc__, __annotations__)\nx: int = 1\nprint(__annotations__)',
    "arguments": "import sys; print(sys.argv)",
    "stdin": "import sys; print(sys.stdin.read(), input.__name__)",
    "bytes": "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100); sys.stderr.write('no newline at the end')",
    "exit 0": "import sys; sys.exit()",
    "exit 3": "import sys; sys.exit(3)",
    "exit 300": "import sys; sys.exit(300)",
    "exit -1": "import sys; sys.exit(-1)",
    "exit text": "import sys; sys.exit('no such thing')",
    "exit object": "import sys; sys.exit([1, 2])",
    "exit huge": "import sys, threading; sys.exit(2 ** 70)",
    "exit True": "import sys; sys.exit(True)",
    "exit of a subclass": "class Stop(SystemExit):\n    pass\nraise Stop(4)",
    "exit in a thread": "import sys, threading; t = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()",
    "os._exit": "import os, sys; print('gone', flush=True); sys.stderr.write('x\\njaxwatch · y\\n'); os._exit(7)",
    "exception": "def f(x):\n    return 1 / x\n\nf(0)",
    "exception group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "chained": "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e",
    "in context": "try:\n    {}['a']\nexcept KeyError:\n    1 / 0",
    "with notes": "e = ValueError('a')\ne.add_note('note')\nraise e",
    "BaseException": "class Odd(BaseException):\n    pass\nraise Odd('b')",
    "GeneratorExit": "raise GeneratorExit",
    "StopIteration": "next(iter([]))",
    "MemoryError": "raise MemoryError",
    "error of ours": "from jaxwatch.errors import RetraceError\nraise RetraceError('a', 'b')",
    "exception without a good str": "class Bad(Exception):\n    def __str__(self):\n        raise OSError\nraise Bad",
    "raised twice": """
        e = ValueError("once")
        try:
            raise e
        except ValueError:
            pass
        def again():
            raise e
        again()
    """,
    "in an import": "import broken",
    "missing import": "import no_such_module",
    "syntax error": "def f(:\n    pass",
    "syntax error of eval": "eval('1 +')",
    "bad indent": "if 1:\n\tx = 1\n        y = 2",
    "future": "from __future__ import annotations\nx: no_such_name = 1\nprint(__annotations__)",
    "empty": "",
    "interrupt": "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)",
    "raised interrupt": "raise KeyboardInterrupt",
    "interrupt of a subclass": "class Mine(KeyboardInterrupt):\n    pass\nraise Mine",
    "caught interrupt": "try:\n    raise KeyboardInterrupt\nexcept KeyboardInterrupt:\n    print('caught')",
    "interrupt with a handler at exit": "import atexit\natexit.register(print, 'bye')\nraise KeyboardInterrupt",
    "terminated": "import os, signal, sys, time\nsys.stderr.write('jaxwatch · x\\n')\nos.kill(os.getpid(), signal.SIGTERM)",
    "own signal handler": """
        import os, signal, sys
        print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGPIPE))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
        os.kill(os.getpid(), signal.SIGTERM)
    """,
    "excepthook": """
        import sys, traceback
        def hook(kind, error, trace):
            print("hook", kind, error, trace.tb_frame.f_code.co_name, error.__traceback__ is trace)
            traceback.print_exception(kind, error, trace)
        sys.excepthook = hook
        def f():
            raise ValueError("a")
        f()
    """,
    "excepthook set while failing": "import sys\ntry:\n    1 / 0\nfinally:\n    sys.excepthook = lambda *a: print(a[0])",
    "excepthook that fails": "import sys\nsys.excepthook = lambda *a: 1 / 0\nraise ValueError",
    "excepthook that exits": "import sys\nsys.excepthook = lambda *a: sys.exit(9)\nraise ValueError",
    "excepthook None": "import sys\nsys.excepthook = None\nraise ValueError('a')",
    "last exception": """
        import atexit, sys, traceback
        def show():
            print(sys.last_type, sys.last_value)
            traceback.print_tb(sys.last_traceback, file=sys.stdout)
            print(sys.excepthook is sys.__excepthook__)
        atexit.register(show)
        raise ValueError("a")
    """,
    "tracebacklimit": "import sys\nsys.tracebacklimit = 1\ndef f():\n    g()\ndef g():\n    1 / 0\nf()",
    "faulthandler": "import faulthandler, sys\nprint(faulthandler.is_enabled())",
    "at exit": """
        import atexit, sys
        atexit.register(print, "first")
        atexit.register(print, "second", file=sys.stderr)
        atexit.register(lambda: print(sorted(n for n in globals() if n.startswith("__"))))
        print("body")
    """,
    "error at exit": "import atexit\natexit.register(lambda: 1 / 0)",
    "threads": """
        import threading, time
        def work():
            threading.main_thread().join(0.2)
            print("thread ends", threading.main_thread().is_alive())
        threading.Thread(target=work).start()
        print(threading.current_thread().name, threading.active_count())
    """,
    "error in a thread": "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
    "objects that say good-bye": """
        class Noisy:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print("del", self.name)
        a, b = Noisy("a"), Noisy("b")
        a.self = a
    """,
    "warnings": """
        import warnings
        def deep(level):
            warnings.warn(f"level {level}", stacklevel=level)
        for level in range(1, 9):
            deep(level)
        warnings.warn("own")
        warnings.warn("below", stacklevel=2)
        warnings.warn("old", DeprecationWarning)
        warnings.warn("old below", DeprecationWarning, stacklevel=2)
        print(warnings.filters)
    """,
    "pickle": "import pickle\nclass A:\n    x = 3\nprint(pickle.loads(pickle.dumps(A())).x, A, A.__module__)",
    "inspect": "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f), inspect.getsourcefile(f))\nprint(inspect.getmodule(f))",
    "dataclass": "import dataclasses, typing\n@dataclasses.dataclass\nclass A:\n    x: 'int'\nprint(A(1), typing.get_type_hints(A))",
    "spawn": """
        import multiprocessing as mp
        def work(x):
            print("child", x, __name__, flush=True)
            return x * 2
        class Thing:
            pass
        if __name__ == "__main__":
            with mp.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [1, 2]), pool.apply(type, (Thing(),)).__name__)
    """,
    "fork": """
        import multiprocessing as mp, os, warnings
        warnings.simplefilter("ignore")
        def work(x):
            return os.getpid() != parent
        parent = os.getpid()
        with mp.get_context("fork").Pool(1) as pool:
            print(pool.map(work, [1]))
    """,
    "bare fork": """
        import os, sys
        if os.fork() == 0:
            print("child", flush=True)
            sys.exit(6)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "fork that fails": """
        import os
        if os.fork() == 0:
            raise ValueError("in the child")
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "subprocess": "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True))",
    "local modules": "import beside\nprint(beside.x, beside.__file__)",
    "local click": "import click\nprint(click.__file__)",
    "relative open": "print(open('data.txt').read())",
    "chdir": "import os\nos.chdir('/')\nimport beside\nprint(beside.x)\n1 / 0",
    "closes stderr": "import sys\nsys.stdout.write('out')\nsys.stdout.flush()\n",
    "import system": "import sys\nprint([f for f in sys.meta_path if 'jaxwatch' not in repr(f)], sys.path_hooks)",
    "replaces main": "import sys, types\nsys.modules['__main__'] = types.ModuleType('other')\nraise ValueError",
    "runpy": "import runpy\nprint(runpy.run_path('beside.py')['x'])",
    "code of an archive": "import sys\nprint(sys.flags.safe_path, sys.path[0])",
    "asyncio": "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise ValueError('async')\nasyncio.run(f())",
    "unraisable": "class A:\n    def __del__(self):\n        1 / 0\nA()\nprint('on')",
    "recursion": "import sys\ndef f():\n    f()\ntry:\n    f()\nexcept RecursionError as e:\n    print(e)",
    "getattr of the module": "def __getattr__(name):\n    raise AttributeError(name)\nimport sys\nprint(sys.modules['__main__'].f)",
    "frozen stdout": "import sys, io\nsys.stdout = io.StringIO()\nprint('lost')",
}
SILENT = {"os._exit", "terminated"}  # killed before any report; what looks like one is their own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "x = 'beside'\n", "beside.py")
    write(tmp_path, "x = 'mine'\n", "click.py")
    write(tmp_path, "def f():\n    1 / 0\nf()\n", "broken.py")
    write(tmp_path, "data", "data.txt")
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_script_runs_as_under_plain_python(folder: Path, name: str) -> None:
    write(folder, PROGRAMS[name])
    if name in SILENT:
        plain, ours = python(folder, "prog.py"), watched(folder, "prog.py")
        assert ours == plain
        return
    compare(folder, "prog.py", stdin=b"some\ninput\n")


@pytest.mark.parametrize(
    "name", ["globals", "exception", "exit 3", "interrupt", "spawn", "warnings", "syntax error", "pickle"]
)
def test_a_module_runs_as_under_plain_python(folder: Path, name: str) -> None:
    write(folder, PROGRAMS[name])

    compare(folder, "-m", "prog", "a", "--help", "-x", "--", "-m")


@pytest.mark.parametrize("name", ["globals", "exception", "exit 3", "interrupt", "local modules"])
def test_a_folder_an_archive_and_a_package_run_as_under_plain_python(folder: Path, name: str) -> None:
    body = PROGRAMS[name]
    write(folder, body, "app/__main__.py")
    write(folder, "x = 1\n", "app/beside.py")
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        for file in ("__main__.py", "beside.py"):
            archive.write(folder / "app" / file, file)
    write(folder, body, "pkg/__main__.py")
    write(folder, "print('package', __name__)\n", "pkg/__init__.py")

    compare(folder, "app", "a")
    compare(folder, "app/")
    compare(folder, "-m", "pkg", "a")
    compare(folder, "app.zip", "a")


@pytest.mark.parametrize(
    "args",
    [
        ["prog.py", "a b", "", "-x", "--help", "--quiet", "--log", "-m", "--", "*", "ü"],
        ["./prog.py", "--version"],
        ["sub/../prog.py"],
        ["link.py"],
        ["sub/inner.py"],
        ["--", "prog.py", "--"],
    ],
)
def test_arguments_and_paths_reach_the_program_untouched(folder: Path, args: list[str]) -> None:
    body = "import sys\nprint(sys.argv, sys.path[0], __file__, __name__)\n1 / 0\n"
    for name in ("prog.py", "sub/inner.py"):
        write(folder, body, name)
    (folder / "link.py").symlink_to(folder / "sub" / "inner.py")

    compare(folder, *args)


@pytest.mark.parametrize(
    "source",
    [
        b'x = "\xff"\n',
        b"x = 1\0\n",
        b"# -*- coding: no-such -*-\nx = 1\n",
        b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n",
        b"\xef\xbb\xbfprint('a mark')\n",
        b"\xef\xbb\xbf# -*- coding: latin-1 -*-\n",
        b"print('no line end')",
        b"print('carriage')\r\nprint('return')\r\n",
        b"x = 1\r1 / 0\r",
    ],
)
def test_encodings_and_line_ends(folder: Path, source: bytes) -> None:
    (folder / "prog.py").write_bytes(source)

    compare(folder, "prog.py")


def test_a_compiled_file(folder: Path) -> None:
    py_compile.compile(str(write(folder, PROGRAMS["globals"])), str(folder / "good.pyc"))
    (folder / "bad.pyc").write_bytes(b"\0" * 50)

    compare(folder, "good.pyc", "a")
    compare(folder, "bad.pyc")


@pytest.mark.parametrize(
    "options",
    [
        ("-W", "error"),
        ("-W", "always"),
        ("-X", "dev"),
        ("-O",),
        ("-OO",),
        ("-P",),
        ("-u",),
        ("-X", "utf8=0"),
        ("-B",),
        ("-b",),
        ("-X", "no_debug_ranges"),
        ("-s",),
    ],
)
def test_the_interpreters_options_are_left_alone(folder: Path, options: tuple[str, ...]) -> None:
    write(folder, f"{textwrap.dedent(PROGRAMS['warnings'])}\n{textwrap.dedent(PROGRAMS['globals'])}\n1 / 0\n")

    compare(folder, "prog.py", options=options)


@pytest.mark.parametrize(
    "name", ["PYTHONWARNINGS", "PYTHONIOENCODING", "PYTHONSAFEPATH", "PYTHONNODEBUGRANGES", "LC_ALL"]
)
def test_the_interpreters_environment_is_left_alone(folder: Path, name: str) -> None:
    value = {"PYTHONWARNINGS": "default", "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}.get(name, "1")
    write(folder, f"{textwrap.dedent(PROGRAMS['warnings'])}\n{textwrap.dedent(PROGRAMS['globals'])}\n1 / 0\n")

    environ: dict[str, Any] = {name: value}
    compare(folder, "prog.py", **environ)


def test_it_works_isolated_where_it_is_installed_or_on_the_path(folder: Path) -> None:
    """-I leaves PYTHONPATH out, so the path is put in by hand."""
    write(folder, PROGRAMS["globals"])
    start = f"import sys; sys.path.append({str(Path(__file__).parents[1])!r}); from jaxwatch._cli import main; main(['run', 'prog.py'])"

    ours = python(folder, "-c", start, options=("-I",))

    assert ours.code == 0
    assert NOTHING.encode() in ours.err


def test_the_report_comes_after_the_programs_own_exit_handlers_and_threads(folder: Path) -> None:
    write(
        folder,
        PROGRAMS["at exit"]
        + "\n        import threading; threading.Thread(target=lambda: print('t', file=sys.stderr)).start()",
    )

    lines = watched(folder, "prog.py").err.decode().splitlines()

    assert sorted(lines[:-1]) == ["second", "t"]
    assert lines[-1] == f"jaxwatch · prog.py {NOTHING}"


def test_stdout_is_whole_before_the_report_where_both_go_to_one_file(folder: Path) -> None:
    write(folder, "print('out')\n")
    command = [sys.executable, "-m", "jaxwatch", "run", "prog.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, check=True)

    assert done.stdout.decode() == f"out\njaxwatch · prog.py {NOTHING}\n"


@pytest.mark.parametrize("redirect", ["2>&-", ">&-", ">&- 2>&-", "2>/dev/full", ">/dev/full"])
def test_closed_and_full_streams_change_nothing(folder: Path, redirect: str) -> None:
    write(folder, "import sys\nprint('out')\nsys.exit(3)\n")
    codes = []
    for command in ("", "-m jaxwatch run"):
        line = f"{sys.executable} {command} prog.py {redirect}"
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        codes.append(
            subprocess.run(["/bin/sh", "-c", line], cwd=folder, env=env, capture_output=True, check=False).returncode
        )

    assert codes[0] == codes[1]


def test_a_program_that_closes_stderr_ends_as_it_would(folder: Path) -> None:
    write(folder, "import sys\nsys.stderr.close()\nprint('out')\n")

    assert watched(folder, "prog.py") == Ended(0, b"out\n", b"")


def test_an_interrupt_from_outside_kills_by_the_signal(folder: Path) -> None:
    # where the tests run in the background, a shell has told all its children to ignore SIGINT
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    write(folder, f"import signal, sys, time\n{heard}\nprint('ready', flush=True)\ntime.sleep(60)\n")
    command = [sys.executable, "-m", "jaxwatch", "run", "prog.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()

    assert process.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt\njaxwatch \xc2\xb7 prog.py, exit code 130, never imported jax" in err
    assert b"jaxwatch/" not in err


@pytest.mark.parametrize(
    ("code", "told"), [("3", 3), ("-1", 255), ("2**70", 255), ("256 + 9", 9), ("True", 1), ("[0]", 1)]
)
def test_exit_codes_are_in_the_report(folder: Path, code: str, told: int) -> None:
    write(folder, f"import sys; sys.exit({code})")

    ours = watched(folder, "prog.py")

    assert ours.code == told
    assert ours.err.decode().endswith(f"jaxwatch · prog.py, exit code {told}, {NOTHING}\n")


def test_switched_off_it_says_so(folder: Path) -> None:
    write(folder, "print('out')")

    ours = watched(folder, "prog.py", JAXWATCH="0")

    assert (ours.out, ours.err.decode()) == (b"out\n", "jaxwatch · prog.py was not watched: JAXWATCH=0 is set.\n")


def test_jax_is_not_imported_before_the_program_does(folder: Path) -> None:
    write(
        folder,
        "import sys\nprint([m for m in ('jax', 'numpy', 'rich', 'structlog', 'prometheus_client', 'click') if m in sys.modules])",
    )

    assert watched(folder, "prog.py").out == b"[]\n"


# ------------------------------------------------------------------ with jax

TRAINING = """
    import sys
    import jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def step(x, y):
        return (x * 2 + y).sum()

    for n in [32, 32, 5, 9, 32]:
        step(np.zeros((n, 64), np.float32), np.zeros((n, 64), np.float32))
    print("done")
    sys.exit(int(sys.argv[1]))
"""


def without_console(err: bytes) -> str:
    return "".join(line for line in err.decode().splitlines(keepends=True) if "[warning  ]" not in line)


def test_a_program_that_recompiles_is_reported_and_prints_what_it_prints(folder: Path) -> None:
    write(folder, TRAINING)

    ours, plain = (
        watched(folder, "--log", "run.jsonl", "--html", "run.html", "prog.py", "3"),
        python(folder, "prog.py", "3"),
    )

    assert (ours.code, ours.out) == (plain.code, plain.out) == (3, b"done\n")
    shown = without_console(ours.err)
    assert re.match(r"jaxwatch · prog\.py · exit code 3 · \d+\.\d s, ", shown)
    assert "1  step: x float32[32,64] → 2 other lengths (5, 9), with y " in shown
    assert "prog.py:9, calls 3, 4; each compared with call 1\n" in shown
    assert re.search(r"\n  step +5 +3 +3 +[\d.]+ m?s ", shown)
    from_log = python(folder, "-m", "jaxwatch", "report", "run.jsonl")
    assert "1  step: x float32[32,64] → 2 other lengths (5, 9), with y " in from_log.out.decode()
    assert "exit code 3" in from_log.out.decode()
    page = (folder / "run.html").read_text(encoding="utf-8")
    assert "step: x float32[32,64] → 2 other lengths (5, 9), with y" in page
    assert page.count("</mark>") == 8, "its keys too, two arrays of two lengths"


def test_a_page_that_could_not_be_written_is_told_before_the_program_runs(folder: Path) -> None:
    write(folder, "print('ran')")

    ended = watched(folder, "--html", "no/such.html", "prog.py")

    assert (ended.code, ended.out) == (2, b"")
    assert b"cannot write 'no/such.html': no such directory. Give --html a file" in ended.err


def test_quiet_is_one_line_also_for_a_program_that_fails(folder: Path) -> None:
    write(folder, "import jax\nf = jax.jit(lambda x: x + 1)\nf(1.0)\n1 / 0\n")

    shown = watched(folder, "--quiet", "prog.py").err.decode().splitlines()

    assert shown[-2] == "ZeroDivisionError: division by zero"
    assert re.fullmatch(
        r"jaxwatch · prog\.py · exit code 1 · [\d.]+ m?s, [\d.]+ m?s \(.*\) compiling, 1 function once.* Nothing to improve\.",
        shown[-1],
    )


def test_a_fork_of_a_program_that_uses_jax_does_not_report(folder: Path) -> None:
    write(
        folder,
        """
        import os, sys, warnings
        warnings.simplefilter("ignore")
        import jax
        f = jax.jit(lambda x: x + 1)
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        """,
    )

    assert without_console(watched(folder, "prog.py").err).count("jaxwatch ·") == 1


def test_the_pages_axis_begins_with_the_program_and_not_with_its_first_compile(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("")
    watch = _runner._Watch(Program(str(program), [], is_module=False), html="run.html")
    late = dataclasses.replace(origin(), unix_seconds=origin().unix_seconds + 100.0)

    watch.export(
        EagerCompile(origin=late, function="add", site="train.py:1", seconds=1.0, persistent_cache=None, count=1)
    )

    details = watch.report().details
    assert details is not None
    (point,) = details.points
    assert point.start == pytest.approx(99.0, abs=20.0)
