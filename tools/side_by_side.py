"""What JAX's own explainer says of the cases, and what jaxwatch says: ``side_by_side.py [--markdown FILE] [CASE…]``.

Each case of ``tests/cases`` (all of them, or those whose names contain one of the words CASE) runs twice, each time in a
process of its own as under ``score.py``: with ``jax.jit`` and ``jax_explain_cache_misses``, then with ``jaxwatch.jit``.
Prints a table in Markdown, to the file where one is given. No cell is written by hand: the first tells what the case
expects, the others what came; of JAX's that of functions defined in the case, the rest as a number.
Exit status: 0, 1 where a case could not be run, 2 for bad use."""
import argparse
import datetime
import platform
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "tests" / "cases"
sys.path.insert(0, str(CASES))
import score  # noqa: E402 -- the cases' own scorer, which knows how one is read and run

ENTRIES, CHARACTERS = 6, 200  # in a cell; of an entry
NOTHING = "nothing"
FOLDERS = re.compile(r"(?<![\w.:/])/(?:[\w.+-]+/)+")
BEGINS = "TRACING CACHE MISS at "
BOILERPLATE = ("all previously seen cache keys differ. For the closest previous key:", "never seen function:")
DEFINED = re.compile(r"^(?:for )?(\S+)(?: id=\d+)? defined at (\S+?):\d+")


def explanations(lines: Iterable[str], file: str) -> tuple[list[str], int]:
    """Return what JAX's explainer says in stderr of functions defined in a file, and how often it speaks of others."""
    blocks: list[list[str]] = []
    inside = False
    for line in lines:
        if BEGINS in line:
            blocks.append([])
        elif inside and line.startswith("  "):
            blocks[-1].append(line.strip())
        inside = BEGINS in line or (inside and line.startswith("  "))
    mine, others = [], 0
    for block in blocks:
        named = [found for line in block if (found := DEFINED.match(line))]
        if not any(Path(found[2]).name == file for found in named):
            others += 1
            continue
        rest = [line for line in block if not DEFINED.match(line) and line not in BOILERPLATE]
        said = " ".join(rest) or ("never seen function" if BOILERPLATE[1] in block else "other keys were seen")
        mine.append(FOLDERS.sub("", f"{named[0][1]}: {said}"))
    return mine, others


def jax_says(lines: Iterable[str], file: str) -> list[str]:
    """Return the entries of JAX's cell."""
    mine, others = explanations(lines, file)
    return [*grouped(mine), *([f"{others} of functions that are not the case's"] if others else [])]


def expected(expect: dict[str, Any]) -> list[str]:
    """Return what a case says that happens, in short."""
    told = [*map(expected_miss, expect.get("misses", [])), *map(expected_eager, expect.get("eager", []))]
    return told if told or "misses" in expect else ["which misses is not stated"]


def expected_miss(miss: dict[str, Any]) -> str:
    reasons = " or ".join("+".join(each) for each in score.alternatives(miss))
    sides = miss.get("values") or [(None, None)] * len(miss.get("paths", []))
    changes = [path + arrow(*pair) for path, pair in zip(miss.get("paths", []), sides, strict=True)]
    may = " (or nothing)" if miss.get("optional") else ""
    return f"{score.named(miss)}: {reasons}{may} {', '.join(changes)}".strip()


def expected_eager(entry: dict[str, Any]) -> str:
    times = f", {entry['count']} ×" if "count" in entry else ""
    return f"outside jit: {entry['function']}{times}" + (" (or nothing)" if entry.get("optional") else "")


def arrow(before: str | None, after: str | None) -> str:
    return f" {before or '?'} → {after or '?'}" if before or after else ""


def jaxwatch_says(events: Iterable[dict[str, Any]], file: str) -> list[str]:
    """Return the entries of jaxwatch's cell: misses, then what was compiled outside jit at the case's own lines."""
    events = list(events)
    misses = [miss_told(event) for event in events if event["event"] == "cache_miss"]
    eager = [event for event in events if event["event"] == "eager_compile" and score.in_file(event["site"], file)]
    lines = [f"outside jit: {event['function']}, line {score.line_of(event['site'])}" for event in eager]
    return [*misses, *grouped(lines)]


