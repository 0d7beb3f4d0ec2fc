"""TensorBoard: ``jaxwatch.subscribe(tensorboard_exporter("runs/one"))``."""

import itertools
import os
from collections.abc import Callable
from typing import Any

from jaxwatch._hub import Exporter
from jaxwatch.events import Event
from jaxwatch.exporters.scalars import PREFIX, Scalars, missing, recompiled_text


def tensorboard_exporter(where: "str | os.PathLike[str] | Any", *, step: Callable[[], int] | None = None) -> Exporter:
    """Return an exporter that writes to TensorBoard's event files; give it to ``jaxwatch.subscribe``.

    Scalars ``jaxwatch/misses``, ``…/recompiles``, ``…/compile_seconds``, ``…/recompile_seconds``, ``…/eager_compiles``
    and ``…/eager_compile_seconds``, all cumulative; misses and compile seconds also by function; and the text
    ``jaxwatch/recompiled``: what changed and what to do.

    Args:
        where: A folder for files of its own; or the program's ``SummaryWriter``, of ``tensorboardX`` or of PyTorch.
        step: Returns the program's training step; without, the events are numbered. Called on the exporter's thread.

    Raises:
        MissingExtraError: A folder was given, and ``tensorboardX`` is not installed.
    """
    writer: Any = where if hasattr(where, "add_scalar") else _writer(where)
    scalars, number = Scalars(), itertools.count(1)

    def export(event: Event, /) -> None:
        found = scalars.of(event)
        if not found:
            return
        at, when = step() if step is not None else next(number), event.origin.unix_seconds
        for name, value in found.items():
            writer.add_scalar(name, value, at, walltime=when)
        if (text := recompiled_text(event)) is not None:
            writer.add_text(f"{PREFIX}recompiled", text, at, walltime=when)
        writer.flush()  # some a minute at most; a crash then loses none

    return export


def _writer(folder: "str | os.PathLike[str]") -> Any:
    try:
        import tensorboardX  # type: ignore[import-untyped]  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise missing("tensorboardX") from error
    return tensorboardX.SummaryWriter(os.fspath(folder))
