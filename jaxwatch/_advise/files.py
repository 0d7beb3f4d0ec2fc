"""A comparison as a page or a picture, by matplotlib, an extra."""

import html
import io
import os
from typing import Any

from jaxwatch._advise.comparison import Comparison
from jaxwatch._advise.curves import break_even
from jaxwatch.errors import BadOptionError, MissingExtraError

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>jaxwatch advise · {title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
pre {{ overflow-x: auto; font-size: 13px }}
figure {{ margin: 0; background: white; color: black }}
svg {{ max-width: 100%; height: auto }}</style></head>
<body><h1>jaxwatch advise · {title}</h1>
<figure role="img" aria-label="{label}">{picture}</figure>
<pre tabindex="0">{text}</pre></body></html>
"""


def check(*paths: str | None) -> None:
    """Look whether files can be drawn and written, before anything runs.

    Raises:
        MissingExtraError: matplotlib is not there.
        BadOptionError: A file cannot be written.
    """
    if any(paths):
        _pyplot()
    for path in paths:
        if path is not None and not os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
            raise BadOptionError(f"{path} cannot be written.", "Give a file in a folder that you may write to.")


def _pyplot() -> Any:
    try:
        import matplotlib as mpl  # noqa: PLC0415 -- an extra
        from matplotlib.figure import Figure  # noqa: PLC0415 -- as above
    except ImportError as error:
        problem = "A plot needs matplotlib, which is not installed."
        raise MissingExtraError(problem, "pip install 'jaxwatch[plot]'.") from error
    mpl.rcParams["svg.hashsalt"] = "jaxwatch"  # the same page for the same figures
    return Figure


def write_png(comparison: Comparison, path: str) -> None:
    """Write the plot of cumulative time against calls as a PNG file."""
    _figure(comparison).savefig(path, format="png", dpi=150)


def write_html(comparison: Comparison, path: str) -> None:
    """Write plot and tables as one page that needs nothing else."""
    picture = io.StringIO()
    _figure(comparison).savefig(picture, format="svg", metadata={"Date": None})
    page = _PAGE.format(
        title=html.escape(comparison.workload),
        label=html.escape(comparison.reason),
        picture=picture.getvalue().partition("<svg")[1] + picture.getvalue().partition("<svg")[2],
        text=html.escape(str(comparison)),
    )
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(page)


def _figure(comparison: Comparison) -> Any:
    """Draw cumulative seconds against calls, dotted beyond what was measured, and where two scopes break even."""
    figure = _pyplot()(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    shown = [scope for scope in comparison.scopes if scope.curve]
    for number, scope in enumerate(shown):
        calls, seconds = zip(*scope.curve, strict=True)
        thick = scope in comparison.scopes[: len(shown)] and comparison.recommended == comparison.scopes.index(scope)
        style = {"color": f"C{number % 10}", "linewidth": 2.5 if thick else 1.3}
        axes.plot(calls, seconds, label=_escaped(scope.name) + (" (recommended)" if thick else ""), **style)
        if scope.later_seconds is not None and not scope.error:
            end = 10 * comparison.calls
            axes.plot(
                [calls[-1], end], [seconds[-1], seconds[-1] + (end - calls[-1]) * scope.later_seconds], ":", **style
            )
    if comparison.recommended is not None:
        _mark(axes, comparison)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="calls (dotted: beyond those measured)",
        ylabel="seconds since the first call",
    )
    axes.grid(alpha=0.3)
    if shown:
        axes.legend()
    return figure


def _mark(axes: Any, comparison: Comparison) -> None:
    best = comparison.scopes[comparison.recommended or 0]
    for scope in comparison.scopes:
        if scope is best or not scope.curve or scope.error:
            continue
        call = break_even(best.curve, best.later_seconds, scope.curve, scope.later_seconds)
        if call is not None and 1 < call <= 10 * comparison.calls:
            axes.axvline(call, color="0.6", linewidth=0.8)
            axes.annotate(
                f"ahead of {_escaped(scope.name)} from call {call:,}",
                (call, axes.get_ylim()[0]),
                rotation=90,
                fontsize=8,
                va="bottom",
            )


def _escaped(text: str) -> str:
    return text.replace("$", r"\$")
