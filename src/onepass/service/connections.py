"""Limits of connections: the size of a request's head, the time to send it, and the number of connections.

    head     at most 64 KiB of request line and headers, else 431; complete within 20 s, else 408
    body     complete within 60 s of its head, else 408; `limits.body` bounds its size
    answer   received by the client within 60 s, else the connection is closed
    number   at most `connections`: a new one closes an idle one, or gets 503 if none is idle

Parts of an answer that are written in one turn of the event loop are sent together.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

HEAD = 1 << 16  # bytes of request line and headers, and as many of trailers
SEPARATORS = 4  # bytes around name and value of a header
HEAD_SECONDS = 20.0
BODY_SECONDS = 60.0
ANSWER_SECONDS = 60.0
SWEEP = 1.0  # seconds between two looks for connections that took too long
JOIN = 1 << 16  # bytes that wait to be sent together: more are sent at once
QUIET = 1.0  # seconds between two lines about malformed requests
CONNECTIONS = 1_000

_logger = logging.getLogger("uvicorn.error")


class ConnectionLimits:
    """Limits of the connections of one process.

    `connections` is the largest number of connections. `count` is called with the status of each request that was
    refused before it was read. `head_seconds`, `body_seconds` and `answer_seconds` are the longest times to receive the
    head and the body of a request, and to send the answer.
    """

    def __init__(
        self,
        connections: int = CONNECTIONS,
        count: Callable[[int], object] = lambda status: None,
        *,
        head_seconds: float = HEAD_SECONDS,
        body_seconds: float = BODY_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.connections, self.count = connections, count
        self.head_seconds, self.body_seconds, self.answer_seconds = head_seconds, body_seconds, answer_seconds
        self._logged, self._unlogged, self._sweeping = -QUIET, 0, False

    def refuse(self, status: int, why: str) -> None:
        """Count a request refused with this HTTP status, and log the reason `why`, at most one line a second."""
        self.count(status)
        self._unlogged += 1
        now = time.monotonic()
        if now - self._logged >= QUIET:
            _logger.warning("%d requests were refused before they were read, the last one: %s", self._unlogged, why)
            self._logged, self._unlogged = now, 0

    def watch(self, connections: set[Any]) -> None:
        """Start a timer that every second refuses or closes those of `connections` that exceed a time limit.

        The call returns at once. The timer ends when `connections` is empty. If it runs already, nothing changes.
        """
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(SWEEP, self._sweep, connections)

    def _sweep(self, connections: set[Any]) -> None:
        now = time.monotonic()
        for connection in [*connections]:
            connection.end_if_late(now)
        self._sweeping = False
        if connections:
            self.watch(connections)

    def protocol(self) -> type[asyncio.Protocol]:
        """Make the HTTP protocol class with these limits, for uvicorn."""
        return type("LimitedProtocol", (LimitedProtocol,), {"limits": self})


class JoinedTransport:
    """Network connection that collects all data written in one step of the event loop, and sends them together."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send data at the end of this step of the event loop, or now if too many bytes wait."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size > JOIN:
            self.flush()

    def flush(self) -> None:
        """Send the data that waits to be written."""
        if self._parts:
            data, self._parts, self._size = b"".join(self._parts), [], 0
            if not self._transport.is_closing():
                self._transport.write(data)

    def close(self) -> None:
        """Send the data that waits to be written, and close the connection."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HeadTooLargeError(Exception):
    """Error for a request whose headers arrived in one piece and are too large."""


class LimitedProtocol(HttpToolsProtocol):
    """HTTP connection that enforces the limits of `ConnectionLimits`."""

    limits: ConnectionLimits

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.transport: Any = JoinedTransport(transport)
        self._head = 0  # bytes so far of an incomplete head
        self._in_body, self._refused = False, False
        self._deadline: float | None = time.monotonic() + self.limits.head_seconds  # for the part being received
        self._unread: float | None = None  # time since which the client has not read the answer
        self.limits.watch(self.connections)
        if len(self.connections) > self.limits.connections and not self._make_room():
            self._refuse(503, f"there are {self.limits.connections} connections, all at work")

    def _make_room(self) -> bool:
        """Close the oldest idle connection, and return True; return False if none is idle.

        Connections that have not yet sent a complete head are closed before others.
        """
        idle = [one for one in self.connections if isinstance(one, LimitedProtocol) and one is not self and one.is_idle]
        if not idle:
            return False
        min(idle, key=lambda one: (one.cycle is not None, one._deadline or 0.0)).transport.abort()
        return True

    @property
    def is_idle(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def end_if_late(self, now: float) -> None:
        """Close the connection if it takes too long to send a request, or to read the answer.

        `now` is the present time in seconds of the monotonic clock.
        """
        if self._unread is not None and now - self._unread > self.limits.answer_seconds:
            self.transport.abort()
        elif self._deadline is not None and now > self._deadline:
            if self._in_body and self.cycle.response_started:
                self.transport.abort()
            else:
                self._refuse(408, "it took too long to come")

    def _refuse(self, status: int, why: str) -> None:
        """Answer with an HTTP status and no body, and close; `why` is the reason for the service's own log."""
        self._refused, self._deadline = True, None
        self.limits.refuse(status, why)
        wait = b"retry-after: 1\r\n" if status == 503 else b""
        self.transport.write(STATUS_LINE[status] + wait + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()

    # ---- asyncio ----

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._unset_keepalive_if_required()
        if self._deadline is None and self.is_idle:
            self._deadline = time.monotonic() + self.limits.head_seconds
        self._head += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            if not isinstance(error.__context__, HeadTooLargeError):
                raise
            self._head = HEAD + 1
        except httptools.HttpParserError:
            self._refuse(400, "it is no HTTP")
            return
        except httptools.HttpParserUpgrade:
            return  # no other protocol is offered: the request is answered like any other
        if self._head > HEAD:
            self._refuse(431, f"its head has more than {HEAD} bytes")

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = time.monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = None

    # ---- the parser ----

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) + SEPARATORS for name, value in self.headers) > HEAD:
            raise HeadTooLargeError
        self._head, self._in_body = 0, True
        self._deadline = time.monotonic() + self.limits.body_seconds
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head, self._in_body, self._deadline = 0, False, None
        super().on_message_complete()
