"""Weights & Biases: ``jaxwatch.subscribe(wandb_exporter(wandb.init(…)))``."""

from typing import Any

from jaxwatch._hub import Exporter
from jaxwatch.errors import BadOptionError
from jaxwatch.events import Event
from jaxwatch.exporters.scalars import PREFIX, Scalars, recompiled_text


def wandb_exporter(run: Any) -> Exporter:
    """Return an exporter that adds to a run of Weights & Biases; give it to ``jaxwatch.subscribe``.

    The values are those of ``tensorboard_exporter``. They are logged with ``commit=False``: they come with the next row
    that the program logs, at its own step, and the program's steps are those that it has without jaxwatch. The last
    recompile stands in the run's summary, ``jaxwatch/recompiled``.

    Args:
        run: What ``wandb.init`` returned. Close the subscription before ``run.finish()``.

    Raises:
        BadOptionError: It is no run.
    """
    if not (hasattr(run, "log") and hasattr(run, "summary")):
        raise BadOptionError(f"wandb_exporter({run!r:.80}) was given no run.", "Give what wandb.init returned.")
    scalars = Scalars()

    def export(event: Event, /) -> None:
        if found := scalars.of(event):
            run.log(found, commit=False)
        if (text := recompiled_text(event)) is not None:
            run.summary[f"{PREFIX}recompiled"] = text

    return export
