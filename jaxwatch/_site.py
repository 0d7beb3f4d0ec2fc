"""What the server answers: the page, its figures as JSON, and the metrics."""

import json
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from jaxwatch._http import PLAIN, Answer, App, Request, refusal
from jaxwatch._live_data import Frame, to_json
from jaxwatch._pages import page_file

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

_PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_SINCE = re.compile(r"since=([0-9]{1,18})")
# Of the header fields of prometheus_client's answer, those that are not the server's own.
_HANDED_ON = {"content-encoding"}


def site(frame: Callable[[], Frame], registry: "CollectorRegistry") -> App:
    """Return the app that answers ``/``, ``/live.json`` and ``/metrics``.

    Args:
        frame: Returns what is to be seen now.
        registry: Whose metrics are served.
    """
    import prometheus_client  # noqa: PLC0415 -- importing jaxwatch must stay light, and work without it

    metrics = prometheus_client.make_wsgi_app(registry)

    def app(request: Request) -> Answer:
        if request.path in _PAGE:
            name, kind = _PAGE[request.path]
            return Answer(HTTPStatus.OK, page_file(name), kind)
        if request.path == "/live.json":
            return _live(frame(), request.query)
        if request.path == "/metrics":
            return _scraped(metrics, request)
        return refusal(HTTPStatus.NOT_FOUND, "there are /, /live.json and /metrics.")

    return app


def _live(frame: Frame, query: str) -> Answer:
    """Answer with a frame; with ``since=N``, of what happened only that which came after number N."""
    found = _SINCE.fullmatch(query)
    if query and found is None:
        return refusal(HTTPStatus.BAD_REQUEST, "the query is since=NUMBER, or none.")
    told = to_json(frame.since(int(found[1]) if found else 0))
    body = json.dumps(told, separators=(",", ":"), allow_nan=False).encode()
    return Answer(HTTPStatus.OK, body, "application/json")


def _scraped(metrics: Any, request: Request) -> Answer:
    """Have prometheus_client choose the format and write the metrics."""
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": request.path,
        "QUERY_STRING": request.query,
        "HTTP_ACCEPT": request.fields.get("accept"),
        "HTTP_ACCEPT_ENCODING": request.fields.get("accept-encoding"),
    }
    told: dict[str, Any] = {}

    def start(status: str, fields: list[tuple[str, str]]) -> None:
        told.update(status=int(status.partition(" ")[0]), fields=fields)

    body = b"".join(metrics(environ, start))
    fields = {name.lower(): value for name, value in told["fields"]}
    kept = tuple((name.title(), value) for name, value in fields.items() if name in _HANDED_ON)
    return Answer(told["status"], body, fields.get("content-type", PLAIN), kept)
