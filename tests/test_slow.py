"""Slow programs: the slowest of each function, and no more than are told, in whatever order they come."""

from event_records import TRAIN, miss, report_of
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _limits
from jaxwatch._report import merged
from jaxwatch._slow import SlowProgram, SlowPrograms, slowest
from jaxwatch.renderers.terminal import render

programs = st.builds(
    lambda name, seconds: SlowProgram(
        function=name, definition="a.py:1", seconds=seconds, equations=9, line="a.py:2", of_line=5
    ),
    st.text("abcdefgh", max_size=1),
    st.integers(0, 1000).map(float),
)


@given(st.lists(programs, max_size=200))
def test_what_is_kept_on_the_way_is_what_is_told_of_all(found: list[SlowProgram]) -> None:
    gathered = SlowPrograms()
    for program in found:
        gathered.add(program)
    gathered.add(None)
    largest: dict[str, float] = {}
    for program in found:
        largest[program.function] = max(largest.get(program.function, 0.0), program.seconds)

    assert gathered.rows() == slowest(found)
    assert [one.seconds for one in gathered.rows()] == sorted(largest.values(), reverse=True)[: _limits.SLOW_PROGRAMS]


def slow_miss(seconds: float, **fields: object) -> dict[str, object]:
    lines = [{"name": f"{TRAIN}:41", "equations": 10_168}, {"name": "other", "equations": 2_232}]
    program = {"equations": 12_400, "constant_bytes": 0, "lines": lines}
    return miss(1, "shape", seconds=seconds, program=program, **fields)


TOLD = "82 % of its 12,400 equations"


def test_a_slow_compile_has_an_address_and_a_quick_one_with_all_alone() -> None:
    slow, quick = report_of([slow_miss(2.4)]), report_of([slow_miss(0.4)])

    assert TOLD in " ".join(render(slow).split())
    assert TOLD not in render(quick)
    assert TOLD in " ".join(render(quick, everything=True).split())


def test_a_single_equation_is_no_share_of_a_hundred_percent() -> None:
    program = {"equations": 1, "constant_bytes": 0, "lines": [{"name": f"{TRAIN}:41", "equations": 1}]}
    told = render(report_of([miss(1, "shape", seconds=2.0, program=program)]))

    assert "its one equation comes from" in " ".join(told.split())


def test_a_healthy_run_stays_one_line() -> None:
    healthy = report_of([slow_miss(2.4, reasons=["first_call"])])

    assert len(render(healthy).splitlines()) == 1
    assert TOLD in " ".join(render(healthy, everything=True).split())


def test_reports_add_up() -> None:
    one, two = report_of([slow_miss(2.4)]), report_of([slow_miss(3.4)])

    assert [program.seconds for program in merged([one, two]).slow] == [3.4]
