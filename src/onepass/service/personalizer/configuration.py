"""The service configuration and the policy of Personalizer's API, stored in the settings of a loop.

| rewardWaitTime | reward.wait | explorationPercentage | the uniform_share of the exploration |
| defaultReward | reward.default | modelExportFrequency | operation.publish |
| rewardAggregation | reward.aggregation | learningMode | mode |

A field that a request leaves out keeps its value. Logs are kept for ever, so logRetentionDays is -1.
"""

import asyncio
import contextlib
from typing import Any

from msgspec.structs import replace
from starlette.responses import Response

from onepass.foundation.check import quote
from onepass.service.loop import Loop
from onepass.service.messages import ApiError
from onepass.service.personalizer.apprentice import apprentice_metrics
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.policies import (
    exploration_share,
    policy_json,
    remove_policy,
    set_exploration_share,
    set_policy,
)
from onepass.service.personalizer.requests import Body, Call, json_response
from onepass.service.personalizer.times import format_duration, format_time, parse_duration
from onepass.service.settings import LoopSettings, parse_settings

MODES = {"online": "Online", "apprentice": "Apprentice", "logging": "LoggingOnly"}
AVERAGE = {"average": "mean"}  # names of theirs that are others here
FOR_EVER = -1


class ServiceConfiguration(Body, frozen=True, kw_only=True):
    """Body of a request that sets Personalizer's service configuration.

    The fields have the names of Personalizer's API, in snake case. A field that is None leaves the value as it is.
    """

    reward_wait_time: str | None = None
    default_reward: float | None = None
    reward_aggregation: str | None = None
    exploration_percentage: float | None = None
    model_export_frequency: str | None = None
    log_retention_days: int | None = None
    log_mirror_enabled: bool | None = None
    learning_mode: str | None = None
    is_auto_optimization_enabled: bool | None = None
    is_inference_explainability_enabled: bool | None = None
    model_retrain_days: int | None = None


class PolicyContract(Body, frozen=True, kw_only=True):
    """Policy of Personalizer's API: its `name`, and its `arguments` in the syntax of Vowpal Wabbit."""

    name: str
    arguments: str


async def get(call: Call) -> Response:
    """Answer GET /configurations/service with the loop's settings in the form of Personalizer's API."""
    return json_response(await asyncio.to_thread(configuration_json, call.loop))


async def put(call: Call) -> Response:
    """Answer PUT and PATCH /configurations/service: change the loop's settings, and respond with the new ones."""
    asked = call.read(ServiceConfiguration)
    await asyncio.to_thread(lambda: change_settings(call.loop, apply_configuration(pending_settings(call.loop), asked)))
    return await get(call)


async def get_policy(call: Call) -> Response:
    """Answer GET /configurations/policy with the exploration policy of the loop."""
    return json_response(policy_json(pending_settings(call.loop)))


async def put_policy(call: Call) -> Response:
    """Answer PUT and PATCH /configurations/policy: replace the exploration policy, and respond with the new one."""
    asked = call.read(PolicyContract)
    await asyncio.to_thread(follow_policy, call.loop, asked.name, asked.arguments)
    return await get_policy(call)


async def delete_policy(call: Call) -> Response:
    """Answer DELETE /configurations/policy: return to the default policy, and respond with it."""
    await asyncio.to_thread(lambda: change_settings(call.loop, remove_policy(pending_settings(call.loop))))
    return await get_policy(call)


def pending_settings(loop: Loop) -> LoopSettings:
    """Return the settings that will be in force once the candidate has caught up and taken over."""
    loop_state = loop.loop_state
    candidate = loop_state.lines.candidate
    if candidate is None:
        return loop.settings
    return replace(loop.settings, model=loop_state.staged[candidate.number].model)


def change_settings(loop: Loop, new: LoopSettings) -> None:
    """Change the settings of a loop. A new model learns the log first, while the present model serves."""
    settings = parse_settings(new.to_dict())
    if settings.model == loop.settings.model and loop.building is not None:
        with contextlib.suppress(ApiError):  # it has ended meanwhile
            loop.discard_candidate()
    loop.change_settings(settings)


