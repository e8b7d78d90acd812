"""Frames between a service and one of its worker processes, over a pair of connected sockets.

    length of the payload (4 bytes) | kind (1 byte) | number (8 bytes) | payload

A number belongs to a request of the worker, and its answers carry it back.
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
    """Kinds of frames, those of the service first."""

    CONFIGURE = 0  # what a worker serves: the first frame
    STATE = 1  # the file of a loop has a newer state; payload: the loop's name
    STORED = 2  # a decision is durable; payload: the record, where an earlier one of the same id stands
    STALE = 3  # a decision was made by a model that is too old: decide again
    REFUSED = 4  # a `Refusal`
    ANSWER = 5  # bytes
    START = 6  # of the answer to a relayed request: `Start`
    BODY = 7  # of the answer, more comes
    END = 8  # of the answer, the last part
    READY = 9  # the worker serves
    FOLLOWED = 10  # the worker decides by the state of this number
    SUBMIT = 11  # `Submission`: a decision to be stored
    FIND = 12  # `Question`: the decision of an id
    OUTCOME = 13  # `Outcomes`
    RELAY = 14  # `Relayed`: a request that the service answers itself
    ABORT = 15  # the client of a relayed request is gone
    SERVED = 16  # a list of `Served`


class Configuration(msgspec.Struct, frozen=True):
    """keys: as the settings files have them, by loop; clocks: of every loop, as `Clock.origin` says; states: the file
    of every loop's state; certificate, private_key: of TLS; connections: at most, of a worker."""

    keys: dict[str, list[dict[str, Any]]]
    clocks: dict[str, tuple[int, int]]
    states: dict[str, str]
    certificate: str | None
    private_key: str | None
    connections: int


class ModelBytes(msgspec.Struct, frozen=True):
    """A model of a loop. line: its number; through: the place of the log through which it has learned; data: as a file
    has it."""

    line: int
    through: int
    data: bytes


class State(msgspec.Struct, frozen=True):
    """Settings and models that decide in a loop: a file, for it may have megabytes.

    number: from 1; settings: plain; version: of the settings.
    """

    loop: str
    number: int
    settings: dict[str, Any]
    version: int
    present: ModelBytes
    candidate: ModelBytes | None = None


class Submission(msgspec.Struct, frozen=True):
    """A decision. client: whose rate is limited; state: the number of the state that decided; record: JSON."""

    loop: str
    client: str | None
    state: int
    record: bytes


class Question(msgspec.Struct, frozen=True):
    """Ask for the decision of an id."""

    loop: str
    id: str


class Outcomes(msgspec.Struct, frozen=True):
    """client: as above; body: of the request."""

    loop: str
    client: str | None
    body: bytes


class Refusal(msgspec.Struct, frozen=True):
    """A `Refused` in parts."""

    status: int
    code: str
    message: str
    wait: int = 1

    @classmethod
    def from_error(cls, error: ApiError) -> "Refusal":
        """Take a refusal apart."""
        return cls(error.status, error.code, error.message, error.wait)

    def error(self) -> ApiError:
        """Put it together again."""
        return ApiError(self.status, self.code, self.message, self.wait)


class Relayed(msgspec.Struct, frozen=True):
    """A request of HTTP, as ASGI has it."""

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
    """The beginning of an answer of HTTP."""

    status: int
    headers: list[tuple[bytes, bytes]]


class Served(msgspec.Struct, frozen=True, array_like=True):
    """A request that a worker answered, for metrics."""

    loop: str
    operation: str
    status: int
    seconds: float


class Channel(asyncio.Protocol):
    """One end of a pair. receive: is called with kind, number and payload of every frame; lost: when the other end is
    gone."""

    def __init__(self, receive: Callable[[int, int, bytes], None], lost: Callable[[], None]):
        self._receive, self._lost = receive, lost
        self._buffer = bytearray()
        self._frames: list[bytes] = []  # to be sent together
        self._transport: Any = None
        self._writable = asyncio.Event()
        self._writable.set()

    def send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        """Send a frame, together with others of this turn of the event loop; dropped where the other end is gone."""
        if not self._frames:
            asyncio.get_running_loop().call_soon(self._flush)
        self._frames.append(HEAD.pack(len(payload), kind, number))
        self._frames.append(payload)

    def _flush(self) -> None:
        frames, self._frames = self._frames, []
        if frames and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(frames))

    def send_message(self, kind: Kind, number: int, message: Any) -> None:
        """Send a message in a frame."""
        self.send(kind, number, msgspec.msgpack.encode(message))

    async def drain(self) -> None:
        """Wait until what was sent before is mostly gone."""
        await self._writable.wait()

    def close(self) -> None:
        """Send what waits, and close."""
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
