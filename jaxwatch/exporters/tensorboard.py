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
    and ``…/eager_compile_seconds``, all cumulative; misses and compile seconds also as
    ``jaxwatch_by_function/…/<name>``; and the text ``jaxwatch/recompiled``: what changed and what to do.

    Args:
        where: A folder for files of its own; or the program's ``SummaryWriter``, of ``tensorboardX`` or of PyTorch.
        step: Returns the program's training step; without, the events are numbered. Called on the exporter's thread.

    Raises:
        MissingExtraError: A folder was given, and ``tensorboardX`` is not installed.
    """
    mine = not hasattr(where, "add_scalar")
    return _ToTensorBoard(_writer(where) if mine else where, step or itertools.count(1).__next__, closes=mine)


class _ToTensorBoard:
    def __init__(self, writer: Any, step: Callable[[], int], *, closes: bool) -> None:
        self._writer, self._step, self._closes = writer, step, closes
        self._scalars = Scalars()

    def __call__(self, event: Event, /) -> None:
        found = self._scalars.of(event)
        if not found:
            return
        at, when = self._step(), event.origin.unix_seconds
        for name, value in found.items():
            self._writer.add_scalar(name, value, at, walltime=when)
        if (text := recompiled_text(event)) is not None:
            self._writer.add_text(f"{PREFIX}recompiled", text, at, walltime=when)
        self._writer.flush()

    def close(self) -> None:
        if self._closes:  # what its own queue still holds is written then
            self._writer.close()


def _writer(folder: "str | os.PathLike[str]") -> Any:
    try:
        import tensorboardX  # noqa: PLC0415 -- an extra
    except ImportError as error:
        raise missing("tensorboardX") from error
    return tensorboardX.SummaryWriter(os.fspath(folder))
