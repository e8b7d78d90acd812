"""Policy of Personalizer's API: arguments of Vowpal Wabbit, converted to the exploration in the settings of a loop."""

import json
from typing import Any

import msgspec

from onepass.adapters.vowpal_wabbit import PLAIN_COMMAND, exploration_from_arguments, validate_exploration
from onepass.foundation.registry import build, to_plain
from onepass.service.settings import LoopSettings, make_bandit

LONGEST_NAME = 256  # characters, as Personalizer has it

# ---- the settings of a loop ----


def set_policy(settings: LoopSettings, name: str, arguments: str) -> LoopSettings:
    """Return settings with the exploration of the policy `name`, whose `arguments` are those of Vowpal Wabbit.

    Raises ValueError for a wrong name or wrong arguments.
    """
    if not 1 <= len(name) <= LONGEST_NAME:
        raise ValueError(f"name must have from 1 to {LONGEST_NAME} characters, got {len(name)}")
    said = msgspec.structs.replace(settings.personalizer, policy=name, arguments=arguments)
    return msgspec.structs.replace(set_exploration(settings, exploration_from_arguments(arguments)), personalizer=said)


def remove_policy(settings: LoopSettings) -> LoopSettings:
    """Return settings with the default exploration of the loop's bandit."""
    said = msgspec.structs.replace(settings.personalizer, policy="", arguments="")
    return msgspec.structs.replace(set_exploration(settings, None), personalizer=said)


def set_exploration(settings: LoopSettings, exploration: dict[str, Any] | None) -> LoopSettings:
    """Return settings with another exploration of the model, or with its default for None."""
    arguments = {name: value for name, value in settings.model.arguments.items() if name != "exploration"}
    if exploration is not None:
        arguments["exploration"] = exploration
    return msgspec.structs.replace(settings, model=msgspec.structs.replace(settings.model, arguments=arguments))


def policy_json(settings: LoopSettings) -> dict[str, str]:
    """Return the exploration policy of a loop in the form of Personalizer's API: its "name" and its "arguments"."""
    said = settings.personalizer
    if said.policy:
        return {"name": said.policy, "arguments": said.arguments}
    return {"name": PLAIN_COMMAND, "arguments": f"{PLAIN_COMMAND} {json.dumps(exploration_json(settings))}"}


def exploration_json(settings: LoopSettings) -> dict[str, Any]:
    """Return the exploration rule of a loop's bandit as plain data: its kind and its parameters, by name."""
    found = settings.model.arguments.get("exploration")
    return dict(found) if isinstance(found, dict) else dict(to_plain(make_bandit(settings).exploration))


def exploration_share(settings: LoopSettings) -> float:
    """Return the probability of uniform exploration: the share of decisions that ignore the model."""
    found = build(exploration_json(settings))
    return float(getattr(found, "uniform_share", getattr(found, "epsilon", 0.0)))


def set_exploration_share(settings: LoopSettings, share: float) -> LoopSettings:
    """Return settings with another exploration share; ValueError outside 0 and 1."""
    if share == exploration_share(settings):
        return settings
    found = exploration_json(settings)
    return set_exploration(
        settings, validate_exploration({**found, ("epsilon" if "epsilon" in found else "uniform_share"): share})
    )
