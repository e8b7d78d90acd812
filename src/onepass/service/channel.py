"""Frames between a service and one of its worker processes, over a pair of connected sockets.

    length of the payload (4 bytes) | kind (1 byte) | number (8 bytes) | payload

Each request of a worker has a number, and the answers to it have the same number.
"""

import asyncio
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec

from onepass.service.messages import ApiError

HEAD = struct.Struct("<IBQ")


class Kind(IntEnum):
    """Kind of a frame, a message between the service and a worker process.

    The service sends the kinds up to END, and a worker sends the others.
    """

    CONFIGURE = 0  # `Configuration`: the first frame
    STATE = 1  # the file of a loop's state is newer; payload: the loop's name
    STORED = 2  # a decision is durable; payload: empty, or the earlier record that has the same id
    STALE = 3  # the model of a decision was too old: decide again
    REFUSED = 4  # `Refusal`
    ANSWER = 5  # payload: the answer, as bytes
    START = 6  # `Start`: status and headers of the answer to a relayed request
    BODY = 7  # part of that answer's body
    END = 8  # last part of that answer's body
    READY = 9  # the worker serves
    FOLLOWED = 10  # the worker decides with the state of this number; payload: the loop's name
    SUBMIT = 11  # `Submission`: a decision to be stored
    FIND = 12  # `Question`: find the decision of an id
    OUTCOME = 13  # `Outcomes`: store outcomes
    RELAY = 14  # `Relayed`: a request that the service answers itself
    ABORT = 15  # the client of a relayed request is gone
    SERVED = 16  # list of `Served`


class Configuration(msgspec.Struct, frozen=True):
    """Configuration that the service sends to a worker process.

    `keys`, `clocks` and `states` are indexed by the name of a loop. They hold the keys of the loop as in the settings
    file, the `Clock.origin` of its clock, and the path of the file with its `State`. `certificate` and `private_key`
    are the TLS files, or None. `connections` is the largest number of connections of a worker.
    """

    keys: dict[str, list[dict[str, Any]]]
    clocks: dict[str, tuple[int, int]]
    states: dict[str, str]
    certificate: str | None
    private_key: str | None
    connections: int


class ModelBytes(msgspec.Struct, frozen=True):
    """Bytes of a model, and how far the model has learned the log.

    `line` is the model's number in its loop. It has learned the log up to and including the sequence number `through`.
    `data` is the content of a model file.
    """

    line: int
    through: int
    data: bytes


class State(msgspec.Struct, frozen=True):
    """Settings and models of a loop, with which worker processes decide.

    It is sent in a file, because it may take megabytes. `loop` is the name of the loop. `number` counts its states from
    1. `settings` are plain data, and `version` is the number of the settings. `present` is the serving model, and
    `candidate` the model under test, if there is one.
    """

    loop: str
    number: int
    settings: dict[str, Any]
    version: int
    present: ModelBytes
    candidate: ModelBytes | None = None


class Submission(msgspec.Struct, frozen=True):
    """Decision of a worker that the service must store.

    `loop` is the name of the loop. `client` is the key or address whose rate is limited. `state` is the number of the
    state that decided. `record` is JSON.
    """

    loop: str
    client: str | None
    state: int
    record: bytes


class Question(msgspec.Struct, frozen=True):
    """Request of a worker for the earlier decision with the id `id` in the loop `loop`."""

    loop: str
    id: str


class Outcomes(msgspec.Struct, frozen=True):
    """Request with outcomes that the service must store.

    `loop` is the name of the loop, `client` the key or address whose rate is limited, and `body` the body of the
    request.
    """

    loop: str
    client: str | None
    body: bytes


class Refusal(msgspec.Struct, frozen=True):
    """Error answer of the service to a worker, with the fields of an `ApiError`.

    `status` is the HTTP status, `code` and `message` describe the error, and `wait` is the number of seconds after
    which the client may try again.
    """

    status: int
    code: str
    message: str
    wait: int = 1

    @classmethod
    def from_error(cls, error: ApiError) -> "Refusal":
        """Return the message that tells a worker of an `ApiError`."""
        return cls(error.status, error.code, error.message, error.wait)

    def error(self) -> ApiError:
        """Return the error as an `ApiError`."""
        return ApiError(self.status, self.code, self.message, self.wait)


class Relayed(msgspec.Struct, frozen=True):
    """HTTP request that a worker hands on to the service: the body, and fields of the ASGI scope.

    `query` is the scope's `query_string`; the other fields have the names that they have in the scope.
    """

    method: str
    scheme: str
    path: str
    raw_path: bytes
    query: bytes
    headers: list[tuple[bytes, bytes]]
    client: tuple[str, int] | None
    server: tuple[str, int | None] | None
    body: bytes


class Start(msgspec.Struct, frozen=True):
    """Beginning of an HTTP response of the service that a worker hands on: status and headers."""

    status: int
    headers: list[tuple[bytes, bytes]]


class Served(msgspec.Struct, frozen=True, array_like=True):
    """Report that a worker has answered a request, for metrics.

    It holds the name of the loop, the operation (such as "decide"), the HTTP status, and the duration in seconds.
    """

    loop: str
    operation: str
    status: int
    seconds: float


class Channel(asyncio.Protocol):
    """One end of the connection between service and worker.

    `receive` is called with kind, number and payload of each frame. `lost` is called when the other end is gone.
    """

    def __init__(self, receive: Callable[[int, int, bytes], None], lost: Callable[[], None]) -> None:
        self._receive, self._lost = receive, lost
        self._buffer = bytearray()
        self._frames: list[bytes] = []  # to be sent together
        self._transport: Any = None
        self._writable = asyncio.Event()
        self._writable.set()

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Send a frame with this kind, number and content, or drop it if the other end is gone.

        Frames that are sent in the same step of the event loop leave together.
        """
        if not self._frames:
            asyncio.get_running_loop().call_soon(self._flush)
        self._frames.append(HEAD.pack(len(payload), kind, number))
        self._frames.append(payload)

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        if frames and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(frames))

    def send_message(self, kind: Kind, number: int, message: Any) -> None:
        """Send a message, encoded as a frame of this kind and with this number."""
        self.send(kind, number, msgspec.msgpack.encode(message))

    async def drain(self) -> None:
        """Wait until the buffer of the transport is below its limit."""
        await self._writable.wait()

    def close(self) -> None:
        """Send the waiting frames, and close the connection."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # ---- asyncio ----

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._lost()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        place = 0
        while len(buffer) - place >= HEAD.size:
            size, kind, number = HEAD.unpack_from(buffer, place)
            end = place + HEAD.size + size
            if len(buffer) < end:
                break
            self._receive(kind, number, bytes(buffer[place + HEAD.size : end]))
            place = end
        del buffer[:place]
