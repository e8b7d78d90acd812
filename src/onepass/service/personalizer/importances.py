"""Feature importances: the share of each feature in all contributions to means.

    score of a feature = 100 * sum of |contribution| / that sum over all features,    over decisions of a span of time

Contributions are those of the serving model to the arms that were shown, in up to 1,000 decisions spread over the span
of time. The contribution of a pair of features counts half for each of the two.
"""

import asyncio
from collections import Counter
from typing import Any

from starlette.responses import Response

from onepass.log.records import Decision
from onepass.service.loop import Loop
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.evaluations import select_page
from onepass.service.personalizer.requests import Body, Call, empty_response, json_response
from onepass.service.personalizer.time_index import has_decisions_between, seq_before
from onepass.service.personalizer.times import format_time, parse_time

LOOKED = 1_000  # decisions that are explained
PERCENT = 100.0


class FeatureImportance(Body, frozen=True, kw_only=True):
    """Body of a request for feature importances: a `name`, and the span of time from `start_time` to `end_time`."""

    name: str
    start_time: str
    end_time: str


async def put(call: Call) -> Response:
    """Answer PUT /featureImportances/{id}: start to compute feature importances. The response is empty."""
    asked, loop = call.read(FeatureImportance), call.loop
    begins, ends = parse_time(asked.start_time), parse_time(asked.end_time)
    if not await asyncio.to_thread(has_decisions_between, loop.store, loop.name, begins, ends):
        raise Problem(400, "NoLogsExistInDateRange", "There are no decisions in that time.", "startTime")
    said = {
        "id": call.parts[0], "name": asked.name, "startTime": format_time(begins), "endTime": format_time(ends),
        "creationTime": format_time(loop.clock()),
    }  # fmt: skip
    await asyncio.to_thread(call.importances.start, said, lambda: {"featureScores": feature_scores(loop, begins, ends)})
    return Response(status_code=200)


async def get(call: Call) -> Response:
    """Answer GET /featureImportances/{id} with the state and the result of one computation of feature importances."""
    return json_response(await asyncio.to_thread(call.importances.get, call.parts[0]))


async def get_all(call: Call) -> Response:
    """Answer GET /featureImportances with a list of all computations of feature importances."""
    found = select_page(await asyncio.to_thread(call.importances.list_all), call)
    return json_response({"value": found, "nextLink": None})


async def delete(call: Call) -> Response:
    """Answer DELETE /featureImportances/{id}: delete the result with this id. The response is empty."""
    await asyncio.to_thread(call.importances.delete, call.parts[0])
    return empty_response()


def feature_scores(loop: Loop, begins: int, ends: int) -> list[dict[str, Any]]:
    """Return features with their scores, the largest first, from decisions from `begins` to `ends`.

    Both are times in microseconds of Unix time. A feature has "namespace", "featureName" and "score", its share of all
    contributions in percent.
    """
    model, total = loop.learner.snapshot, Counter[str]()
    for record in sample_decisions(loop, begins, ends):
        arms = dict(zip(record.offered or (), record.contexts["arms"], strict=True))
        shown = (record.shown or record.places)[0]
        for term in model.explain(record.contexts["context"], (record.offered or [])[shown], arms=arms).terms:
            sides = term.name.split(" * ")
            for name in sides:
                total[name] += abs(term.contribution) / len(sides)
    whole = sum(total.values()) or 1.0
    said = []
    for name, value in total.most_common():
        namespace, _, feature = name.rpartition(".") if "=" not in name.partition(".")[0] else ("", "", name)
        said.append({"namespace": namespace, "featureName": feature, "score": PERCENT * value / whole})
    return said


def sample_decisions(loop: Loop, begins: int, ends: int) -> list[Decision]:
    """Return up to 1,000 of the loop's decisions from `begins` to `ends` (microseconds of Unix time).

    They are every n-th decision, so they are spaced evenly in number and not in time.
    """
    kept, step, number = list[Decision](), 1, 0
    for record in loop.store.read(seq_before(loop.store, begins), None, ("decision",), loop.name):
        if record.time > ends or not loop.writer.is_alive():
            break
        if record.time >= begins and isinstance(record.contexts, dict):
            if number % step == 0:
                kept.append(record)
            number += 1
            if len(kept) > LOOKED:
                kept, step = kept[::2], step * 2
    return kept
