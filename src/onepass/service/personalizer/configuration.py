"""The service configuration and the policy: a view of the settings of a loop.

| rewardWaitTime | reward.wait | explorationPercentage | the uniform_share of the exploration |
| defaultReward | reward.default | modelExportFrequency | operation.publish |
| rewardAggregation | reward.aggregation | learningMode | mode |

What is left out of a request stays. Logs are kept for ever, so logRetentionDays is -1.
"""

import asyncio
import contextlib
from typing import Any

from msgspec.structs import replace
from starlette.responses import Response

from onepass.foundation.check import shown
from onepass.service.loop import Loop
from onepass.service.messages import Refused
from onepass.service.personalizer.apprentice import metrics
from onepass.service.personalizer.calls import Body, Call, answered
from onepass.service.personalizer.errors import Problem
from onepass.service.personalizer.policies import policy_of, share_of, with_policy, with_share, without_policy
from onepass.service.personalizer.times import duration, seconds_of, written
from onepass.service.settings import LoopSettings, checked

MODES = {"online": "Online", "apprentice": "Apprentice", "logging": "LoggingOnly"}
AVERAGE = {"average": "mean"}  # names of theirs that are others here
FOR_EVER = -1


class ServiceConfiguration(Body, frozen=True, kw_only=True):
    """What a client sets; None: as it is."""

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
    """Learning settings."""

    name: str
    arguments: str


async def get(call: Call) -> Response:
    """GET /configurations/service"""
    return answered(await asyncio.to_thread(said, call.loop))


async def put(call: Call) -> Response:
    """PUT and PATCH /configurations/service"""
    asked = call.read(ServiceConfiguration)
    await asyncio.to_thread(lambda: go_on(call.loop, configured(wanted(call.loop), asked)))
    return await get(call)


async def get_policy(call: Call) -> Response:
    """GET /configurations/policy"""
    return answered(policy_of(wanted(call.loop)))


async def put_policy(call: Call) -> Response:
    """PUT and PATCH /configurations/policy"""
    asked = call.read(PolicyContract)
    await asyncio.to_thread(follow, call.loop, asked.name, asked.arguments)
    return await get_policy(call)


async def delete_policy(call: Call) -> Response:
    """DELETE /configurations/policy"""
    await asyncio.to_thread(lambda: go_on(call.loop, without_policy(wanted(call.loop))))
    return await get_policy(call)


def wanted(loop: Loop) -> LoopSettings:
    """Settings as they will be once the model that was asked for last has caught up."""
    standing = loop.standing
    candidate = standing.lines.candidate
    if candidate is None:
        return loop.settings
    return replace(loop.settings, model=standing.wanted[candidate.number].model)


def go_on(loop: Loop, new: LoopSettings) -> None:
    """Let a loop go on by other settings: another model learns the log first, while the present one serves."""
    settings = checked(new.plain())
    if settings.model == loop.settings.model and loop.building is not None:
        with contextlib.suppress(Refused):  # it has ended meanwhile
            loop.give_up()
    loop.change(settings)


def follow(loop: Loop, name: str, arguments: str) -> None:
    """Let a loop explore as a policy says."""
    go_on(loop, with_policy(wanted(loop), name, arguments))


def said(loop: Loop) -> dict[str, Any]:
    """The configuration of a loop."""
    settings = wanted(loop)
    found: dict[str, Any] = {
        "rewardWaitTime": duration(settings.reward.wait),
        "defaultReward": settings.default or 0.0,
        "rewardAggregation": settings.reward.aggregation,
        "explorationPercentage": share_of(settings),
        "modelExportFrequency": duration(settings.operation.publish),
        "logMirrorEnabled": False,
        "logRetentionDays": FOR_EVER,
        "lastConfigurationEditDate": written(edited(loop)),
        "learningMode": mode_of(settings),
        "isAutoOptimizationEnabled": False,
        "isInferenceExplainabilityEnabled": settings.personalizer.explain,
        "modelRetrainDays": 0,
    }
    if settings.mode == "apprentice":
        found["latestApprenticeModeMetrics"] = metrics(loop, edited(loop))
    return found


def edited(loop: Loop) -> int:
    """When settings were changed last."""
    return max((record.time for record in loop.store.read(kinds=("settings",), loop=loop.name)), default=0)


def configured(settings: LoopSettings, asked: ServiceConfiguration) -> LoopSettings:
    """Settings as a client wants them; Refused for what the service does not do."""
    if asked.log_retention_days not in (None, FOR_EVER):
        message = "Logs are kept for ever, as the model is what they say: logRetentionDays must be -1."
        raise Problem(400, "InvalidLogRetentionDays", message, "logRetentionDays")
    for name, wanted in (("logMirrorEnabled", asked.log_mirror_enabled),
                         ("isAutoOptimizationEnabled", asked.is_auto_optimization_enabled)):  # fmt: skip
        if wanted:
            raise Problem(400, "InvalidServiceConfiguration", f"{name} must be false.", name)
    found = settings.plain()
    reward = found["reward"]
    if asked.reward_wait_time not in (None, duration(settings.reward.wait)):
        reward["wait"] = seconds_of(asked.reward_wait_time)
    if asked.default_reward is not None and asked.default_reward != (settings.default or 0.0):
        reward["default"] = asked.default_reward
    if asked.reward_aggregation is not None:
        name = asked.reward_aggregation.lower()
        reward["aggregation"] = AVERAGE.get(name, name)
    if asked.model_export_frequency not in (None, duration(settings.operation.publish)):
        found["operation"]["publish"] = seconds_of(asked.model_export_frequency)
    if asked.learning_mode is not None and asked.learning_mode != mode_of(settings):
        known = {theirs.lower(): ours for ours, theirs in MODES.items()}
        if asked.learning_mode.lower() not in known:
            message = f"learningMode must be one of {', '.join(MODES.values())}, got {shown(asked.learning_mode)}"
            raise Problem(400, "InvalidServiceConfiguration", message, "learningMode")
        found["mode"] = known[asked.learning_mode.lower()]
    if asked.is_inference_explainability_enabled is not None:
        found["personalizer"]["explain"] = asked.is_inference_explainability_enabled
    new = checked(found)
    return new if asked.exploration_percentage is None else with_share(new, asked.exploration_percentage)


def mode_of(settings: LoopSettings) -> str:
    """The learning mode as Personalizer calls it."""
    return MODES.get(settings.mode, settings.mode)
