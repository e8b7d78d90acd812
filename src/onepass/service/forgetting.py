"""Forgetting a subject while the service runs: what waits, what is in the log, and what restarts begin with.

    the writer pauses -> what waits is dropped -> all that was told is learned -> the log forgets -> a checkpoint

So no join of a decision that is gone is written or learned, and a restart goes on from the checkpoint with the model as
it is. What the model has learned of the subject it still knows.
"""

from concurrent.futures import Future
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onepass.service.loop import Loop
from onepass.service.messages import ForgetAnswer, ForgetRequest, named
from onepass.service.reading import JSON, body_of, durable, read

_decoder = msgspec.json.Decoder(ForgetRequest)


def forget(loop: Loop, subject: str) -> Future[int]:
    """How many records of a subject the log has forgotten. StoreError where the log cannot be written, or where another
    process reads it, whose end must be waited for until the bytes are gone as well."""

    def deleted() -> int:
        """By the learner, who has learned all that was told."""
        try:
            return loop.store.forget(subject)
        finally:
            loop.learner.keep(always=True)

    def paused() -> int:
        """By the writer."""
        gone = loop.joiner.forget(subject)
        loop.writer.drop(gone)
        return loop.learner.between(deleted).result()

    return loop.writer.between(paused)


async def forgotten(request: Request, loop: Loop) -> Response:
    """The call."""
    found = read(_decoder, await body_of(request, loop.settings.limits.body))
    named("subject", loop.settings.limits.id, found.subject)
    count = await durable(forget(loop, found.subject))
    return Response(msgspec.json.encode(ForgetAnswer(forgotten=count)), media_type=JSON)


def routes(made: Any) -> list[Any]:
    """Routes of the application. made: makes one of a path, a method, a role and a handler."""
    return [made("/v1/{loop}/forget", "POST", "admin", forgotten)]
