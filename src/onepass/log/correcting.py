"""Corrections: a reward that came after its decision was learned changes what was learned of that decision, exactly.

    b += (r' - r) x,      A stays      r: as it was learned, r': as it is known now, x: the row

Ridge regression is linear in rewards: what this gives is what r' in the first place would have given, whatever was
learned in between, up to rounding. It holds for shared models and models per arm, on exact and sketched designs, whose
b is exact either way (an arm in an arena: for rows within what it keeps). Left as they were are the residuals that some
rules count. Other estimators are not linear in rewards, and features may have moved since the row was learned, or a row
have been half forgotten: such a model is not corrected.
"""

from typing import Any

import numpy as np

from onepass.arena.arena import NONE
from onepass.arena.moving import Arm
from onepass.bandit.arms import ArmBandit
from onepass.bandit.decision import Decision
from onepass.bandit.shared import SharedBandit
from onepass.estimator.ridge import Ridge
from onepass.foundation.sharing import writing


def linear(bandit: Any) -> bool:
    """Whether what a bandit has learned is linear in rewards, row by row."""
    if isinstance(bandit, SharedBandit):
        estimator: Any = bandit.estimator
    elif isinstance(bandit, ArmBandit) and bandit.estimator.shared is None:
        estimator = bandit.estimator.arms
    else:
        return False
    return type(estimator) is Ridge and bandit.features is None and "half_life" not in bandit.params()


@writing
def correct(bandit: Any, decision: Decision, differences: list[float | None]) -> None:
    """Learn by how much the rewards of a decision are others than those that were learned.

    bandit: a `linear` one; decision: as its rewards were learned; differences: r' - r of each slot, None: of none.
    """
    rows = np.asarray(decision.context).reshape(len(decision.arms), -1)
    for row, arm, difference in zip(rows, decision.arms, differences, strict=True):
        if difference:
            if isinstance(bandit, SharedBandit):
                moment = bandit.learned.moment
                moment += (difference * row).astype(moment.dtype)
            else:
                correct_arm(bandit.learned.store, bandit.roster.record(arm), row, difference)


def correct_arm(store: Any, record: int, row: np.ndarray, difference: float) -> None:
    """The same of one of many arms; nothing of an arm that was removed."""
    if record == NONE:
        return
    arm = store.export(record)
    if not isinstance(arm, Arm):  # a state of its own
        moment = arm[0].moment
        moment += (difference * row).astype(moment.dtype)
        store.replace(record, arm)
        return
    change = (difference * row).astype(arm.basis.dtype)
    inside = (arm.basis * change).sum(axis=1)
    moment = arm.moment + inside
    weight = (arm.root * (arm.root * moment[:, None]).sum(axis=0)).sum(axis=1)  # R R^T Q b
    outside = arm.outside
    if len(outside):
        outside = outside + (change - (arm.basis * inside[:, None]).sum(axis=0))
    store.replace(record, arm._replace(moment=moment, weight=weight, outside=outside))
