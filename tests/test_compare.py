import dataclasses
import json
import random
import re
import shlex
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from event_records import (
    Rec,
    change,
    eager,
    miss,
    other_length,
    record,
    run_end,
    run_start,
    stats,
    training_run,
    write_log,
)
from hypothesis import assume, given
from hypothesis import strategies as st

from jaxwatch import _cli
from jaxwatch._compare.comparison import NOISE_RATIO, NOISE_SECONDS, beyond_noise, compare
from jaxwatch._compare.data import Comparison, Pair, to_json
from jaxwatch._compare.limits import Limits, exceeded
from jaxwatch._compare.pairing import paired
from jaxwatch._compare.side import Side, SideBuilder
from jaxwatch.renderers import comparison as text
from jaxwatch.renderers import comparison_markdown as markdown
from jaxwatch.renderers.cells import width

WEAK = [change("weak_type", "lr", "~float32[]", "float32[]")]


def side(records: Sequence[Rec]) -> Side:
    builder = SideBuilder()
    for one in records:
        builder.add(one)
    return builder.build(program="run.jsonl")


def compared(before: Sequence[Rec], after: Sequence[Rec]) -> Comparison:
    return compare(side(before), side(after))


def shown(found: Comparison, *beyond: str, columns: int = 80, everything: bool = False) -> str:
    lines = text.lines(found, beyond, columns=columns, everything=everything)
    return "\n".join("".join(span.text for span in line) for line in lines)


def a_run(*more: Rec, calls: int = 100, **of_all: Any) -> list[Rec]:
    """Return a run with one first call and what is given."""
    misses = 1 + sum(one["event"] == "cache_miss" for one in more)
    return [
        run_start(**of_all),
        miss(1, **of_all),
        *more,
        stats(calls=calls, misses=misses, **of_all),
        run_end(**of_all),
    ]


def moved(records: Sequence[Rec], lines: int = 7, folder: str = "/builds/pr-12/checkout") -> list[Rec]:
    """Return a run as of another checkout, in which all lines have shifted."""
    told = json.dumps(records).replace("/home/u/proj", folder)
    shifted = re.sub(r"\.py:(\d+)", lambda found: f".py:{int(found[1]) + lines}", told)
    found: list[Rec] = json.loads(shifted)
    return found


# ------------------------------------------------------------------ equal runs


def test_equal_runs_are_said_to_be_in_one_line_also_where_lines_and_folders_are_others_and_seconds_vary() -> None:
    slower = json.loads(re.sub(r'"(total|backend_compile)": ([\d.]+)', _a_fifth_more, json.dumps(training_run())))

    found = compared(training_run(), moved(slower))

    assert found.equal
    assert shown(found) == "No difference: 8 misses, 9 compiles outside jit, compiling 12.4 s → 14.6 s."
    assert exceeded(found, Limits()) == ()


def _a_fifth_more(found: re.Match[str]) -> str:
    return f'"{found[1]}": {1.2 * float(found[2])}'


def test_several_processes_whose_events_come_in_another_order_are_equal() -> None:
    by_process = [[{**one, "pid": pid, "process_index": pid} for one in training_run()] for pid in range(3)]
    in_turn = [one for together in zip(*by_process, strict=True) for one in together]

    assert compared([one for records in by_process for one in records], in_turn).equal


def test_which_of_two_keys_a_thread_compiles_first_is_no_difference() -> None:
    three: tuple[Any, ...] = (
        {"abstract": "(x: float32[3])"},
        {"abstract": "(x: float32[4])"},
        {"abstract": "(x: int32[4])"},
    )
    shape, dtype = change("shape", "x", "a", "b"), change("dtype", "x", "a", "b")
    one = [
        miss(1, **three[0]),
        miss(2, "shape", changes=[shape], **three[1]),
        miss(3, "dtype", changes=[dtype], **three[2]),
    ]
    other = [
        miss(1, **three[2]),
        miss(2, "shape", changes=[shape, dtype], **three[0]),
        miss(3, "shape", changes=[shape], **three[1]),
    ]

    assert compared(one, other).misses == ()
    planted = miss(4, "weak_type", changes=WEAK, abstract="(x: ~float32[3])")
    assert [one.reason for one in compared(one, [*other, planted]).misses] == ["weak_type"]


# ------------------------------------------------------------------ properties

