"""Rank, reward and activate for one slot.

    rank      -> a decision of the loop
    reward    -> an outcome, once for every client request id
    activate  -> an activation of a deferred decision

A request that is repeated with its event id gets the first answer again, also after a restart. An event without an id
gets one that is computed from the client request id, if there is one, so a repeated call is the same event.
"""

import asyncio
import hashlib
from typing import Any

import msgspec
from starlette.responses import Response

from onepass.bandit.decision import new_id
from onepass.log.records import Decision
from onepass.service.crossed_features import merge_features
from onepass.service.loop import Loop
from onepass.service.messages import DecideAnswer, DecideRequest, OutcomeRequest, RecordsRequest
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.requests import Body, Call, empty_response, json_response
from onepass.service.responses import decision_answer
from onepass.service.settings import takes_records

EXPLAINED = 50  # arms that are explained, at most: each costs a decision
DIGITS = 16  # bytes of an event id that follows from a request


class Action(Body, frozen=True, kw_only=True):
    """Action to rank, with its id and a list of dictionaries of features."""

    id: str
    features: list[dict[str, Any]]


class RankRequest(Body, frozen=True, kw_only=True):
    """Body of a request of Personalizer's API for a ranking of actions.

    - actions: actions on offer.
    - context_features: features of the request, a list of dictionaries (default: none).
    - excluded_actions: ids of actions that must not be chosen (default: none).
    - event_id: id of the decision (default: made).
    - defer_activation: true if the decision counts only once it is activated (default: false).
    """

    actions: list[Action]
    context_features: list[dict[str, Any]] | None = None
    excluded_actions: list[str] | None = None
    event_id: str | None = None
    defer_activation: bool | None = None


class RewardRequest(Body, frozen=True, kw_only=True):
    """Body of a request of Personalizer's API with the reward `value` of a ranking."""

    value: float


async def rank(call: Call) -> Response:
    """Answer POST /rank: decide, and respond with the chosen action and the probabilities of all actions."""
    asked = call.read(RankRequest)
    check_actions(asked.actions)
    names = [action.id for action in asked.actions]
    known = set(names)
    excluded = [name for name in dict.fromkeys(asked.excluded_actions or ()) if name in known]
    if len(excluded) == len(names):
        raise Problem(400, "InvalidRankRequest", "Every action is excluded.", "excludedActions")
    request = make_request(
        call.loop, merge_features(asked.context_features), asked.actions, excluded,
        asked.event_id or derive_event_id(call), bool(asked.defer_activation),
    )  # fmt: skip
    record = await decide(call.loop, request)
    found = decision_answer(record)
    ranking = [{"id": one.arm, "probability": one.probability} for one in found.ranking]
    said: dict[str, Any] = {
        "ranking": reinsert_excluded(ranking, names, set(excluded)), "eventId": found.id, "rewardActionId": found.arm,
    }  # fmt: skip
    if call.loop.settings.personalizer.explain and isinstance(record.contexts, dict):
        said["inferenceExplanation"] = await asyncio.to_thread(explain_ranking, call.loop, record, found)
    return json_response(said, 201)


async def reward(call: Call) -> Response:
    """Answer POST /events/{eventId}/reward: store the reward of a decision. The response is empty."""
    value = call.read(RewardRequest).value
    _, future = call.loop.outcomes([OutcomeRequest(id=call.parts[0], value=value, key=call.idempotency_key)])
    await asyncio.wrap_future(future)
    return empty_response()


async def activate(call: Call) -> Response:
    """Answer POST /events/{eventId}/activate: make a deferred decision count. The response is empty."""
    await asyncio.wrap_future(call.loop.activate(call.parts[0]))
    return empty_response()


def check_actions(actions: list[Action]) -> None:
    """Raise Problem if there are no actions, or two with the same id."""
    names = [action.id for action in actions]
    if not names:
        raise Problem(400, "InvalidRankRequest", "There must be an action at least.", "actions")
    if len(set(names)) != len(names):
        raise Problem(400, "InvalidRankRequest", "Every action must have an id of its own.", "actions")


def make_request(
    loop: Loop, context: dict[str, Any], actions: list[Action], excluded: list[str], event: str, defer: bool
) -> DecideRequest:
    """Return a request of the native API from the parts of a Personalizer request.

    - context: record of the request, a dictionary of features.
    - actions: arms on offer, with their features.
    - excluded: ids of actions that must not be chosen.
    - event: id of the decision.
    - defer: True if the decision counts only once it is activated.

    Raises ValueError if the loop takes numbers and a feature is not a number.
    """
    kind = RecordsRequest if takes_records(loop.settings) else DecideRequest
    arms = [{"id": action.id, "features": merge_features(action.features)} for action in actions]
    if kind is DecideRequest:
        arms = [one if one["features"] else {"id": one["id"]} for one in arms]
    given = {"context": context, "arms": arms, "exclude": excluded, "id": event, "defer": defer}
    return msgspec.convert(given, kind)


def derive_event_id(call: Call) -> str:
    """Return an id for an event without one: a hash of the call if it has a request id, else a random id."""
    if call.idempotency_key is None:
        return new_id()
    return hashlib.blake2b(
        call.content, key=hashlib.sha256(call.idempotency_key.encode()).digest(), digest_size=DIGITS
    ).hexdigest()


async def decide(loop: Loop, request: DecideRequest) -> Decision:
    """Decide, and return the record of the decision once it is durable."""
    return await asyncio.wrap_future(loop.decide(request))


def reinsert_excluded(ranking: list[dict[str, Any]], names: list[str], excluded: set[str]) -> list[dict[str, Any]]:
    """Return a ranking with the excluded actions at the positions at which they were offered, but never first.

    Each dictionary in `ranking` has an action's "id". `names` are the ids of all actions as offered, and `excluded`
    those that must not be chosen.
    """
    out = [one for one in ranking if one["id"] not in excluded]
    by_name = {one["id"]: one for one in ranking}
    for place, name in enumerate(names):
        if name in excluded:
            out.insert(max(place, 1), by_name[name])
    return out


def explain_ranking(loop: Loop, record: Decision, found: DecideAnswer) -> list[dict[str, Any]]:
    """Return the contributions of features to the means of the first arms of a ranking, by the serving model.

    `record` is the record of the decision, and `found` its answer. At most 50 arms are explained. Each result has the
    arm's "id" and its "features", a list of {"name": ..., "score": ...}.
    """
    arms = dict(zip(record.offered or (), record.contexts["arms"], strict=True))
    said = []
    for one in found.ranking[:EXPLAINED]:
        terms = loop.learner.snapshot.explain(record.contexts["context"], one.arm, arms=arms).terms
        features = [{"name": term.name, "score": term.contribution} for term in terms]
        said.append({"id": one.arm, "features": features})
    return said
