"""The rules: one table of codes, names and messages. A code that was given out keeps its meaning."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """What one code means.

    Attributes:
        code: ``JW`` and three digits; the first digit is the kind of fault.
        name: A few words, as in docs/lint.md and in SARIF.
        message: What, then the way out; ``{what}`` stands for the user's own words.
        pedantic: Told with ``--pedantic`` alone, whatever is known.
    """

    code: str
    name: str
    message: str
    pedantic: bool = False


RULES = {
    rule.code: rule
    for rule in (
        Rule("JW000", "unreadable file", "cannot be checked: {what}"),
        Rule(
            "JW001", "unknown code in an ignore", "`jaxwatch: ignore` names {what}, which is no code: see docs/lint.md"
        ),
        Rule("JW101", "print", "`{what}` runs while tracing and in no later call: use jax.debug.print"),
        Rule("JW102", "global write", "`{what}` is set while tracing and in no later call: return the value instead"),
        Rule(
            "JW103",
            "captured container",
            "`{what}` changes while tracing and in no later call: return the value instead",
        ),
        Rule(
            "JW104",
            "captured attribute",
            "`{what}` is set while tracing and in no later call: return the value instead",
        ),
        Rule(
            "JW105",
            "input or output",
            "`{what}` runs while tracing and in no later call: use jax.debug.callback",
            pedantic=True,
        ),
        Rule(
            "JW201",
            "random numbers",
            "`{what}` is drawn once, while tracing: use jax.random with a key that is passed in",
        ),
        Rule("JW202", "clock", "`{what}` is read once, while tracing: read it outside and pass it in"),
        Rule("JW203", "environment", "`{what}` is read once, while tracing: read it outside and pass it in"),
        Rule("JW301", "if", "`if` on `{what}`, which is traced: use jnp.where or jax.lax.cond, or make it static"),
        Rule("JW302", "while", "`while` on `{what}`, which is traced: use jax.lax.while_loop, or make it static"),
        Rule(
            "JW303",
            "assert",
            "`assert` on `{what}`, which is traced: check it outside, or with jax.experimental.checkify",
        ),
        Rule("JW304", "truth", "`{what}` is asked for its truth, and is traced: use &, |, ~, jnp.maximum and the like"),
        Rule(
            "JW305",
            "Python int",
            "`{what}` must be a Python int and is traced: use jax.lax.fori_loop, or make it static",
        ),
        Rule("JW306", "index", "`{what}` indexes a Python list or numpy array and is traced: make that a jnp array"),
        Rule("JW307", "shape", "`{what}` takes a size that is traced: make that static, or use jax.lax.dynamic_slice"),
        Rule(
            "JW308",
            "size by value",
            "`{what}` has a shape that depends on values: use jnp.where(mask, x, y), or give size=",
        ),
        Rule("JW401", "Python number", "`{what}` needs a value and gets a tracer: stay in jnp, or do it outside"),
        Rule("JW402", "numpy", "`{what}` is numpy's and gets a tracer: use jax.numpy"),
        Rule(
            "JW501",
            "assignment in place",
            "`{what}` is a jax array, which cannot be assigned to: use x = x.at[i].set(y)",
        ),
        Rule("JW502", "update lost", "`{what}` returns a new array, which is dropped: assign it"),
        Rule(
            "JW601",
            "unhashable static",
            "`{what}` is static and cannot be hashed: give a tuple, or another hashable value",
        ),
        Rule("JW602", "unknown argument name", "`{what}` is no parameter of the jitted function: give the name of one"),
        Rule("JW603", "argument number", "`{what}` is out of range: give the position of a parameter"),
        Rule(
            "JW604",
            "jit in a loop",
            "`{what}` is made anew in each round of the loop: make it once before, and pass what varies",
        ),
        Rule(
            "JW605",
            "jit made and called",
            "`{what}` is made and called at once, anew at each call: make it once, outside",
        ),
        Rule(
            "JW606",
            "jit of a method",
            "`{what}` is jitted with self as an array argument: name self in static_argnames",
        ),
    )
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One fault: ``line`` and ``column`` count from 1, ``first`` and ``last`` are the lines of its statement."""

    line: int
    column: int
    code: str
    message: str
    certain: bool = True
    first: int = 0
    last: int = 0
