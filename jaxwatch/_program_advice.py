"""What to change in a function for the sake of the program that it becomes. Pure: plain data in, plain data out."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from jaxwatch import _limits
from jaxwatch._advisor import advise, and_more, megabytes, paths
from jaxwatch.events import Advice, Body, Loop, PhaseSeconds, Program, Reason

# What a program still takes to compile once its loop is a scan, in seconds on two cores: at all; for each operation
# unlike the others, as XLA compiles equal ones once; for each matrix product in the body, which the compiler for CPUs
# spells out there. From programs of `python -m benchmarks growth`, which tests it with others too.
BASE_SECONDS = 0.05
DISTINCT_SECONDS = 0.008
PRODUCT_SECONDS = 0.1
# Of the tracing and lowering of repeated calls, what a jit around them is promised to save: half of what it saved where
# there was 0.1 s to tell of (`python -m benchmarks bodies`, whose programs the figure was chosen by). With few or cheap
# calls it saved nothing that could be told from noise.
INNER_JIT_SAVES = 0.25


def advised(
    function: str, program: Program | None, seconds: PhaseSeconds, reasons: Sequence[Reason], *, donates: bool
) -> tuple[Program | None, tuple[Advice, ...]]:
    """Return the program with what can be saved of it, and what to change; None and nothing where it is not known.

    Args:
        function: Its name.
        program: What was lowered; None: not known.
        seconds: What the miss took.
        reasons: Why it was one.
        donates: Whether it is the user's to say what is donated, and that can be meant.
    """
    if program is None:
        return None, ()
    if program.loops:
        program = with_savings(program, seconds)
    advice = advise_on_program(function, program, seconds.total)
    advice += advise_inner_jit(function, program, seconds)
    if donates:
        advice += advise_to_donate(program, reasons)
    return (replace(program, advice=tuple(each.text for each in advice)) if advice else program), advice


def with_savings(program: Program, seconds: PhaseSeconds) -> Program:
    """Return the program with what ``lax.scan`` is expected to save of each loop, of the seconds that it took."""
    loops = (replace(loop, scan_saves_seconds=scan_saves(loop, program.distinct, seconds)) for loop in program.loops)
    return replace(program, loops=tuple(loops))


def scan_saves(loop: Loop, distinct: int, seconds: PhaseSeconds) -> float:
    """Return the seconds that a loop is expected to save as ``lax.scan``, of those that its program took; or less.

    Not by the share of its equations alone: equal blocks may cost XLA next to nothing, and the rest everything.

    Args:
        loop: As it is now.
        distinct: Operations of the program that are unlike each other.
        seconds: What the program took.

    Source:
        ``python -m benchmarks growth``; DESIGN.md, "Unrolled loops".
    """
    before_xla = (seconds.trace + seconds.lower) * loop.traced_share
    still = BASE_SECONDS + DISTINCT_SECONDS * distinct + PRODUCT_SECONDS * loop.products
    xla = min(seconds.backend_compile * loop.share, seconds.backend_compile - still)
    return max(0.0, before_xla + xla)


def inner_jit_saves(body: Body, seconds: PhaseSeconds) -> float:
    """Return the seconds that a jit of its own around a function is expected to save, or less: none of XLA's.

    Args:
        body: The function as it is now.
        seconds: What the program took.

    Source:
        ``python -m benchmarks bodies``, jax 0.10.2 and 0.12.0.1; of XLA's compile no gain was seen above the noise.
    """
    return INNER_JIT_SAVES * body.share * (seconds.trace + seconds.lower)


def is_useful(saved: float, seconds: float) -> bool:
    """Whether so many saved seconds, of so many, are worth being told."""
    return saved >= max(_limits.SCAN_SECONDS_SAVED, _limits.SCAN_SHARE_SAVED * seconds)


def advise_on_program(function: str, program: Program, seconds: float) -> tuple[Advice, ...]:
    """Return what to change.

    Args:
        function: Its name.
        program: What was lowered.
        seconds: What the miss took, all phases.
    """
    return tuple(chain(_constants(function, program), _variants(function, program), _loops(function, program, seconds)))


def _constants(function: str, program: Program) -> list[Advice]:
    if program.constant_bytes < _limits.CONSTANT_BYTES_TOLD:
        return []
    text = f"{megabytes(program.constant_bytes)} of arrays are compiled into {function}"
    text += f" ({and_more(program.constants)}): pass as arguments what comes from outside."
    return [Advice(code="pass_as_argument", text=text)]


def _variants(function: str, program: Program) -> list[Advice]:
    found = []
    for inner in program.inner:
        # other shapes in one program, as of a network's layers, are meant
        if inner.signatures >= _limits.VARIANTS_TOLD and all(change.reason != "shape" for change in inner.changes):
            names, advice = paths(inner.changes), advise(inner.function, inner.changes, lambda _path: None)
            text = f"{function} holds {inner.signatures} versions of {inner.function}, each lowered for itself"
            text += f": let {names} not vary, or pass what varies as an array."
            found += [Advice(code=each.code, text=text) for each in advice[:1]]
    return found


def _loops(function: str, program: Program, seconds: float) -> list[Advice]:
    found = []
    for loop in program.loops:
        if not is_useful(loop.scan_saves_seconds, seconds):
            continue
        file, _, line = loop.line.rpartition(":")
        tenths = min(round(10 * loop.scan_saves_seconds / seconds), 9)
        text = f"The Python loop at line {line} of {_file_name(file)} puts {loop.blocks:,} equal blocks of "
        text += f"{loop.equations:,} equations each into {function}: lax.scan is expected to save "
        text += f"some {tenths * 10} % of its compiling. What it runs like is not measured: it can be "
        text += "slower (up to 16 times was seen on a CPU), so measure both."
        found.append(Advice(code="use_scan", text=text))
    return found


def advise_to_donate(program: Program, reasons: Sequence[Reason]) -> tuple[Advice, ...]:
    """Return what could be donated; nothing of a program that is there for its shapes, which are to be mended first."""
    if not program.donatable or "shape" in reasons:
        return ()
    names, size = and_more([each.argument for each in program.donatable]), sum(each.bytes for each in program.donatable)
    one = len(program.donatable) == 1
    are, their, they, them = ("is", "its", "it is", "it") if one else ("are", "their", "they are", "them")
    text = f"{names} ({megabytes(size)}) {are} not donated, though each of {their} arrays has an output of the same "
    text += f"shape and dtype: if {they} not needed after the call, donate {them} (donate_argnames, donate_argnums), "
    text += f"and the outputs can take {their} memory."
    return (Advice(code="donate_argument", text=text),)


def advise_inner_jit(function: str, program: Program, seconds: PhaseSeconds) -> tuple[Advice, ...]:
    """Return which function within is to have a jit of its own; only where that is worth it."""
    found = []
    for body in program.bodies:
        saved, all_of_it = inner_jit_saves(body, seconds), seconds.trace + seconds.lower
        if saved < max(_limits.INNER_JIT_SECONDS_SAVED, _limits.INNER_JIT_SHARE_SAVED * seconds.total):
            continue
        file, _, line = body.definition.rpartition(":")
        text = f"{function} calls {body.function} (line {line} of {_file_name(file)}) {body.calls:,} times alike, "
        text += f"{body.equations:,} equations each, and traces it each time: with jax.jit around {body.function} "
        text += f"it is traced once, which is expected to save {int(10 * saved) / 10:.1f} s or more of "
        text += f"{all_of_it:.1f} s of tracing and lowering, and nothing of XLA's compile."
        found.append(Advice(code="jit_inner", text=text))
    return tuple(found)


def _file_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
