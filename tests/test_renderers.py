# ruff: noqa: RUF001 -- what people read holds signs that look like letters
import io
import os
import pty
import re
import subprocess
import sys
import threading
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from event_records import (
    TRAIN,
    Rec,
    change,
    eager,
    miss,
    other_length,
    record,
    report_of,
    run_end,
    run_start,
    stats,
    training_run,
    write_log,
)
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch.renderers import RENDERERS, cells, notebook, phrases, terminal
from jaxwatch.renderers.headline import one_line
from jaxwatch.renderers.terminal import render

MORE = "jaxwatch report run.jsonl --all"


def rendered(records: list[Rec], **more: Any) -> str:
    return render(report_of(records), more=MORE, **more)


def test_the_report_of_a_training_run() -> None:
    assert (
        rendered(training_run())
        == """\
jaxwatch · train.py · 41.2 s, 12.4 s (30 %) of it compiling,
  7.8 s of that again and again

  function   calls   misses  keys   compiling   dispatch p50     p99
  step       1,204        6     6       8.9 s          61 µs  240 µs
  evaluate      40        2     2       2.1 s          58 µs  190 µs
  eager ops      –        9     –       1.4 s

1  step: batch['x'] float32[32,64] → 4 other lengths (5, 9, 17, 30)  4 ×   5.2 s
   with batch['y']; train.py:71, calls 57, 203, 488, 911; each compared with
   call 1
   → Pad batch['x'] and batch['y'] to 32 rows and mask, or drop the remainder.

2  cumsum, outside jit, at metrics.py:18                             9 ×   1.4 s
   → Keep the array at a fixed size, or use numpy here, or jit the block.

3  step: lr ~float32[] → float32[] (weak type)                       1 ×   1.3 s
   train.py:71, call 2; compared with call 1
   → Pass lr=jnp.float32(0.01) from the first call on.

1 more under 1 %: jaxwatch report run.jsonl --all"""
    )


# ------------------------------------------------------------------ nothing to say


def healthy(names: str = "abc", seconds: float = 1.0, **more: Any) -> list[Rec]:
    found = [run_start()]
    for number, name in enumerate(names):
        found += [miss(number + 1, function=name, seconds=seconds), stats(name)]
    return [*found, run_end(**more)]


def test_a_healthy_run_gets_one_line() -> None:
    assert rendered(healthy(seconds=3.1 / 3)) == (
        "jaxwatch · train.py · 41.2 s, 3.1 s (8 %) compiling, each of 3 functions once. Nothing to improve."
    )


@pytest.mark.parametrize(
    ("records", "line"),
    [
        (healthy("a"), "41.2 s, 1.0 s (2 %) compiling, 1 function once. Nothing to improve."),
        (healthy("", 0.0), "41.2 s, nothing compiled in it."),
        (
            [*healthy("a"), miss(9, function="a")],
            "2.0 s (5 %) compiling, 2 first calls of 1 function. Nothing to improve.",
        ),
        ([eager(), run_end()], "0.1 s (< 1 %) compiling, 1 op outside jit, no watched function. Nothing to improve."),
        ([*healthy("a"), eager()], "1.1 s (3 %) compiling, 1 function once. Nothing to improve."),
        (
            [*healthy("a"), eager(seconds=0.5)],
            "compiling, 1 function once, 1 op outside jit 0.5 s. Nothing to improve.",
        ),
        (healthy("a", exit_code=3), "train.py · exit code 3 · 41.2 s, 1.0 s (2 %) compiling, 1 function once. "),
        (healthy("a", wall_seconds=0.5), "0.5 s, 1.0 s compiling, 1 function once."),
        (
            [run_start(), miss(1, at=9.0)],
            "train.py · no end in the log · 9.0 s to its last event, 1.0 s (11 %) compiling",
        ),
    ],
)
def test_the_one_line_is_true(records: list[Rec], line: str) -> None:
    shown = rendered(records)

    assert line in shown
    assert "\n" not in shown


