"""What handlers do with a request: its body is read and checked, and what the writer promised is waited for."""

import asyncio
from concurrent.futures import Future
from typing import Any

from starlette.requests import ClientDisconnect, Request

from onepass.service.messages import Refused

JSON = "application/json"


async def body_of(request: Request, most: int) -> bytes:
    """The body; Refused where it is no JSON by its type, or larger than `most` bytes."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, "UnsupportedMediaType", f"content-type must be {JSON}")
    parts, count = [], 0
    try:
        async for part in request.stream():
            count += len(part)
            if count > most:
                raise Refused(413, "TooLarge", f"a body must have at most {most} bytes (limits.body)")
            parts.append(part)
    except ClientDisconnect:
        raise Refused(400, "Disconnected", "the body ended before it was whole") from None
    return b"".join(parts)


def read(decoder: Any, body: bytes) -> Any:
    """A message; Refused for what is none."""
    try:
        return decoder.decode(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "BadArgument", f"the body does not fit: {error}") from None


async def durable(promised: Future[Any]) -> Any:
    """What a promise of the writer is kept by; what it raises."""
    if promised.done():
        return promised.result()
    here = asyncio.get_running_loop()
    mine = here.create_future()
    promised.add_done_callback(lambda _: None if here.is_closed() else here.call_soon_threadsafe(wake, mine))
    await mine
    return promised.result()


def wake(waiting: asyncio.Future[None]) -> None:
    """Let a request go on that has not been given up."""
    if not waiting.done():
        waiting.set_result(None)