KEYS = ["(a)", "(b)", "(c)"]
CAUSES: list[tuple[str, list[Rec]]] = [
    ("shape", [change("shape", "x", "a", "b")]),
    ("weak_type", WEAK),
    ("static", [change("static", "n", "1", "2")]),
    ("cache_lost", []),
]


def _a_miss(function: str, cause: tuple[str, list[Rec]], abstract: str, seconds: float) -> Rec:
    return miss(2, cause[0], changes=cause[1], abstract=abstract, seconds=seconds, function=function)


misses = st.builds(
    _a_miss, st.sampled_from(["f", "g"]), st.sampled_from(CAUSES), st.sampled_from(KEYS), st.floats(0.01, 5)
)
runs = st.lists(misses | st.builds(eager, function=st.sampled_from(["sum", "cos"])), max_size=15)


@given(runs, st.randoms())
def test_a_run_does_not_differ_from_itself_in_any_order(records: list[Rec], chance: random.Random) -> None:
    again = list(records)
    chance.shuffle(again)

    found = compared(records, again)

    assert (found.misses, found.phases, found.programs, found.notes) == ((), (), (), ())


@given(runs, runs)
def test_two_runs_differ_the_other_way_round_as_in_a_mirror(before: list[Rec], after: list[Rec]) -> None:
    one, other = compared(before, after), compared(after, before)

    def mirrored(pair: Pair) -> Pair:
        return Pair(before=pair.after, after=pair.before)

    def rows(found: Comparison, *, mirror: bool = False) -> set[Any]:
        turned = mirrored if mirror else lambda pair: pair
        return {
            *((row.function, row.reason, turned(row.misses), turned(row.seconds)) for row in found.misses),
            *((row.function, row.phase, turned(row.seconds), row.programs) for row in found.phases),
        }

    assert rows(one) == rows(other, mirror=True)
    assert (one.before, one.after) == (other.after, other.before)


@given(runs, misses, st.randoms())
def test_each_planted_miss_is_found_and_exceeds_the_limit(
    records: list[Rec], planted: Rec, chance: random.Random
) -> None:
    after = [*records, planted]
    chance.shuffle(after)

    found = compared(records, after)

    (row,) = found.misses
    assert (row.function, row.reason, row.misses.gained) == (planted["function"], planted["reasons"][0], 1)
    assert exceeded(found, Limits()) == ("--max-new-misses 0 exceeded: 1",)


@given(runs, runs)
def test_what_the_misses_differ_by_is_told_to_the_last_one(before: list[Rec], after: list[Rec]) -> None:
    found = compared(before, after)

    watched = [row for row in found.misses if row.reason != "eager"]
    assert (
        sum(row.misses.gained for row in watched if row.misses.gained > 0) >= found.after.misses - found.before.misses
    )
    assert all(row.counted <= max(0, row.misses.gained) for row in watched)


# ------------------------------------------------------------------ what counts as new


def test_a_first_call_is_told_and_does_not_count() -> None:
    new: Any = {"function": "decode", "definition": "/home/u/proj/serve.py:9"}
    found = compared(a_run(), [*a_run(), miss(2, call=1, **new)])

    assert [(row.function, row.reason, row.counted) for row in found.misses] == [("decode", "first_call", 0)]
    assert exceeded(found, Limits()) == ()


def test_a_longer_run_that_misses_as_often_has_no_new_miss_and_is_told_as_longer() -> None:
    short = a_run(*(other_length(i + 2, i, i) for i in range(4)), calls=100)
    longer = a_run(*(other_length(i + 2, i, i) for i in range(8)), calls=200)

    found = compared(short, longer)

    assert [(row.misses.before, row.misses.after, row.counted) for row in found.misses] == [(4, 8, 0)]
    assert "calls 100 → 200" in shown(found)
    assert "of 100 → 200 calls, as often as before" in shown(found)
    assert compared(short, a_run(*(other_length(i + 2, i, i) for i in range(10)), calls=200)).new_misses == 1
    assert compared(longer, short).new_misses == 0


def test_a_cause_that_was_not_there_counts_however_long_the_run() -> None:
    assert compared(a_run(calls=100), a_run(miss(2, "weak_type", changes=WEAK), calls=10_000)).new_misses == 1


