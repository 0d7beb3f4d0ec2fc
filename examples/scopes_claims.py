"""The claims of ``scopes.py``: ``measure_N`` returns the figures of claim N, ``judge_N`` says what follows from them."""

import contextlib
import io
import re
from statistics import median

import jax
import jax.numpy as jnp
import scopes_programs as programs
from scopes_times import above, against_best, built, by_scope, child, exponent, in_turns, quicker, ratio, verdict

import jaxwatch

EQUAL = 1.05  # ratio up to which two scopes are equally good


def measure_1():
    taken = by_scope(("a_scalar", "a_large"), ("none", "g"), rounds=3)
    return {
        f"first call to a later one, {how}, {name}": ratio(figures["first"][scope], figures["later"][scope])
        for name, figures in taken.items()
        for scope, how in (("g", "jit"), ("none", "eager"))
    }


def judge_1(found):
    eager = all(above(each, 2) for what, each in found.items() if "eager" in what)
    cases = {what.rpartition(", ")[2]: above(each, 2) for what, each in found.items() if "eager" not in what}
    return verdict(cases, ", and for eager calls too" if eager else "")


def chain(x):
    for _ in range(5):
        x = (x * 1.01 + 0.5) * x
    return x


def with_dead_branch(x):
    for _ in range(20):
        dead = jnp.sin(x)
        dead = jnp.exp(dead)
    del dead
    return chain(x)


def most_bytes_eager(x):
    """Return the most bytes of arrays alive after an operation, as eager calls leave them."""
    start, most, kept = sum(each.nbytes for each in jax.live_arrays()) - x.nbytes, 0, x
    for _ in range(5):
        y = kept * 1.01
        z = y + 0.5
        most = max(most, sum(each.nbytes for each in jax.live_arrays()))
        kept = z * kept
        most = max(most, sum(each.nbytes for each in jax.live_arrays()))
        del y, z
    return most - start


def measure_2():
    x = jnp.linspace(0, 1, programs.LARGE)
    fused, dead = jax.jit(chain), jax.jit(with_dead_branch)
    runs = {"eager": lambda: chain(x), "jit": lambda: fused(x), "dead": lambda: dead(x)}
    taken = in_turns(runs, calls=5, rounds=9)
    memory = fused.lower(x).compile().memory_analysis()
    parts = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    counts = [len(jax.make_jaxpr(function)(x).eqns) for function in (with_dead_branch, chain)]
    return {
        "chain, eager to jit": ratio(taken["eager"], taken["jit"]),
        "bytes, eager": most_bytes_eager(x),
        "bytes, jit": parts,
        "jit with dead code to without": ratio(taken["dead"], taken["jit"]),
        "equations traced with dead code": counts[0],
        "equations traced without": counts[1],
    }


def judge_2(found):
    slower = above(found["jit with dead code to without"], 1.1)
    cases = {
        "fused": above(found["chain, eager to jit"], 1.1),
        "less memory": found["bytes, eager"] > found["bytes, jit"],
        "dead code": None if slower is None else not slower,
    }
    traced = found["equations traced with dead code"] > found["equations traced without"]
    return verdict(cases, ", but dead code is traced all the same" if traced else "")


