"""Which process, thread and moment an event comes from. Imports no jax: where it is not there, it is not asked."""

import os
import sys
import threading
import time
from typing import Any

from jaxwatch.events import Origin


def loaded_compat() -> Any:
    """Return ``_compat`` where the engine has loaded it, else None; jax is never imported for the sake of telling."""
    return sys.modules.get("jaxwatch._compat")


def origin() -> Origin:
    """Return when and where this is."""
    compat = loaded_compat()
    return Origin(
        unix_seconds=time.time(),
        pid=os.getpid(),
        process_index=compat.process_index() if compat is not None else None,
        thread_name=threading.current_thread().name,
        process_count=compat.process_count() if compat is not None else None,
    )