def test_more_processes_each_with_the_same_misses_have_no_new_one() -> None:
    lost = miss(2, "weak_type", changes=WEAK)
    one = a_run(lost)
    four = [{**each, "pid": pid} for pid in range(4) for each in a_run(lost)]

    found = compared(one, four)

    assert found.new_misses == 0
    assert "processes 1 → 4" in shown(found)


def test_a_run_that_was_killed_is_said_to_be() -> None:
    found = compared(training_run(), training_run()[:4])

    assert "the second has no end in its log" in shown(found)
    assert "calls 1,244 → ≥57" in shown(found)
    assert "exit code 3" in shown(compared(training_run(), [*training_run()[:-1], run_end(exit_code=3)]))
    assert "1 of 2 processes" in shown(compared(training_run(), [*training_run(), run_start(pid=2)]))


def test_compiles_outside_jit_count_where_the_report_has_a_finding_of_them() -> None:
    twice = compared(a_run(), [*a_run(), eager(), eager()])
    often = compared(a_run(), [*a_run(), *(eager() for _ in range(9))])

    assert [(row.reason, row.misses.after, row.counted) for row in twice.misses] == [("eager", 2, 0)]
    assert [(row.reason, row.misses.after, row.counted) for row in often.misses] == [("eager", 9, 8)]
    assert "+ cumsum, outside jit" in shown(often)
    renamed = [{**one, "function": "cumsum_"} if one["event"] == "eager_compile" else one for one in training_run()]
    assert compared(training_run(), renamed).equal, "another JAX calls its operations as it likes"


def test_failed_traces_and_broken_guards_are_told() -> None:
    failed = record("trace_error", function="f", site="a:1", definition="a:1", call=1, error="TypeError", seconds=0.1)
    found = compared(a_run(), [*a_run(), failed])

    assert "+ raised while traced: f, TypeError, 0 → 1" in shown(found)


# ------------------------------------------------------------------ seconds, programs, versions


def slow(seconds: float, **more: Any) -> Rec:
    phases = {"trace": 0.1, "lower": 0.1, "backend_compile": seconds, "total": 0.2 + seconds}
    return miss(1, abstract="(x)", **more) | {"seconds": phases}


def test_a_phase_is_told_as_slower_from_twice_and_half_a_second_on() -> None:
    found = compared([slow(1.0)], [slow(2.6)])

    (phase,) = found.phases
    assert (phase.function, phase.phase, phase.seconds) == ("step", "backend_compile", Pair(before=1.0, after=2.6))
    assert "+ step: backend compile 1.00 s → 2.60 s (+160 %), 1 program" in shown(found)
    assert compared([slow(1.0)], [slow(1.9)]).phases == ()
    assert compared([slow(0.1)], [slow(0.5)]).phases == ()


seconds = st.floats(0.01, 100)
pairs = st.builds(lambda before, after: Pair(before=before, after=after), seconds, seconds)


@given(pairs, pairs)
def test_noise_is_the_same_both_ways(one: Pair, others: Pair) -> None:
    def mirrored(pair: Pair) -> Pair:
        return Pair(before=pair.after, after=pair.before)

    ratio = one.after / one.before
    assume(min(abs(ratio / factor - 1) for factor in (2 * k for k in (0.25, 1, others.after / others.before))) > 1e-9)
    assume(abs(ratio * 2 * others.before / others.after - 1) > 1e-9)  # on the very edge, rounding decides
    assert beyond_noise(one, others) == beyond_noise(mirrored(one), mirrored(others))


def test_the_docs_tell_what_noise_is() -> None:
    page = (Path(__file__).parents[1] / "docs" / "compare.md").read_text("utf-8")

    assert f"{NOISE_RATIO:g} times as long and {NOISE_SECONDS:g} s longer" in page


def test_where_all_is_slower_the_machine_was_and_no_phase_is_told() -> None:
    names = ("f", "g", "h")
    before, after = ([slow(seconds, function=name) for name in names] for seconds in (1.0, 3.0))
    alone = [*after[:1], *before[1:]]

    assert compared(before, after).phases == ()
    assert [phase.function for phase in compared(before, alone).phases] == ["f"]
    assert [phase.function for phase in compared(after, [*after[:2], slow(1.0, function="h")]).phases] == ["h"]


def test_reading_from_the_cache_on_disk_is_not_held_against_compiling() -> None:
    assert compared([slow(0.01, persistent_cache="hit")], [slow(9.0, persistent_cache="miss")]).phases == ()


