"""Corrections: a reward that comes after its decision was learned changes the model of that decision exactly.

The moment b of the model changes by

    b += (r' - r) x          r: reward as it was learned,  r': reward as it is known now,  x: the row;  A stays

Ridge regression is linear in rewards, so the result equals, up to rounding, that of learning r' in the first place,
whatever was learned in between. It holds for shared models and models per arm, on exact and sketched designs, whose b
is exact either way (for an arm in an arena, on the directions that it holds). The residuals that some exploration rules
count are not corrected. A model is not corrected at all if its estimator is not linear in rewards, if its features have
changed since the row was learned, or if it has partly forgotten the row.
"""

from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.bandit.decision import Decision
from onepass.estimator.ridge import Ridge
from onepass.foundation.rw_lock import writing
from onepass.model.arms.arm_models import ArmModels
from onepass.model.shared import SharedModel


def is_linear(bandit: Any) -> bool:
    """Return True if a bandit's learned state is linear in rewards, row by row."""
    model = getattr(bandit, "model", None)
    if isinstance(model, SharedModel):
        estimator: Any = model.estimator
    elif isinstance(model, ArmModels) and model.estimator.shared is None:
        estimator = model.estimator.arms
    else:
        return False
    return type(estimator) is Ridge and model.features is None and model.half_life is None


@writing
def learn_correction(bandit: Any, decision: Decision, differences: list[float | None]) -> None:
    """Correct the rewards of a decision that were learned by a bandit for which `is_linear` is True.

    `differences` holds, for each slot, the new reward minus the reward that was learned; None leaves a slot as it is.
    """
    rows = np.asarray(decision.context).reshape(len(decision.arms), -1)
    for row, arm, difference in zip(rows, decision.arms, differences, strict=True):
        if difference:
            if isinstance(bandit.model, SharedModel):
                moment = bandit.model.state.moment
                moment += (difference * row).astype(moment.dtype)
            elif (record := bandit.model.index.find(arm)) != NONE:  # not removed
                store = bandit.model.state.store
                store.write_arm(
                    record, store.export_arm(record).add_to_moment((difference * row).astype(bandit.model.dtype))
                )
