"""Erasure of a subject while the service runs: from the join, from the log, and from what restarts begin with.

    between two commits: drop waiting decisions, and erase the log  ->  learn what is queued  ->  a checkpoint

No join of an erased decision is written. The model still knows what it has learned of the subject, and nobody can learn
it from the log again: so the log holds the model of that checkpoint, from which restarts, replays and verification go
on.
"""

from concurrent.futures import Future
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from onepass.service.loop import Loop
from onepass.service.messages import ForgetAnswer, ForgetRequest, check_name
from onepass.service.request_body import JSON, parse_body, read_body, wait_for_result
from onepass.service.writer import new_future, run_into_future

_decoder = msgspec.json.Decoder(ForgetRequest)


def forget_subject(loop: Loop, subject: str) -> Future[int]:
    """Return a future of the number of erased records.

    StoreError if the log cannot be written, or if another process reads it, whose end must be waited for until the
    bytes are gone as well.
    """

    future = new_future()

    def erase() -> None:
        """By the writer."""
        with loop.writer.counting:
            loop.writer.drop_joins(loop.joiner.forget(subject))
        erased = new_future()
        run_into_future(lambda: loop.store.forget(subject), erased)
        loop.learner.run_soon(lambda: finish(erased))

    def finish(erased: Future[int]) -> None:
        """By the learner, who has learned all that was told."""
        loop.learner.save_checkpoint(always=True)
        loop.learner.publish_copies()
        run_into_future(erased.result, future)

    def fail(ended: Future[None]) -> None:
        """The writer has ended before."""
        error = ended.exception()
        if error is not None:
            future.set_exception(error)

    loop.writer.run_between_commits(erase).add_done_callback(fail)
    return future


async def forget(request: Request, loop: Loop) -> Response:
    """Answer a request to erase a subject."""
    found = parse_body(_decoder, await read_body(request, loop.settings.limits.body))
    check_name("subject", loop.settings.limits.id, found.subject)
    count = await wait_for_result(forget_subject(loop, found.subject))
    return Response(msgspec.json.encode(ForgetAnswer(forgotten=count)), media_type=JSON)


def routes(made: Any) -> list[Any]:
    """Return the routes. `made` makes one of a path, a method, a role and a handler."""
    return [made("/v1/{loop}/forget", "POST", "admin", forget)]
