"""HTML, made of elements: what is no ``Html`` is text, and is escaped. There is no other way for text to get in."""

import html
import re

from jaxwatch.renderers.cells import clean

_SPECIAL = re.compile("[&<>\"']").search  # what `html.escape` replaces
_VOID = {"meta", "link", "br", "input"}


class Html(str):
    """A piece of HTML that is as it shall be."""

    __slots__ = ()


def text(content: str) -> Html:
    """Return text as HTML; what a reader would obey in place of showing is made visible."""
    if isinstance(content, Html):
        return content
    shown = clean(content)
    return Html(html.escape(shown) if _SPECIAL(shown) else shown)  # a page has a million of them, most without


def tag(name: str, /, *content: str | None, **attributes: str | None) -> Html:
    """Return an element.

    Args:
        name: As ``td``.
        content: ``Html`` as it is, text escaped; None is nothing.
        attributes: With ``_`` for ``-``, and one at the end where the name is Python's own (``class_``); None is left
            out, an empty one has no value.
    """
    told = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + (f'="{text(value)}"' if value else "")
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{''.join(text(one) for one in content if one is not None)}</{name}>")


def joined(*content: str | None) -> Html:
    """Return pieces one after the other, as ``tag`` takes them."""
    return Html("".join(text(one) for one in content if one is not None))
