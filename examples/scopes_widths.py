"""Claims 7 to 10 of ``scopes.py``, on what to jit: ``measure_N`` returns figures, ``judge_N`` the verdict."""

from functools import partial

import jax
import jax.numpy as jnp
import scopes_programs as programs
from scopes_times import above, against_best, built, by_scope, good, in_turns, instructions, ratio, verdict

import jaxwatch


def scopes_of(program):
    """Return the ratios of the scopes to the best one, for each workload of a program, after few calls and all."""
    return {
        f"{name}, {how}": against_best(figures[figure])
        for name, figures in by_scope().items()
        for how, figure in (("10 calls", "few"), ("all calls", "all"))
        if name.startswith(program)
    }


def measure_7():
    return scopes_of("a_")


def judge_7(found):
    return verdict({case: good(scopes["g"]) for case, scopes in found.items()})


def measure_8():
    return scopes_of("b_")


def judge_8(found):
    return verdict({case: beaten(scopes["f"], scopes["g"]) for case, scopes in found.items()})


def beaten(best, other):
    """Whether one scope is the best and another one is not."""
    either = good(best), good(other)
    return False if either[0] is False or either[1] else (None if None in either else True)


def nested(times, steps, *, inner):
    def f(x):
        for _ in range(steps):
            x = 2 * x + jnp.sin(x)
        return x

    step = jax.jit(f) if inner else f

    def g(x):
        for _ in range(times):
            x = step(x)
        return x / 2

    return g


def measure_9():
    x, found = jnp.zeros(1_000), {}
    for times, steps in ((2, 1), (100, 1), (20, 10)):
        taken, compiled = {True: [], False: []}, {}
        for _ in range(7):
            for inner, each in taken.items():
                compiled[inner], phases = built(nested(times, steps, inner=inner), x)
                each.append((phases["trace"] + phases["lower"], phases["compile"]))
        case = f"f of {3 * steps} operations called {times} times"
        for place, phase in enumerate(("trace and lower", "compile")):
            alone, both = ([each[place] for each in taken[inner]] for inner in (False, True))
            found[f"{case}, {phase}, g to both"] = ratio(alone, both)
        steady = in_turns({inner: partial(each, x) for inner, each in compiled.items()}, calls=50)
        found[f"{case}, steady, g to both"] = ratio(steady[False], steady[True])
        found[f"{case}, same instructions"] = instructions(compiled[True]) == instructions(compiled[False])
    plain, jitted = nested(1, 1, inner=False), jax.jit(nested(1, 1, inner=False))
    alone = in_turns({"eager": partial(plain, x), "jit": partial(jitted, x)}, calls=50)
    found["f called alone, eager to jit"] = ratio(alone["eager"], alone["jit"])
    return found


def judge_9(found):
    """Redundant: it makes neither the program another one nor tracing and lowering cheaper."""
    cases = {}
    for case in dict.fromkeys(what.partition(",")[0] for what in found if "times" in what):
        cheaper = above(found[f"{case}, trace and lower, g to both"], 1.1)
        cases[case] = None if cheaper is None else not cheaper and found[f"{case}, same instructions"]
    alone = above(found["f called alone, eager to jit"], 1.1)
    return verdict(cases, "; alone, f gains by its own jit" if alone else "; alone, f gains nothing by its own jit")


def measure_10():
    budget, found = (20 if programs.QUICK else 40), {}
    for name in ("a_large", "b_varying"):
        advice = jaxwatch.advise(f"scopes_programs:{name}", budget_seconds=budget)
        against = against_best(by_scope()[name]["all"])
        chosen = None if advice.recommended is None else advice.scopes[advice.recommended].jit
        scope = None if chosen is None else ",".join(sorted({each[0] for each in chosen})) or "none"
        worst = max(against.values())
        widest = next(each for each in advice.scopes if "g" in {part[0] for part in each.jit})
        found[f"{name}, recommended"] = scope or "no difference"
        found[f"{name}, recommended to the best one measured"] = worst if scope is None else against[scope]
        found[f"{name}, g to the best one measured"] = against["g"]
        found[f"{name}, part of g's time that is compiling"] = widest.compile_seconds / widest.total_seconds
    return found


def judge_10(found):
    cases = {}
    for name in ("a_large", "b_varying"):
        widest = good(found[f"{name}, g to the best one measured"])
        hurts = found[f"{name}, part of g's time that is compiling"] > 0.5  # noqa: PLR2004 -- most of it
        cases[f"{name}, widest first"] = widest or (None if widest is None else hurts)
        cases[f"{name}, the advisor"] = good(found[f"{name}, recommended to the best one measured"])
    return verdict(cases)
