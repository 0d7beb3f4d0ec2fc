"""The files in ``_page``: the live page, and what the page of a report is made with."""

import functools
import importlib.resources


@functools.cache
def page_file(name: str) -> bytes:
    """Return a file."""
    return importlib.resources.files("jaxwatch").joinpath("_page", name).read_bytes()
