"""Ranks that did not compile the same: found where they are, named right, and nowhere else."""

from typing import Any

import pytest
from event_records import Rec, change, miss, record, report_of, run_end, run_start, stats
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _divergence, _records
from jaxwatch._divergence import Divergence, Divergences
from jaxwatch.renderers import divergence, terminal

Steps = list[tuple[str, str]]  # signature and fingerprint of each miss, in order


def found(*ranks: Steps, ended: bool = True) -> tuple[Divergence, ...]:
    """Return the divergences of ranks that missed so."""
    seen = Divergences()
    for rank, steps in enumerate(ranks):
        for number, (signature, fingerprint) in enumerate(steps, start=1):
            one = _records.miss(miss(number, signature=signature, fingerprint=fingerprint, call=10 * number))
            seen.add(one, 0, rank, float(number))
        seen.saw(0, rank, float(len(steps)), ended=ended)
    return seen.found()


SAME: Steps = [("s1", "a"), ("s2", "b"), ("s3", "c")]


def test_ranks_that_compile_the_same_do_not_diverge() -> None:
    assert found(SAME, SAME, SAME) == ()


def test_another_key_in_one_rank_is_found_at_its_place() -> None:
    (one,) = found(SAME, SAME, [*SAME[:1], ("s9", "z"), *SAME[2:]], SAME)

    assert (one.kind, one.number, one.first_rank) == ("key", 2, 2)
    assert [side.ranks for side in one.sides] == [(0, 1, 3), (2,)]
    assert [side.signature for side in one.sides] == ["s2", "s9"]
    assert [side.call for side in one.sides] == [20, 20]


def test_the_same_key_lowered_to_another_program_is_found() -> None:
    (one,) = found(SAME, [*SAME[:2], ("s3", "z")])

    assert (one.kind, one.number) == ("program", 3)
    assert [side.fingerprint for side in one.sides] == ["c", "z"]


def test_a_rank_that_compiles_what_no_other_does_is_found() -> None:
    (one,) = found(SAME, SAME, [*SAME, ("s4", "d")])

    assert (one.kind, one.number) == ("behind", 4)
    assert [(side.ranks, side.signature) for side in one.sides] == [((0, 1), None), ((2,), "s4")]


def test_a_rank_that_is_merely_late_is_not_behind_yet() -> None:
    assert found(SAME, SAME[:2], ended=False) == ()


def test_a_rank_that_is_late_for_long_is_behind() -> None:
    seen = Divergences()
    for rank, steps in enumerate((SAME, SAME[:2])):
        for number, (signature, fingerprint) in enumerate(steps, start=1):
            seen.add(_records.miss(miss(number, signature=signature, fingerprint=fingerprint)), 0, rank, 1.0)
        seen.saw(0, rank, 1.0)
    assert seen.found() == ()
    seen.saw(0, 0, 1.0 + _divergence.LATE_SECONDS)
    assert [one.kind for one in seen.found()] == ["behind"]


def test_a_function_that_only_some_ranks_compile_is_their_own_matter() -> None:
    assert found(SAME, [], []) == ()


@given(st.integers(2, 40), st.data())
def test_one_planted_difference_is_the_one_that_is_found(ranks: int, data: st.DataObject) -> None:
    steps = [(f"s{number}", f"f{number}") for number in range(data.draw(st.integers(2, 12)))]
    odd, place = data.draw(st.integers(0, ranks - 1)), data.draw(st.integers(0, len(steps) - 1))
    kind = data.draw(st.sampled_from(["key", "program"]))
    signature, fingerprint = steps[place]
    planted = list(steps)
    planted[place] = ("other", "x") if kind == "key" else (signature, f"{fingerprint}x")
    (one,) = found(*(planted if rank == odd else steps for rank in range(ranks)))

    assert (one.kind, one.number) == (kind, place + 1)
    if ranks > 2:
        assert (one.first_rank, one.sides[1].ranks) == (odd, (odd,))


def test_it_stays_within_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_divergence, "FUNCTIONS", 3)
    monkeypatch.setattr(_divergence, "PLACES", 5)
    seen = Divergences()
    for rank in range(100):
        for function in range(10):
            for number in range(1, 11):
                one = miss(number, function=f"f{function}", signature=f"s{rank}", fingerprint=f"{rank}")
                seen.add(_records.miss(one), 0, rank, 1.0)
    functions = seen._jobs[0].functions

    assert len(functions) == 3
    assert all(len(function.places) == 5 for function in functions.values())
    assert max(len(place) for function in functions.values() for place in function.places) == _divergence.PROGRAMS