def test_programs_that_are_others_for_the_same_arguments_are_told() -> None:
    def of(fingerprint: str, key: str | None) -> Rec:
        return slow(1.0, fingerprint=fingerprint, disk={"key": key})

    assert compared([of("a", "k")], [of("a", "k")]).equal
    assert "~ step: of 1 program for the same arguments, 1 lowered to another text" in shown(
        compared([of("a", None)], [of("b", None)])
    )
    (changed,) = compared([of("a", "k")], [of("a", "l")]).programs
    assert (changed.fingerprints, changed.disk_keys) == (0, 1)
    assert compared([of("a", "k")], [slow(1.0)]).equal, "where one side tells nothing, nothing is known"


def test_other_versions_are_told_in_one_line_and_programs_with_them() -> None:
    def run(version: str) -> list[Rec]:
        names: Any = {"jax_version": version, "jaxlib_version": version, "version": "0.1.0", "backend": "cpu"}
        both = [slow(1.0, fingerprint=version, function=name) for name in ("f", "g")]
        return [*both, record("process_stats", **names, overhead_seconds={})]

    found = shown(compared(run("0.10.2"), run("0.12.0")))

    assert "jax 0.10.2 → 0.12.0, jaxlib 0.10.2 → 0.12.0\n" in found
    assert found.splitlines()[4:] == ["~ 2 functions: of 2 programs for the same arguments, 2 lowered to another text"]
    assert compared(run("0.10.2"), run("0.10.2")).equal


def test_limits_are_those_that_are_given() -> None:
    found = compared(training_run()[:2], training_run())

    limits = Limits(max_new_misses=14, max_misses=10, max_compile_seconds=10, max_slowdown=50)
    assert exceeded(found, limits) == (
        "--max-compile-seconds 10 exceeded: 12.4 s",
        "--max-slowdown 50 exceeded: 417 %",
    )
    assert exceeded(found, Limits(max_new_misses=None)) == ()
    assert exceeded(compared([], training_run()), Limits(max_new_misses=None, max_slowdown=50))


# ------------------------------------------------------------------ which is which


def test_functions_are_found_again_by_name_and_the_end_of_their_path() -> None:
    before = [("f", "/a/m.py"), ("f", "/a/n.py"), ("g", "/v/lib/python3.11/site-packages/x/y.py"), ("h", "/a/old.py")]
    after = [("f", "/b/n.py"), ("f", "/b/m.py"), ("g", "/w/lib/python3.13/site-packages/x/y.py"), ("h", "/b/new.py")]

    assert dict(paired(before, after)) == dict(zip(before, [after[1], after[0], *after[2:]], strict=True))


def test_a_function_of_the_program_is_found_again_in_a_program_of_another_name() -> None:
    before, after = [("f", "/a/p.py"), ("f", "/a/q.py")], [("f", "/b/r.py"), ("f", "/b/q.py")]

    assert dict(paired(before, after, (["/a/p.py"], ["/b/r.py"])))["f", "/a/p.py"] == ("f", "/b/r.py")
    assert ("f", "/a/p.py") in {first for first, second in paired(before, after) if second is None}


places = st.tuples(st.sampled_from("fg"), st.sampled_from(["/a/m.py", "/b/m.py", "/a/b/m.py", "/a/n.py", "m.py", ""]))


@given(st.sets(places), st.sets(places))
def test_pairing_takes_each_once_and_is_the_same_both_ways(before: set[Any], after: set[Any]) -> None:
    found = list(paired(before, after))

    assert sorted(first for first, _ in found if first) == sorted(before)
    assert sorted(second for _, second in found if second) == sorted(after)
    assert {(second, first) for first, second in found} == set(paired(after, before))
    assert all(first[0] == second[0] for first, second in found if first and second)


# ------------------------------------------------------------------ bounds and hostile input


def test_memory_is_bounded_by_what_is_told_apart_and_not_by_events() -> None:
    builder = SideBuilder()
    for number in range(200):
        builder.add(miss(number, "shape", abstract=f"({number % 50})"))
    tracemalloc.start()
    for number in range(200, 6_000):
        builder.add(miss(number, "shape", abstract=f"({number % 50})"))
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert grown < 1_500_000, "call numbers are kept, of the last 10,000 misses"


