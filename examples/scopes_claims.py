"""Claims 1 to 6 of ``scopes.py``, on what jit does: ``measure_N`` returns figures, ``judge_N`` the verdict."""

import contextlib
import io

import jax
import jax.numpy as jnp
import scopes_programs as programs
from scopes_times import above, built, by_scope, center, child, exponent, in_turns, instructions, ratio, verdict

import jaxwatch


def measure_1():
    return {
        f"first call to a later one, {how}, {name}": ratio(figures["first"][scope], figures["later"][scope])
        for name, figures in by_scope().items()
        if name.startswith("a_")
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
    fused, dead = built(chain, x)[0], built(with_dead_branch, x)[0]
    taken = in_turns({"eager": lambda: chain(x), "jit": lambda: fused(x)}, calls=3)
    without = in_turns({"dead": lambda: dead(x), "jit": lambda: fused(x)}, calls=3)
    memory = fused.memory_analysis()
    return {
        "chain, eager to jit": ratio(taken["eager"], taken["jit"]),
        "bytes, eager": most_bytes_eager(x),
        "bytes, jit": memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes,
        "equations traced with dead code": len(jax.make_jaxpr(with_dead_branch)(x).eqns),
        "equations traced without": len(jax.make_jaxpr(chain)(x).eqns),
        "same instructions after optimization": instructions(dead) == instructions(fused),
        "jit, with dead code to without": ratio(without["dead"], without["jit"]),
    }


def judge_2(found):
    cases = {
        "fusing": above(found["chain, eager to jit"], 1.1),
        "memory": found["bytes, eager"] > found["bytes, jit"],
        "dead code": found["same instructions after optimization"],
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
    each = {f"µs per operation, {name}": 1e6 * center(seconds) / operations for name, seconds in taken.items()}
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
    sizes, rounds = ((50, 100, 200, 400), 3) if programs.QUICK else ((100, 200, 400, 800), 7)
    found = {}
    for kind in (straight, unrolled, wide):
        taken = [[built(kind(size), x)[1] for size in (3, *sizes)] for _ in range(rounds)]
        for phase in ("trace", "lower", "compile"):
            seconds = [center([each[place][phase] for each in taken]) for place in range(len(sizes) + 1)]
            found[f"{kind.__name__}, {phase}"] = exponent(sizes, seconds[1:], seconds[0])
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
    calls = 20 if programs.QUICK else 60
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
    for kinds in (calls,) if programs.QUICK else (1, 10, calls):
        taken = {"g": [], "none": []}
        for _ in range(3):
            for scope, seconds in taken.items():
                seconds.append(child("--shapes", kinds, calls, jitted=scope))
        found[f"jit to eager, {calls} cold calls, lengths: {kinds}"] = ratio(taken["g"], taken["none"])
    found["calls to break even, a shape, against eager operations that are compiled"] = break_even()
    return found


def break_even():
    x = jnp.ones(100)
    cost = center([sum(built(lambda x: plain_g(x), x)[1].values()) for _ in range(5)])  # noqa: PLW0108 -- a new one each
    jitted = jax.jit(plain_g)
    taken = in_turns({"eager": lambda: plain_g(x), "jit": lambda: jitted(x)}, calls=50)
    gain = center(taken["eager"]) - center(taken["jit"])
    return round(cost / gain) if gain > 0 else None


def judge_5(found):
    *_, every_call_anew = (each for what, each in found.items() if "jit to eager" in what)
    calls = found["calls to break even, a shape, against eager operations that are compiled"]
    compiled = found["misses, 10 lengths"] == 10 and found["misses, 3 dtypes"] == 3  # noqa: PLR2004 -- as they say
    cold = above(every_call_anew, 1)
    return verdict(
        {
            "eager operations are compiled already": compiled and (calls is None or calls > 1),
            "eager operations compile for each shape too": cold if compiled else False,
        }
    )


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


TRIED = {
    "print": prints,
    "a global write": writes_global,
    "a branch on a traced value": branches,
    "an outer list that is added to": appends_to_captured,
    "an outer list that is changed and read": reads_captured,
    "a local list": builds_list,
    "a local dict": builds_dict,
}


def measure_6():
    count = {
        "print": lambda printed: printed.getvalue().count("\n"),
        "a global write": lambda _: written,
        "an outer list that is added to": lambda _: len(captured),
        "an outer list that is changed and read": lambda _: int(settings[0]) - 1,
    }
    return {name: three_calls(function, count.get(name, lambda _: 0)) for name, function in TRIED.items()}


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
