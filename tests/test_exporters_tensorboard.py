"""What TensorBoard reads back of what really happened."""

import sys
from pathlib import Path

import numpy as np
import pytest

import jaxwatch
from jaxwatch.errors import MissingExtraError
from jaxwatch.exporters.tensorboard import tensorboard_exporter

pytest.importorskip("tensorboardX", reason="the extra tensorboard is not installed")
pytestmark = [pytest.mark.usefixtures("fresh"), pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def called(rows: tuple[int, ...]) -> None:
    step = jaxwatch.jit(lambda x: x * 2, watch=jaxwatch.Watch(name="step"))
    for number in rows:
        step(np.ones(number, np.float32))


def test_tensorboard_itself_reads_misses_seconds_and_texts(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with jaxwatch.subscribe(tensorboard_exporter(tmp_path / "run"), kinds=["cache_miss"]):
        called((3, 4, 4, 5))
    read = accumulator.EventAccumulator(str(tmp_path / "run"))
    read.Reload()

    misses = read.Scalars("jaxwatch/misses")
    assert [(event.step, event.value) for event in misses] == [(1, 1), (2, 2), (3, 3)]
    assert [event.value for event in read.Scalars("jaxwatch/recompiles")] == [1, 2]
    seconds = [event.value for event in read.Scalars("jaxwatch_by_function/compile_seconds/step")]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0
    (tag,) = read.Tags()["tensors"]
    assert tag.startswith("jaxwatch/recompiled")
    texts = [event.tensor_proto.string_val[0].decode() for event in read.Tensors(tag)]
    assert "x: float32[3] → float32[4]" in texts[0]


def test_the_programs_own_step_and_writer_are_used(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    import tensorboardX

    writer = tensorboardX.SummaryWriter(str(tmp_path / "mine"))
    with jaxwatch.subscribe(tensorboard_exporter(writer, step=lambda: 70), kinds=["cache_miss"]):
        called((3,))
    writer.add_scalar("loss", 1.0, 71)
    writer.close()
    read = accumulator.EventAccumulator(str(tmp_path / "mine"))
    read.Reload()

    assert [event.step for event in read.Scalars("jaxwatch/misses")] == [70]
    assert [event.value for event in read.Scalars("loss")] == [1.0]


def test_without_the_package_the_way_out_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtraError, match="tensorboardX"):
        tensorboard_exporter(tmp_path)
