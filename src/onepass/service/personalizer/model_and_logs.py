"""Model and log of a loop: read, replace and delete them.

A model that a client sends, or a new one, is a model of the log like any other (log/model_lineage.py), so its decisions
can be verified. Deleting the log stages the present model as a new one, and then deletes the records before it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from onepass.foundation import files
from onepass.log.sqlite import SqliteStore
from onepass.log.store import StoreError
from onepass.service import promotion
from onepass.service.first_model import begin_bandit
from onepass.service.loop import Loop
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.requests import Call, empty_response, json_response
from onepass.service.personalizer.time_index import decision_times
from onepass.service.personalizer.times import format_time

BINARY = "application/octet-stream"
PATIENCE = 60.0  # seconds for a model to take over
PAUSE = 0.01  # seconds between two looks


async def get_model(call: Call) -> Response:
    """Answer GET /model with the present model as the bytes of a saved bandit."""
    data = await asyncio.to_thread(lambda: files.to_bytes(current_model(call.loop)[0]))
    return Response(data, media_type=BINARY)


async def put_model(call: Call) -> Response:
    """Answer PUT /model: let the saved bandit in the body serve from now on. The response is empty."""
    bandit = await asyncio.to_thread(parse_model, call.loop, call.content)
    await asyncio.to_thread(install_model, call.loop, bandit, "imported")
    return empty_response()


async def delete_model(call: Call) -> Response:
    """Answer DELETE /model: begin a new model that has learned nothing. The response is empty."""
    await asyncio.to_thread(lambda: install_model(call.loop, begin_bandit(call.loop.settings), "begun anew"))
    return empty_response()


async def delete_logs(call: Call) -> Response:
    """Answer DELETE /logs: delete the records that the loop no longer needs. The response is empty."""
    await asyncio.to_thread(delete_old_records, call.loop)
    return empty_response()


async def model_properties(call: Call) -> Response:
    """Answer GET /model/properties with the times at which the model was made and last changed."""
    return json_response(await asyncio.to_thread(properties, call.loop))


async def log_properties(call: Call) -> Response:
    """Answer GET /logs/properties with the times of the first and the last decision."""
    found = await asyncio.to_thread(decision_times, call.loop.store, call.loop.name)
    if found is None:
        raise Problem(404, "LogsPropertiesNotFound", "There are no decisions yet.")
    return json_response({"dateRange": {"from": format_time(found[0]), "to": format_time(found[1])}})


async def status(call: Call) -> Response:
    """Answer GET /status of v1.0 with "Valid", or with a sentence that says why the loop is not ready."""
    trouble = call.loop.problem()
    return json_response({"service": "onepass", "apiStatus": "Valid" if trouble is None else trouble})


def parse_model(loop: Loop, data: bytes) -> Any:
    """Return the bandit in `data`, bytes that GET /model returned.

    Raises ApiError for other bytes, or for a model of other settings than those of `loop`.
    """
    try:
        fresh = begin_bandit(loop.settings)
        found = files.from_bytes(data)
        same = (found.seed, found.name) == (fresh.seed, fresh.name) and fresh.model.can_become(found.model)
        found.exploration = fresh.exploration
    except (ValueError, AttributeError) as error:
        raise Problem(400, "InvalidModelImportFormat", f"This is no model of onepass: {error}") from None
    if not same:
        raise Problem(400, "InvalidModelImportFormat", "The model is one of other settings (model.arguments, seed).")
    return found


def current_model(loop: Loop) -> tuple[Any, int]:
    """Return a copy of the present model, and the sequence number of the last rewards it learned.

    Raises StoreError if learning has stopped.
    """
    found = list[tuple[Any, int]]()
    promotion.run_on_learner(loop, lambda: found.append((loop.learner.fold.bandit.copy(), loop.learner.fold.through)))
    if loop.learner.problem is not None:
        raise StoreError(loop.learner.problem)
    return found[0]


def install_model(loop: Loop, bandit: Any, why: str, through: int | None = None) -> int:
    """Install the model `bandit`, and return the sequence number at which it begins.

    It learns the rewards that come after `through`; `why` is the reason as a sentence. Raises StoreError if it takes
    too long.
    """
    number = loop.install_model(bandit, why, through)
    wait_until(loop, lambda: loop.learner.copies.present.line >= number)
    return loop.loop_state.lines.each[number].place


def wait_until(loop: Loop, done: Callable[[], bool]) -> None:
    """Wait until the function `done` returns True. Raises StoreError if that takes too long, or the writer ended."""
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end or not loop.writer.is_alive():
            raise StoreError("the learner has not come so far yet: try again")
        time.sleep(PAUSE)


def delete_old_records(loop: Loop) -> None:
    """Delete the records that the loop no longer needs; decisions that wait for their rewards stay.

    It first waits until the model has learned all rewards that were written before the call. Then the present model is
    installed again as a new one, so that the log need not hold what it has learned. All later rewards are still in the
    log, together with their decisions. Raises Problem if other loops share the log, or if the log is in a database.
    """
    if not isinstance(loop.store, SqliteStore):
        raise Problem(503, "OperationNotAllowed", "In a database logs are deleted by who owns it.")
    with loop.writer.counting:
        last = loop.writer.last
        waiting = loop.joiner.replay_start(last)
    wait_until(loop, lambda: next(loop.store.rows(loop.learner.seen, last, ("join",), loop.name), None) is None)
    bandit, through = current_model(loop)
    place = install_model(loop, bandit, "the log before was deleted", max(through, last))
    loop.store.drop_before(min(place - 1, waiting + 1))  # its settings stand before it


def properties(loop: Loop) -> dict[str, str]:
    """Return the time of the loop's first checkpoint and the time when its model learned last.

    The keys are "creationTime" and "lastModifiedTime". Times are ISO 8601 text.
    """
    records = loop.store.rows(0, None, ("checkpoint",), loop.name)
    times = [row.time for row in records]
    learned = next(iter(loop.store.rows(loop.learner.through - 1, loop.learner.through, None, None)), None)
    last = times[-1] if learned is None else learned.time
    return {"creationTime": format_time(times[0]), "lastModifiedTime": format_time(last)}
