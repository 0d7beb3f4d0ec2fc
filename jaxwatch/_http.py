"""HTTP/1.1 as far as a few readers of figures need it: bytes → request, answer → bytes. Pure; GET and HEAD alone.

What is not understood is refused and the connection closed, so there is nothing to guess: no body is ever taken, no
field is folded over lines, no length is negotiated.
"""

import ipaddress
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from urllib.parse import urlsplit

# Bytes of a request line, of a whole head, and how many fields it may have. Beyond, the request is refused.
LINE_BYTES = 8 * 1024
HEAD_BYTES = 16 * 1024
FIELDS = 100

PLAIN = "text/plain; charset=utf-8"

_END = re.compile(rb"\r?\n\r?\n")
_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]+) HTTP/1\.([01])")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"[ -~\t\x80-\xff]*")
_METHODS = ("GET", "HEAD")
_DIGITS = re.compile(r"[0-9]{0,5}")

# Nothing but what this server itself has may be loaded, and no text can become markup or script; nobody may frame it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_SAFETY = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was understood.

    Attributes:
        method: ``GET`` or ``HEAD``.
        path: As it was sent, without the query.
        query: What follows ``?``; may be empty.
        fields: Names in lower case → values.
        keep: Whether the client goes on with this connection.
    """

    method: str
    path: str
    query: str
    fields: Mapping[str, str]
    keep: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered: a status, a body, its type, and further header fields."""

    status: int
    body: bytes
    content_type: str = PLAIN
    fields: tuple[tuple[str, str], ...] = ()


App = Callable[[Request], Answer]


def refusal(status: int, why: str) -> Answer:
    """Return an answer in plain words."""
    return Answer(status, f"{status} {HTTPStatus(status).phrase}: {why}\n".encode())


class RefusedError(Exception):
    """A request is not to be answered; ``answer`` says why."""

    def __init__(self, status: int, why: str, fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(why)
        told = refusal(status, why)
        self.answer = Answer(status, told.body, told.content_type, fields)


def take_request(received: bytearray, hosts: Collection[str] | None) -> Request | None:
    """Take the first request out of what was received; None where it is not whole yet.

    Args:
        received: What came so far; the request is removed from it.
        hosts: The names by which this server may be called, in lower case; None for any.

    Raises:
        RefusedError: It is malformed, too long, not of a known method, or for another host.
    """
    del received[: len(received) - len(received.lstrip(b"\r\n"))]  # some clients send a line's end behind a body
    end = _END.search(received, 0, HEAD_BYTES)
    if end is None:
        _check_length(received)
        return None
    head = bytes(received[: end.start()])
    _check_length(head)
    del received[: end.end()]
    line, *rest = re.split(rb"\r?\n", head)
    found = _LINE.fullmatch(line)
    if found is None:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "no request line of HTTP/1.")
    method, target, minor = found[1].decode(), found[2].decode(), found[3]
    fields = _fields(rest)
    if method not in _METHODS:
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD.", (("Allow", ", ".join(_METHODS)),))
    if "transfer-encoding" in fields or fields.get("content-length", "0") != "0":
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "a request has no body here.")
    host, path, query = _target(target, fields.get("host"), minor)
    if hosts is not None and host is not None and not is_known_host(host, hosts):
        raise RefusedError(HTTPStatus.FORBIDDEN, "call this server localhost, or by its address.")
    tokens = {token.strip().lower() for token in fields.get("connection", "").split(",")}
    keep = "close" not in tokens and (minor == b"1" or "keep-alive" in tokens)
    return Request(method, path, query, fields, keep)


def _check_length(head: bytes | bytearray) -> None:
    line = head.find(b"\n", 0, LINE_BYTES)
    if line < 0 and len(head) >= LINE_BYTES:
        raise RefusedError(HTTPStatus.REQUEST_URI_TOO_LONG, f"a request line has at most {LINE_BYTES:,} bytes.")
    if len(head) >= HEAD_BYTES:
        raise RefusedError(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"a request's head has at most {HEAD_BYTES:,} bytes."
        )


def _fields(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > FIELDS:
        raise RefusedError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"at most {FIELDS} header fields.")
    fields: dict[str, str] = {}
    for line in lines:
        before, colon, after = line.partition(b":")
        if not (colon and _NAME.fullmatch(before) and _VALUE.fullmatch(after)):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "a malformed header field.")
        name, value = before.decode().lower(), after.decode("latin-1").strip(" \t")
        if name in fields and name in {"host", "content-length", "transfer-encoding"}:
            raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name} more than once.")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _target(target: str, host: str | None, minor: bytes) -> tuple[str | None, str, str]:
    """Return the host that is asked for, the path and the query."""
    if minor == b"1" and host is None:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "HTTP/1.1 needs a Host.")
    if target.lower().startswith("http://"):  # as to a proxy; the rule is that this host counts
        try:
            whole = urlsplit(target)
        except ValueError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "a malformed target.") from error
        host, target = whole.netloc, (whole.path or "/") + (f"?{whole.query}" if whole.query else "")
    if not target.startswith("/"):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "a malformed target.")
    path, _, query = target.partition("?")
    return host, path, query


def is_known_host(host: str, hosts: Collection[str]) -> bool:
    """Return whether a ``Host`` names this machine: one of ``hosts``, or a loopback address, with any port.

    A page of another site whose name was made to point here (DNS rebinding) sends that name, and so cannot read.
    """
    if host.startswith("["):
        name, closed, rest = host[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            return False
        port = rest[1:]
    else:
        name, _, port = host.partition(":")
    if not _DIGITS.fullmatch(port):
        return False
    name = name.lower().removesuffix(".")
    if name in hosts:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def to_bytes(answer: Answer, *, head_only: bool = False, keep: bool = False, now: float | None = None) -> bytes:
    """Return the answer as it is sent.

    Args:
        answer: What to answer.
        head_only: Whether to leave the body out, as for HEAD; its length is told all the same.
        keep: Whether the connection stays open.
        now: Seconds since 1970; None: it is asked.
    """
    fields = [
        ("Date", formatdate(now, usegmt=True)),
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(answer.body))),
        ("Connection", "keep-alive" if keep else "close"),
        *_SAFETY,
        *answer.fields,
    ]
    status = HTTPStatus(answer.status)
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    start = f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode("latin-1")
    return start if head_only else start + answer.body
