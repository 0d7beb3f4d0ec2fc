"""Metrics of jobs that end before anybody scrapes them: ``jaxwatch.push`` sends them to a Pushgateway."""

import atexit
import os
import re
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit

from jaxwatch import metrics
from jaxwatch._metrics import FAMILIES
from jaxwatch._registry import REGISTRY
from jaxwatch.errors import BadOptionError, JaxwatchWarning, MissingExtraError

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

EXPORTER = "push"
"""What it is called in ``jaxwatch_exporter_errors_total``."""

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN = {"job"}.union(*(family.labels for family in FAMILIES))
_LONGEST_SECONDS = threading.TIMEOUT_MAX
_GATEWAY = "Give http://HOST:9091 or https://USER:PASSWORD@HOST, of a Pushgateway."

Last = Literal["push", "delete"]


class Pusher:
    """Pushes all metrics of jaxwatch to one group of a Pushgateway; ``with`` closes it at the end of the block.

    It works on a daemon thread of its own. What fails is counted in ``jaxwatch_exporter_errors_total``, warned of once,
    and tried again with the next push; nothing is ever raised. A forked child neither pushes nor deletes its parent's
    group: let it call ``jaxwatch.push`` itself.

    Attributes:
        gateway: Where it pushes to, without user and password.
        group: The labels that make the group, ``job`` and ``instance`` among them.
    """

    def __init__(self, gateway: "_Gateway", group: Mapping[str, str], times: tuple[float | None, float]) -> None:
        self.gateway = gateway.shown
        self.group = dict(group)
        self._gateway = gateway
        self._every_seconds, self._timeout_seconds = times
        self._registry = _new_registry()
        self._pid = os.getpid()
        self._stop = threading.Event()
        self._last: Last = "push"
        self._done = self._warned = False
        self._thread = threading.Thread(target=self._work, name="jaxwatch push", daemon=True)
        self._thread.start()

    def close(self) -> bool:
        """Push for the last time, and stop; once more does nothing.

        Returns:
            Whether the gateway has the last figures. It waits for that no longer than ``timeout_seconds``.
        """
        return self._end("push") if self._is_here and not self._stop.is_set() else self._done

    def delete(self) -> bool:
        """Stop, and delete the group from the gateway: then no scrape sees it any longer.

        Returns:
            Whether the gateway did. It waits for that no longer than ``timeout_seconds``.
        """
        if not self._is_here:
            return False
        if self._stop.is_set():  # closed before: its thread has ended, or hangs
            self._last = "delete"
            self._thread = threading.Thread(target=self._work, name="jaxwatch push", daemon=True)
            self._thread.start()
        return self._end("delete")

    @property
    def _is_here(self) -> bool:
        return os.getpid() == self._pid

    def _end(self, last: Last) -> bool:
        """Let the thread do the last thing; at exit no new one could be started."""
        atexit.unregister(self._end)
        if not self._is_here:
            return False
        self._last, self._done = last, False
        self._stop.set()
        try:
            self._thread.join(self._timeout_seconds)
        except KeyboardInterrupt:  # whoever waits for the end has had enough; the program is over
            return False
        if self._thread.is_alive():
            self._failed(f"no answer within {self._timeout_seconds:g} s")
        return self._done

    def _work(self) -> None:
        while not self._stop.is_set():
            if self._every_seconds is not None:
                self._send("push")
            self._stop.wait(self._every_seconds)
        self._done = self._send(self._last)

    def _send(self, what: Last) -> bool:
        try:
            self._gateway.send(what, self.group, self._registry, self._timeout_seconds)
        except Exception as error:  # noqa: BLE001 -- whatever the network does, the program must not see it
            self._failed(self._gateway.cause(error))
            return False
        return True

    def _failed(self, why: str) -> None:
        REGISTRY.count_exporter_error(EXPORTER)
        if self._warned:
            return
        self._warned = True
        text = f"cannot push to {self.gateway}: {why}. The program goes on; failures are counted. [push-failed]"
        try:
            warnings.warn(text, JaxwatchWarning, stacklevel=2)
        except JaxwatchWarning:  # warnings are errors here: this one must not end the thread
            print(f"jaxwatch: {text}", file=sys.stderr)  # noqa: T201 -- for people

    def __enter__(self) -> Self:
        """Return the pusher itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def __repr__(self) -> str:
        """Return where it pushes to, without user and password."""
        return f"<Pusher {self.gateway} {self.group}{' closed' if self._stop.is_set() else ''}>"


def push(  # noqa: PLR0913 -- by keyword, each with a default
    gateway: str,
    job: str,
    *,
    grouping_key: Mapping[str, str] | None = None,
    every_seconds: float | None = 30.0,
    at_exit: Literal["push", "delete"] | None = "push",
    timeout_seconds: float = 5.0,
) -> Pusher:
    """Push all metrics of jaxwatch to a Pushgateway, now and then and when the process ends.

    Args:
        gateway: ``http://host:9091``; user and password may stand in it, and are shown nowhere.
        job: The label ``job`` of all that is pushed.
        grouping_key: More labels, which with ``job`` make the group that this process alone writes. By default
            ``instance`` is host and process id, so that no two processes overwrite each other; with an ``instance`` of
            its own, the next run of a job replaces what the last one left.
        every_seconds: Between two pushes, > 0; None for the last one alone.
        at_exit: What to do when the process ends and nobody closed the pusher: ``"push"`` the last figures, which stay
            until somebody deletes them; ``"delete"`` the group; or None for neither. Not after a signal that kills.
        timeout_seconds: How long a push may wait for the gateway, > 0, and by how much at most it delays the exit.

    Returns:
        What pushes, with ``close()`` and ``delete()``.

    Raises:
        BadOptionError: An argument is of the wrong kind or out of range.
        MissingExtraError: prometheus_client is not installed.

    Warns:
        JaxwatchWarning: The gateway did not take it; once.
    """
    where = _Gateway(gateway)
    if not (isinstance(job, str) and job and _is_text(job)):
        raise BadOptionError(f"job={job!r} is no name.", "Give a text that is not empty.")
    group = {"instance": f"{socket.gethostname()}:{os.getpid()}", **_checked(grouping_key)}
    for name, seconds in (("every_seconds", every_seconds), ("timeout_seconds", timeout_seconds)):
        if not _is_time(seconds) and not (seconds is None and name == "every_seconds"):
            raise BadOptionError(f"{name}={seconds!r} is no time to wait.", "Give a number of seconds above 0.")
    if at_exit not in ("push", "delete", None):
        raise BadOptionError(f"at_exit={at_exit!r} is nothing to do.", "Give 'push', 'delete' or None.")
    pusher = Pusher(where, {"job": job, **group}, (every_seconds, timeout_seconds))
    if at_exit is not None:
        atexit.register(pusher._end, at_exit)  # noqa: SLF001 -- this module's own class
    return pusher


class _Gateway:
    """A Pushgateway's address, with the user and password that it was given apart from what may be shown."""

    def __init__(self, address: object) -> None:
        if not isinstance(address, str):
            raise BadOptionError(f"gateway={address!r} is no address.", _GATEWAY)
        try:
            parts = urlsplit(address if "://" in address else f"http://{address}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = None
        if not host or not address.isprintable() or " " in address or parts.scheme not in ("http", "https"):
            raise BadOptionError("The gateway's address is none.", _GATEWAY)  # it may hold a password: not shown
        if parts.query or parts.fragment:
            raise BadOptionError(f"The address of the gateway at {host} has a '?' or '#' in it.", _GATEWAY)
        name = f"[{host}]" if ":" in host else host
        self.shown = f"{parts.scheme}://{name}{'' if port is None else f':{port}'}{parts.path}".rstrip("/")
        self._login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))

    def send(self, what: Last, group: Mapping[str, str], registry: "CollectorRegistry", seconds: float) -> None:
        """Replace or delete the group; raises whatever goes wrong."""
        from prometheus_client import delete_from_gateway, exposition, push_to_gateway  # noqa: PLC0415 -- as below

        def handler(**request: Any) -> Callable[[], None]:
            if self._login is None:
                return exposition.default_handler(**request)
            return exposition.basic_auth_handler(**request, username=self._login[0], password=self._login[1])

        key = {name: value for name, value in group.items() if name != "job"}
        if what == "delete":
            delete_from_gateway(self.shown, group["job"], key, seconds, handler)
        else:
            push_to_gateway(self.shown, group["job"], registry, key, seconds, handler)

    def cause(self, error: Exception) -> str:
        """Return what went wrong in a few words; of a foreign text nothing that a terminal obeys.

        What the other side says is left out where there is a password: a proxy may send back what it was sent.
        """
        found = error.reason if type(error) is URLError else error
        if isinstance(found, HTTPError):
            with found:  # it holds the connection
                said = "" if self._login else found.read(200).decode("utf-8", "replace").split("\n")[0].strip()
            why = f"it answers {found.code}{said and f', {said}'}"
        elif isinstance(found, OSError):
            why = (found.strerror or str(found) or type(found).__name__).lower()
        else:
            why = type(found).__name__ if self._login else f"{type(found).__name__}: {found}"
        return "".join(character if character.isprintable() else "?" for character in why)


