"""Erasure of all data about a subject (a person) while the service runs: from the join, the log, and the checkpoints.

    between two commits: drop waiting decisions, and erase the log  ->  learn the queued joins  ->  a checkpoint

No join of an erased decision is written. The model keeps what it has learned from the subject, and the log can no
longer reproduce it. So the log stores the model of that checkpoint, from which restarts, replays and verification
continue.
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
    """Erase all records about a subject (a person), and return a future of the number of erased records.

    The future raises StoreError if the log cannot be written, or if another process reads it. The bytes can be deleted
    only after that process has ended.
    """
    future = new_future()

    def erase() -> None:
        """Erase the records from the log, and queue `finish`; runs in the writer's thread."""
        with loop.writer.counting:
            loop.writer.drop_joins(loop.joiner.forget(subject))
        erased = new_future()
        run_into_future(lambda: loop.store.forget(subject), erased)
        loop.learner.run_soon(lambda: finish(erased))

    def finish(erased: Future[int]) -> None:
        """Save a checkpoint, then set the result; runs in the learner's thread, after it has learned the queued joins.

        `erased` is the finished future of the number of erased records, or of the error.
        """
        loop.learner.save_checkpoint(always=True)
        loop.learner.publish_copies()
        run_into_future(erased.result, future)

    def fail(ended: Future[None]) -> None:
        """Pass the error of `ended`, the finished future of `erase`, on if the writer could not run it."""
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
    """Return the HTTP routes by which all data about a subject are erased.

    `made` makes a route from a path, a method, a role and a handler.
    """
    return [made("/v1/{loop}/forget", "POST", "admin", forget)]
