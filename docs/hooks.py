"""What the site holds beside this folder: README, design, metrics, examples, and the commands' own help."""

import os
import re
from pathlib import Path

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pygments.formatters import HtmlFormatter

from jaxwatch._cli import command
from jaxwatch._doctor import VARIABLES

ROOT = Path(__file__).parents[1]
# file of the project → page of the site
PAGES = {
    "README.md": "index.md",
    "DESIGN.md": "design.md",
    "CHANGELOG.md": "changelog.md",
    "grafana/METRICS.md": "metrics.md",
    "grafana/runbook.md": "runbook.md",
}
_LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and the sources that pages link to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "commands.md", content=_commands()))
    files.append(File.generated(config, "environment.md", content=_environment()))
    files.append(File.generated(config, "css/code.css", content=_colours()))
    for path in sorted({*ROOT.glob("examples/*"), ROOT / "jaxwatch/_compat.py"}):
        if path.is_file():
            files.append(File.generated(config, _as_text(path.relative_to(ROOT).as_posix()), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point the links of a page to where the site has what they lead to."""
    of = {name: source for source, name in PAGES.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder = (ROOT / of).parent

    def moved(found: re.Match[str]) -> str:
        target, anchor = found[1], found[2] or ""
        if re.match(r"[a-z]+:", target):
            return found[0]
        source = os.path.relpath(folder / target, ROOT)
        return f"]({_on_site(source)}{anchor})"

    return _LINK.sub(moved, markdown)


def _on_site(source: str) -> str:
    if source in PAGES:
        return PAGES[source]
    return source.removeprefix("docs/") if source.startswith("docs/") else _as_text(source)


def _as_text(source: str) -> str:
    """Return the name of a source on the site: a text that a browser shows."""
    return f"{source}.txt" if source.endswith(".py") else source


def _commands() -> str:
    """Return a page of each command's help, as ``--help`` prints it."""
    parts = ["# Commands\n", _help([command.name or "jaxwatch"], command)]
    for name, one in sorted(command.commands.items()):
        parts += [f"\n## jaxwatch {name}\n", _help(["jaxwatch", name], one)]
        if isinstance(one, click.Group):
            parts += [_help(["jaxwatch", name, sub], found) for sub, found in sorted(one.commands.items())]
    return "\n".join(parts)


def _environment() -> str:
    rows = "\n".join(f"| `{name}` | {does} |" for name, does in VARIABLES.items())
    return f"# Environment\n\n| variable | what it does |\n|---|---|\n{rows}\n"


def _colours() -> str:
    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs('[data-bs-theme="dark"] .highlight')
    return f"{light}\n{dark}\n.highlight, .highlight pre {{ background: transparent; }}\n"


def _help(path: list[str], one: click.Command) -> str:
    context: click.Context | None = None
    for part in path[:-1]:
        context = click.Context(command, info_name=part, parent=context)
    text = one.get_help(click.Context(one, info_name=path[-1], parent=context, max_content_width=80))
    return f"```text\n{text}\n```\n"
