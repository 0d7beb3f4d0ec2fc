"""The active calls of a thread are its own."""

import threading

from test_registry import subject

from jaxwatch._frames import THREAD, Frame, OpenPhase


def test_each_thread_has_its_own_calls_and_phases() -> None:
    seen = []
    THREAD.open.append(OpenPhase("trace", "f", None, None, own=False))
    THREAD.pending["f"] = 1.0
    thread = threading.Thread(target=lambda: seen.append((THREAD.top, list(THREAD.open), dict(THREAD.pending))))
    thread.start()
    thread.join()
    THREAD.open.clear()
    THREAD.pending.clear()

    assert seen == [(None, [], {})]


def test_a_call_is_made_ready_to_count_only_when_a_phase_begins() -> None:
    frame = Frame(subject(), 1, (), {})
    assert not frame.seen
    assert not hasattr(frame, "traces")

    frame.begin()
    assert frame.seen
    assert (frame.traces, frame.lowerings, frame.compiles, frame.seconds) == (0, 0, 0, [0.0, 0.0, 0.0])
    assert frame.key is None
    assert frame.refusal is None
