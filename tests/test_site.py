"""What the server answers, first as bytes, then in a real Chromium."""

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import Page, browser
from event_records import training_run
from programs import environment
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.openmetrics import parser as openmetrics

from jaxwatch._http import Answer, Request
from jaxwatch._live import LiveState
from jaxwatch._live_data import Frame, from_json
from jaxwatch._pages import page_file
from jaxwatch._site import site

FILES = ("index.html", "page.css", "page.js")


def a_frame() -> Frame:
    state = LiveState("one")
    for record in training_run():
        state.add(record)
    return state.frame(1_777_640_000.0)


def answer(path: str, query: str = "", **fields: str) -> Answer:
    registry = CollectorRegistry()
    Gauge("one", "A gauge.", registry=registry).set(1)
    Gauge("two", "Another.", registry=registry).set(2)
    return site(a_frame, registry)(Request("GET", path, query, fields, keep=False))


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")]
)
def test_the_page_is_served(path: str, kind: str) -> None:
    found = answer(path)

    assert (found.status, found.content_type) == (200, f"{kind}; charset=utf-8")
    assert found.body


@pytest.mark.parametrize(
    "path", ["//", "/x", "/metrics/", "/live", "/page.js/..", "/../pyproject.toml", "/%2e%2e/x", "/index.html"]
)
def test_other_paths_are_not_there(path: str) -> None:
    assert answer(path).status == 404


def test_the_figures_are_json() -> None:
    found = answer("/live.json")

    assert found.content_type == "application/json"
    assert from_json(json.loads(found.body)) == a_frame()


def test_only_what_is_new_is_sent_to_who_has_the_rest() -> None:
    numbers = [one["number"] for one in json.loads(answer("/live.json", "since=3").body)["happened"]]

    assert numbers == [one.number for one in a_frame().happened][3:]


@pytest.mark.parametrize("query", ["since=", "since=-1", "since=x", "since=1&since=2", "a", "since=" + "9" * 5_000])
def test_a_query_that_means_nothing_is_refused(query: str) -> None:
    assert answer("/live.json", query).status == 400


def test_metrics_come_in_the_format_that_is_asked_for() -> None:
    plain, asked = answer("/metrics"), answer("/metrics", accept="application/openmetrics-text; version=1.0.0")

    assert plain.content_type.startswith("text/plain; version=")
    assert b"\none 1.0\n" in plain.body
    assert asked.content_type.startswith("application/openmetrics-text; version=1.0.0")
    assert len(list(openmetrics.text_string_to_metric_families(asked.body.decode()))) == 2  # type: ignore[no-untyped-call]


def test_metrics_are_packed_and_chosen_by_name_where_that_is_asked_for() -> None:
    packed = answer("/metrics", "name[]=two", **{"accept-encoding": "gzip"})

    assert packed.fields == (("Content-Encoding", "gzip"),)
    assert packed.body.startswith(b"\x1f\x8b")
    assert b"one 1.0" not in answer("/metrics", "name[]=two").body


# ------------------------------------------------------------------ the page, as text


def test_the_page_is_small() -> None:
    assert sum(len(page_file(name)) for name in FILES) < 30_000


