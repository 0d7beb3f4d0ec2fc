"""How ``scopes.py`` takes times, in fresh processes where caches matter, and when figures say that a claim holds.

A figure of time is a ratio of runs in turns, ``(middle, low, high)``, the middle of the quicker half: what disturbs
a run makes it slower, never quicker.
"""

import json
import os
import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from statistics import median

import jax
import numpy as np
import scopes_programs as programs
from scipy.stats import t

SCOPES = ("none", "f", "g", "f,g")
WORKLOADS = ("a_scalar", "a_large", "b_fixed", "b_large", "b_varying", "b_slices")
FEW = 10  # calls
ROUNDS = 3 if programs.QUICK else 5
UNSURE = 1.1  # high to low from which on a ratio with the limit in between says nothing
EQUAL = 1.05  # ratio up to which two scopes are equally good
FAR = 1.25  # a ratio that may be as large is not known to be equal


def center(seconds):
    """Return the median of the quicker half."""
    return median(sorted(seconds)[: (len(seconds) + 1) // 2])


def sureness(free):
    """Return how many standard errors 95 % lie within, with so many degrees of freedom (Student's t)."""
    return float(t.ppf(0.975, free))


def ratio(over, under):
    """Return how often one takes the other's seconds, and its 95 % bounds, from rounds that are redrawn (bootstrap).

    Redrawing few rounds makes too sure: the bounds are widened as Student's t is against the normal distribution.
    """
    over, under, rounds = np.array(over), np.array(under), len(over)
    redrawn = np.random.default_rng(0).integers(rounds, size=(500, rounds))
    middle = center(over) / center(under)
    found = np.log([center(over[each]) / center(under[each]) / middle for each in redrawn])
    wider = sureness(rounds - 1) / sureness(np.inf) * np.sqrt(rounds / (rounds - 1))
    low, high = middle * np.exp(wider * np.percentile(found, (2.5, 97.5)))
    return middle, float(low), float(high)


def above(found, limit):
    """Whether a ratio is above a limit; None where it is too uncertain to say."""
    middle, low, high = found
    return None if low <= limit < high and high > UNSURE * low else middle > limit


def good(found):
    """Whether a scope is as good as the best one, given its ratio to that; None where it is too uncertain to say."""
    middle, low, high = found
    if middle <= EQUAL:
        return True if high <= FAR else None
    return False if low > 1 else None


def verdict(cases, then=""):
    """Say in which cases a claim holds: label → whether it does, None where it could not be measured."""
    held = [label for label, holds in cases.items() if holds]
    unclear = [label for label, holds in cases.items() if holds is None]
    if len(unclear) == len(cases):
        return "could not be measured"
    whole = "holds" if len(held) + len(unclear) == len(cases) else "does not hold"
    said = f"holds only when: {'; '.join(held)}" if held and whole != "holds" else whole
    return said + then + (f" (could not be measured: {'; '.join(unclear)})" if unclear else "")


def in_turns(functions, calls=1, rounds=21):
    """Return the seconds of a call of each function, by round; each is called once before."""
    taken = {name: [] for name in functions}
    for function in functions.values():
        jax.block_until_ready(function())
    for number in range(rounds):
        for name, function in list(functions.items())[:: -1 if number % 2 else 1]:  # none of them always first
            begun = time.perf_counter()
            for _ in range(calls):
                result = function()
            jax.block_until_ready(result)
            taken[name].append((time.perf_counter() - begun) / calls)
    return taken


def built(function, *arguments):
    """Return the compiled function, and the seconds of trace, lower and compile."""
    moments = [time.perf_counter()]
    traced = jax.jit(function).trace(*arguments)
    moments.append(time.perf_counter())
    lowered = traced.lower()
    moments.append(time.perf_counter())
    compiled = lowered.compile()
    moments.append(time.perf_counter())
    return compiled, dict(zip(("trace", "lower", "compile"), np.diff(moments).tolist(), strict=True))


def instructions(compiled):
    """Return the optimized program's instructions without names and places in the source, sorted."""
    text = re.sub(r",? metadata=\{[^}]*\}", "", compiled.as_text())
    return sorted(re.sub(r"%[\w.\-]+", "%", line.strip()) for line in text.splitlines() if re.search("%.* = ", line))


# ---------------------------------------------------------------- processes


def child(*arguments, jitted="f,g"):
    """Run a part of this file in a fresh process with a cold cache, and return what it printed last."""
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false", "SCOPES_JIT": jitted}
    command = [sys.executable, str(Path(__file__).with_name("scopes.py")), *map(str, arguments)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)  # noqa: S603 -- itself
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def workloads(names):
    """Return for each workload seconds of the first call, of a later one, of the first few and of all."""
    jax.block_until_ready(jax.jit(lambda x: x - 1)(np.ones(3)))  # what the very first compile takes besides
    found = {}
    for name in names:
        moments = {}

        def after(number, result, moments=moments):
            if number in (1, FEW):
                jax.block_until_ready(result)
                moments[number] = time.perf_counter()
            moments["calls"] = number

        begun = time.perf_counter()
        getattr(programs, name)(after)
        end = time.perf_counter()
        later = (end - moments[FEW]) / (moments["calls"] - FEW)
        found[name] = {"first": moments[1] - begun, "later": later, "few": moments[FEW] - begun, "all": end - begun}
    return found


@cache
def by_scope(rounds=ROUNDS):
    """Return workload → figure → scope → seconds, by round."""
    taken = {}
    for number in range(rounds):
        for scope in SCOPES[:: -1 if number % 2 else 1]:  # none of them always first
            for name, figures in child("--workloads", *WORKLOADS, jitted=scope).items():
                for figure, seconds in figures.items():
                    taken.setdefault(name, {}).setdefault(figure, {}).setdefault(scope, []).append(seconds)
    return taken


def against_best(seconds):
    """Return the ratio of each scope to the best one."""
    best = min(seconds, key=lambda scope: center(seconds[scope]))
    return {scope: ratio(each, seconds[best]) for scope, each in seconds.items()}


def exponent(sizes, seconds, floor):
    """Return the k of ``seconds = floor + factor * size ** k``, and its 95 % bounds."""
    x, y = np.log(sizes), np.log([max(each - floor, 1e-6) for each in seconds])
    slope, level = np.polyfit(x, y, 1)
    spread = np.sqrt(((y - slope * x - level) ** 2).sum() / (len(x) - 2) / ((x - x.mean()) ** 2).sum())
    error = sureness(len(x) - 2) * spread
    return float(slope), float(slope - error), float(slope + error)


def shapes(kinds, calls):
    """Return the seconds of so many cold calls of g, with arrays of so many lengths in turns."""
    jax.block_until_ready(jax.jit(lambda x: x - 1)(np.ones(3)))
    arrays = [np.ones(100 + number % kinds, np.float32) for number in range(calls)]
    begun = time.perf_counter()
    for array in arrays:
        jax.block_until_ready(programs.g(array))
    return time.perf_counter() - begun
