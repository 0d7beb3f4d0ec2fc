"""What runs in this process, as far as it is known without importing or starting anything."""

import functools
import sys
from typing import NamedTuple


class Build(NamedTuple):
    """Versions and the like; "" where it is not known yet. As the labels of ``jaxwatch_build_info``, in their order."""

    version: str  # of jaxwatch
    jax_version: str = ""
    jaxlib_version: str = ""
    backend: str = ""
    core: str = ""  # native or python
    process_index: str = ""  # where jax.distributed runs


def build() -> Build:
    """Return what runs here now."""
    engine, jax = sys.modules.get("jaxwatch._core"), sys.modules.get("jax")
    picked = getattr(engine, "CORE", None)  # not there before a function is watched, or while it is picked
    core = "" if picked is None else str(picked.name)
    # A jax that is still being imported, on another thread, must not be imported here too: the two could wait for each
    # other, and Python resolves that by handing out half a module.
    if jax is None or getattr(jax.__spec__, "_initializing", False):
        return Build(_version(), core=core)
    from jaxwatch import _compat  # noqa: PLC0415 -- it imports jax

    index = _compat.process_index()
    return Build(
        _version(), *_compat.jax_versions(), _compat.backend_platform(), core, "" if index is None else str(index)
    )


@functools.cache
def _version() -> str:
    from importlib import metadata  # noqa: PLC0415 -- 15 ms that only a scrape needs

    try:
        return metadata.version("jaxwatch")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return ""
