import pytest

from jaxwatch import _eager
from jaxwatch._eager import EagerCompiles


def compiles(*places: tuple[str, str, float, int]) -> EagerCompiles:
    gathered = EagerCompiles()
    for function, site, seconds, process in places:
        gathered.add(function, site, seconds, process, from_disk=False)
    return gathered


def test_an_op_that_compiled_three_times_at_a_line_is_a_finding_with_all_that_it_cost() -> None:
    gathered = compiles(*[("cumsum", "m.py:18", 0.25, 0)] * 3, *[("add", "m.py:18", 0.25, 0)] * 2)

    (finding,) = gathered.findings(wall_seconds=100.0)

    assert (finding.cause.kind, finding.cause.function, finding.count, finding.seconds) == ("eager", "cumsum", 3, 0.75)
    assert finding.advice is not None
    assert finding.advice[0] == "jit_the_block"
    assert gathered.again_seconds() == 0.5, "the first one is not again"
    assert gathered.count == 5


def test_each_process_compiling_an_op_once_is_no_finding() -> None:
    gathered = compiles(*[("add", "m.py:1", 0.1, process) for process in range(8)])

    assert gathered.findings(wall_seconds=100.0) == ()
    assert gathered.again_seconds() == 0.0


@pytest.mark.parametrize(("wall_seconds", "worth"), [(5.0, True), (15.0, True), (100.0, False)])
def test_many_single_compiles_are_one_finding_where_they_are_a_large_part_of_the_run(
    wall_seconds: float, worth: bool
) -> None:
    gathered = compiles(*[(f"op{i}", f"init.py:{i % 4}", 0.1, 0) for i in range(20)])

    found = gathered.findings(wall_seconds)

    assert [finding.cause.kind for finding in found] == (["eager_rest"] if worth else [])
    if found:
        assert found[0].count == 20
        assert found[0].sites == tuple((f"init.py:{i}", 5) for i in range(4))


def test_under_a_second_the_rest_is_no_finding_whatever_its_share() -> None:
    assert compiles(("op", "a.py:1", 0.9, 0)).findings(wall_seconds=1.0) == ()


def test_places_beyond_the_bound_are_counted() -> None:
    gathered = compiles(*[("op", f"a.py:{i}", 0.001, 0) for i in range(_eager.EAGER_PLACES + 10)])

    assert gathered.folded == 10
    assert gathered.count == _eager.EAGER_PLACES + 10
    assert [finding.cause.kind for finding in gathered.findings(1.0)] == ["eager_rest"]
    assert gathered.again_seconds() == 0.0


def test_a_watched_functions_own_program_outside_its_call_is_no_op_outside_jit() -> None:
    gathered = compiles(
        *[("loss", "m.py:7", 0.5, 0)] * 3, *[("add", "m.py:7", 0.25, 0)] * 3, ("step", "m.py:8", 2.0, 0)
    )

    own, op = sorted(gathered.findings(5.0, {"loss", "step"}), key=lambda finding: -finding.seconds)

    assert (own.cause.kind, own.cause.function, own.count) == ("eager_own", "loss", 3)
    assert own.advice is not None
    assert own.advice[0] == "jit_outer"
    assert (op.cause.kind, op.cause.function) == ("eager", "add")
    assert [finding.cause.function for finding in gathered.findings(5.0)] == ["loss, add", ""]
