"""Forgetting a subject while the service runs: what waits, what is in the log, and what restarts begin with.

    between two commits: what waits is dropped, and the log forgets  ->  what was told is learned  ->  a checkpoint

So no join of a decision that is gone is written. What the model has learned of the subject it still knows, and nobody
can learn it from the log again: so the log holds the model of that checkpoint, with which restarts, replays and
verifying go on.
"""

from concurrent.futures import Future
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onepass.service.loop import Loop
from onepass.service.messages import ForgetAnswer, ForgetRequest, named
from onepass.service.reading import JSON, body_of, durable, read
from onepass.service.writer import done, promise

_decoder = msgspec.json.Decoder(ForgetRequest)


def forget(loop: Loop, subject: str) -> Future[int]:
    """How many records of a subject the log has forgotten. StoreError where the log cannot be written, or where another
    process reads it, whose end must be waited for until the bytes are gone as well."""

    future = promise()

    def erase() -> None:
        """By the writer."""
        with loop.writer.counting:
            loop.writer.drop(loop.joiner.forget(subject))
        erased = promise()
        done(lambda: loop.store.forget(subject), erased)
        loop.learner.do(lambda: finish(erased))

    def finish(erased: Future[int]) -> None:
        """By the learner, who has learned all that was told."""
        loop.learner.keep(always=True)
        loop.learner.exchange()
        done(erased.result, future)

    def fail(ended: Future[None]) -> None:
        """The writer has ended before."""
        error = ended.exception()
        if error is not None:
            future.set_exception(error)

    loop.writer.between(erase).add_done_callback(fail)
    return future


async def forgotten(request: Request, loop: Loop) -> Response:
    """The call."""
    found = read(_decoder, await body_of(request, loop.settings.limits.body))
    named("subject", loop.settings.limits.id, found.subject)
    count = await durable(forget(loop, found.subject))
    return Response(msgspec.json.encode(ForgetAnswer(forgotten=count)), media_type=JSON)


def routes(made: Any) -> list[Any]:
    """Routes of the application. made: makes one of a path, a method, a role and a handler."""
    return [made("/v1/{loop}/forget", "POST", "admin", forgotten)]