def test_two_processes_that_compiled_once_each_are_healthy() -> None:
    records = [{**one, "pid": pid} for pid in (1, 2) for one in healthy("ab")]

    assert "2 processes together · 82.4 s, 4.0 s (5 %) compiling, each of 2 functions once in each process" in rendered(
        records
    )


@pytest.mark.parametrize(
    "extra",
    [
        miss(9, "unknown", seconds=0.0),
        miss(9, "fast_path", layer="dispatch", seconds=0.0),
        record("violation", function="f", action="warn", limit=None, miss=None),
        record("trace_error", function="f", definition="a:1", site="a:1", call=1, error="E", seconds=0.0),
        stats("a", misses=2),
    ],
)
def test_whatever_is_to_be_said_is_said(extra: Rec) -> None:
    assert "Nothing to improve" not in rendered([*healthy(), extra])


# ------------------------------------------------------------------ findings


def title_of(changes: list[Rec], reason: str = "shape", **more: Any) -> str:
    report = report_of([miss(i + 2, reason, changes=[one], **more) for i, one in enumerate(changes)])
    return phrases.titles(report.findings[0], "")[0]


def lengths(*afters: str, before: str = "float32[32,64]") -> list[Rec]:
    return [change("shape", "x", before, after) for after in afters]


@pytest.mark.parametrize(
    ("changes", "reason", "title"),
    [
        (lengths("float32[5,64]"), "shape", "step: x float32[32,64] → float32[5,64]"),
        (lengths("float32[9,64]", "float32[5,64]"), "shape", "step: x float32[32,64] → 2 other lengths (5, 9)"),
        (lengths("float32[32,5]", "float32[32,7]"), "shape", "step: x float32[32,64] → 2 other lengths (5, 7)"),
        (
            lengths("float32[5,64]", "float32[9,32]"),
            "shape",
            "step: x float32[32,64] → 2 other values (float32[5,64], float32[9,32])",
        ),
        (
            lengths("float32[5,64]", "float32[5]"),
            "shape",
            "step: x float32[32,64] → 2 other values (float32[5,64], float32[5])",
        ),
        (
            lengths("float32[5,64]", "int32[5,64]"),
            "shape",
            "step: x float32[32,64] → 2 other values (float32[5,64], int32[5,64])",
        ),
        (
            [change("shape", "x", "f[1]", "f[2]"), change("shape", "x", "f[2]", "f[3]")],
            "shape",
            "step: x f[1] → 2 other lengths (2, 3)",
        ),
        (
            lengths(*(f"float32[{n},64]" for n in range(1, 13))),
            "shape",
            "step: x float32[32,64] → 12 other lengths (1, 2, 3, 4, 5, 6, 7, 8, …)",
        ),
        (
            [change("weak_type", "lr", "~float32[]", "float32[]")],
            "weak_type",
            "step: lr ~float32[] → float32[] (weak type)",
        ),
        ([change("static", "n", "3", "4")], "static", "step: n 3 → 4 (static)"),
        ([change("config", "jax_enable_x64", "False", "True")], "config", "step: jax_enable_x64 False → True (config)"),
        ([change("structure", "mask", None, "float32[8]")], "structure", "step: mask nothing → float32[8] (structure)"),
        ([change("new_function")], "new_function", "step: the same code as another function object"),
        ([change("cache_lost")], "cache_lost", "step: compiled before, but its entry in the cache was gone"),
        ([], "unknown", "step: no difference could be shown"),
    ],
)
def test_what_changed_in_words(changes: list[Rec], reason: str, title: str) -> None:
    if not changes:
        assert phrases.titles(report_of([miss(2, reason)]).findings[0], "")[0] == title
        return
    assert title_of(changes, reason) == title


def test_values_beyond_the_bound_are_told_as_over() -> None:
    assert "→ over 64 other lengths (" in title_of(lengths(*(f"float32[{n},64]" for n in range(100, 200))))


