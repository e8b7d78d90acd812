"""Bodies of requests, and results that the writer's thread hands to the event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

import msgspec
from starlette.datastructures import Address
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from onepass.service.duplicates import refuse_duplicates
from onepass.service.messages import ApiError

JSON = "application/json"
CONTENT_TYPE = (b"content-type", JSON.encode())


class RawRequest:
    """Minimal request for frequent operations, because a Starlette request takes four times as long.

    `scope` and `receive` are the arguments of an ASGI application. If a header comes twice, the first one counts.
    """

    __slots__ = ("_receive", "_scope", "headers")

    def __init__(self, scope: Any, receive: Any) -> None:
        self._scope, self._receive = scope, receive
        self.headers = {name.decode("latin-1"): said.decode("latin-1") for name, said in reversed(scope["headers"])}

    @property
    def client(self) -> Address | None:
        """Network address of the client that sent the request."""
        found = self._scope.get("client")
        return None if found is None else Address(*found)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces."""
        more = True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            yield message.get("body", b"")


class JSONBytes(Response):
    """HTTP response with status 200 whose body is a JSON document, given as bytes."""

    def __init__(self, body: bytes) -> None:
        self.status_code, self.body, self.background = 200, body, None
        self.raw_headers = [(b"content-length", b"%d" % len(body)), CONTENT_TYPE]


async def read_body(request: Request | RawRequest, most: int) -> bytes:
    """Return the body; raise ApiError if its type is not JSON, or if it is larger than `most` bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise ApiError(415, "UnsupportedMediaType", f"content-type must be {JSON}")
    parts, count = [], 0
    try:
        async for part in request.stream():
            count += len(part)
            if count > most:
                raise ApiError(413, "TooLarge", f"a body must have at most {most} bytes (limits.body)")
            parts.append(part)
    except ClientDisconnect:
        raise ApiError(400, "Disconnected", "the body ended before it was whole") from None
    return b"".join(parts)


def parse_body(decoder: Any, body: bytes) -> Any:
    """Return the message that `decoder` reads from the bytes `body`; raise ApiError if it is invalid."""
    try:
        found = decoder.decode(body)
        if isinstance(decoder, msgspec.json.Decoder):  # others look themselves
            refuse_duplicates(body)
        return found
    except (ValueError, RecursionError) as error:
        raise ApiError(400, "BadArgument", f"the body does not fit: {error}") from None


async def wait_for_result(promised: Future[Any]) -> Any:
    """Wait for a future of another thread, and return its result or raise its error."""
    if promised.done():
        return promised.result()
    here = asyncio.get_running_loop()
    mine = here.create_future()
    promised.add_done_callback(lambda _: None if here.is_closed() else here.call_soon_threadsafe(wake_waiter, mine))
    await mine
    return promised.result()


class Inbox:
    """Queue of items that other threads hand to the event loop; items that come together wake it once.

    The event loop calls `take` with each item.
    """

    def __init__(self, take: Callable[[Any], object]) -> None:
        self.loop = asyncio.get_running_loop()
        self._take, self._items = take, list[Any]()
        self._lock = threading.Lock()

    def put(self, item: Any) -> None:
        """Add an item to the queue, from any thread."""
        with self._lock:
            first = not self._items
            self._items.append(item)
        if first and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            items, self._items = self._items, []
        for item in items:
            self._take(item)


class Results:
    """Factory of awaitable results: the writer's thread sets them, and coroutines of the event loop await them."""

    def __init__(self) -> None:
        self._inbox = Inbox(set_outcome)
        self.loop = self._inbox.loop

    def promise(self) -> "AwaitedResult":
        """Return a result that a coroutine can await, and that the writer's thread sets later."""
        return AwaitedResult(self._inbox, self.loop.create_future())


def set_outcome(given: tuple[asyncio.Future[Any], Any, BaseException | None]) -> None:
    """Set the result or the error of a future, unless it is done; `given` is (future, result, error)."""
    future, result, error = given
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class AwaitedResult(NamedTuple):
    """Result that a coroutine awaits, cheaper than a `Future` of threads.

    `future` is the future of the event loop that the coroutine awaits. The writer's thread sets its result or its error
    by putting it into `inbox`, which the thread of the event loop reads.
    """

    inbox: Inbox
    future: asyncio.Future[Any]

    def set_result(self, result: Any, /) -> None:
        """Set the result, and wake the coroutine that waits for it."""
        self.inbox.put((self.future, result, None))

    def set_exception(self, exception: BaseException, /) -> None:
        """Set the error, and wake the coroutine that waits for the result."""
        self.inbox.put((self.future, None, exception))


def wake_waiter(waiting: asyncio.Future[None]) -> None:
    """Wake the coroutine that waits for the future `waiting`, if it still waits."""
    if not waiting.done():
        waiting.set_result(None)
