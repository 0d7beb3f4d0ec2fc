import pytest
from event_records import eager, miss, record, run_end, run_start

from jaxwatch import _processes, _records
from jaxwatch._processes import Processes
from jaxwatch._records import MalformedError


def test_events_of_one_pid_are_of_one_process() -> None:
    processes = Processes()

    found = {processes.find(one).number for one in (run_start(pid=7), miss(1, pid=7), run_end(pid=7))}

    assert found == {0}


def test_a_pid_that_starts_again_is_another_process() -> None:
    processes = Processes()

    numbers = [processes.find(one).number for one in (run_start(), miss(1), run_end(), run_start(), miss(1), run_end())]

    assert numbers == [0, 0, 0, 1, 1, 1]


def test_a_process_that_gets_its_rank_stays_the_same() -> None:
    processes = Processes()

    found = [processes.find(one).number for one in (run_start(), miss(1), miss(2, rank=3), run_end(rank=None))]

    assert found == [0, 0, 0, 0]


def test_two_ranks_of_one_pid_that_share_a_log_are_two() -> None:
    processes = Processes()

    found = [processes.find(one).number for one in (miss(1, rank=0), miss(1, rank=1), miss(2, rank=0), miss(2, rank=1))]

    assert found == [0, 1, 0, 1]


def test_without_an_end_the_time_is_that_from_the_first_to_the_last_event() -> None:
    processes = Processes()
    for at in (2.0, 0.5, 31.0):
        process = processes.find(eager(at=at))

    assert process.seconds == 30.5


def test_a_single_event_took_no_time() -> None:
    assert Processes().find(eager(at=5.0)).seconds == 0.0


@pytest.mark.parametrize("field", ["pid", "process_index", "time"])
def test_a_record_of_nowhere_is_malformed_and_makes_no_process(field: str) -> None:
    processes = Processes()

    with pytest.raises(MalformedError):
        processes.find({**record("run", phase="start"), field: "x"})

    assert processes.all == []


def test_the_number_of_the_call_that_was_compared_with_is_known() -> None:
    processes = Processes()
    process = processes.find(miss(1))
    for number in range(1, _processes.CALLS_KEPT + 11):
        processes.count(process, _records.miss(miss(number, call=number * 2)))

    assert process.call_of(_processes.CALLS_KEPT) == _processes.CALLS_KEPT * 2
    assert process.call_of(10) is None, "the oldest went"
    assert process.call_of(None) is None


def test_figures_beyond_the_bound_are_those_of_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processes, "FIGURES", 3)
    processes = Processes()
    process = processes.find(miss(1))
    for number in range(6):
        processes.count(process, _records.miss(miss(number, function=f"f{number}")))

    assert [key[0] for key, _, _ in processes.rows()] == ["f0", "f1", "f2", "other"]
    assert next(figures for key, figures, _ in processes.rows() if key[0] == "other").events == 3
    assert processes.folded == {"function": 3}


def test_processes_beyond_the_bound_share_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processes, "PROCESSES", 2)
    processes = Processes()
    for pid in range(5):
        processes.find(run_start(pid=pid))

    assert len(processes.all) == 2
    assert processes.folded == {"process": 3}


def test_exit_codes_of_those_that_did_not_end_well_are_counted() -> None:
    processes = Processes()
    for pid, code in enumerate([0, 1, 1, -9, None]):
        processes.find(run_end(pid=pid)).exit_code = code

    assert processes.exit_codes() == {-9: 1, 1: 2}