def _new_registry() -> "CollectorRegistry":
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 -- importing jaxwatch must stay light
    except ImportError as error:
        problem = "Pushing needs the package prometheus-client, which is not installed."
        raise MissingExtraError(problem, "Run pip install prometheus-client.") from error
    registry = CollectorRegistry()
    metrics.register(registry)
    return registry


def _checked(key: Mapping[str, str] | None) -> dict[str, str]:
    if not isinstance(key, Mapping | None):
        raise BadOptionError(f"grouping_key={key!r} is no mapping.", "Give a dict of texts.")
    for name, value in (key or {}).items():
        if not isinstance(name, str) or not _LABEL.fullmatch(name) or name.startswith("__") or name in _TAKEN:
            problem = f"grouping_key has a label {name!r}, which is no label's name, or one that the metrics have."
            raise BadOptionError(problem, "Give letters, digits and '_', such as 'shard'.")
        if not (isinstance(value, str) and _is_text(value)):
            raise BadOptionError(f"grouping_key[{name!r}] is {value!r}, which is no text.", "Give a str.")
    return dict(key or {})


def _is_text(value: str) -> bool:
    return value.isprintable()  # nor has a lone surrogate a way into a URL


def _is_time(seconds: object) -> bool:
    return not isinstance(seconds, bool) and isinstance(seconds, int | float) and 0 < seconds <= _LONGEST_SECONDS
