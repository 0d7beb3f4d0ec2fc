"""Requests and answers as bytes; how they behave on a socket is test_server.py's."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxwatch import _http
from jaxwatch._http import Answer, RefusedError, Request, is_known_host, refusal, take_request, to_bytes

LOCAL = {"localhost", "127.0.0.1"}
GOOD = b"GET /metrics?name[]=a HTTP/1.1\r\nHost: localhost:9464\r\nAccept:  text/plain \r\n\r\n"


def taken(received: bytes, hosts: set[str] | None = LOCAL) -> Request:
    found = take_request(bytearray(received), hosts)
    assert found is not None
    return found


def refused(received: bytes, hosts: set[str] | None = LOCAL) -> int:
    with pytest.raises(RefusedError) as caught:
        take_request(bytearray(received), hosts)
    return caught.value.answer.status


def test_a_request_is_read() -> None:
    assert taken(GOOD) == Request(
        "GET", "/metrics", "name[]=a", {"host": "localhost:9464", "accept": "text/plain"}, keep=True
    )


@given(st.integers(0, len(GOOD) - 1))
def test_a_request_that_is_not_whole_is_waited_for(end: int) -> None:
    received = bytearray(GOOD[:end])

    assert take_request(received, LOCAL) is None
    assert received == GOOD[:end]


def test_requests_are_taken_one_by_one() -> None:
    received = bytearray(GOOD + b"\r\n" + GOOD.replace(b"GET", b"HEAD") + b"GET / HT")

    first, second, third = (take_request(received, LOCAL) for _ in range(3))

    assert [one and one.method for one in (first, second, third)] == ["GET", "HEAD", None]
    assert received == b"GET / HT"


def test_bare_line_feeds_are_read_too() -> None:
    assert taken(b"GET / HTTP/1.0\n\n").path == "/"


@pytest.mark.parametrize(
    ("request_bytes", "keep"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: x, keep-alive\r\n\r\n", True),
    ],
)
def test_whether_the_connection_is_kept_is_the_clients_to_say(request_bytes: bytes, keep: bool) -> None:
    assert taken(request_bytes).keep is keep


HOST = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    ("received", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\n\r\n\r\n", 400),  # TLS
        (b"GET /\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 400),
        (b"get / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET /a\0b HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET metrics HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET http://[::1 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"no colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b" folded: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A : x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: x\0y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A: x\ry\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"CONNECT evil:443 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello", 413),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: -0\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413),
        (b"GET /" + b"a" * 9_000, 414),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET / HTTP/1.1\r\nA: " + b"a" * 17_000, 431),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 101 + b"\r\n", 431),
        (b"a" * 100_000, 414),
        (b"\n" * 100_000 + b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    ],
)
def test_what_is_not_understood_is_refused(received: bytes, status: int) -> None:
    assert refused(received) == status


def test_another_method_is_told_which_there_are() -> None:
    with pytest.raises(RefusedError) as caught:
        take_request(bytearray(b"PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n"), LOCAL)

    assert ("Allow", "GET, HEAD") in caught.value.answer.fields


@given(st.binary(max_size=300))
def test_no_bytes_do_more_than_be_refused(received: bytes) -> None:
    for start in (b"", b"GET ", b"GET / HTTP/1.1\r\n"):
        try:
            take_request(bytearray(start + received + b"\r\n\r\n"), LOCAL)
        except RefusedError as error:
            assert 400 <= error.answer.status < 500  # noqa: PT017 -- some of the bytes are a request


def test_blanks_do_not_take_long_to_read() -> None:
    """A regular expression with two ways to read a blank would take hours."""
    assert refused(b"GET / HTTP/1.1\r\nHost: localhost\r\nA:" + b" " * 15_000 + b"\0\r\n\r\n") == 400


def test_what_is_received_is_not_copied_many_times() -> None:
    received = bytearray(b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"a" * 15_000)
    tracemalloc.start()
    assert take_request(received, LOCAL) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 * len(received)


# ------------------------------------------------------------------ which host


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:80", "localhost.", "localhost:", "127.0.0.1:9464", "127.8.8.8", "[::1]", "[::1]:9464"],
)
def test_this_machines_own_names_are_known(host: str) -> None:
    assert is_known_host(host, LOCAL)


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "localhost:80:80",
            "127.0.0.1.evil.example",
        ),
        *(
            "[::1",
            "[::1]x",
            "[evil]",
            "10.0.0.1",
            "0.0.0.0",  # noqa: S104 -- a name, that is refused
            "127.0.0.1@evil.example",
            "user@localhost",
            "localhost:8a",
        ),
        *("2130706433", "0x7f.1", "localhost..", "localhost, evil.example", "127.0.0.1:123456"),
    ],
)
def test_other_names_are_not(host: str) -> None:
    assert not is_known_host(host, LOCAL)
    assert refused(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()) == 403


def test_the_host_of_a_whole_url_counts() -> None:
    assert taken(b"GET http://localhost/a?b HTTP/1.1\r\nHost: x.example\r\n\r\n").path == "/a"
    assert refused(b"GET http://evil.example/a HTTP/1.1\r\nHost: localhost\r\n\r\n") == 403


def test_where_anybody_may_ask_any_name_will_do() -> None:
    assert taken(b"GET / HTTP/1.1\r\nHost: node7.cluster.example\r\n\r\n", None).path == "/"


def test_a_client_of_http_1_0_needs_no_host() -> None:
    assert taken(b"GET / HTTP/1.0\r\n\r\n").path == "/"
    assert refused(b"GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n") == 403


# ------------------------------------------------------------------ answers


def test_every_answer_carries_what_keeps_a_browser_safe() -> None:
    for answer in (Answer(200, b"x"), refusal(404, "nothing there.")):
        head = to_bytes(answer, now=0).partition(b"\r\n\r\n")[0].decode()
        fields = dict(line.split(": ", 1) for line in head.splitlines()[1:])

        policy = dict(part.strip().partition(" ")[::2] for part in fields["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert {policy[kind] for kind in ("script-src", "style-src", "connect-src")} == {"'self'"}
        assert {policy[kind] for kind in ("base-uri", "form-action", "frame-ancestors")} == {"'none'"}
        assert policy["require-trusted-types-for"] == "'script'"
        assert fields["X-Content-Type-Options"] == "nosniff"
        assert fields["X-Frame-Options"] == "DENY"
        assert fields["Referrer-Policy"] == "no-referrer"
        assert fields["Cross-Origin-Resource-Policy"] == "same-origin"
        assert fields["Cache-Control"] == "no-store"
        assert fields["Date"] == "Thu, 01 Jan 1970 00:00:00 GMT"
        assert not {"Server", "Access-Control-Allow-Origin"} & fields.keys()


def test_an_answer_tells_its_length_and_a_head_alone_does_too() -> None:
    whole = to_bytes(Answer(200, b"12345", "text/css"), keep=True, now=0)
    head = to_bytes(Answer(200, b"12345", "text/css"), head_only=True, keep=True, now=0)

    assert whole == head + b"12345"
    assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nContent-Length: 5\r\n" in head
    assert b"\r\nContent-Type: text/css\r\n" in head
    assert b"\r\nConnection: keep-alive\r\n" in head


def test_a_refusal_says_nothing_of_what_was_sent() -> None:
    with pytest.raises(RefusedError) as caught:
        take_request(bytearray(b"GET /<script> HTTP/1.1\r\nHost: <b>evil\r\n\r\n"), LOCAL)

    assert b"<" not in to_bytes(caught.value.answer)
    assert caught.value.answer.content_type == _http.PLAIN