def test_paths_that_changed_together_are_named_together() -> None:
    assert phrases.titles(report_of([other_length(2, 57, 5)]).findings[0], "")[0] == (
        "step: batch['x'] float32[32,64] → float32[5,64], with batch['y']"
    )


def test_a_tree_of_which_all_leaves_changed_is_one_finding_of_at_most_four_lines() -> None:
    changes = [change("dtype", f"params['layer_{i}']['kernel']", "float32[8]", "bfloat16[8]") for i in range(20)]
    text = "Give params['layer_0']['kernel'], params['layer_1']['kernel'] and 18 more one dtype. " * 3

    shown = rendered([miss(2, "dtype", changes=changes, advice_text=text), run_end()])

    block = next(block for block in shown.split("\n\n") if block.startswith("1  "))
    assert "with params['layer_1']['kernel']" in block
    assert len(block.splitlines()) <= 4


@pytest.mark.parametrize(
    ("calls", "told"),
    [
        ([57], "call 57; compared with call 1"),
        ([57, 203], "calls 57, 203; each compared with call 1"),
        ([1, 1, 1], "each time call 1; each compared with call 1"),
        (list(range(2, 12)), "calls 2, 3, 4, 5 and 6 more; each compared with call 1"),
    ],
)
def test_the_calls_in_words(calls: list[int], told: str) -> None:
    records = [miss(1), *(miss(i + 2, "unknown", call=call) for i, call in enumerate(calls))]
    (finding,) = report_of(records).findings

    assert phrases.evidence(finding, "", "/home/u/proj") == f"train.py:71, {told}"


def test_where_not_all_calls_are_named_it_is_told_of_how_many_they_are() -> None:
    lengths = [other_length(i + 2, 5 * i + 2, i + 3) for i in range(9)]
    counts = [stats(calls=400, misses=10, dispatch={"6e-05": 390}), run_end()]

    assert "calls 2, 7, 12, 17 and 5 more of 400; each" in " ".join(
        rendered([run_start(), miss(1), *lengths, *counts]).split()
    )
    assert "and 5 more; each" in " ".join(rendered([run_start(), miss(1), *lengths, *counts[:1]]).split())


def test_several_places_are_told_with_how_often_most_first() -> None:
    sites = ["a.py:1"] * 2 + ["b.py:2"] * 3 + ["c.py:3", "d.py:4", "e.py:5"]
    (finding,) = report_of([miss(i + 2, "unknown", site=site) for i, site in enumerate(sites)]).findings

    assert phrases.evidence(finding, "", "").startswith("b.py:2 (3 ×), a.py:1 (2 ×), c.py:3 (1 ×) and 2 more places, ")


def test_findings_in_several_processes_or_from_disk_say_so() -> None:
    records = [miss(2, "unknown", pid=pid, persistent_cache="hit") for pid in range(8)]

    assert "in 8 processes; 8 of them read from the cache on disk" in " ".join(rendered(records).split())


def test_where_tracing_or_lowering_took_most_of_the_time_it_is_told_and_xla_is_not() -> None:
    def text(trace: float, lower: float, xla: float) -> str:
        phases = {"trace": trace, "lower": lower, "backend_compile": xla, "total": trace + lower + xla}
        again = miss(2, "shape", changes=[change("shape", "x", "float32[8]", "float32[4]")])
        return " ".join(rendered([run_start(), miss(1), {**again, "seconds": phases}, run_end()]).split())

    assert "80 % of the time went into tracing, before XLA" in text(4.0, 0.5, 0.5)
    assert "60 % of the time went into lowering, before XLA" in text(1.0, 3.0, 1.0)
    assert "before XLA" not in text(1.0, 1.0, 3.0)


