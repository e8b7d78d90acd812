"""What a loop holds: its model as a file, and since when it has a log."""

import asyncio

from starlette.responses import Response

from onepass.foundation import files
from onepass.service.loop import Loop
from onepass.service.personalizer.calls import Call, answered
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.places import first_and_last
from onepass.service.personalizer.times import written

BINARY = "application/octet-stream"


async def get_model(call: Call) -> Response:
    """GET /model"""
    data = await asyncio.to_thread(lambda: files.to_bytes(call.loop.learner.serving.bandit()))
    return Response(data, media_type=BINARY)


async def model_properties(call: Call) -> Response:
    """GET /model/properties"""
    return answered(await asyncio.to_thread(properties, call.loop))


async def log_properties(call: Call) -> Response:
    """GET /logs/properties"""
    found = await asyncio.to_thread(first_and_last, call.loop.store, call.loop.name)
    if found is None:
        raise Problem(404, "LogsPropertiesNotFound", "There are no decisions yet.")
    return answered({"dateRange": {"from": written(found[0]), "to": written(found[1])}})


async def status(call: Call) -> Response:
    """GET /status, of v1.0"""
    trouble = call.loop.trouble()
    return answered({"service": "onepass", "apiStatus": "Valid" if trouble is None else trouble})


def properties(loop: Loop) -> dict[str, str]:
    """When the model began, and when it learned last."""
    records = loop.store.rows(0, None, ("checkpoint",), loop.name)
    times = [row.time for row in records]
    learned = next(iter(loop.store.rows(loop.learner.through - 1, loop.learner.through, None, None)), None)
    last = times[-1] if learned is None else learned.time
    return {"creationTime": written(times[0]), "lastModifiedTime": written(last)}
