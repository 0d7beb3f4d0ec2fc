"""``python -m benchmarks.suites [PACKAGE …]``: exit code 1 where jaxwatch changes what comes of a test."""

import argparse
import json
import shutil
import sys
import tempfile
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path

from benchmarks.suites.comparing import compare
from benchmarks.suites.environment import Base, NotPreparedError, prepare, wheel
from benchmarks.suites.packages import PACKAGES
from benchmarks.suites.running import Door, Runner
from benchmarks.suites.tables import Compared, details, table


def main(arguments: list[str]) -> int:
    """Run, print Markdown, and return 1 where a test does not come out the same or a package cannot be run."""
    options = _parser().parse_args(arguments)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="jaxwatch-suites-")).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    print(f"Environments, results and logs: {folder}", flush=True)
    base = Base(options.python, options.jax, wheel(folder, options.python))
    rows, failed = list[Compared](), list[str]()
    given = dict(options.tree)
    for name in options.package or [name for name, one in PACKAGES.items() if one.in_sdist or name in given]:
        try:
            rows.append(_compared(name, folder / name, options, base))
        except NotPreparedError as error:
            failed.append(str(error))
        if options.json:  # after each: the whole takes long
            Path(options.json).write_text(json.dumps([row.record() for row in rows], indent=1), encoding="utf-8")
    told = [line for row in rows for line in details(row)]
    print("", *_versions(rows), "", table(rows), "", *told, *failed, sep="\n")
    return int(bool(failed) or not all(row.agrees for row in rows))


def _compared(name: str, folder: Path, options: argparse.Namespace, base: Base) -> Compared:
    ready = prepare(PACKAGES[name], folder, base, tree=dict(options.tree).get(name))
    results = folder / "results" / options.core
    (results / "plugins").mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(__file__).with_name("conditions.py"), results / "plugins")
    runner = Runner(ready, results, core=options.core, resume=options.resume)
    files = ready.package.files(ready.tree, whole=options.whole or bool(options.only))
    files = [file for file in files if not options.only or any(fnmatch(file, only) for only in options.only)]
    if not files:
        raise NotPreparedError(f"{name} has no file of tests that is {' or '.join(options.only)}.")
    return compare(ready, runner, [files] if options.together else [[file] for file in files], Door(options.door))


def _versions(rows: list[Compared]) -> list[str]:
    told = {
        f"jax {row.versions['jax']}, Python {row.versions['python']}, jaxwatch {row.versions['jaxwatch']}"
        for row in rows
    }
    return [f"{'; '.join(sorted(told))}."]


def _tree(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if name not in PACKAGES or not Path(path).is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no PACKAGE=DIR; packages are {', '.join(PACKAGES)}")
    return name, Path(path).absolute()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suites", description=__doc__)
    parser.add_argument(
        "package",
        nargs="*",
        choices=[*PACKAGES, []],
        metavar="PACKAGE",
        help=f"{', '.join(PACKAGES)}; by default all whose tests can be had",
    )
    parser.add_argument("--folder", metavar="DIR", help="for environments, results and logs; used again if it is there")
    parser.add_argument("--whole", action="store_true", help="also what is left out because it takes long")
    only = "of the files, whole or not, only those: a glob as 'optax/_src/*'; may be given again"
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help=only)
    parser.add_argument("--together", action="store_true", help="all files in one process; else each in its own")
    parser.add_argument("--resume", action="store_true", help="do not run again what has ended before in --folder")
    parser.add_argument("--door", choices=[Door.PYTEST, Door.RUN], default=Door.PYTEST, help="how jaxwatch gets in")
    parser.add_argument("--core", choices=["native", "python"], default="native", help="which of jaxwatch's two")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter; by default this one")
    parser.add_argument(
        "--jax", default=version("jax"), metavar="VERSION", help="by default the one of this environment"
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures there too")
    tree = "a checkout of a package whose sdist has no tests; may be given again"
    parser.add_argument("--tree", action="append", type=_tree, default=[], metavar="PACKAGE=DIR", help=tree)
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