def test_a_librarys_line_that_made_the_call_is_told_beside_the_users() -> None:
    via = "/v/lib/python3.11/site-packages/equinox/_jit.py:263"
    again = miss(2, "shape", changes=[change("shape", "x", "float32[8]", "float32[4]")], via=via)
    assert "by way of equinox/_jit.py:263" in rendered([run_start(), miss(1), again, run_end()])

    op = [eager("add", f"{TRAIN}:5", via="/v/lib/python3.11/site-packages/optax/_tree.py:3") for _ in range(8)]
    assert "by way of optax/_tree.py:3" not in rendered([run_start(), *op[:7], run_end()]), "a library's set-up"
    text = rendered([run_start(), *op, run_end()])
    assert "add, outside jit, at train.py:5" in text
    assert "by way of optax/_tree.py:3" in text


def test_a_backward_pass_is_not_said_to_be_outside_jit() -> None:
    backward = [eager("step", f"{TRAIN}:7") for _ in range(3)]
    text = rendered([run_start(), miss(1), *backward, run_end()])

    assert "step: a program of that name outside its own call, at train.py:7" in text
    assert "outside jit" not in text


def test_advice_on_a_program_is_told_once_with_what_all_its_compiles_cost() -> None:
    text = "Pass float32[700,700] to step as an argument: 2.0 MB that it uses from outside are compiled in."
    program = {"advice": [text]}
    changes = [change("shape", "x", "float32[8]", "float32[4]")]
    again = miss(2, "shape", changes=changes, advice_text=text, program=program)
    report = report_of([run_start(), miss(1, advice_text=text, program=program), again, run_end()])
    (finding,) = report.findings

    assert not report.healthy
    shown = " ".join(render(report).split())
    assert f"→ {text} (step at train.py:30, 2 compiles, 2.0 s)" in shown
    assert finding.advice is None, "it is on the program, and not on what changed"


def test_a_call_off_the_fast_path_is_no_recompile() -> None:
    note = {**change("fast_path"), "note": "it has an io_callback"}
    shown = rendered([miss(1), miss(3, "fast_path", layer="dispatch", seconds=0.0, changes=[note]), run_end()])

    assert "1  step, not on the fast path: it has an io_callback\n   train.py:71, call 3; nothing was compiled" in shown
    assert "again and again" not in shown


def test_small_findings_are_one_line_and_are_shown_when_asked_for() -> None:
    small = [miss(i + 10, "unknown", function=f"small{i}", seconds=0.001) for i in range(5)]
    records = [miss(1), miss(2, "shape", seconds=9.0), *small, run_end()]

    assert f"\n5 more under 1 %: {MORE}" in rendered(records)
    assert "small0:" not in rendered(records)
    assert "small4:" in rendered(records, everything=True)
    assert "more" not in rendered(records, everything=True)
    assert "(--log FILE keeps them" in render(report_of(records))


def test_many_dear_findings_are_cut_at_ten() -> None:
    records = [miss(i + 2, "unknown", function=f"f{i:02}", seconds=1.0) for i in range(14)]

    assert f"\n4 more: {MORE}" in rendered(records)
    assert "f09:" in rendered(records)
    assert "f10:" not in rendered(records)


def test_many_functions_are_cut_in_the_table() -> None:
    records = [miss(i + 2, "unknown", function=f"f{i:02}", seconds=30.0 - i) for i in range(20)]

    assert "\n  and 8 more functions, 116 s\n" in rendered(records)


def test_two_functions_of_one_name_are_told_apart_by_where_they_are_defined() -> None:
    places = {f"{TRAIN}:5": 1, f"{TRAIN}:9": 2}
    shown = rendered([run_start(), *(miss(n, "unknown", definition=place) for place, n in places.items())])

    assert "step (train.py:5)" in shown
    assert "step (train.py:9)" in shown


def test_calls_that_are_not_known_exactly_say_so() -> None:
    assert "≥57" in rendered([miss(2, "unknown", call=57)])


def test_faults_of_counting_are_told() -> None:
    assert "3 more missed and were counted, but their events are not there" in rendered([stats(misses=3), run_end()])


