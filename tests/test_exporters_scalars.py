"""Events as numbers that only grow, and as text."""

import dataclasses

import pytest
from test_events import ALL, MISS

from jaxwatch import _limits
from jaxwatch.events import Advice, CacheMiss, Change, EagerCompile, PhaseSeconds
from jaxwatch.exporters.scalars import Scalars, missing, recompiled_text

RECOMPILE = dataclasses.replace(
    MISS,
    function="step",
    layer="compile",
    reasons=("shape",),
    changes=(Change(reason="shape", path="x", before="float32[3]", after="float32[4]"),),
    advice=(Advice(code="pad_or_bucket", text="Pad x."),),
    seconds=PhaseSeconds(trace=0.5, backend_compile=1.5),
    site="train.py:7",
    call=4,
)


def test_values_are_sums_so_far() -> None:
    scalars = Scalars()
    first = dataclasses.replace(RECOMPILE, reasons=("first_call",))

    assert scalars.of(first) == {
        "jaxwatch/misses": 1,
        "jaxwatch/compile_seconds": 2.0,
        "jaxwatch_by_function/misses/step": 1,
        "jaxwatch_by_function/compile_seconds/step": 2.0,
    }
    after = scalars.of(RECOMPILE)
    assert after["jaxwatch/misses"] == after["jaxwatch_by_function/misses/step"] == 2
    assert (after["jaxwatch/recompiles"], after["jaxwatch/recompile_seconds"]) == (1, 2.0)
    eager = ALL["eager_compile"]
    assert isinstance(eager, EagerCompile)
    assert scalars.of(eager) == {"jaxwatch/eager_compiles": 1, "jaxwatch/eager_compile_seconds": eager.seconds}


@pytest.mark.parametrize("kind", sorted(set(ALL) - {"cache_miss", "eager_compile"}))
def test_other_events_have_none(kind: str) -> None:
    assert Scalars().of(ALL[kind]) == {}
    assert recompiled_text(ALL[kind]) is None


def test_calls_off_the_fast_path_are_no_compiles() -> None:
    assert Scalars().of(dataclasses.replace(RECOMPILE, layer="dispatch")) == {}


def test_functions_beyond_the_bound_are_other() -> None:
    scalars = Scalars()
    names: set[str] = set()
    for number in range(_limits.LABEL_FUNCTIONS + 20):
        names |= scalars.of(dataclasses.replace(RECOMPILE, function=f"f{number}")).keys()

    assert (
        len({name for name in names if name.startswith("jaxwatch_by_function/misses/")}) == _limits.LABEL_FUNCTIONS + 1
    )
    assert scalars.of(dataclasses.replace(RECOMPILE, function="new"))["jaxwatch_by_function/misses/other"] == 21


def test_the_text_says_what_changed_where_and_what_to_do() -> None:
    assert recompiled_text(RECOMPILE) == "**step** x: float32[3] → float32[4]  \ntrain.py:7, call 4, 2.00 s  \n→ Pad x."
    bare: CacheMiss = dataclasses.replace(RECOMPILE, changes=(), advice=(), reasons=("cache_lost",))
    assert "**step** cache lost" in (recompiled_text(bare) or "")
    assert recompiled_text(dataclasses.replace(RECOMPILE, reasons=("first_call",))) is None


def test_a_missing_package_is_named_with_the_way_out() -> None:
    assert "pip install tensorboardX" in str(missing("tensorboardX"))
