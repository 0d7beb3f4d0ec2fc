"""The forms of a report that a file can have: the page, first as text, then in a real Chromium; JSON; Markdown."""

import base64
import hashlib
import io
import json
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser
from event_records import (
    TRAIN,
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
)
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jaxwatch import _limits
from jaxwatch._details import Key
from jaxwatch._report import Report, ReportBuilder
from jaxwatch.renderers import RENDERERS, as_json, as_markdown, html_findings, html_functions, summary
from jaxwatch.renderers.markup import Html, joined, tag, text

TAGS = "</td></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`|\\|"
HOSTILE = TAGS + "\u202e\n\0\ud800@octocat #1 ![x](//e.com)"
SHOWN = TAGS + r"\u202e\n\x00\ud800@octocat"


def built(records: list[Rec], *, details: bool = True) -> Report:
    builder = ReportBuilder(details=details)
    for one in records:
        builder.add(one)
    return builder.build(program="run.jsonl")


def rendered(form: str, report: Report, **more: Any) -> str:
    stream = io.StringIO()
    RENDERERS[form](report, stream, **more)
    return stream.getvalue()


def hostile_run() -> list[Rec]:
    """Return a run in which all that a program can choose is hostile."""
    where: Rec = {"function": HOSTILE, "definition": HOSTILE, "site": HOSTILE}
    changes = [change("shape", HOSTILE, HOSTILE, HOSTILE + "2"), {**change("static"), "note": HOSTILE}]
    return [
        run_start(program=HOSTILE),
        miss(1, abstract=HOSTILE, **where),
        miss(2, "shape", changes=changes, advice_text=HOSTILE, abstract=HOSTILE, via=HOSTILE, **where),
        miss(3, "new_function", layer="dispatch", signature=HOSTILE, **where),
        *(eager(HOSTILE, HOSTILE, via=HOSTILE) for _ in range(9)),
        record("trace_error", function=HOSTILE, definition=HOSTILE, site=HOSTILE, call=3, error=HOSTILE, seconds=0.1),
        record("violation", function=HOSTILE, action=HOSTILE, limit=None, miss=None),
        stats(HOSTILE, definition=HOSTILE, inlined={HOSTILE: 3}),
        run_end(program=HOSTILE),
    ]


def many_misses(count: int = 10_000, functions: int = 300) -> Iterator[Rec]:
    """Yield a run of an hour, in which functions are compiled again and again for other lengths."""
    draw, last = random.Random(3), dict[int, int]()  # noqa: S311 -- data, no secret
    calls = dict.fromkeys(range(functions), 0)
    yield run_start()
    for number in range(1, count + 1):
        which = number % functions
        calls[which] += 1
        length, seconds = calls[which] + 7, draw.expovariate(20)
        moved = [change("shape", "batch['x']", "float32[8,64]", f"float32[{length},64]")]
        phases = {"trace": 0.2 * seconds, "lower": 0.1 * seconds, "backend_compile": 0.7 * seconds, "total": seconds}
        yield miss(
            number,
            "shape" if which in last else "first_call",
            function=f"layer_{which}",
            definition=f"{TRAIN}:{30 + which}",
            call=3 * calls[which],
            changes=moved if which in last else [],
            compared_with=last.get(which),
            signature=f"s{which}_{length}",
            abstract=f"(batch: dict(['x']: float32[{length},64]))",
            advice_text="Pad batch['x'] to 64 rows and mask.",
        ) | {"seconds": phases, "time": record("x", number * 0.35)["time"]}
        last[which] = number
    yield run_end(3_600.0)


# ------------------------------------------------------------------ the page as text


