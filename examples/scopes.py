"""What people are told about jit, measured on two small programs: python examples/scopes.py [--quick] [--json FILE].

``scopes_claims.py`` and ``scopes_widths.py`` have the measurements and the rules by which verdicts follow from them,
``scopes_programs.py`` the programs, ``scopes_times.py`` how times are taken.
"""

import argparse
import importlib
import json
import os
import platform
import sys
import textwrap
from pathlib import Path

CLAIMS = {
    1: "The first call of a jitted function is slow, later ones are fast.",
    2: "XLA fuses operations, drops dead code and reuses memory.",
    3: "jit removes Python's dispatch per operation.",
    4: "Compile time grows about quadratically with the number of operations.",
    5: "A new shape or dtype means a new compilation, and frequent ones eat the gain.",
    6: "Global writes, print, branches on traced values, building or changing lists and dicts are impossible inside.",
    7: "jit(g) is best when g is of moderate size and the inner calls keep their signatures.",
    8: "jit(f) alone is better when g is large, has Python control flow, or its inner shapes vary.",
    9: "An inner jit under an outer one is redundant, unless f is also called alone.",
    10: "Start by jitting the widest function, go inwards when compiling hurts; the advisor names the best scope.",
}
SHARED = {1, 7, 8, 10}  # of the same runs of the workloads, which are processes of their own


def shown(figure):
    """Return a figure as the table has it."""
    if isinstance(figure, dict):
        return ", ".join(f"{scope.replace(',', ' and ')} {shown(each)}" for scope, each in figure.items())
    if isinstance(figure, list | tuple):
        middle, low, high = (f"{each:,.{2 if each < 20 else 0}f}" for each in figure)  # noqa: PLR2004 -- three digits
        return f"{middle} [{low}, {high}]"
    if isinstance(figure, bool):
        return "yes" if figure else "no"
    return "unknown" if figure is None else f"{figure:,.2f}" if isinstance(figure, float) else str(figure)


def section(number, found, judged):
    """Return a claim, what was measured, and the verdict."""
    lines = textwrap.wrap(f"{number:2}  {CLAIMS[number]}", 110, subsequent_indent="    ")
    for what, figure in found.items():
        lines += textwrap.wrap(f"{what}: {shown(figure)}", 110, initial_indent="      ", subsequent_indent="        ")
    return "\n".join(
        [*lines, *textwrap.wrap(f"→ {judged}", 106, initial_indent="    ", subsequent_indent="      "), ""]
    )


def rules(number):
    return importlib.import_module("scopes_claims" if number < 7 else "scopes_widths")  # noqa: PLR2004 -- so they say


def measure(number):
    return getattr(rules(number), f"measure_{number}")()


def judge(number, found):
    return getattr(rules(number), f"judge_{number}")(found)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("claims", nargs="*", type=int, choices=[[], *CLAIMS], help="numbers; none: all")
    parser.add_argument("--quick", action="store_true", help="fewer calls and rounds, so that more cannot be told")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write figures and verdicts there too")
    for hidden in ("--claim", "--workloads", "--shapes"):
        parser.add_argument(hidden, nargs="+", help=argparse.SUPPRESS)  # a part, for a process of its own
    return parser.parse_args()


def part(asked):
    """Do a part in this process, and print what came of it last."""
    import scopes_times  # noqa: PLC0415 -- takes jax with it, which takes its time

    if asked.workloads:
        return scopes_times.workloads(asked.workloads)
    if asked.shapes:
        return scopes_times.shapes(*map(int, asked.shapes))
    return measure(int(asked.claim[0]))


def main():
    asked = arguments()
    if asked.quick:
        os.environ["SCOPES_QUICK"] = "1"
    if asked.claim or asked.workloads or asked.shapes:
        print(json.dumps(part(asked)))
        return
    import jax  # noqa: PLC0415 -- after the environment was set
    from scopes_times import child  # noqa: PLC0415 -- as above

    machine = f"jax {jax.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{machine}, {jax.default_backend()}. Times are ratios: middle [95 % between].\n")
    table = []
    for number in asked.claims or CLAIMS:
        found = measure(number) if number in SHARED else child("--claim", number)
        judged = judge(number, found)
        print(section(number, found, judged), flush=True)
        table.append({"claim": number, "text": CLAIMS[number], "measured": found, "verdict": judged})
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine, "claims": table}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