def test_beyond_the_bounds_misses_are_still_counted_and_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxwatch._compare import side as module

    monkeypatch.setattr(module, "SIGNATURES", 2)
    monkeypatch.setattr(module, "PROGRAMS", 2)
    before = [miss(i, "shape", abstract=f"({i})") for i in range(9)]

    found = compared(before, [*before, miss(10, "shape", abstract="(10)")])

    assert [row.misses.gained for row in found.misses] == [1]
    assert ("program", 7) in found.before.folded
    assert "the first: 7 programs beyond a bound" in shown(found)


HOSTILE = "\x1b[2J|`</td><script>@everyone [x](http://a.b)\u202e\ud800"


def hostile() -> Comparison:
    path = f"/home/u/proj/{HOSTILE}.py:3"
    bad = miss(2, "weak_type", function=HOSTILE, definition=path, site=path, changes=WEAK, advice_text=HOSTILE)
    long = miss(3, "shape", function="x" * 1_000_000, changes=[change("shape", "y" * 3_000, "a", "b")])
    return compared(a_run(), [*a_run(), bad, long, record("process_stats", version=HOSTILE, overhead_seconds={})])


def test_what_names_hold_is_shown_and_not_obeyed_and_fits_eighty_columns() -> None:
    found = hostile()

    told = shown(found, everything=True)
    assert all(width(line) <= 80 and (line == "" or line.isprintable()) for line in told.splitlines())
    assert len(markdown.text(found, ())) < 20_000


def test_in_markdown_nothing_of_the_programs_is_a_mention_a_link_html_or_a_cell() -> None:
    told = markdown.text(hostile(), ("--max-new-misses 0 exceeded: 2",))

    told.encode("utf-8")
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    outside_code = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", told)
    for text_of_names in ("@", "<script", "](", "\x1b", "\u202e"):
        assert text_of_names not in outside_code
    assert "- limit `--max-new-misses` 0 exceeded: 2" in told


def test_what_there_is_too_much_of_is_cut_and_counted() -> None:
    many = [miss(i, "shape", function=f"f{i}", seconds=0.1 * (i + 1)) for i in range(30)]
    found = compared(a_run(), [*a_run(), *many])

    assert "  and 10 more, 5.5 s: --all" in shown(found)
    assert "| and 10 more causes | | | |" in markdown.text(found, ())
    assert "--all" not in shown(found, everything=True)
    seconds = [abs(row.seconds.gained) for row in found.misses]
    assert seconds == sorted(seconds, reverse=True)


# ------------------------------------------------------------------ the command


@pytest.fixture
def logs(tmp_path: Path) -> tuple[str, str]:
    main, branch = training_run(), moved([*training_run()[:-3], miss(9, "static", seconds=3.0), *training_run()[-3:]])
    return str(write_log(tmp_path / "main.jsonl", main)), str(write_log(tmp_path / "branch.jsonl", branch))