def measure_3():
    x, operations = jnp.ones(8), 100

    def small(x):
        for _ in range(operations // 2):
            x = jnp.sin(x) + 1
        return x

    jitted = jax.jit(small)
    taken = in_turns({"eager": lambda: small(x), "jit": lambda: jitted(x)}, calls=20)
    each = {f"µs per operation, {name}": 1e6 * median(quicker(seconds)) / operations for name, seconds in taken.items()}
    return {**each, "eager to jit": ratio(taken["eager"], taken["jit"])}


def judge_3(found):
    return verdict({"operations are small": above(found["eager to jit"], 5)})


def straight(size):
    def run(x):
        for step in range(size):
            x = jnp.sin(x) if step % 2 else x * (1 + step)
        return x

    return run


def unrolled(size):
    def run(x):
        for _ in range(size // 3):
            x = 2 * x + jnp.sin(x)
        return x

    return run


def wide(size):
    return lambda x: sum(jnp.sin(x * (1 + branch)) for branch in range(size // 3))


def measure_4():
    x = jnp.ones(64)
    sizes, rounds = ((48, 96, 192), 3) if QUICK else ((96, 192, 384, 768), 5)
    found = {}
    for kind in (straight, unrolled, wide):
        taken = [[built(kind(size), x)[1] for size in (3, *sizes)] for _ in range(rounds)]
        for phase in ("trace", "lower", "compile"):
            seconds = [quicker([each[place][phase] for each in taken]) for place in range(len(sizes) + 1)]
            found[f"{kind.__name__}, {phase}"] = exponent(sizes, seconds[1:], median(seconds[0]))
    return found


def judge_4(found):
    """About quadratic: an exponent from 1.7 to 2.3."""
    cases = {}
    for what, (slope, low, high) in found.items():
        kind, phase = what.split(", ")
        if phase == "compile":
            sure = high - low < 1 or low > 2.3 or high < 1.7  # noqa: PLR2004 -- as the docstring says
            cases[kind] = 1.7 <= slope <= 2.3 if sure else None  # noqa: PLR2004 -- as above
    return verdict(cases)


def plain_g(x):
    for _ in range(2):
        x = 2 * x + jnp.sin(x)
    return x / 2


def measure_5():
    calls = 40 if programs.QUICK else 120
    watched, found = jaxwatch.jit(plain_g), {}
    for what, arguments in {
        "10 lengths": [jnp.ones(100 + number % 10) for number in range(calls)],
        "3 dtypes": [jnp.ones(300, dtype) for dtype in ("float32", "bfloat16", "int32")] * 10,
        "a Python number and an array of it": [0.5, jnp.float32(0.5)] * 10,
    }.items():
        before = jaxwatch.stats(watched).misses
        for argument in arguments:
            watched(argument)
        found[f"misses, {what}"] = jaxwatch.stats(watched).misses - before
    for kinds in (1, 10, calls):
        taken = {"g": [], "none": []}
        for _ in range(3):
            for scope, seconds in taken.items():
                seconds.append(child("--shapes", kinds, calls, jitted=scope))
        found[f"jit to eager, {calls} cold calls, lengths: {kinds}"] = ratio(taken["g"], taken["none"])
    found["calls to break even, a shape, against eager operations that are compiled"] = break_even()
    return found


def break_even():
    x = jnp.ones(100)
    cost = median(quicker([sum(built(lambda x: plain_g(x), x)[1].values()) for _ in range(5)]))  # noqa: PLW0108 -- a new one each
    jitted = jax.jit(plain_g)
    taken = in_turns({"eager": lambda: plain_g(x), "jit": lambda: jitted(x)}, calls=50)
    gain = median(quicker(taken["eager"])) - median(quicker(taken["jit"]))
    return round(cost / gain) if gain > 0 else None


def judge_5(found):
    *_, every_call_anew = (each for what, each in found.items() if "jit to eager" in what)
    compiled = found["misses, 10 lengths"] == 10 and found["misses, 3 dtypes"] == 3  # noqa: PLR2004 -- as their names say
    return verdict({"each new shape or dtype compiles": compiled, "the gain is eaten": above(every_call_anew, 1)})


written = 0


def prints(x):
    print("x is", x)
    return x + 2


def writes_global(x):
    global written  # noqa: PLW0603 -- that is the question
    written += 1
    return x + 2


def branches(x):
    return x + 2 if x > 0 else x


captured = []


def appends_to_captured(x):
    captured.append(x)
    return x + 2


settings = [1.0]


def reads_captured(x):
    settings[0] += 1.0  # 2 at the first call, 3 at the second one
    return x + settings[0]


def builds_list(x):
    parts = [x]
    parts.append(2.0)
    return sum(parts)


def builds_dict(x):
    parts = {"x": x}
    parts["more"] = 2.0
    return sum(parts.values())


def measure_6():
    count = {
        "prints": lambda printed: printed.getvalue().count("\n"),
        "writes_global": lambda _: written,
        "appends_to_captured": lambda _: len(captured),
        "reads_captured": lambda _: int(settings[0]) - 1,
    }
    tried = (prints, writes_global, branches, appends_to_captured, reads_captured, builds_list, builds_dict)
    return {each.__name__: three_calls(each, count.get(each.__name__, lambda _: 0)) for each in tried}


def three_calls(function, count):
    """Say what three calls of a function do when it is jitted: its effects after each one, and its results."""
    jitted, effects, results = jax.jit(function), [], []
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for _ in range(3):
            try:
                results.append(float(jitted(jnp.float32(2))))
            except Exception as error:  # noqa: BLE001 -- which one is the figure
                return f"raises {type(error).__name__}"
            effects.append(count(printed))
    return f"effects after calls 1, 2, 3: {effects}, results {results}" if any(effects) else f"results {results}"


def judge_6(found):
    once = [name for name, what in found.items() if "[1, 1, 1]" in what]
    free = [name for name, what in found.items() if "[4.0, 4.0, 4.0]" in what and name not in once]
    then = f"; once, at the trace: {', '.join(once)}" if once else ""
    then += f"; as without jit: {', '.join(free)}" if free else ""
    return verdict({name: what.startswith("raises") for name, what in found.items()}, then)


def measure_7():
    taken = by_scope(("a_scalar", "a_large"))
    return {
        f"{name}, {how}": against_best(figures[figure])
        for name, figures in taken.items()
        for how, figure in (("10 calls", "few"), ("all calls", "all"))
    }


def judge_7(found):
    return verdict({case: good(scopes["g"]) for case, scopes in found.items()})


def good(found):
    over = above(found, EQUAL)
    return None if over is None else not over


def measure_8():
    taken = by_scope(("b_fixed", "b_large", "b_varying", "b_slices"))
    return {
        f"{name}, {how}": against_best(figures[figure])
        for name, figures in taken.items()
        for how, figure in (("10 calls", "few"), ("all calls", "all"))
    }


def judge_8(found):
    return verdict({case: beaten(scopes["f"], scopes["g"]) for case, scopes in found.items()})


def beaten(best, other):
    """Whether one scope is the best and another one is not."""
    either = good(best), above(other, EQUAL)
    return False if False in either else (None if None in either else True)


def nested(times, *, inner):
    def f(x):
        return 2 * x + jnp.sin(x)

    step = jax.jit(f) if inner else f

    def g(x):
        for _ in range(times):
            x = step(x)
        return x / 2

    return g


def program(compiled):
    """Return the optimized program without names and places in the source, sorted."""
    lines = re.sub(r"metadata=\{[^}]*\}|%[\w.\-]+|, stack_frame_id=\d+", "", compiled.as_text()).splitlines()
    return sorted(line.strip() for line in lines if "=" in line and not line.startswith("HloModule"))


def measure_9():
    x, found = jnp.zeros(1_000), {}
    for times in (2, 100):
        seconds, compiled = {True: [], False: []}, {}
        for _ in range(5):
            for inner, each in seconds.items():
                compiled[inner], phases = built(nested(times, inner=inner), x)
                each.append(phases)
        for name, phases in {"trace and lower": ("trace", "lower"), "compile": ("compile",)}.items():
            taken = [[sum(each[phase] for phase in phases) for each in seconds[inner]] for inner in (False, True)]
            found[f"{times} × f, {name}, g alone to both"] = ratio(*taken)
        taken = in_turns({inner: lambda inner=inner: compiled[inner](x) for inner in compiled}, calls=50)  # noqa: B023 -- called at once
        found[f"{times} × f, steady, g alone to both"] = ratio(taken[False], taken[True])
        found[f"{times} × f, same program after optimization"] = program(compiled[True]) == program(compiled[False])
    plain, jitted = nested(1, inner=False), jax.jit(nested(1, inner=False))
    taken = in_turns({"eager": lambda: plain(x), "jit": lambda: jitted(x)}, calls=50)
    found["f called alone, eager to jit"] = ratio(taken["eager"], taken["jit"])
    return found


def judge_9(found):
    cases = {}
    for case in {what.partition(",")[0]: None for what in found if "×" in what}:
        gains = [above(found[f"{case}, {what}, g alone to both"], 1.1) for what in ("trace and lower", "steady")]
        cases[f"{case} within g"] = False if True in gains else (None if None in gains else True)
    alone = above(found["f called alone, eager to jit"], 1.1)
    return verdict(cases, "; alone, f gains by its own jit" if alone else "; alone, f gains nothing by its own jit")


def measure_10():
    budget, found = (20 if programs.QUICK else 60), {}
    names = ("a_large", "b_varying")
    taken = by_scope(names)
    for name in names:
        advice = jaxwatch.advise(f"scopes_programs:{name}", budget_seconds=budget)
        against = against_best(taken[name]["all"])
        chosen = None if advice.recommended is None else advice.scopes[advice.recommended].jit
        scope = None if chosen is None else ",".join(sorted({each[0] for each in chosen})) or "none"
        worst = max(against.values())
        widest = next(each for each in advice.scopes if {part[0] for part in each.jit} == {"g"})
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
