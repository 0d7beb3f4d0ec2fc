"""MLflow: ``jaxwatch.subscribe(mlflow_exporter())`` within a run."""

import itertools
import re
from collections.abc import Callable
from typing import Any

from jaxwatch._hub import Exporter
from jaxwatch.errors import BadOptionError
from jaxwatch.events import Event
from jaxwatch.exporters.scalars import Scalars, missing, recompiled_text

_NOT_IN_A_KEY = re.compile(r"[^\w\-. /]", re.ASCII)  # <lambda>, say; MLflow refuses it
_KEY_CHARACTERS = 250
_TAG_CHARACTERS = 5_000


def mlflow_exporter(
    run_id: str | None = None, *, client: Any = None, step: Callable[[], int] | None = None
) -> Exporter:
    """Return an exporter that adds metrics to a run of MLflow; give it to ``jaxwatch.subscribe``.

    The metrics are those of ``tensorboard_exporter``; the last recompile is the tag ``jaxwatch.recompiled``.

    Args:
        run_id: By default that of the active run.
        client: An ``MlflowClient``; by default one of the tracking URI in use.
        step: Returns the program's training step; without, the events are numbered. Called on the exporter's thread.

    Raises:
        MissingExtraError: ``mlflow`` is not installed.
        BadOptionError: No run is named, and none is active.
    """
    try:
        import mlflow  # noqa: PLC0415 -- an extra
        from mlflow.entities import Metric  # noqa: PLC0415
    except ImportError as error:
        raise missing("mlflow-skinny") from error
    active: Any = mlflow.active_run()
    if run_id is None and active is None:
        problem = "mlflow_exporter() finds no active run."
        raise BadOptionError(problem, "Call it within mlflow.start_run(), or give run_id.")
    chosen = run_id or active.info.run_id
    client, scalars, number = client or mlflow.MlflowClient(), Scalars(), itertools.count(1)

    def export(event: Event, /) -> None:
        found = scalars.of(event)
        if not found:
            return
        at, when = step() if step is not None else next(number), int(1000 * event.origin.unix_seconds)
        client.log_batch(chosen, metrics=[Metric(_key(name), value, when, at) for name, value in found.items()])
        if (text := recompiled_text(event)) is not None:
            client.set_tag(chosen, "jaxwatch.recompiled", text[:_TAG_CHARACTERS])

    return export


def _key(name: str) -> str:
    return _NOT_IN_A_KEY.sub("_", name)[:_KEY_CHARACTERS]