def test_the_command_finds_what_was_planted_and_is_silent_otherwise(
    logs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    main, branch = logs

    assert _cli.main(["diff", main, main]) == 0
    assert capsys.readouterr().out == "No difference: 8 misses, 9 compiles outside jit, compiling 12.4 s → 12.4 s.\n"
    assert _cli.main(["diff", main, branch]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == "compiling 12.4 s → 15.4 s (+24 %), misses 8 → 9"
    assert re.fullmatch(r"\+ step: static +0 → 1  3\.0 s  train\.py:78", second)
    assert third == "limit --max-new-misses 0 exceeded: 1"
    assert _cli.main(["diff", branch, main]) == 0
    assert _cli.main(["diff", main, branch, "--exit-zero"]) == 0
    assert _cli.main(["diff", main, branch, "--max-new-misses", "1", "--max-misses", "9"]) == 0
    assert _cli.main(["diff", main, main, "--max-misses", "7"]) == 1
    assert _cli.main(["diff", main, main, "--max-compile-seconds", "12"]) == 1


def test_json_and_markdown_go_to_files_or_stdout(
    logs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "comment.md"

    assert _cli.main(["diff", *logs, "--json", "-", "--markdown", str(page)]) == 1

    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["new_misses"], found["equal"]) == ("jaxwatch.diff/1", 1, False)
    assert found["exceeded"] == ["--max-new-misses 0 exceeded: 1"]
    assert found["misses"][0]["misses"] == {"before": 0, "after": 1}
    assert page.read_text("utf-8").startswith("### jaxwatch\n\n❌ compiling 12.4 s → 15.4 s")
    assert _cli.main(["diff", *logs, "--json", "-", "--markdown", "-"]) == 2
    assert _cli.main(["diff", *logs, "--json", logs[1]]) == 2
    assert "would overwrite " in capsys.readouterr().err


def test_the_json_has_all_that_the_data_has() -> None:
    found = compared(training_run()[:3], training_run())

    assert to_json(found, ()).keys() >= {field.name for field in dataclasses.fields(found)}
    json.dumps(to_json(found, ()), allow_nan=False)


def test_a_folder_is_the_processes_of_one_job_and_what_is_no_log_is_an_error(
    logs: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job").mkdir()
    for pid in (1, 2):
        write_log(tmp_path / "job" / f"{pid}.jsonl", [{**one, "pid": pid} for one in training_run()])

    assert _cli.main(["diff", str(tmp_path / "job"), str(tmp_path / "job")]) == 0
    assert "16 misses" in capsys.readouterr().out
    (tmp_path / "text.jsonl").write_text("hello\n")
    for wrong in (tmp_path / "text.jsonl", tmp_path / "none.jsonl"):
        assert _cli.main(["diff", logs[0], str(wrong)]) == 2
        assert "[log-unreadable]" in capsys.readouterr().err
    write_log(tmp_path / "part.jsonl", [*training_run(), {**miss(1), "call": "many"}])
    assert _cli.main(["diff", str(tmp_path / "part.jsonl"), logs[0]]) == 0
    assert "is a malformed cache_miss" in capsys.readouterr().err
    assert _cli.main(["diff", logs[0], logs[0], "--markdown", str(tmp_path / "no" / "x.md")]) == 2
    assert "[report-unwritable]" in capsys.readouterr().err


# ------------------------------------------------------------------ the docs

PAGE = (Path(__file__).parents[1] / "docs" / "compare.md").read_text("utf-8")


def commands_of(workflow: Any) -> list[list[str]]:
    """Return the jaxwatch commands of the steps of a workflow, in words."""
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    lines = [line.strip() for run in runs for line in run.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("jaxwatch ")]


def test_the_workflow_in_the_docs_is_yaml_and_its_commands_and_options_exist() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    workflow = yaml.safe_load(block)
    found = commands_of(workflow)

    assert workflow.keys() == {"name", True, "permissions", "jobs"}, "YAML takes on for true, as GitHub knows"
    assert [words[1] for words in found] == ["run", "diff"]
    others = [line.split() for line in re.findall(r"^(?:\$ |\w+/bin/)(jaxwatch .*)$", PAGE, re.MULTILINE)]
    assert len(others) >= 6
    for words in [*found, *others]:
        parameters = _cli.command.commands[words[1]].params
        known = {option for parameter in parameters for option in parameter.opts}
        program = next((number for number, word in enumerate(words) if word.endswith(".py")), len(words))
        assert {word for word in words[:program] if word.startswith("--")} <= known


def test_every_limit_is_in_the_docs() -> None:
    options = {
        option for parameter in _cli.command.commands["diff"].params for option in parameter.opts if "--" in option
    }

    assert {option for option in options if f"`{option}" not in PAGE} == set()


@pytest.mark.parametrize("calls", [101, 110, 149])
def test_a_call_more_makes_no_room_for_a_miss_more(calls: int) -> None:
    """2 of 100, the first call among them, and 3 of 101 are not as often, however it is rounded."""
    found = compared(
        a_run(other_length(2, 2, 2), calls=100), a_run(*(other_length(i, i, i) for i in (2, 3)), calls=calls)
    )

    assert found.new_misses == 1
    assert "as often as before" not in shown(found)


def test_twice_the_epochs_with_a_miss_each_are_as_often() -> None:
    runs = [
        a_run(*(other_length(i, i, i) for i in range(2, 1 + epochs)), calls=10 * epochs) for epochs in (10, 15, 20, 33)
    ]

    assert [compared(runs[0], longer).new_misses for longer in runs] == [0, 0, 0, 0]


@pytest.mark.parametrize("option", ["--max-compile-seconds", "--max-slowdown"])
def test_no_limit_is_nan(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = str(write_log(tmp_path / "run.jsonl", a_run()))

    assert _cli.main(["diff", log, log, option, "nan"]) == 2

    assert "is no limit" in capsys.readouterr().err
