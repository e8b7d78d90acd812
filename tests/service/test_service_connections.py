"""Connections cost what they may: heads, silence and numbers are bounded; a server of HTTP on loopback."""

import asyncio
import socket
import threading
import time
from contextlib import contextmanager

import pytest
from uvicorn.config import Config
from uvicorn.server import Server

from onepass.service.connections import HEAD, ConnectionLimits
from onepass.service.server import server_options
from patience import PATIENCE, until

REQUEST = b"GET / HTTP/1.1\r\nhost: localhost\r\n"


@contextmanager
def serving(limits, holding=None, waiting=None, asked=None):
    """A server in a thread, and its address. holding: an event that requests to /wait wait for; waiting: a list of
    those that do; asked: a list of all requests."""

    async def app(scope, receive, send):
        if asked is not None:
            asked.append(scope)
        if scope["path"] == "/wait":
            waiting.append(scope)
            await asyncio.to_thread(holding.wait, PATIENCE)
        body = b"x" * int(scope["query_string"] or 2)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    server = Server(Config(app, **server_options(None, None, limits)))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
    thread.start()
    until(lambda: server.started)
    try:
        yield place.getsockname(), server.server_state.connections
    finally:
        server.should_exit = True
        thread.join()
        place.close()


def answer(link):
    """Everything that comes until the other side closes or is silent after a whole answer."""
    link.settimeout(PATIENCE)
    found = b""
    while b"\r\n\r\n" not in found and (part := receive(link)):
        found += part
    return found


def receive(link):
    try:
        return link.recv(1 << 16)
    except ConnectionError:
        return b""


def status(found):
    return int(found.split(b" ")[1]) if found else None


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * HEAD + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
        REQUEST + b"a: " + b"x" * HEAD + b"\r\n\r\n",
        REQUEST + b"a: b\r\n" * (HEAD // 6) + b"\r\n",
        REQUEST + b"a: " + b"x" * (5 * HEAD),  # which never ends
    ],
    ids=["URL", "header", "headers", "endless header"],
)
@pytest.mark.parametrize("piece", [1 << 20, 1 << 12], ids=["at once", "in pieces"])
def test_a_head_that_is_too_large_is_refused(head, piece):
    counted = []
    with serving(ConnectionLimits(10, counted.append)) as (place, _), socket.create_connection(place) as link:
        try:
            for start in range(0, len(head), piece):
                link.sendall(head[start : start + piece])
        except ConnectionError:
            pass  # it was refused before all was sent
        assert status(answer(link)) in (431, None)
        assert counted == [431]


def test_300_megabytes_of_headers_are_not_kept():
    counted = []
    with serving(ConnectionLimits(10, counted.append)) as (place, _), socket.create_connection(place) as link:
        link.sendall(REQUEST)
        sent = 0
        try:
            while sent < 300_000_000:
                sent += link.send(b"a: " + b"x" * 100_000 + b"\r\n")
        except ConnectionError:
            pass
        assert sent < 20_000_000  # what buffers on the way take
        assert counted == [431]


def test_what_is_no_http_is_counted_and_logged_once_a_second(capfd):
    counted = []
    with serving(ConnectionLimits(10, counted.append)) as (place, _):
        begin = time.monotonic()
        for _ in range(50):
            with socket.create_connection(place) as link:
                link.sendall(b"\x16\x03\x01 no HTTP\r\n\r\n")
                assert status(answer(link)) == 400
        taken = time.monotonic() - begin
    assert counted == [400] * 50
    assert 1 <= capfd.readouterr().err.count("refused before they were read") <= 1 + taken


def test_a_request_that_does_not_come_is_ended():
    limits = ConnectionLimits(10, head_seconds=0.0, body_seconds=0.0)
    with serving(limits) as (place, _):
        for begin in (b"", REQUEST, b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\nab"):
            with socket.create_connection(place) as link:
                link.sendall(begin)
                found = answer(link)
                assert status(found) in (200, 408)  # an application may answer before a body is whole
                assert receive(link) == b""


def test_a_client_that_takes_no_answer_is_ended():
    limits, asked = ConnectionLimits(10, answer_seconds=0.0), []
    with serving(limits, asked=asked) as (place, connections), socket.create_connection(place) as link:
        link.sendall(b"GET /?200000000 HTTP/1.1\r\nhost: localhost\r\n\r\n")
        until(lambda: asked)  # the connection itself may be gone before anybody looks
        until(lambda: not connections)


def test_a_new_connection_ends_one_that_is_idle_the_least_begun_first():
    with serving(ConnectionLimits(5)) as (place, _):
        used = socket.create_connection(place)
        used.sendall(REQUEST + b"\r\n")
        assert status(answer(used)) == 200
        silent = [socket.create_connection(place) for _ in range(20)]
        for link in silent:
            link.sendall(REQUEST)  # half a request
        with socket.create_connection(place) as link:
            link.sendall(REQUEST + b"\r\n")
            assert status(answer(link)) == 200
        used.sendall(REQUEST + b"\r\n")
        assert status(answer(used)) == 200
        for link in (used, *silent):
            link.close()


def test_a_connection_too_many_gets_503_where_all_are_at_work():
    holding, waiting = threading.Event(), []
    with serving(ConnectionLimits(3), holding, waiting) as (place, _):
        busy = [socket.create_connection(place) for _ in range(3)]
        for link in busy:
            link.sendall(b"GET /wait HTTP/1.1\r\nhost: localhost\r\n\r\n")
        until(lambda: len(waiting) == 3)
        with socket.create_connection(place) as link:
            link.sendall(REQUEST + b"\r\n")
            found = answer(link)
        holding.set()
        assert status(found) == 503
        assert b"retry-after: 1" in found
        assert [status(answer(link)) for link in busy] == [200] * 3
        for link in busy:
            link.close()


def test_requests_that_come_together_are_answered_in_their_order():
    with serving(ConnectionLimits(3)) as (place, _), socket.create_connection(place) as link:
        link.sendall(b"".join(b"GET /?%d HTTP/1.1\r\nhost: localhost\r\n\r\n" % size for size in (3, 70_000, 5)))
        link.settimeout(PATIENCE)
        found = b""
        while found.count(b"HTTP/1.1 200") < 3 or not found.endswith(b"0\r\n\r\n"):
            found += link.recv(1 << 16)
        assert [body.count(b"x") for body in found.split(b"HTTP/1.1 200")[1:]] == [3, 70_000, 5]