def miss_told(event: dict[str, Any]) -> str:
    changes = [
        f"{each['path'] or each['reason']}" + (f" {each['before'] or '(none)'} → {each['after'] or '(none)'}"
        if each["before"] or each["after"] else "") + (f" ({each['note']})" if each["note"] else "")
        for each in event["changes"]
    ]
    text = f"{score.named(event)}: {'+'.join(event['reasons'])} {', '.join(changes)}".strip()
    return FOLDERS.sub("", text)


def grouped(lines: list[str]) -> list[str]:
    """Return each line once, in order, with how often it came."""
    return [line if (times := lines.count(line)) == 1 else f"{times} × {line}" for line in dict.fromkeys(lines)]


def cell(entries: list[str]) -> str:
    """Return entries as a cell of a table, shortened."""
    shown = [f"`{score.shortened(entry, CHARACTERS).replace('`', chr(39))}`" for entry in entries[:ENTRIES]]
    more = [f"and {len(entries) - ENTRIES} more"] if len(entries) > ENTRIES else []
    return "<br>".join([*shown, *more]).replace("|", "\\|").replace("\n", " ") or NOTHING


def row(path: Path) -> str:
    """Run a case both ways; return its row."""
    case = score.read_case(path)
    lines, _ = ran(path, case, "jax:jit", {"JAX_EXPLAIN_CACHE_MISSES": "1"})
    _, log = ran(path, case, "jaxwatch:jit", {})
    events, _ = score.read_log(log)
    cells = expected(score.expectation(case, score.jax_version())), jax_says(lines, path.name), jaxwatch_says(events, path.name)
    return f"| {path.stem.replace('_', ' ')} | {' | '.join(map(cell, cells))} |"


def ran(path: Path, case: dict[str, Any], attr: str, variables: dict[str, str]) -> tuple[list[str], str]:
    """Run a case in a fresh process; return the lines of its stderr and its log."""
    with tempfile.TemporaryDirectory(prefix="side-") as top:
        folder, log = Path(top) / "tmp", Path(top) / "events.jsonl"
        folder.mkdir()
        env = {**score.child_env(case, folder, log if attr.startswith("jaxwatch") else None), **variables}
        lines = score.run_child([str(path), attr, str(Path(top) / "out.json")], env, folder, score.TIMEOUT_SECONDS)
        return lines, log.read_text(encoding="utf-8") if log.exists() else ""


def head(command: str) -> list[str]:
    """Return what stands above the table: when, with which versions, how."""
    versions = f"{' '.join(str(score.installed_versions()).split())}, Python {platform.python_version()}"
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return [
        "# Side by side: JAX's explainer and jaxwatch",
        "",
        f"Made on {today} by `{command}`, with {versions}. No cell is written by hand; `nothing`: it says nothing.",
        "",
        "`jax_explain_cache_misses` tells of the tracing cache alone; what JAX says of functions that are not the case's",
        "own stands as a number.",
        "",
        "| case | what happens | `jax_explain_cache_misses` | jaxwatch |",
        "|---|---|---|---|",
    ]


def rows(paths: Iterable[Path]) -> Iterator[tuple[str, bool]]:
    for path in paths:
        try:
            yield row(path), True
        except (score.BadCase, score.Trouble) as error:
            yield f"| {path.stem.replace('_', ' ')} | could not be run: {cell([str(error)])} | | |", False


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table to FILE")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="words of the names of the cases that are to run")
    options = parser.parse_args(arguments)
    paths = [path for path in sorted(CASES.glob("[0-9]*.py")) if any(w in path.stem for w in options.cases or [""])]
    if not paths:
        parser.error(f"no case's name contains {' or '.join(options.cases)}")
    made = list(rows(paths))
    command = shlex.join(["python", "tools/side_by_side.py", *arguments])
    text = "\n".join([*head(command), *(line for line, _ in made)]) + "\n"
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    return 0 if all(right for _, right in made) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