def follow_policy(loop: Loop, name: str, arguments: str) -> None:
    """Change the exploration of a loop to that which a policy's `arguments`, in Vowpal Wabbit's syntax, ask for.

    `name` is the name of the policy.
    """
    change_settings(loop, set_policy(pending_settings(loop), name, arguments))


def configuration_json(loop: Loop) -> dict[str, Any]:
    """Return the configuration of a loop in the form of Personalizer's API."""
    settings = pending_settings(loop)
    found: dict[str, Any] = {
        "rewardWaitTime": format_duration(settings.reward.wait),
        "defaultReward": settings.default or 0.0,
        "rewardAggregation": settings.reward.aggregation,
        "explorationPercentage": exploration_share(settings),
        "modelExportFrequency": format_duration(settings.operation.publish),
        "logMirrorEnabled": False,
        "logRetentionDays": FOR_EVER,
        "lastConfigurationEditDate": format_time(last_edit(loop)),
        "learningMode": mode_of(settings),
        "isAutoOptimizationEnabled": False,
        "isInferenceExplainabilityEnabled": settings.personalizer.explain,
        "modelRetrainDays": 0,
    }
    if settings.mode == "apprentice":
        found["latestApprenticeModeMetrics"] = apprentice_metrics(loop, last_edit(loop))
    return found


def last_edit(loop: Loop) -> int:
    """Return the time of the last change of a loop's settings, in microseconds."""
    return max((record.time for record in loop.store.read(kinds=("settings",), loop=loop.name)), default=0)


def apply_configuration(settings: LoopSettings, asked: ServiceConfiguration) -> LoopSettings:
    """Return settings with the fields of the request `asked` changed. Raises Problem for an unsupported value."""
    if asked.log_retention_days not in (None, FOR_EVER):
        message = "Logs are kept for ever, as the model is what they say: logRetentionDays must be -1."
        raise Problem(400, "InvalidLogRetentionDays", message, "logRetentionDays")
    for name, wanted in (("logMirrorEnabled", asked.log_mirror_enabled),
                         ("isAutoOptimizationEnabled", asked.is_auto_optimization_enabled)):  # fmt: skip
        if wanted:
            raise Problem(400, "InvalidServiceConfiguration", f"{name} must be false.", name)
    found = settings.to_dict()
    reward = found["reward"]
    if asked.reward_wait_time not in (None, format_duration(settings.reward.wait)):
        reward["wait"] = parse_duration(asked.reward_wait_time)
    if asked.default_reward is not None and asked.default_reward != (settings.default or 0.0):
        reward["default"] = asked.default_reward
    if asked.reward_aggregation is not None:
        name = asked.reward_aggregation.lower()
        reward["aggregation"] = AVERAGE.get(name, name)
    if asked.model_export_frequency not in (None, format_duration(settings.operation.publish)):
        found["operation"]["publish"] = parse_duration(asked.model_export_frequency)
    if asked.learning_mode is not None and asked.learning_mode != mode_of(settings):
        known = {theirs.lower(): ours for ours, theirs in MODES.items()}
        if asked.learning_mode.lower() not in known:
            message = f"learningMode must be one of {', '.join(MODES.values())}, got {quote(asked.learning_mode)}"
            raise Problem(400, "InvalidServiceConfiguration", message, "learningMode")
        found["mode"] = known[asked.learning_mode.lower()]
    if asked.is_inference_explainability_enabled is not None:
        found["personalizer"]["explain"] = asked.is_inference_explainability_enabled
    new = parse_settings(found)
    return new if asked.exploration_percentage is None else set_exploration_share(new, asked.exploration_percentage)


def mode_of(settings: LoopSettings) -> str:
    """Return the name that Personalizer's API has for the mode of a loop."""
    return MODES.get(settings.mode, settings.mode)