# ------------------------------------------------------------------ numbers and places


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (256e-9, "256 ns"),
        (61e-6, "61 µs"),
        (999.6e-6, "1 ms"),
        (0.0703, "70 ms"),
        (0.0996, "0.1 s"),
        (8.149, "8.1 s"),
        (99.96, "100 s"),
        (1204.4, "1,204 s"),
        (9000, "2.5 h"),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert phrases.duration(seconds) == told


@pytest.mark.parametrize(
    ("site", "told"),
    [
        ("/home/u/proj/train.py:71", "train.py:71"),
        ("/home/u/proj/sub/m.py:1", "sub/m.py:1"),
        ("/home/u/lib/m.py:1", "../lib/m.py:1"),
        ("/opt/x.py:1", "/opt/x.py:1"),
        ("train.py:71", "train.py:71"),
        ("/venv/lib/python3.11/site-packages/flax/core.py:9", "flax/core.py:9"),
        ("<string>:1", "<string>:1"),
        ("/home/u/proj/" + "deep/" * 20 + "m.py:1", "…" + ("deep/" * 20)[-41:] + "m.py:1"),
    ],
)
def test_places_are_relative_to_the_programs_folder(site: str, told: str) -> None:
    assert phrases.place(site, "/home/u/proj") == told


# ------------------------------------------------------------------ the stream

HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \r\n\t\x07\x9b2J \u202egnp.exe\u2066 \ud800 漢字 é"


@given(name=st.text(max_size=40) | st.just(HOSTILE), columns=st.integers(72, 120))
def test_no_line_is_too_wide_and_nothing_is_obeyed_whatever_the_names(name: str, columns: int) -> None:
    changes = [{**change("static", name, name, name + "2"), "note": name}, change("shape", name + "y", name, name)]
    fields: Rec = {"function": name, "definition": name, "site": name}
    records = [
        run_start(program=name or "x"),
        miss(2, "static", changes=changes, advice_text=name, **fields),
        *[eager(name, name)] * 3,
        record("trace_error", call=1, error=name, seconds=0.1, **fields),
        record("violation", function=name, action=name, limit=None, miss=None),
    ]
    for everything in (False, True):
        for line in rendered(records, columns=columns, everything=everything).splitlines():
            assert cells.width(line) <= columns
            assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs"} for character in line)


