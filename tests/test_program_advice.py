"""What is said of a program: large constants, variants within, unrolled loops; and what is not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._program_advice import (
    advise_inner_jit,
    advise_on_program,
    advise_to_donate,
    advised,
    inner_jit_saves,
    scan_saves,
    with_savings,
)
from jaxwatch.events import Body, Change, Donatable, Inner, Loop, PhaseSeconds, Program

LOOP = Loop(line="/home/u/train.py:41", blocks=100, equations=12, share=0.96, traced_share=0.9)
seconds = st.floats(0, 1e4)
shares = st.floats(0, 1)


def on_inner(variants: int, *changes: Change) -> list[tuple[str, str]]:
    inner = Inner(function="layer", definition="", calls=9, variants=99, signatures=variants, changes=changes)
    found = advise_on_program("step", Program(equations=1, constant_bytes=0, inner=(inner,)), 1.0)
    return [(advice.code, advice.text) for advice in found]


def test_large_constants_are_to_be_passed_as_arguments() -> None:
    texts = tuple(f"float32[{size}]" for size in (9, 8, 7, 6))
    least = _limits.CONSTANT_BYTES_TOLD
    (advice,) = advise_on_program("step", Program(equations=1, constant_bytes=least, constants=texts), 1.0)

    assert advice.code == "pass_as_argument"
    assert advice.text == (
        "1.0 MB of arrays are compiled into step (float32[9], float32[8], float32[7] and 1 more): "
        "pass as arguments what comes from outside."
    )
    assert advise_on_program("step", Program(equations=1, constant_bytes=least - 1, constants=texts), 1.0) == ()


def test_many_variants_of_an_inner_function_are_told_with_what_makes_them() -> None:
    static = Change(reason="static", path="index", before="0", after="1")
    ((code, text),) = on_inner(_limits.VARIANTS_TOLD, static, Change(reason="dtype", path="x"))

    assert code == "unmark_static"
    assert text == (
        "step holds 3 versions of layer, each lowered for itself: "
        "let index and x not vary, or pass what varies as an array."
    )
    assert on_inner(_limits.VARIANTS_TOLD - 1, static) == []
    assert on_inner(9) == []


def test_variants_of_several_shapes_are_meant() -> None:
    changes = Change(reason="static", path="n"), Change(reason="shape", path="x")

    assert on_inner(9, *changes) == []


# ------------------------------------------------------------------ loops


def with_loop(loop: Loop) -> Program:
    return Program(equations=1_250, constant_bytes=0, loops=(loop,))


def test_an_unrolled_loop_is_told_with_its_line_and_what_is_not_measured() -> None:
    (advice,) = advise_on_program("step", with_loop(replace(LOOP, scan_saves_seconds=4.1)), 4.6)

    assert advice.code == "use_scan"
    assert advice.text == (
        "The Python loop at line 41 of train.py puts 100 equal blocks of 12 equations each into step: lax.scan is "
        "expected to save some 90 % of its compiling. What it runs like is not measured: it can be slower (up to "
        "16 times was seen on a CPU), so measure both."
    )


def test_below_a_useful_gain_nothing_is_said() -> None:
    little = replace(LOOP, scan_saves_seconds=_limits.SCAN_SECONDS_SAVED * 0.99)

    assert advise_on_program("step", with_loop(little), 0.6) == ()


def test_where_most_of_the_compile_stays_nothing_is_said() -> None:
    saved = replace(LOOP, scan_saves_seconds=2.0)

    assert advise_on_program("step", with_loop(saved), 2.0 / _limits.SCAN_SHARE_SAVED * 1.01) == ()
    assert advise_on_program("step", with_loop(saved), 2.0 / _limits.SCAN_SHARE_SAVED * 0.99) != ()


@given(seconds, seconds, seconds, shares, shares)
def test_no_more_is_saved_than_was_spent(trace: float, lower: float, backend: float, one: float, two: float) -> None:
    spent = PhaseSeconds(trace=trace, lower=lower, backend_compile=backend)
    saved = scan_saves(replace(LOOP, share=one, traced_share=two), 9, spent)

    assert 0 <= saved <= spent.total * (1 + 1e-9)


@given(seconds, shares, shares)
def test_the_larger_share_saves_more(spent: float, one: float, two: float) -> None:
    took = PhaseSeconds(backend_compile=spent)
    less, more = (scan_saves(replace(LOOP, share=share), 9, took) for share in sorted((one, two)))

    assert less <= more * (1 + 1e-9)


@given(seconds, st.integers(0, 1000), st.integers(0, 1000))
def test_the_more_of_a_program_is_unlike_the_less_is_saved(spent: float, one: int, two: int) -> None:
    took = PhaseSeconds(backend_compile=spent)
    more, less = (scan_saves(LOOP, distinct, took) for distinct in sorted((one, two)))

    assert less <= more


def test_each_loop_of_a_program_has_what_it_saves() -> None:
    spent = PhaseSeconds(trace=1.0, lower=1.0, backend_compile=2.0)
    (loop,) = with_savings(with_loop(LOOP), spent).loops

    assert loop.scan_saves_seconds == scan_saves(LOOP, 0, spent) > 3


# ------------------------------------------------------------------ what could be donated


STATE = Donatable(argument="state", bytes=12_000_000)


def test_several_arguments_are_told_with_the_bytes_of_all() -> None:
    program = Program(equations=1, constant_bytes=0, donatable=(STATE, replace(STATE, argument="args[1]")))
    (advice,) = advise_to_donate(program, ("first_call",))

    assert advice.code == "donate_argument"
    assert advice.text == (
        "state and args[1] (24.0 MB) are not donated, though each of their arrays has an output of the same shape and "
        "dtype: if they are not needed after the call, donate them (donate_argnames, donate_argnums), and the outputs "
        "can take their memory."
    )
    assert advise_to_donate(program, ("dtype", "shape")) == ()


def test_the_texts_on_a_program_are_among_what_is_told_of_it() -> None:
    program = Program(equations=1, constant_bytes=2 * _limits.CONSTANT_BYTES_TOLD, donatable=(STATE,))
    told, advice = advised("step", program, PhaseSeconds(), ("first_call",), donates=True)

    assert [each.code for each in advice] == ["pass_as_argument", "donate_argument"]
    assert told is not None
    assert told.advice == tuple(each.text for each in advice)
    _, others = advised("step", program, PhaseSeconds(), ("first_call",), donates=False)
    assert [each.code for each in others] == ["pass_as_argument"]
    assert advised("step", None, PhaseSeconds(), ("first_call",), donates=True) == (None, ())


# ------------------------------------------------------------------ a function that is traced again and again


BODY = Body(function="layer", definition="/home/u/train.py:41", calls=12, equations=60, share=0.9)


def on_body(body: Body, seconds: PhaseSeconds) -> list[tuple[str, str]]:
    program = Program(equations=800, constant_bytes=0, bodies=(body,))
    return [(each.code, each.text) for each in advise_inner_jit("step", program, seconds)]


def test_a_function_that_is_traced_each_time_is_told_with_what_a_jit_saves() -> None:
    ((code, text),) = on_body(BODY, PhaseSeconds(trace=1.5, lower=0.5, backend_compile=3.0))

    assert code == "jit_inner"
    assert text == (
        "step calls layer (line 41 of train.py) 12 times alike, 60 equations each, and traces it each time: with "
        "jax.jit around layer it is traced once, which is expected to save 0.4 s or more of 2.0 s of tracing and "
        "lowering, and nothing of XLA's compile."
    )


def test_a_small_gain_is_not_told_be_it_in_seconds_or_in_its_share() -> None:
    assert on_body(BODY, PhaseSeconds(trace=0.2, lower=0.1)) == []
    assert on_body(BODY, PhaseSeconds(trace=0.5, lower=0.1, backend_compile=1.0)) != []
    assert on_body(BODY, PhaseSeconds(trace=0.5, lower=0.1, backend_compile=10.0)) == []


@given(seconds, seconds, seconds, shares)
def test_a_jit_within_is_expected_to_save_a_part_of_tracing_and_lowering(
    a: float, b: float, c: float, s: float
) -> None:
    assert 0 <= inner_jit_saves(replace(BODY, share=s), PhaseSeconds(trace=a, lower=b, backend_compile=c)) <= a + b
