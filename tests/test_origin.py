"""Which process, thread and moment an event comes from."""

import os
import threading
from datetime import UTC, datetime

from programs import run

from jaxwatch._origin import origin


def test_it_is_here_and_now() -> None:
    before = datetime.now(UTC)
    found = origin()
    after = datetime.now(UTC)

    assert before <= datetime.fromisoformat(found.time) <= after
    assert len(found.time) == len("2026-05-01T12:00:00.000000+00:00")
    assert (found.pid, found.thread_name) == (os.getpid(), threading.current_thread().name)
    assert found.process_index is None


def test_another_thread_is_told_by_its_name() -> None:
    names = []
    thread = threading.Thread(target=lambda: names.append(origin().thread_name), name='worker "1"')
    thread.start()
    thread.join()

    assert names == ['worker "1"']


def test_jax_is_not_imported_to_be_asked() -> None:
    ended = run("""
        import sys
        from jaxwatch._origin import loaded_compat, origin
        assert origin().process_index is None and loaded_compat() is None
        assert "jax" not in sys.modules
    """)

    assert ended.code == 0, ended.err