class _Seen(HTMLParser):
    """What elements a page has, and what it says."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.style = self.script = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        last = self.tags[-1][0] if self.tags else ""
        if last in {"style", "script"}:
            setattr(self, last, getattr(self, last) or data)
            self.tags.append(("", {}))
        else:
            self.words += data


def test_the_page_needs_nothing_else_and_allows_no_other_script() -> None:
    page = _Seen(rendered("html", built(training_run())))

    attributes = [(name, value or "") for _, attrs in page.tags for name, value in attrs.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in {"style", "src", "srcset", "action"}]
    assert {value for name, value in attributes if name == "href" and not value.startswith("#")} == {"data:,"}
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for content in (page.style, page.script):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert content
        assert f"'sha256-{digest}'" in policy


def test_the_page_says_what_the_terminal_says() -> None:
    report = built(training_run())
    told = " ".join(_Seen(rendered("html", report)).words.split())

    assert "train.py ran for 41.2 s" in told
    for one in report.findings:
        assert one.advice is None or f"→ {one.advice[1]}" in told
    assert "step: batch['x'] float32[32,64] → 4 other lengths (5, 9, 17, 30)" in told
    assert "train.py:71, calls 57, 203, 488, 911; each compared with call 1" in told


def test_hostile_text_stays_text_on_the_page() -> None:
    harmless = [json.loads(json.dumps(one).replace(json.dumps(HOSTILE)[1:-1], "fine")) for one in hostile_run()]
    page, other = _Seen(rendered("html", built(hostile_run()))), _Seen(rendered("html", built(harmless)))

    assert SHOWN in page.words
    assert not re.search("[\u202e\0\ud800]", page.words)
    assert [name for name, _ in page.tags if name != "mark"] == [name for name, _ in other.tags if name != "mark"]


def test_one_key_of_each_kind_says_what_differs() -> None:
    report = built([miss(1, abstract="(x: int32[])"), other_length(2, 5, 9), miss(3, "unknown", compared_with=77)])
    told = " ".join(_Seen("".join(html_functions.keys(report, ""))).words.split())

    assert "first key of its function object" in told
    assert "(x: int32[])" in told
    assert "└ 2" in told
    assert "batch['x'] float32[32,64] → float32[9,64] (shape)" in told
    assert "compared with a key that is no longer known: no difference could be shown" in told


def test_without_details_the_page_says_what_is_not_there() -> None:
    told = _Seen(rendered("html", built(training_run(), details=False))).words

    assert "Neither times nor phases are in this report" in told
    assert "What to change" in told


def test_a_healthy_program_has_nothing_to_change() -> None:
    told = " ".join(_Seen(rendered("html", built([run_start(), miss(1), stats(), run_end()]))).words.split())

    assert "Nothing to improve." in told
    assert "train.py ran for 41.2 s: 1.0 s (2 %) compiling, 1 function once. Nothing to improve." in told


def test_where_each_finding_is_minor_the_dearest_are_told_and_none_is_lost() -> None:
    report = built(list(many_misses(3_000)))
    page, lines = _Seen(rendered("html", report)), rendered("terminal", report).splitlines()

    assert "Nothing to improve" not in page.words
    assert "290 more, each under 1 % of the time lost" in page.words
    assert sum(attrs.get("class") == "card" for _, attrs in page.tags) == 300
    assert [line[:1] for line in lines if re.match(r"\d  ", line)] == ["1", "2", "3"]


def test_a_log_of_nothing_but_a_run_makes_a_page() -> None:
    assert "nothing compiled" in _Seen(rendered("html", built([run_start(), run_end()]))).words


@given(st.text(), st.text())
def test_what_is_marked_is_what_differs(before: str, after: str) -> None:
    told = str(html_findings.change(before, after))
    sides = re.fullmatch("<code>(.*)</code> → <code>(.*)</code>", told, re.DOTALL)

    assert sides is not None
    for side, shown in zip((before, after), sides.groups(), strict=True):
        assert shown.replace("<mark>", "").replace("</mark>", "") == text(side)
    assert ("<mark>" in told) == (before != after)


def test_numbers_are_marked_whole() -> None:
    assert str(html_findings.change("f[128,64]", "f[12,64]")) == (
        "<code>f[<mark>128</mark>,64]</code> → <code>f[<mark>12</mark>,64]</code>"
    )


@given(st.text())
def test_elements_escape_all_text(content: str) -> None:
    page = _Seen(tag("p", content, title=content or None))

    assert [name for name, _ in page.tags] == ["p"]
    assert not re.search("[<>]", re.sub("^<p[^<>]*>|</p>$", "", tag("p", content)))
    assert joined(Html("<b>"), content).startswith("<b>")


def test_a_tree_of_keys_is_complete_however_deep() -> None:
    report = built([miss(1), *({**other_length(i, i, i), "compared_with": i - 1} for i in range(2, 900))])
    assert report.details is not None
    found: list[tuple[Key, int]] = list(html_functions.tree(report.details.functions[0].keys))

    assert [depth for _, depth in found] == list(range(899))


# ------------------------------------------------------------------ the page in a browser


@pytest.fixture
def page(require_program: Any, tmp_path: Path) -> Iterator[Page]:
    with browser(require_program("chromium"), tmp_path) as found:
        yield found


def opened(page: Page, folder: Path, records: list[Rec]) -> None:
    path = folder / "report.html"
    path.write_text(rendered("html", built(records)), encoding="utf-8", errors="backslashreplace")
    page.open(path.as_uri())


def names(page: Page) -> list[str]:
    rows = "[...document.querySelectorAll('#functions-table tbody tr:not([hidden])')].map((row) => row.dataset.name)"
    return list(page.evaluate(rows))


def test_the_page_works_by_keyboard_alone(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, training_run())
    assert names(page) == ["step", "evaluate"]
    heads = "document.querySelectorAll('#functions-table th')"

    page.evaluate(f"{heads}[1].querySelector('button').focus()")  # calls
    page.press("Enter")
    assert (names(page), page.evaluate(f"{heads}[1].ariaSort")) == (["step", "evaluate"], "descending")
    page.press("Enter")
    assert (names(page), page.evaluate(f"{heads}[1].ariaSort")) == (["evaluate", "step"], "ascending")

    page.evaluate("document.querySelector('#functions-table a[href=\"#f2\"]').focus()")
    page.press("Enter")
    page.wait_for("document.getElementById('f2').open && document.activeElement.matches('#f2 > summary')")

    page.evaluate("document.getElementById('filter').value = 'EVAL'")
    page.evaluate("document.getElementById('filter').dispatchEvent(new Event('input'))")
    assert names(page) == ["evaluate"]
    assert page.evaluate("document.getElementById('shown').textContent") == "1 of 2 functions"
    assert page.evaluate("document.getElementById('f1').hidden")
    assert page.complaints == []
    assert {url for url in page.requests if not url.startswith("file:")} - {"data:,"} == set()


def test_in_a_browser_hostile_text_is_text_and_nobody_is_shut_out(page: Page, tmp_path: Path, axe_core: str) -> None:
    page.narrow(360)
    opened(page, tmp_path, [*hostile_run(), *training_run()[1:]])
    page.evaluate("document.getElementById('open-all').click()")

    assert page.evaluate("document.scripts.length + document.images.length") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"
    for attempt in ("document.body.innerHTML = '<b>x</b>'", "eval('1')", "new Function('1')"):
        found = page.evaluate(f"(() => {{ try {{ {attempt}; return 'done' }} catch {{ return 'blocked' }} }})()")
        assert found == "blocked", attempt
    page.complaints.clear()  # of what was just tried
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert page.faults(axe_core) == [], scheme


def test_of_ten_thousand_misses_nothing_is_missing(page: Page, tmp_path: Path) -> None:
    opened(page, tmp_path, list(many_misses()))

    assert page.evaluate("document.querySelectorAll('#functions-table tbody tr').length") == 300
    assert page.evaluate("document.querySelectorAll('details.function').length") == 300
    assert page.evaluate("document.querySelectorAll('details.function tbody tr').length") == 10_000
    assert page.evaluate("document.querySelectorAll('#findings .card').length") == 300
    assert page.complaints == []


# ------------------------------------------------------------------ the summary


def test_the_summary_tells_what_most_recompiles_are() -> None:
    found = summary.sentences(built([run_start(), miss(1), *(other_length(i, i, i) for i in range(2, 11)), run_end()]))

    assert found[0] == "train.py ran for 41.2 s, 12.7 s (31 %) of it compiling, 11.7 s of that again and again."
    assert "All 9 recompiles are other lengths of batch['x'], in step (11.7 s)." in found


def test_the_summary_tells_of_a_busy_beginning_and_only_then() -> None:
    busy = miss(1, seconds=28.7, time=record("x", 40.0)["time"])
    late = miss(1, seconds=30.0, time=record("x", 3_000.0)["time"])

    assert "50 % of the first minute went into compiling." in summary.sentences(
        built([run_start(), busy, other_length(2, 2, 2), run_end(3_600.0)])
    )
    assert not any("of the first" in one for one in summary.sentences(built([run_start(), late, run_end(3_600.0)])))
    assert not any("of the first" in one for one in summary.sentences(built([run_start(), busy, run_end(50.0)])))


@pytest.mark.parametrize(
    ("records", "told"),
    [
        (
            [miss(2, "new_function", call=1)],
            "The one recompile is of the same code as another function object, in step",
        ),
        ([miss(2, "static", changes=[change("static", "n", "1", "2")])], "other values of n, in step"),
        ([record("violation", function="f", action="warn", limit=2, miss=1)], "Guards were broken 1 time."),
        (
            [miss(2, "static"), eager(), eager(site="b.py:1", seconds=0.9)],
            "2 compiles outside jit took 1.0 s, 90 % of that at b.py:1.",
        ),
    ],
)
def test_the_summary_has_a_sentence_for(records: list[Rec], told: str) -> None:
    assert any(told in sentence for sentence in summary.sentences(built([run_start(), miss(1), *records, run_end()])))


@pytest.mark.parametrize("form", ["html", "markdown", "terminal", "line"])
@pytest.mark.parametrize("compiles_again", [True, False])
def test_a_run_that_failed_is_not_told_as_one_that_did_not(form: str, compiles_again: bool) -> None:
    records = [run_start(), miss(1), *([other_length(2, 2, 2)] if compiles_again else []), run_end(exit_code=1)]

    assert "exit code 1" in rendered(form, built(records))
    assert "exit code" not in rendered(form, built([*records[:-1], run_end()]))


def test_the_summary_tells_how_many_processes_did_not_end_well() -> None:
    ended = [
        run_start(pid=1),
        run_end(exit_code=3, pid=1),
        run_start(pid=2),
        run_end(pid=2),
        run_start(pid=3),
        miss(1, pid=3),
    ]

    found = summary.sentences(built(ended))

    assert "1 of 3 processes ended with exit code 3." in found
    assert "1 of 3 processes have no end in the log." in found


# ------------------------------------------------------------------ JSON


def test_the_json_has_the_report_and_reads_back() -> None:
    report = built(training_run())
    found = json.loads(rendered("json", report))

    assert found["schema"] == "jaxwatch.report/1"
    assert found["compile_seconds"] == report.compile_seconds
    assert [one["count"] for one in found["findings"]] == [one.count for one in report.findings]
    first = found["findings"][0]
    assert first["values"][0]["pairs"][0] == {"before": "float32[32,64]", "after": "float32[5,64]"}
    assert first["sites"] == [{"site": f"{TRAIN}:71", "count": 4}]
    step = found["functions"][0]
    assert (step["function"], step["calls"], step["dispatch"][0]["calls"]) == ("step", 1204, 1100)
    keys = next(one["keys"] for one in found["details"]["functions"] if one["function"] == "step")
    assert [key["parent"] for key in keys] == [None, 1, 1, 1, 1, 1]


def test_the_json_has_every_field_of_a_report() -> None:
    """A field that is added to the report, or to a part of it, must be told."""
    report = built(training_run())
    told, known_elsewhere = as_json.record(report), {"folder", "slow", "overhead", "eager_count", "eager_seconds"}

    assert {name for name in Report.__slots__ if name not in told} == known_elsewhere


def test_the_json_is_utf8_without_lone_surrogates() -> None:
    found = json.loads(rendered("json", built(hostile_run())))

    name = found["functions"][0]["function"]
    assert name == HOSTILE.replace("\ud800", r"\ud800")
    json.dumps(found, ensure_ascii=False).encode()


# ------------------------------------------------------------------ Markdown


def made(markdown: str) -> _Seen:
    """Return what a renderer of GitHub's kind makes of it; HTML in it comes through, as it does there."""
    return _Seen(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def test_the_markdown_is_short_and_has_its_tables() -> None:
    report = built(training_run())
    told = rendered("markdown", report, more="jaxwatch report run.jsonl --all")
    page = made(told)

    assert told.count("\n") < 40
    assert [name for name, _ in page.tags].count("table") == 2
    assert [name for name, _ in page.tags].count("tr") == 2 + len(report.findings) + len(report.functions)
    assert "step: batch['x'] float32[32,64] → 4 other lengths (5, 9, 17, 30)" in page.words
    assert "jaxwatch report run.jsonl --all" in page.words


def test_in_markdown_hostile_text_stays_text_and_in_its_cell() -> None:
    markdown = rendered("markdown", built(hostile_run()))
    page = made(markdown)

    assert not {"script", "img", "a", "td/"} & {name for name, _ in page.tags}
    rows = [line for line in markdown.splitlines() if line.startswith("| ")]
    assert rows
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    for row in re.findall("<tr>(.*?)</tr>", html, re.DOTALL):
        assert row.count("<t") in {5, 6}, row
    assert "alert(1)" in page.words
    outside = re.sub("`+[^`]*`+", "", re.sub("(`+).*?(?<!`)\\1(?!`)", "", markdown))
    assert not re.search("@\\w|\\B#\\d|://", outside), "no mention, reference or link"


@given(st.text())
def test_code_and_prose_come_out_as_they_went_in(content: str) -> None:
    for shown in (as_markdown.code(content), as_markdown.prose(content)):
        page = made(f"| a | b |\n|---|---|\n| {shown} | z |\n")
        assert [name for name, _ in page.tags if name in {"td", "th"}] == ["th", "th", "td", "td"]
        assert {name for name, _ in page.tags} <= {"table", "thead", "tbody", "tr", "td", "th", "code"}
        assert "\n" not in shown
        assert page.words.split()[-1] == "z"


def test_long_names_and_many_rows_fit_a_comment() -> None:
    records = [one | {"function": f"{one.get('function')}{'x' * 1_900}"} for one in many_misses(3_000)]
    told = rendered("markdown", built([run_start(), *records, run_end()]), everything=True)

    assert len(told) < 65_536
    assert "more, " in told


def test_a_page_has_the_dearest_functions_and_says_of_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "REPORT_FUNCTIONS", 3)
    records = [miss(i, function=f"f{i}", definition=f"a.py:{i}", seconds=float(i)) for i in range(1, 6)]

    page = rendered("html", built([run_start(), *records, run_end()]))

    table = page[page.index("functions-table") :]
    assert [f'data-name="f{i}"' in table for i in range(1, 6)] == [False, False, True, True, True]
    assert "The dearest of 5 functions; --json has all." in page
    assert page.count('<details id="f') == 3