def on_a_terminal(code: str, **environ: str) -> str:
    """Return what a program writes to a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    shown = bytearray()

    def read() -> None:
        try:
            while piece := os.read(ours, 4096):
                shown.extend(piece)
        except OSError:  # the other side was closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    size = (
        f"import fcntl, struct, termios; fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('4H', 50, 100, 0, 0)); {code}"
    )
    env = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "TERM"}}
    subprocess.run([sys.executable, "-c", size], stdout=theirs, env={**env, "TERM": "xterm", **environ}, check=True)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def show(tmp_path: Path) -> str:
    changes = [change("static", "n", "'[red]a[/red]'", "'\x1b[1mb'")]
    log = write_log(tmp_path / "run.jsonl", [*training_run()[:-1], miss(9, "static", changes=changes), run_end()])
    return f"import sys; from jaxwatch._cli import main; sys.exit(main(['report', {str(log)!r}]))"


def test_a_terminal_gets_colour_and_the_same_words(show: str) -> None:
    coloured, plain = on_a_terminal(show), on_a_terminal(show, NO_COLOR="1")

    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain
    assert "n '[red]a[/red]' → '\\x1b[1mb' (static)" in plain
    assert len(plain.splitlines()[0]) > 80, "the terminal has 100 columns"


def test_a_dumb_terminal_gets_no_colour(show: str) -> None:
    assert "\x1b" not in on_a_terminal(show, TERM="dumb")


def test_without_rich_a_terminal_gets_plain_text(show: str) -> None:
    assert on_a_terminal(f"import sys; sys.modules['rich'] = None; {show}") == on_a_terminal(show, NO_COLOR="1")


def test_a_stream_of_ascii_alone_gets_ascii() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")

    RENDERERS["terminal"](report_of(training_run()), stream)

    stream.seek(0)
    assert "4 x   5.2 s" in stream.read()


def test_a_pipe_gets_80_columns_and_no_colour() -> None:
    stream = io.StringIO()

    terminal.write(report_of(training_run()), stream, more=MORE)

    assert stream.getvalue() == rendered(training_run()) + "\n"
    assert max(map(cells.width, stream.getvalue().splitlines())) <= 80


def test_quiet_is_one_line() -> None:
    assert one_line(report_of(training_run())) == (
        "jaxwatch · train.py · 41.2 s, 12.4 s (30 %) of it compiling, 7.8 s of that again and again. "
        "4 findings, the first: step: batch['x'] float32[32,64] → 4 other lengths (5.2 s)"
    )
    stream = io.StringIO()
    RENDERERS["line"](report_of(healthy()), stream)
    assert stream.getvalue() == rendered(healthy()) + "\n"


def test_rendering_loads_no_rich_unless_it_is_needed() -> None:
    code = "import sys, jaxwatch.renderers; sys.exit('rich' in sys.modules or 'jax' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ------------------------------------------------------------------ cells


@given(text=st.text(max_size=60), width=st.integers(1, 40))
def test_cut_and_wrapped_text_fits(text: str, width: int) -> None:
    assert cells.width(cells.cut(text, width)) <= max(width, 1)
    assert all(cells.width(line) <= width for line in cells.wrapped(text, width))
    assert len(cells.wrapped(text, width, 2)) <= 2


@given(words=st.lists(st.text("abc", min_size=1, max_size=5)), width=st.integers(5, 40))
def test_wrapping_loses_no_word(words: list[str], width: int) -> None:
    assert " ".join(cells.wrapped(" ".join(words), width)).split() == words


def test_wide_characters_take_two_cells_and_marks_none() -> None:
    assert cells.width("漢字") == 4
    assert cells.width("e\u0301") == 1
    assert cells.cut("漢字漢字", 5) == "漢字…"


# ------------------------------------------------------------------ below a cell of a notebook


class Page(HTMLParser):
    """What a browser makes of a piece of HTML: its elements, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"class"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if "style" in self.open else f"{data} "


def test_below_a_cell_the_report_says_what_it_does_on_a_terminal() -> None:
    report = report_of(training_run())
    page = Page(notebook.render(report, more="%%jaxwatch --all"))
    words = set(re.findall(r"[\w.%]+", page.text))

    told = [line for line in render(report, columns=10_000, more="%%jaxwatch --all").splitlines() if line.strip()]
    for line in told[1:]:
        assert set(re.findall(r"[\w.%]+", re.sub(r"^\d+  ", "", line))) <= words, line
    assert page.text.startswith(" ".join(told[0].split(", ")[:1]).split(",")[0])
    assert page.seen == {"div", "style", "p", "table", "thead", "tbody", "tr", "th", "td", "ol", "li", "span"}


def test_below_a_healthy_cell_stands_one_line() -> None:
    report = report_of([run_start(), miss(1), run_end()])

    assert Page(notebook.render(report)).text.split() == one_line(report).split()
    assert 'class="jaxwatch well' in notebook.render(report)


def test_quiet_is_one_line_below_a_cell_too() -> None:
    report = report_of(training_run())

    assert Page(notebook.render(report, quiet=True)).text.split() == one_line(report).split()


@given(st.text(min_size=1))
def test_a_hostile_name_is_text_below_a_cell(name: str) -> None:
    name = f"</style><script>{name}"
    records = [miss(1, function=name), miss(2, "shape", function=name, site=f"{name}:3", advice_text=name)]
    page = notebook.render(report_of([*records, eager(name), eager(name), eager(name)]))

    Page(page)  # none but ours
    assert not any(unicodedata.category(character) in {"Cc", "Cf", "Cs"} for character in page)