def test_the_page_needs_nothing_from_elsewhere_and_makes_no_markup_of_text() -> None:
    script = page_file("page.js").decode()

    for name in FILES:
        addresses = set(re.findall(r"[a-z]+://[^\s\"')]+", page_file(name).decode()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, "a name of SVG's, and no address"
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "Function(",
        "srcdoc",
        "DOMParser",
    ):
        assert word not in script
    assert re.search(r"\son\w+\s*=|javascript:|<style|style=", page_file("index.html").decode()) is None


class Outline(HTMLParser):
    """Headings, and what has which attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def outline() -> Outline:
    found = Outline()
    found.feed(page_file("index.html").decode())
    return found


def test_headings_and_landmarks_are_in_order() -> None:
    page = outline()

    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(page.headings))
    assert page.of("html")[0]["lang"] == "en"
    assert len(page.of("main")) == len(page.of("header")) == 1


def test_everything_that_needs_a_name_has_one() -> None:
    page = outline()
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]

    assert len(ids) == len(set(ids))
    for tag in ("section", "svg"):
        assert all(one.get("aria-labelledby") in ids or one.get("aria-label") for one in page.of(tag))
    scrolling = [one for one in page.of("div") if "tabindex" in one]
    assert len(scrolling) == len(page.of("table")), "what scrolls can be reached by the keyboard"
    assert {one["role"] for one in scrolling} == {"region"}
    assert len({one["aria-label"] for one in scrolling}) == len(scrolling), "and told apart"
    assert all(one.get("scope") == "col" for one in page.of("th"))
    assert len(page.of("label")) == len(page.of("input"))
    assert any(attributes.get("role") == "status" for _, attributes in page.found)


def colours(theme: str) -> dict[str, str]:
    style = page_file("page.css").decode()
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    return dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light if theme == "light" else dark))


def contrast(first: str, second: str) -> float:
    """Return the contrast of WCAG 2.2, from 1 to 21."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_and_bars_stand_out_in_either_theme(theme: str) -> None:
    colour = colours(theme)

    for text in ("text", "quiet", "link", "again"):
        assert contrast(colour[text], colour["ground"]) >= 4.5, text
    for bar in ("once", "again", "eager"):
        assert contrast(colour[bar], colour["raised"]) >= 3, bar
    assert contrast(colour["text"], colour["raised"]) >= 4.5
    assert contrast(colour["line"], colour["ground"]) >= 3


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


# ------------------------------------------------------------------ the page, in a browser

HOSTILE = (
    "</td><script>alert(1)</script><img src=x onerror=alert(1)>\"'\u202e\n\0"  # JAX itself refuses lone surrogates
)
PROGRAM = """
import sys
import jax, jax.numpy as jnp, numpy as np
import jaxwatch

server = jaxwatch.serve(port=0)
print(server.page, flush=True)

@jaxwatch.jit
def step(batch):
    return sum(leaf.sum() for leaf in jax.tree.leaves(batch))

def hostile(x):
    return x * 2
hostile.__name__ = hostile.__qualname__ = HOSTILE
hostile = jaxwatch.jit(hostile)

for line in sys.stdin:
    what, size = line.split()
    if what == "step":
        step({"x": np.ones(int(size), np.float32), HOSTILE: np.ones(int(size), np.float32)})
    elif what == "hostile":
        hostile(np.ones(int(size), np.float32))
    elif what == "eager":
        jnp.cumsum(np.ones(int(size), np.float32)).block_until_ready()
    print("done", flush=True)
"""


class Running:
    """A real program that jits what it is told to, and serves its page."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.page = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def do(self, what: str, size: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what} {size}\n")
        self._process.stdin.flush()
        assert self._line() == "done"


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    path = folder / "train.py"
    path.write_text(f"HOSTILE = {HOSTILE!r}\n" + textwrap.dedent(PROGRAM))
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
        cwd=folder,
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


@pytest.fixture
def page(require_program: Any, tmp_path: Path) -> Iterator[Page]:
    with browser(require_program("chromium"), tmp_path) as found:
        yield found


def rows(table: str) -> str:
    return f"[...document.querySelectorAll('#{table} tr:not([hidden])')].map((row) => row.innerText)"


def test_a_recompile_appears_on_the_page_without_a_reload(program: Running, page: Page) -> None:
    page.open(program.page)
    page.wait_for("document.getElementById('headline').textContent.includes('compiling')")
    page.evaluate("window.kept = 1")
    assert page.evaluate(rows("happened")) == []

    program.do("step", 4)
    program.do("step", 4)
    program.do("step", 5)
    program.do("eager", 9)
    (told,) = page.wait_for(f"{rows('happened')}.length && {rows('happened')}")
    assert "step" in told
    assert "float32[4] → float32[5]" in told
    assert "→ Pad " in told
    assert "train.py:" in told
    page.wait_for(f"{rows('eager')}.length")
    (function,) = page.wait_for(f"{rows('functions')}.length && {rows('functions')}")
    assert function.split()[:4] == ["step", "3", "2", "2"]
    assert "cumsum" in page.evaluate(rows("eager"))[0]
    assert page.evaluate("document.querySelectorAll('#timeline rect').length") >= 1
    assert "of compiling" in page.evaluate("document.getElementById('timeline').getAttribute('aria-label')")
    assert "train.py" in page.evaluate("document.title")

    program.do("step", 6)
    page.wait_for(f"{rows('happened')}.length === 2")
    assert "float32[6]" in page.evaluate(rows("happened"))[0], "the newest comes first"
    page.evaluate("document.getElementById('all').click()")
    assert page.evaluate(f"{rows('happened')}.length") == 3, "the first compile too"
    assert page.evaluate("window.kept") == 1, "it is the same document"
    assert page.complaints == []
    assert len(page.requests) > 4
    assert {url for url in page.requests if not url.startswith(program.page)} - {"data:,"} == set(), "its icon, empty"


def test_hostile_names_are_shown_as_text(program: Running, page: Page) -> None:
    page.open(program.page)
    before = page.evaluate("document.querySelectorAll('script, img, iframe, object').length")
    for size in (4, 5):
        program.do("hostile", size)
        program.do("step", size)
    page.wait_for(f"{rows('happened')}.length === 2")

    shown = page.text()
    assert r"</td><script>alert(1)</script><img src=x onerror=alert(1)>" in shown
    assert r"\u202e\n\x00" in shown
    assert "\u202e" not in shown
    assert page.evaluate("document.querySelectorAll('script, img, iframe, object').length") == before
    assert page.complaints == []


def test_markup_could_not_be_made_of_text_even_by_a_mistake(program: Running, page: Page) -> None:
    """The policy is what the page rests on, should the script ever be wrong."""
    page.open(program.page)

    for attempt in (
        "document.body.innerHTML = '<b>x</b>'",
        "eval('1')",
        "document.body.setAttribute('onclick', 'x = 1'); document.body.click(); if (!window.x) throw 'blocked'",
        (
            "(() => { const s = document.createElement('script'); s.text = 'window.y = 1'; document.head.append(s);"
            " if (!window.y) throw 'blocked'; })()"
        ),
    ):
        assert (
            page.evaluate(f"(() => {{ try {{ {attempt}; return 'done' }} catch {{ return 'blocked' }} }})()")
            == "blocked"
        )
    assert page.evaluate("fetch('http://192.0.2.1/').then(() => 'sent', () => 'blocked')") == "blocked"
    assert any("Content Security Policy" in one for one in page.complaints)


def test_the_page_pauses_by_the_keyboard_and_says_when_nobody_answers(tmp_path: Path, page: Page) -> None:
    with running(tmp_path) as program:
        page.open(program.page)
        page.wait_for("document.getElementById('headline').textContent.includes('compiling')")
        page.press("Tab")
        assert page.evaluate("document.activeElement.id") == "pause"
        page.press("Enter")
        assert page.evaluate("document.getElementById('pause').getAttribute('aria-pressed')") == "true"
        assert page.evaluate("document.getElementById('state').textContent") == "Paused."
        program.do("step", 4)
        program.do("step", 5)
        assert page.evaluate(rows("happened")) == []
        page.press("Enter")
        page.wait_for(f"{rows('happened')}.length === 1")

    page.wait_for("document.getElementById('state').textContent.includes('does not answer')")
    assert page.evaluate(f"{rows('happened')}.length") == 1, "what was seen stays"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_follows_the_users_theme_and_fits_a_narrow_window(program: Running, page: Page, scheme: str) -> None:
    page.prefer(scheme)
    page.narrow(360)
    page.open(program.page)
    program.do("step", 4)
    program.do("step", 5)
    page.wait_for(f"{rows('happened')}.length === 1")

    ground = colours(scheme)["ground"]
    red, green, blue = (int(ground[place : place + 2], 16) for place in (1, 3, 5))
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == f"rgb({red}, {green}, {blue})"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "only tables scroll sideways"


def test_axe_core_finds_no_fault(program: Running, page: Page, axe_core: str) -> None:
    page.open(program.page)
    for what in ("step", "eager", "hostile"):
        program.do(what, 4)
        program.do(what, 5)
    page.wait_for(f"{rows('happened')}.length === 2 && {rows('eager')}.length")
    page.evaluate("document.getElementById('all').click()")

    for scheme in ("light", "dark"):
        page.prefer(scheme)
        assert page.faults(axe_core) == [], scheme


def test_axe_core_finds_the_faults_of_a_faulty_page(page: Page, axe_core: str, tmp_path: Path) -> None:
    faulty = tmp_path / "faulty.html"
    faulty.write_text(
        "<!doctype html><html><title>x</title><main><h1>x</h1><p style='color: #999'>pale</p><img src='data:,'><button>"
        "</button><ul><li>1</ul><p>1<p>2<p>3<p>4<p>5<a href='#'>6</a><input aria-label='7'></main>"
    )
    page.open(faulty.as_uri())

    found = {fault.partition(":")[0] for fault in page.faults(axe_core)}
    assert found >= {"html-has-lang", "color-contrast", "image-alt", "button-name"}