# ------------------------------------------------------------------ through the report, out of logs


def rank_log(rank: int, lengths: list[int], *, end: bool = True, pid: int = 0, start: float = 0.0) -> list[Rec]:
    """Return the log of a rank whose step was called with those lengths."""
    made = [run_start(pid=pid, at=start)]
    for number, length in enumerate(lengths, start=1):
        changes = [change("shape", "x", f"float32[{lengths[0]}]", f"float32[{length}]")] if number > 1 else []
        kind: Any = "shape" if number > 1 else "first_call"
        more: Rec = {
            "changes": changes,
            "signature": f"s{length}",
            "fingerprint": f"f{length}",
            "abstract": f"(x: {length})",
        }
        made.append(miss(number, kind, pid=pid, rank=rank, at=start + number, **more))
    made.append(stats(calls=50, misses=len(lengths), pid=pid, rank=rank, at=start + 60))
    return [*made, run_end(pid=pid, rank=rank, at=start + 61)] if end else made


@pytest.mark.parametrize("shuffled", [False, True])
def test_logs_of_all_ranks_name_the_rank_and_the_key(shuffled: bool) -> None:
    logs = [rank_log(rank, [4, 8] if rank != 3 else [4, 5], pid=rank) for rank in range(6)]
    order = list(logs)
    if shuffled:
        order = order[3:] + order[:3]
    text = terminal.render(report_of(record for log in order for record in log))

    assert "!  step: rank 3 did not compile as ranks 0-2, 4-5, from compile 2 on" in text
    assert "   ranks 0-2, 4-5: x: float32[4] → float32[8]; train.py:71, call 2" in text
    assert "   rank 3: x: float32[4] → float32[5]; train.py:71, call 2" in text
    assert "→ Give every rank the same shapes" in text


def test_a_rank_that_hangs_is_named_although_no_process_ended() -> None:
    logs = [rank_log(rank, [4, 8] if rank != 1 else [4], pid=rank, end=False) for rank in range(4)]
    text = terminal.render(report_of(record for log in logs for record in log))

    assert "!  step: rank 1 did not compile as ranks 0, 2-3, from compile 2 on" in text
    assert "   rank 1: nothing more" in text


def test_a_job_that_was_restarted_is_compared_run_by_run() -> None:
    first = [rank_log(rank, [4, 8], pid=rank) for rank in range(3)]
    second = [rank_log(rank, [4, 8, 16], pid=10 + rank, start=500.0) for rank in range(3)]
    every = [record for log in (*first, *second) for record in log]

    assert report_of(every).divergences == ()


def test_processes_without_a_rank_are_not_compared() -> None:
    logs = [
        [one | {"process_index": None} for one in rank_log(0, lengths, pid=pid)]
        for pid, lengths in enumerate(([4, 8], [4]))
    ]

    assert report_of(record for log in logs for record in log).divergences == ()


@pytest.mark.parametrize("rank", [-1, 2**40, "x", 1.5])
def test_an_odd_rank_is_no_rank(rank: Any) -> None:
    logs = [rank_log(0, [4, 8], pid=1), [one | {"process_index": rank} for one in rank_log(0, [4], pid=2)]]

    assert report_of(record for log in logs for record in log).divergences == ()


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ((3,), "rank 3"),
        ((0, 1, 2), "ranks 0-2"),
        ((0, 2, 4, 5), "ranks 0, 2, 4-5"),
        (tuple(range(0, 100, 2)), "ranks 0, 2, 4, 6 and 46 more"),
    ],
)
def test_ranks_are_told_as_runs(numbers: tuple[int, ...], told: str) -> None:
    assert divergence.ranks(numbers) == told


def test_what_jaxwatch_took_is_a_line_of_a_report_with_findings() -> None:
    own = record("process_stats", overhead_seconds={"miss": 0.25, "call": 0.05})
    every = [run_start(), miss(1), miss(2, "shape"), own, run_end()]

    assert "jaxwatch itself took 0.3 s" in terminal.render(report_of(every))
    assert "itself" not in terminal.render(report_of([run_start(), miss(1), own, run_end()]))
