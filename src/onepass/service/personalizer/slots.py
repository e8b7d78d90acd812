"""Ranking of several slots: one decision for each slot, in order, among the actions that no earlier slot has taken.

    decision of slot j:  context + {"_slot": {"id": ..., its features}},  its own exclusions,  its baseline first

So each slot has its own features and exclusions, and each probability is exact given the earlier slots. A slot's
decision is joined, learned and replayed like any other decision. The first slot's decision has the event's id; the
others have the event's id and the slot's number.

A slot's decision also excludes the actions that would leave a later slot without an action. One action always remains,
because every slot has a different baseline.
"""

import asyncio
import hashlib
from typing import Any

import numpy as np
from starlette.responses import Response

from onepass.exploration.assignment import exclude_dead_ends
from onepass.foundation.check import quote
from onepass.log.records import LONGEST, Decision
from onepass.service.crossed_features import merge_features
from onepass.service.loop import Loop
from onepass.service.messages import OutcomeRequest
from onepass.service.personalizer import ranking
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.requests import Body, Call, empty_response, json_response
from onepass.service.responses import decision_answer
from onepass.service.settings import takes_records

SLOT = "_slot"  # no feature of a client's: those that begin so are passed over
DIGITS = 16  # bytes of an identity that would be too long


class Slot(Body, frozen=True, kw_only=True):
    """Slot to fill, with its `id` and its `features`, a list of dictionaries.

    `baseline_action` is the id of the action that is shown there without a model. `excluded_actions` are ids of actions
    that must not be shown there.
    """

    id: str
    baseline_action: str
    features: list[dict[str, Any]] | None = None
    excluded_actions: list[str] | None = None


class MultiSlotRankRequest(Body, frozen=True, kw_only=True):
    """Body of a request of Personalizer's API for a ranking of actions in several slots.

    `actions` are the actions on offer, and `slots` the slots to fill. The other fields are those of `RankRequest`.
    """

    actions: list[ranking.Action]
    slots: list[Slot]
    context_features: list[dict[str, Any]] | None = None
    event_id: str | None = None
    defer_activation: bool | None = None


class SlotReward(Body, frozen=True, kw_only=True):
    """Reward `value` of the action shown in the slot with the id `slot_id`."""

    slot_id: str
    value: float


class MultiSlotRewardRequest(Body, frozen=True, kw_only=True):
    """Body of a request of Personalizer's API with the rewards of several slots."""

    reward: list[SlotReward]


async def rank(call: Call) -> Response:
    """Answer POST /multislot/rank: choose an action for every slot, and respond with the chosen actions."""
    asked = call.read(MultiSlotRankRequest)
    loop, event = call.loop, asked.event_id or ranking.derive_event_id(call)
    if not takes_records(loop.settings):
        raise Problem(
            400,
            "InvalidMultiSlotApiAccess",
            "Slots need a loop of records: features.records = true, or recipe = InteractionBandit.",
        )
    check_slots(asked)
    context, taken, said = merge_features(asked.context_features), set[str](), list[dict[str, Any]]()
    barred_in = [set(slot.excluded_actions or ()) for slot in asked.slots]
    among = np.array([[action.id not in barred for action in asked.actions] for barred in barred_in])
    for j, slot in enumerate(asked.slots):
        free = np.array([action.id not in taken for action in asked.actions])
        fits = among[j] & free
        exclude_dead_ends(among, j, fits, free)
        barred = {action.id for action, fit in zip(asked.actions, fits.tolist(), strict=True) if not fit}
        left = [action for action in asked.actions if action.id not in taken]
        left.sort(key=lambda action: action.id != slot.baseline_action)
        excluded = [action.id for action in left if action.id in barred]
        place = {SLOT: {**merge_features(slot.features), "id": slot.id}}
        request = ranking.make_request(
            loop, {**context, **place}, left, excluded, slot_event_id(event, j), bool(asked.defer_activation)
        )
        found = decision_answer(await ranking.decide(loop, request))
        taken.add(found.arm)
        said.append({"id": slot.id, "rewardActionId": found.arm})
    return json_response({"slots": said, "eventId": event}, 201)


async def reward(call: Call) -> Response:
    """Answer POST /multislot/events/{eventId}/reward: store the rewards of slots. The response is empty."""
    asked = call.read(MultiSlotRewardRequest)
    found = await asyncio.to_thread(find_slots, call.loop, call.parts[0])
    unknown = next((one.slot_id for one in asked.reward if one.slot_id not in found), None)
    if unknown is not None:
        raise Problem(400, "InvalidRewardRequest", f"The event has no slot {quote(unknown)}.", "reward")
    rewards = [OutcomeRequest(id=found[one.slot_id], value=one.value, key=call.idempotency_key) for one in asked.reward]
    _, future = call.loop.outcomes(rewards)
    await asyncio.wrap_future(future)
    return empty_response()


async def activate(call: Call) -> Response:
    """Answer POST /multislot/events/{eventId}/activate: make all slots of a deferred event count.

    The response is empty.
    """
    for identity in (await asyncio.to_thread(find_slots, call.loop, call.parts[0])).values():
        await asyncio.wrap_future(call.loop.activate(identity))
    return empty_response()


def check_slots(asked: MultiSlotRankRequest) -> None:
    """Raise Problem if the slots of the request `asked` cannot be filled with its actions."""
    ranking.check_actions(asked.actions)
    names, slots = {action.id for action in asked.actions}, asked.slots
    baselines = [slot.baseline_action for slot in slots]
    wrong = None
    if not 1 <= len(slots) <= len(names):
        wrong = "The number of slots should be between 1 and the number of actions."
    elif len({slot.id for slot in slots}) != len(slots):
        wrong = "Every slot must have an id of its own."
    elif len(set(baselines)) != len(slots) or not set(baselines) <= names:
        wrong = "Every slot must have a baselineAction of its own among the actions."
    elif any(slot.baseline_action in (slot.excluded_actions or ()) for slot in slots):
        wrong = "A baselineAction must not be excluded."
    if wrong is not None:
        raise Problem(400, "InvalidRankRequest", wrong, "slots")


def slot_event_id(event: str, number: int) -> str:
    """Return the id of the decision for slot `number`, from 0, of the event with the id `event`."""
    if number == 0:
        return event
    text = f"{event} slot {number + 1}"
    return text if len(text) <= LONGEST else hashlib.blake2b(text.encode(), digest_size=DIGITS).hexdigest()


def find_slots(loop: Loop, event: str) -> dict[str, str]:
    """Return the id of each slot's decision by the slot's id. Raises Problem if there is no such event."""
    found: dict[str, str] = {}
    while True:
        identity = slot_event_id(event, len(found))
        records = loop.store.find(loop.name, identity)
        one = next((record for record in records if isinstance(record, Decision)), None)
        if one is None or SLOT not in one.contexts["context"]:
            break
        found[one.contexts["context"][SLOT]["id"]] = identity
    if not found:
        raise Problem(404, "ResourceNotFound", f"There is no event {quote(event)} of several slots.", "eventId")
    return found
